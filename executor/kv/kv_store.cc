#include "executor/kv/kv_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "executor/kv/kv_transfer.h"
#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/prepare.h"

// From what a protocol has (bindings, objects that were stored or found) to what it needs (puts, gets, a publication),
// for KV cache. Each way goes through prepare_copies(), so nothing is put or got by a plan that was not proved (I1).
namespace crossdock {
namespace {

// The page number in "part/3".
// snapshot_objects() made the name, so there is a number after the last separator.
uint64_t page_of(const RegionId& object) {
  const std::string& text = object.text();
  return std::stoull(text.substr(text.rfind('/') + 1));
}

bool is_state_object(const RegionId& object) { return object.text().ends_with("/state"); }

// Leaves out objects that hold less than all rows of their part.
// A page object is shared by its key, so it must not depend on which snapshot wrote it. It is whole when the payload of
// all its puts is the sum of its part's arrays; bytes between arrays are padding and in no payload.
bool keep_whole_pages(const Valid<StoreLayout>& layout, std::vector<ObjectShape>& objects, std::vector<PutStep>& puts,
                      Diagnostics& diagnostics) {
  const std::optional<StoreGeometry> geometry = store_geometry(layout, diagnostics);
  if (!geometry) return false;
  std::vector<StorePartBytes> whole(geometry->parts.size());  // without what lies between arrays
  for (const StoreArray& array : geometry->arrays) {
    const bool is_state = layout->cache_schema.groups[array.group].components[array.component].is_state();
    (is_state ? whole[array.part].state : whole[array.part].page) += array.bytes;
  }
  std::map<RegionId, uint64_t> payload;
  for (const PutStep& put : puts) payload[put.object] = put.payload_bytes;
  std::set<RegionId> kept;
  std::erase_if(objects, [&](const ObjectShape& object) {
    const StorePartBytes& bytes = whole[object.part];
    const bool is_whole = payload[object.id] == (is_state_object(object.id) ? bytes.state : bytes.page);
    if (is_whole) kept.insert(object.id);
    return !is_whole;
  });
  std::erase_if(puts, [&](const PutStep& put) { return !kept.contains(put.object); });
  return true;
}

bool has_windows(const CacheSchema& schema) {
  return std::any_of(schema.groups.begin(), schema.groups.end(), [](const LayerGroup& group) {
    return std::any_of(group.components.begin(), group.components.end(), [&](const Component& component) {
      return !component.is_state() && group.live_of(component.name) != LiveTokens::all();
    });
  });
}

// Whether the keys are those of all pages of the snapshot's tokens.
// Keys are of full pages from token 0 on, so a snapshot that begins later, or ends within a page, has objects without a
// key.
Status check_page_keys(const std::string& name, const KvUpload& upload) {
  const Range tokens = (*upload.documents.snapshot)->tokens;
  const uint64_t page_tokens = (*upload.documents.layout)->page_tokens;
  if (!upload.page_keys || (tokens.begin() == 0 && tokens.end() % page_tokens == 0 &&
                            tokens.end() / page_tokens == upload.page_keys->size()))
    return Status();
  return Status(Code::kInvalidArgument,
                fmt::format("{}: tokens [{},{}) are not the {} pages of {} tokens that there are keys of", name,
                            tokens.begin(), tokens.end(), upload.page_keys->size(), page_tokens));
}

// A state has no tokens of its own: it is that of the end of the last page. There is one, since a snapshot has tokens
// and check_page_keys() held.
std::vector<PageEntry> page_entries(const SnapshotObjects& objects, const StoreLayout& layout,
                                    std::span<const PageKey> keys, const std::map<RegionId, StoredObject>& stored) {
  std::vector<PageEntry> entries;
  for (const ObjectShape& object : objects.objects) {
    const bool is_state = is_state_object(object.id);
    const uint64_t page = is_state ? keys.size() - 1 : page_of(object.id);
    entries.push_back(PageEntry{PageObjectKey{keys[page], objects.layout_digest, layout.parts[object.part].key,
                                              is_state ? PageObject::kState : PageObject::kRows},
                                stored.at(object.id)});
  }
  return entries;
}

}  // namespace

std::optional<ContentId> KvUploadPlanner::content() const {
  if (upload_.page_keys) return std::nullopt;
  return digest(*upload_.documents.snapshot);
}

Result<std::shared_ptr<const UploadJob>> KvUploadPlanner::make_job(const std::string& name,
                                                                   std::span<const AnyBinding> sources) const {
  Diagnostics diagnostics(name);
  const auto failed = [&] { return diagnostics.to_status(); };
  const UploadDocuments& documents = upload_.documents;
  const std::optional<std::vector<BindingPointer>> bindings = kv_bindings(sources, diagnostics);
  if (!bindings) return failed();
  const BindingContext context(*documents.source, documents.snapshot.get());
  const std::optional<BoundSide> source = BoundSide::bind(context, pointers_to(*bindings), diagnostics);
  if (!source) return failed();
  const Sha256Digest layout_digest = digest(*documents.layout);
  const PlanSide source_side(*documents.source, context.placement_digest());
  const PlanSide layout_side(*documents.layout, layout_digest);
  std::optional<SnapshotObjects> objects;
  std::optional<PreparedCopies> copies;
  const auto prepare = [&](uint64_t live_page_tokens, Diagnostics& found) {
    objects =
        snapshot_objects(*documents.layout, layout_digest, (*documents.snapshot)->tokens, found, live_page_tokens);
    if (!objects) return false;
    PlanOptions options = upload_.plan;
    options.live_page_tokens = live_page_tokens;
    copies = prepare_copies(PreparedSide{source_side, *source}, PreparedSide{layout_side, BoundSide(*objects)},
                            std::move(options), upload_.lower, found);
    return copies.has_value();
  };
  // A page is stored whole, with rows that no longer live, where the source has them. Where it has not, the page that
  // the window begins in is left out below.
  Diagnostics whole_pages(name);
  const bool try_pages = upload_.page_keys && has_windows((*documents.layout)->cache_schema);
  if (!(try_pages && prepare((*documents.layout)->page_tokens, whole_pages)) && !prepare(1, diagnostics))
    return failed();

  auto job = std::make_shared<UploadJob>();
  job->counts = copies->lowered.counts();
  job->puts = puts_of(copies->lowered);
  if (upload_.page_keys && !keep_whole_pages(*documents.layout, objects->objects, job->puts, diagnostics))
    return failed();
  TRY_STATUS(check_page_keys(name, upload_));
  for (const ObjectShape& object : objects->objects) job->objects.push_back(UploadObject{object.id, object.bytes});
  job->plan = Erased(std::make_shared<const Valid<TransferPlan>>(std::move(copies->plan)));
  job->origin = Erased(std::make_shared<const SnapshotObjects>(std::move(*objects)));
  return std::shared_ptr<const UploadJob>(std::move(job));
}

Result<PublishedContent> KvUploadPlanner::publication(const std::string& name, const UploadJob& job,
                                                      const std::map<RegionId, StoredObject>& stored) const {
  const std::shared_ptr<const SnapshotObjects> objects = job.origin.as<SnapshotObjects>();
  CHECK(objects != nullptr);  // make_job() of this planner put it there, and a job is not changed afterwards
  if (upload_.page_keys)
    return PublishedContent(page_entries(*objects, **upload_.documents.layout, *upload_.page_keys, stored));
  StoreManifest manifest;
  manifest.snapshot = **upload_.documents.snapshot;
  manifest.cache_schema = (*upload_.documents.source)->cache_schema;
  for (const ObjectShape& object : objects->objects) manifest.objects.push_back(stored.at(object.id));
  // Before there were checksums these views were the target of the plan; the manifest says where the bytes were put.
  manifest.views = objects->views;
  Diagnostics diagnostics(fmt::format("the manifest of {}", name));
  std::optional<Valid<StoreManifest>> valid = Valid<StoreManifest>::make(std::move(manifest), diagnostics);
  if (!valid) return diagnostics.to_status();
  return PublishedContent(AnyManifest(std::make_shared<const Valid<StoreManifest>>(std::move(*valid))));
}

// The order is fixed: prefix_manifest() relies on it to match answers with questions.
std::vector<PageObjectKey> prefix_objects(const PrefixMatch& match, std::span<const PageKey> keys) {
  std::vector<PageObjectKey> objects;
  for (const RowSource& rows : match.rows)
    for (uint64_t page = rows.pages.begin(); page < rows.pages.end(); ++page)
      for (const ObjectKey& part : rows.parts)
        objects.push_back(PageObjectKey{keys[page], rows.layout, part, PageObject::kRows});
  if (match.state)
    for (const ObjectKey& part : match.state->parts)
      objects.push_back(PageObjectKey{keys[match.state->page], match.state->layout, part, PageObject::kState});
  return objects;
}

Result<std::shared_ptr<const Valid<StoreManifest>>> prefix_manifest(const LayoutCatalog& catalog,
                                                                    const PrefixMatch& match,
                                                                    std::span<const PageKey> keys,
                                                                    const Valid<SnapshotDescriptor>& snapshot,
                                                                    Found& found) {
  const std::vector<PageObjectKey> wanted = prefix_objects(match, keys);
  // The look-up answers with those that are there, in the order of the question, so the first difference is the first
  // that is missing. A page may have been deleted since it was matched; the lease only holds what was found.
  const auto missing = std::mismatch(wanted.begin(), wanted.end(), found.pages.begin(), found.pages.end()).first;
  if (missing != wanted.end())
    return Status(Code::kNotFound, fmt::format("{} is not stored any more", missing->to_text()));
  // In its own layout an object is called "part/3" or "part/state". Pages of several layouts come together here, so the
  // digest of the layout goes before that name.
  std::map<PageKey, uint64_t> page_numbers;
  // From the back, so that of equal keys the first page counts.
  for (size_t page = keys.size(); page-- > 0;) page_numbers[keys[page]] = page;
  std::map<RegionId, StoredObject> objects;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const PageObjectKey& key = wanted[i];
    const std::string own = key.object == PageObject::kState
                                ? fmt::format("{}/state", key.part.text())
                                : fmt::format("{}/{}", key.part.text(), page_numbers.at(key.page));
    StoredObject object = found.objects[i].object;
    object.id = RegionId(fmt::format("{}/{}", key.layout.hex().substr(0, 16), own));
    found.objects[i].object.id = object.id;
    objects.emplace(object.id, std::move(object));
  }
  StoreManifest manifest;
  manifest.snapshot = *snapshot;
  Diagnostics diagnostics("the manifest of the prefix");
  std::set<Sha256Digest> layouts;
  for (const PageObjectKey& key : wanted) layouts.insert(key.layout);
  for (const Sha256Digest& layout_digest : layouts) {
    const CatalogedLayout* layout = catalog.find(layout_digest);
    CHECK(layout != nullptr);
    manifest.cache_schema = layout->layout->cache_schema;
    // The views of the whole snapshot in this layout; only those of objects that the match took from it are kept.
    // Valid<StoreManifest> then proves that together they cover the prefix exactly (I2).
    const std::optional<SnapshotObjects> shapes =
        snapshot_objects(layout->layout, layout_digest, snapshot->tokens, diagnostics);
    if (!shapes) return diagnostics.to_status();
    for (View view : shapes->views) {
      view.region = RegionId(fmt::format("{}/{}", layout_digest.hex().substr(0, 16), view.region.text()));
      if (objects.contains(view.region)) manifest.views.push_back(std::move(view));
    }
  }
  for (auto& [id, object] : objects) manifest.objects.push_back(std::move(object));
  std::optional<Valid<StoreManifest>> valid = Valid<StoreManifest>::make(std::move(manifest), diagnostics);
  if (!valid) return diagnostics.to_status();
  // A manifest sorts its objects; the found ones follow, since gets are made by position (add_gets()).
  std::map<RegionId, FoundObject> numbered;
  for (FoundObject& object : found.objects) numbered.emplace(object.object.id, std::move(object));
  found.objects.clear();
  for (const StoredObject& object : (*valid)->objects) found.objects.push_back(std::move(numbered.at(object.id)));
  found.pages.clear();
  auto complete = std::make_shared<const Valid<StoreManifest>>(std::move(*valid));
  found.manifest = AnyManifest(complete);
  return complete;
}

LookupKey KvRestorePlanner::key() const {
  if (const auto* snapshot = std::get_if<SnapshotId>(&restore_.what)) return *snapshot;
  const PrefixRestore& prefix = *std::get<std::shared_ptr<const PrefixRestore>>(restore_.what);
  return prefix_objects(prefix.match, prefix.keys);
}

Result<Found> KvRestorePlanner::complete(Found found) const {
  if (const auto* prefix = std::get_if<std::shared_ptr<const PrefixRestore>>(&restore_.what))
    TRY_STATUS(
        prefix_manifest((**prefix).catalog, (**prefix).match, (**prefix).keys, (**prefix).snapshot, found).status());
  return found;
}

Result<std::shared_ptr<const RestoreJob>> KvRestorePlanner::make_job(const std::string& name, const Found& found,
                                                                     std::span<const AnyBinding> targets) const {
  Diagnostics diagnostics(name);
  const auto failed = [&] { return diagnostics.to_status(); };
  const std::shared_ptr<const Valid<StoreManifest>> manifest = found.manifest.as<StoreManifest>();
  if (manifest == nullptr) {
    diagnostics.add(Rule::kPlanIdentity, "", "what the store has found is not a KV cache");
    return failed();
  }
  const std::optional<std::vector<BindingPointer>> bindings = kv_bindings(targets, diagnostics);
  if (!bindings) return failed();
  // Without a snapshot: check_sides() compares the interval and the snapshot of the bindings with those of the
  // manifest.
  const BindingContext context(*restore_.target);
  const std::optional<BoundSide> target = BoundSide::bind(context, pointers_to(*bindings), diagnostics);
  if (!target) return failed();
  PlanOptions options = restore_.plan;
  // Targets that are not restored here must not be gaps of the plan.
  if (options.targets.empty())
    for (const AnyBinding& binding : targets) options.targets.emplace_back(binding->participant.text());
  std::sort(options.targets.begin(), options.targets.end());
  const Sha256Digest manifest_digest = digest(*manifest);
  const PlanSide source_side(*manifest, manifest_digest);
  const PlanSide target_side(*restore_.target, context.placement_digest());
  std::optional<PreparedCopies> copies =
      prepare_copies(PreparedSide{source_side, BoundSide(*manifest, manifest_digest)},
                     PreparedSide{target_side, *target}, std::move(options), restore_.lower, diagnostics);
  if (!copies) return failed();

  auto job = std::make_shared<RestoreJob>();
  job->counts = copies->lowered.counts();
  job->bytes = job->counts.bytes;
  add_gets(copies->lowered, found.objects, restore_.limits, *job);
  job->plan = Erased(std::make_shared<const Valid<TransferPlan>>(std::move(copies->plan)));
  return std::shared_ptr<const RestoreJob>(std::move(job));
}

}  // namespace crossdock
