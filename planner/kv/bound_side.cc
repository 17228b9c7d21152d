#include "planner/kv/bound_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/sorted.h"
#include "model/wire/documents.h"
#include "planner/kv/slot_limits.h"

// A side is checked in full once (bind), and after that only for what may change between operations of the same
// instances (rebind): slots, epochs, operation and snapshot. A full check costs the comparison of all views with what
// is owned; serving moves snapshot after snapshot with equal views.
namespace crossdock {
namespace {

std::vector<const Valid<RuntimeBinding>*> sort_bindings(std::span<const Valid<RuntimeBinding>* const> bindings) {
  std::vector<const Valid<RuntimeBinding>*> sorted(bindings.begin(), bindings.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const Valid<RuntimeBinding>* a, const Valid<RuntimeBinding>* b) {
    return (*a)->participant < (*b)->participant;
  });
  return sorted;
}

// Bindings of one side of one operation.
void check_together(std::span<const Valid<RuntimeBinding>* const> sorted, Diagnostics& diagnostics) {
  for (size_t i = 1; i < sorted.size(); ++i) {
    const RuntimeBinding& first = **sorted.front();
    const RuntimeBinding& binding = **sorted[i];
    const auto differs = [&](std::string message) {
      diagnostics.set_document(binding_label(binding));
      diagnostics.add(Rule::kBindingIdentity, "", std::move(message));
    };
    if ((*sorted[i - 1])->participant == binding.participant) differs("the participant is bound twice");
    if (binding.operation != first.operation)
      differs(fmt::format("belongs to another operation than {}", binding_label(first)));
    if (binding.snapshot_digest != first.snapshot_digest || binding.tokens != first.tokens)
      differs(fmt::format("belongs to another snapshot than {}", binding_label(first)));
  }
}

// The same_ functions compare all fields but those that rebind() accepts as new. A field that is added to a document
// must be added here, or rebind() would take a binding that was never checked for it.
bool same_table_shape(const PageTable& a, const PageTable& b) {
  return a.id == b.id && a.page_tokens == b.page_tokens && a.token_begin == b.token_begin &&
         a.slots.size() == b.slots.size();
}

bool same_region_shape(const Region& a, const Region& b) {
  return a.id == b.id && a.bytes == b.bytes && a.device == b.device && a.address == b.address &&
         a.endpoint == b.endpoint;
}

bool same_shape(const RuntimeBinding& a, const RuntimeBinding& b) {
  return a.participant == b.participant && a.instance == b.instance && a.resource == b.resource &&
         a.revision == b.revision && a.placement_digest == b.placement_digest && a.tokens == b.tokens &&
         a.devices == b.devices &&
         std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(), same_region_shape) &&
         std::equal(a.page_tables.begin(), a.page_tables.end(), b.page_tables.begin(), b.page_tables.end(),
                    same_table_shape) &&
         a.views == b.views;
}

// Bindings of one instance state the same generation, and the same epoch of each region.
// What is left of check_instances() (rule instance-agreement) when nothing else can differ (I3).
bool epochs_agree(std::span<const Valid<RuntimeBinding>* const> bindings) {
  std::map<InstanceId, uint64_t> generations;
  std::map<std::tuple<InstanceId, RegionId, std::optional<uint64_t>>, uint64_t> epochs;
  for (const Valid<RuntimeBinding>* binding : bindings) {
    const RuntimeBinding& bound = **binding;
    if (generations.emplace(bound.instance, bound.generation).first->second != bound.generation) return false;
    for (const Region& region : bound.regions)
      if (epochs.emplace(std::tuple(bound.instance, region.id, region.address), region.epoch).first->second !=
          region.epoch)
        return false;
  }
  return true;
}

}  // namespace

std::optional<BoundSide> BoundSide::bind(const BindingContext& context,
                                         std::span<const Valid<RuntimeBinding>* const> bindings,
                                         Diagnostics& diagnostics) {
  const uint64_t diagnostics_before = diagnostics.total();
  BoundSide side;
  side.kind_ = SideKind::kRuntime;
  side.digest_ = context.placement_digest();
  side.context_ = context.without_snapshot();
  side.bindings_ = sort_bindings(bindings);
  if (side.bindings_.empty()) {
    diagnostics.add(Rule::kBindingIdentity, "", fmt::format("no binding of placement '{}'", context.placement().name));
    return std::nullopt;
  }
  std::vector<BoundParticipant> bound;
  for (const Valid<RuntimeBinding>* binding : side.bindings_) {
    diagnostics.set_document(binding_label(**binding));
    check_binding(*binding, context, diagnostics);
    bound.push_back(BoundParticipant{binding, &context});
  }
  check_together(side.bindings_, diagnostics);
  // check_instances() requires bindings that passed their own rules.
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  check_instances(bound, diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;

  const RuntimeBinding& first = **side.bindings_.front();
  side.tokens_ = first.tokens;
  side.snapshot_digest_ = first.snapshot_digest;
  side.number_regions();
  // Empty limits are no error: such a side is bound anew each time.
  std::optional<SlotLimits> limits =
      slot_limits(side.ends_, side.regions_, side.tokens_, context.placement().cache_schema);
  if (limits) side.slot_limits_ = std::make_shared<const SlotLimits>(std::move(*limits));
  return side;
}

// Within one table no slot occurs twice (rule page-slots, which a Valid binding kept); here only tables that share a
// region are compared with each other.
bool BoundSide::slots_fit(std::span<const Valid<RuntimeBinding>* const> sorted) const {
  for (const PagedUse& use : slot_limits_->uses) {
    const std::vector<uint64_t>& slots = (*sorted[use.end])->page_tables[use.table].slots;
    const auto begin = slots.begin() + static_cast<ptrdiff_t>(use.first_page);
    if (*std::max_element(begin, slots.begin() + static_cast<ptrdiff_t>(use.last_page) + 1) > use.slot_max)
      return false;
  }
  std::vector<uint64_t> all;
  for (const TableSet& tables : slot_limits_->shared_tables) {
    all.clear();
    for (const auto& [end, table] : tables) {
      const std::vector<uint64_t>& slots = (*sorted[end])->page_tables[table].slots;
      all.insert(all.end(), slots.begin(), slots.end());
    }
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end()) return false;
  }
  return true;
}

// A region that several bindings of an instance name is one. Sorting makes numbers independent of the order of bindings
// (I7).
void BoundSide::number_regions() {
  regions_.clear();
  ends_.clear();
  for (const Valid<RuntimeBinding>* binding : bindings_)
    for (const Region& region : (*binding)->regions)
      regions_.push_back(BoundRegion{(*binding)->instance, region.id, region.address, region.epoch, region.bytes});
  std::sort(regions_.begin(), regions_.end());
  regions_.erase(std::unique(regions_.begin(), regions_.end()), regions_.end());
  for (const Valid<RuntimeBinding>* binding : bindings_) {
    const RuntimeBinding& bound = **binding;
    BoundEnd end{bound.participant.text(), &bound.views, &bound.page_tables, {}, {}};
    for (const Region& region : bound.regions) {
      const auto found =
          std::lower_bound(regions_.begin(), regions_.end(),
                           BoundRegion{bound.instance, region.id, region.address, region.epoch, region.bytes});
      end.regions.push_back(static_cast<uint32_t>(found - regions_.begin()));
    }
    end.view_regions.reserve(bound.views.size());
    for (const View& view : bound.views) {
      // Never null: rule view-region.
      const Region* region = find_sorted(bound.regions, &Region::id, view.region);
      end.view_regions.push_back(end.regions[static_cast<size_t>(region - bound.regions.data())]);
    }
    ends_.push_back(std::move(end));
  }
}

BoundSide::BoundSide(const Valid<StoreManifest>& manifest, const Sha256Digest& digest)
    : kind_(SideKind::kStoreManifest),
      digest_(digest),
      tokens_(manifest->snapshot.tokens),
      snapshot_digest_(digest_of_part(manifest->snapshot)) {
  for (const StoredObject& object : manifest->objects)
    regions_.push_back(BoundRegion{InstanceId(), object.id, std::nullopt, 0, object.bytes});
  BoundEnd end{"", &manifest->views, &manifest->page_tables, {}, {}};
  for (const View& view : manifest->views)
    end.view_regions.push_back(static_cast<uint32_t>(find_sorted(manifest->objects, &StoredObject::id, view.region) -
                                                     manifest->objects.data()));
  ends_.push_back(std::move(end));
}

BoundSide::BoundSide(const SnapshotObjects& objects)
    : kind_(SideKind::kStoreLayout), digest_(objects.layout_digest), tokens_(objects.tokens) {
  static const std::vector<PageTable> kNoTables;
  for (const ObjectShape& object : objects.objects)
    regions_.push_back(BoundRegion{InstanceId(), object.id, std::nullopt, 0, object.bytes});
  BoundEnd end{"", &objects.views, &kNoTables, {}, {}};
  for (const View& view : objects.views)
    end.view_regions.push_back(
        static_cast<uint32_t>(find_sorted(objects.objects, &ObjectShape::id, view.region) - objects.objects.data()));
  ends_.push_back(std::move(end));
}

// Everything is compared before anything is changed: a side that was refused stays usable with its old bindings.
// Whether the bindings belong to this placement and snapshot is checked by the caller (planner/kv/plan_cache.cc).
bool BoundSide::rebind(std::span<const Valid<RuntimeBinding>* const> bindings, const BindingContext* context) {
  if (context != nullptr && context->placement_digest() != digest_) return false;
  if (slot_limits_ == nullptr || bindings_.empty() || bindings.size() != bindings_.size()) return false;
  std::vector<const Valid<RuntimeBinding>*> sorted = sort_bindings(bindings);
  for (size_t i = 0; i < sorted.size(); ++i)
    if (!same_shape(**bindings_[i], **sorted[i])) return false;
  Diagnostics none;
  check_together(sorted, none);
  if (!none.empty() || !epochs_agree(sorted) || !slots_fit(sorted)) return false;
  bindings_ = std::move(sorted);
  snapshot_digest_ = (*bindings_.front())->snapshot_digest;
  if (context != nullptr) context_ = context->without_snapshot();
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const RuntimeBinding& bound = **bindings_[i];
    ends_[i].end = bound.participant.text();
    ends_[i].views = &bound.views;
    ends_[i].page_tables = &bound.page_tables;
    for (size_t region = 0; region < bound.regions.size(); ++region)
      // (instance, id, address) tells regions apart, so another epoch leaves regions_ sorted.
      regions_[ends_[i].regions[region]].epoch = bound.regions[region].epoch;
  }
  return true;
}

const BoundEnd* BoundSide::find(std::string_view end) const {
  if (kind_ != SideKind::kRuntime) return &ends_.front();
  return find_sorted(ends_, &BoundEnd::end, end);
}

// An endpoint counts as well: two names for one process would hide that its memory is on both sides.
bool BoundSide::shares_instance(const BoundSide& other) const {
  std::set<InstanceId> instances;
  std::set<std::string> endpoints;
  for (const Valid<RuntimeBinding>* binding : bindings_) {
    instances.insert((*binding)->instance);
    for (const Region& region : (*binding)->regions)
      if (region.endpoint) endpoints.insert(*region.endpoint);
  }
  return std::any_of(other.bindings_.begin(), other.bindings_.end(), [&](const Valid<RuntimeBinding>* binding) {
    const std::vector<Region>& regions = (*binding)->regions;
    return instances.contains((*binding)->instance) ||
           std::any_of(regions.begin(), regions.end(),
                       [&](const Region& region) { return region.endpoint && endpoints.contains(*region.endpoint); });
  });
}

void BoundSide::check_together_with(const BoundSide& other, Diagnostics& diagnostics) const {
  std::vector<BoundParticipant> bound;
  for (const auto& [side, name] : {std::pair(this, "source"), std::pair(&other, "target")})
    for (const Valid<RuntimeBinding>* binding : side->bindings_)
      bound.push_back(
          BoundParticipant{binding, &*side->context_, fmt::format("{} {}", name, binding_label(**binding))});
  check_instances(bound, diagnostics);
}

}  // namespace crossdock
