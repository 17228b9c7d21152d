#include "executor/store_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/checked.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/proved_plan.h"

namespace crossdock {
namespace {

std::optional<Valid<TransferPlan>> proved_plan(const PlanSide& source, const PlanSide& target,
                                               const PlanOptions& options, Diagnostics& diagnostics) {
  return make_proved_plan(source, target, options, PlanLimits(), VerifyLimits(), diagnostics);
}

// The page number in "part/3".
uint64_t page_of(const RegionId& object) {
  const std::string& text = object.text();
  return std::stoull(text.substr(text.rfind('/') + 1));
}

bool is_state_object(const RegionId& object) { return object.text().ends_with("/state"); }

// Leaves out objects that hold less than all rows of their part.
bool keep_whole_pages(UploadJob& job, Diagnostics& diagnostics) {
  const std::optional<StoreGeometry> geometry = store_geometry(*job.documents.layout, diagnostics);
  if (!geometry) return false;
  std::vector<StorePartBytes> whole(geometry->parts.size());  // without what lies between arrays
  const CacheSchema& schema = (*job.documents.layout)->cache_schema;
  for (const StoreArray& array : geometry->arrays) {
    const bool is_state = schema.groups[array.group].components[array.component].is_state();
    (is_state ? whole[array.part].state : whole[array.part].page) += array.bytes;
  }
  std::map<RegionId, uint64_t> payload;
  for (const PutStep& put : job.puts) payload[put.object] = put.payload_bytes;
  std::set<RegionId> kept;
  std::erase_if(job.objects.objects, [&](const ObjectShape& object) {
    const StorePartBytes& bytes = whole[object.part];
    const bool is_whole = payload[object.id] == (is_state_object(object.id) ? bytes.state : bytes.page);
    if (is_whole) kept.insert(object.id);
    return !is_whole;
  });
  std::erase_if(job.puts, [&](const PutStep& put) { return !kept.contains(put.object); });
  return true;
}

}  // namespace

std::shared_ptr<const UploadJob> make_upload_job(const UploadDocuments& documents,
                                                 const std::vector<BindingPointer>& bindings,
                                                 const PlanOptions& options, const LowerLimits& limits, UploadKind kind,
                                                 Diagnostics& diagnostics) {
  auto job = std::make_shared<UploadJob>();
  job->documents = documents;
  const BindingContext context(*documents.source, documents.snapshot.get());
  const std::optional<BoundSide> source = BoundSide::bind(context, pointers_to(bindings), diagnostics);
  if (!source) return nullptr;
  const Sha256Digest layout_digest = digest(*documents.layout);
  PlanOptions plan_options = options;
  plan_options.snapshot_tokens = (*documents.snapshot)->tokens;
  std::optional<Valid<TransferPlan>> plan =
      proved_plan(PlanSide(*documents.source, context.placement_digest()), PlanSide(*documents.layout, layout_digest),
                  plan_options, diagnostics);
  if (!plan) return nullptr;
  std::optional<SnapshotObjects> objects =
      snapshot_objects(*documents.layout, layout_digest, (*documents.snapshot)->tokens, diagnostics);
  if (!objects) return nullptr;
  job->objects = std::move(*objects);
  const BoundSide target(job->objects);
  const std::optional<LoweredPlan> lowered = lower(**plan, *source, target, LowerOptions(), limits, diagnostics);
  if (!lowered) return nullptr;
  job->counts = lowered->counts();

  // By object, then by source.
  struct Fragment {
    std::shared_ptr<CopyWork> work = std::make_shared<CopyWork>();
    RegionNumbers regions;
    explicit Fragment(const LoweredPlan& all) : regions(all.source_regions()) {}
  };
  std::map<std::pair<uint32_t, uint32_t>, Fragment> fragments;
  std::map<uint32_t, uint64_t> payload;
  for (const LoweredPair& pair : lowered->pairs())
    lowered->for_each_step(pair, [&](const CopyStep& step) {
      Fragment& fragment = fragments.try_emplace({step.target_region, pair.source}, *lowered).first->second;
      CopyStep own = step;
      own.source_region = fragment.regions.number_of(step.source_region);
      own.target_region = 0;
      fragment.work->steps.push_back(own);
      payload[step.target_region] += step.total_bytes();
    });
  for (auto& [place, fragment] : fragments) {
    const BoundRegion& object = lowered->target_regions()[place.first];
    fragment.work->source_regions = std::move(fragment.regions).keys();
    job->puts.push_back(PutStep{object.id, object.bytes, payload[place.first], (**plan).sources[place.second].text(),
                                StepSpan(fragment.work)});
  }
  job->plan = std::make_shared<const Valid<TransferPlan>>(std::move(*plan));
  if (kind == UploadKind::kPages && !keep_whole_pages(*job, diagnostics)) return nullptr;
  return job;
}

std::optional<Valid<StoreManifest>> upload_manifest(const UploadJob& job,
                                                    const std::map<RegionId, StoredObject>& stored,
                                                    Diagnostics& diagnostics) {
  StoreManifest manifest;
  manifest.snapshot = **job.documents.snapshot;
  manifest.cache_schema = (*job.documents.source)->cache_schema;
  for (const ObjectShape& object : job.objects.objects) manifest.objects.push_back(stored.at(object.id));
  manifest.views = job.objects.views;
  return Valid<StoreManifest>::make(std::move(manifest), diagnostics);
}

std::vector<PageEntry> upload_pages(const UploadJob& job, std::span<const PageKey> keys,
                                    const std::map<RegionId, StoredObject>& stored) {
  std::vector<PageEntry> entries;
  for (const ObjectShape& object : job.objects.objects) {
    const bool is_state = is_state_object(object.id);
    const uint64_t page = is_state ? keys.size() - 1 : page_of(object.id);
    entries.push_back(
        PageEntry{PageObjectKey{keys[page], job.objects.layout_digest, (*job.documents.layout)->parts[object.part].key,
                                is_state ? PageObject::kState : PageObject::kRows},
                  stored.at(object.id)});
  }
  return entries;
}

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
  const auto missing = std::mismatch(wanted.begin(), wanted.end(), found.pages.begin(), found.pages.end()).first;
  if (missing != wanted.end())
    return Status(Code::kNotFound, fmt::format("{} is not stored any more", missing->to_text()));
  // In its own layout an object is called "part/3" or "part/state"; here its layout stands before that.
  std::map<PageKey, uint64_t> page_numbers;
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
  std::map<RegionId, FoundObject> numbered;
  for (FoundObject& object : found.objects) numbered.emplace(object.object.id, std::move(object));
  found.objects.clear();
  for (const StoredObject& object : (*valid)->objects) found.objects.push_back(std::move(numbered.at(object.id)));
  found.pages.clear();
  found.manifest = std::make_shared<const Valid<StoreManifest>>(std::move(*valid));
  return found.manifest;
}

std::shared_ptr<const RestoreJob> make_restore_job(const Found& found,
                                                   const std::shared_ptr<const Valid<PlacementManifest>>& target,
                                                   const std::vector<BindingPointer>& bindings,
                                                   const PlanOptions& options, const LowerLimits& limits,
                                                   const RestoreLimits& restore, Diagnostics& diagnostics) {
  auto job = std::make_shared<RestoreJob>();
  const Valid<StoreManifest>& manifest = *found.manifest;
  const Sha256Digest manifest_digest = digest(manifest);
  const BindingContext context(*target);
  const std::optional<BoundSide> bound = BoundSide::bind(context, pointers_to(bindings), diagnostics);
  if (!bound) return nullptr;
  PlanOptions plan_options = options;
  plan_options.snapshot_tokens = manifest->snapshot.tokens;
  std::optional<Valid<TransferPlan>> plan = proved_plan(
      PlanSide(manifest, manifest_digest), PlanSide(*target, context.placement_digest()), plan_options, diagnostics);
  if (!plan) return nullptr;
  const BoundSide source(manifest, manifest_digest);
  const std::optional<LoweredPlan> lowered = lower(**plan, source, *bound, LowerOptions(), limits, diagnostics);
  if (!lowered) return nullptr;
  job->counts = lowered->counts();
  job->bytes = job->counts.bytes;

  struct ObjectWork {
    std::shared_ptr<CopyWork> work = std::make_shared<CopyWork>();
    RegionNumbers regions;
    Range span;
    explicit ObjectWork(const LoweredPlan& all) : regions(all.target_regions()) {}
  };
  std::map<uint32_t, ObjectWork> works;
  for (const LoweredPair& pair : lowered->pairs())
    lowered->for_each_step(pair, [&](const CopyStep& step) {
      ObjectWork& object = works.try_emplace(step.source_region, *lowered).first->second;
      CopyStep own = step;
      own.target_region = object.regions.number_of(step.target_region);
      own.source_region = 0;
      object.work->steps.push_back(own);
      const Range touched(step.source_offset, step.source_offset + step.source_span());
      object.span = object.span.empty() ? touched
                                        : Range(std::min(object.span.begin(), touched.begin()),
                                                std::max(object.span.end(), touched.end()));
    });
  std::map<RegionId, size_t> numbers;
  for (size_t i = 0; i < found.objects.size(); ++i) numbers[found.objects[i].object.id] = i;
  for (auto& [region, object] : works) {
    object.work->target_regions = std::move(object.regions).keys();
    const auto stored =
        std::make_shared<const FoundObject>(found.objects[numbers.at(lowered->source_regions()[region].id)]);
    const StepSpan steps(object.work);
    const uint64_t chunk = stored->object.chunk_bytes;
    const uint64_t unit = std::max<uint64_t>(restore.get_bytes_max / chunk, 1) * chunk;
    for (uint64_t begin = object.span.begin() / chunk * chunk; begin < object.span.end();) {
      const uint64_t end = std::min(checked_add(begin, unit).value_or(UINT64_MAX), stored->object.bytes);
      job->gets.push_back(GetStep{LeaseId(), stored, Range(begin, end), steps});
      job->get_bytes.push_back(end - begin);
      begin = end;
    }
    ++job->object_count;
  }
  job->plan = std::make_shared<const Valid<TransferPlan>>(std::move(*plan));
  return job;
}

}  // namespace crossdock
