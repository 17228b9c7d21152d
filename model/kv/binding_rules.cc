#include "model/kv/binding_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/sorted.h"
#include "model/kv/token_counter.h"
#include "model/kv/view_rules.h"
#include "model/text.h"
#include "model/wire/documents.h"

// A binding says Address(p, x): for each live element x that participant p owns, the bytes of each of its items. Three
// levels of rules make it a function into bytes that no two elements share:
// - alone: devices, regions and views are well-formed (validate);
// - with the placement: the views cover exactly what p owns and what lives, each element once (check_binding);
// - with the other bindings of the instance: no byte belongs to two participants (check_instances).
// All plans and steps rely on these; they do not look again (I1).
namespace crossdock {
namespace {

ViewDocument view_document(const RuntimeBinding& binding) {
  ViewDocument document{binding.page_tables, binding.views, {}, binding.tokens};
  for (const Region& region : binding.regions) document.spaces.push_back(ByteSpace{region.id, region.bytes});
  return document;
}

std::string label(const BoundParticipant& bound) {
  return bound.name.empty() ? binding_label(**bound.binding) : bound.name;
}

// With one row in each page the stride of rows may be anything.
bool has_two_rows_in_a_page(const View& view, const PageTable& table, uint64_t row_tokens) {
  const TokenCounter counter(view.cycle);
  const uint64_t page_rows = table.page_tokens / row_tokens;
  const uint64_t before = counter.count_below(table.token_begin);
  const uint64_t first = (counter.count_below(view.tokens.begin()) - before) / row_tokens;
  const uint64_t end = div_round_up(counter.count_below(view.tokens.end()) - before, row_tokens);
  return end - first > div_round_up(end, page_rows) - first / page_rows;
}

// Strides alone say where bytes are. A placement that states an order says which pools the runtime has, and a binding
// in another order was made for another one. With one head, or one row, the strides cannot tell.
void check_axis_order(const RuntimeBinding& binding, const PlacementManifest& placement, Diagnostics& diagnostics) {
  for (size_t i = 0; i < binding.views.size(); ++i) {
    const View& view = binding.views[i];
    const PageTable* table = view.pages ? find_sorted(binding.page_tables, &PageTable::id, view.pages->table) : nullptr;
    if (table == nullptr || view.heads.size() < 2) continue;
    const Component& component = *placement.cache_schema.find_group(view.layers.begin())->find(view.component);
    if (component.is_state() || !has_two_rows_in_a_page(view, *table, *component.tokens_per_row)) continue;
    const AxisOrder order = view.strides.row > view.strides.head ? AxisOrder::kNhd : AxisOrder::kHnd;
    if (order == placement.paging->axis_order) continue;
    diagnostics.add(
        Rule::kAxisOrder, view_place(i, view),
        fmt::format("row stride {} and head stride {} are of {} pages, the placement states {}", view.strides.row,
                    view.strides.head, axis_order_name(order), axis_order_name(placement.paging->axis_order)));
  }
}

// The last address of a region is checked here, so later code may compute it.
void check_region(const Region& region, const RuntimeBinding& binding, Diagnostics& diagnostics) {
  const std::string place = fmt::format("region '{}'", region.id.text());
  check_name(region.id.text(), place, "the region's id", diagnostics);
  if (region.endpoint) check_name(*region.endpoint, place, "endpoint", diagnostics);
  const Device* device = find_sorted(binding.devices, &Device::id, region.device);
  if (device == nullptr)
    diagnostics.add(Rule::kRegionDevice, place, fmt::format("there is no device '{}'", region.device.text()));
  else if (region.bytes > device->registration_bytes_max)
    diagnostics.add(Rule::kRegistrationLimit, place,
                    fmt::format("{} bytes are more than the {} that device '{}' can register; split the region",
                                region.bytes, device->registration_bytes_max, region.device.text()));
  if (region.address && region.bytes != 0 && region.bytes - 1 > UINT64_MAX - *region.address)
    diagnostics.add(Rule::kSizeOverflow, place,
                    fmt::format("{} bytes from address {} end past 2^64", region.bytes, *region.address));
}

// Regions with addresses, as ranges of the instance's address space. A region may end exactly at 2^64, so a range is
// its first and its last address. One without bytes is in none.
struct AddressRange {
  uint64_t first;
  uint64_t last;
  RegionId region;
  std::string binding;  // in messages; empty: there is only one

  bool is_same_region(const AddressRange& other) const {
    return region == other.region && first == other.first && last == other.last;
  }
  std::string addresses_text() const {
    return fmt::format("[{},{})", first, last == UINT64_MAX ? "18446744073709551616" : fmt::to_string(last + 1));
  }
};

std::string region_text(const AddressRange& range) {
  return fmt::format("region '{}'{}{}", range.region.text(), range.binding.empty() ? "" : " of ", range.binding);
}

// A region that several bindings name is one.
// Sorted by address, a range that overlaps any earlier one overlaps the one that ends furthest; so one pass is enough.
void check_addresses(std::vector<AddressRange> ranges, Diagnostics& diagnostics) {
  std::stable_sort(ranges.begin(), ranges.end(), [](const AddressRange& a, const AddressRange& b) {
    return std::tie(a.first, a.last, a.region) < std::tie(b.first, b.last, b.region);
  });
  const AddressRange* furthest = nullptr;  // of those before, the one that ends last
  for (const AddressRange& range : ranges) {
    if (furthest != nullptr && range.first <= furthest->last && !range.is_same_region(*furthest))
      diagnostics.add(Rule::kRegionsOverlap, region_text(range),
                      fmt::format("addresses {} overlap {} of {}", range.addresses_text(), furthest->addresses_text(),
                                  region_text(*furthest)));
    if (furthest == nullptr || range.last > furthest->last) furthest = &range;
  }
}

void append_addresses(const RuntimeBinding& binding, const std::string& name, std::vector<AddressRange>& ranges) {
  for (const Region& region : binding.regions)
    if (region.address && region.bytes != 0)
      ranges.push_back(AddressRange{*region.address, *region.address + (region.bytes - 1), region.id, name});
}

// All bindings of one instance.
// Regions of one name and address are one region, whichever binding names it; then the sets of bytes of all its views
// are compared together.
class InstanceCheck {
 public:
  InstanceCheck(std::span<const BoundParticipant* const> bound, Diagnostics& diagnostics)
      : bound_(bound), diagnostics_(diagnostics) {}

  void run() {
    const uint64_t diagnostics_before = diagnostics_.total();
    std::vector<AddressRange> addresses;
    for (const BoundParticipant* participant : bound_) {
      const RuntimeBinding& binding = **participant->binding;
      diagnostics_.set_document(label(*participant));
      agree_on_generation(binding);
      for (const Device& device : binding.devices) agree(device, "device", devices_, label(*participant));
      for (const Region& region : binding.regions) agree_on_region(region, label(*participant));
      append_addresses(binding, label(*participant), addresses);
    }
    diagnostics_.set_document(fmt::format("instance '{}'", (**bound_.front()->binding).instance.text()));
    check_addresses(std::move(addresses), diagnostics_);
    // With two statements about one region, an overlap in it would be reported against the wrong one.
    if (diagnostics_.total() != diagnostics_before) return;
    check_shared_bytes();
  }

 private:
  // What a binding stated first about a thing of the instance.
  template <class Thing>
  struct Stated {
    const Thing* thing;
    std::string binding;
  };

  template <class Thing, class Id>
  void agree(const Thing& thing, std::string_view kind, std::map<Id, Stated<Thing>>& known_things,
             const std::string& binding) {
    const auto [known, is_new] = known_things.emplace(thing.id, Stated<Thing>{&thing, binding});
    if (!is_new && !(*known->second.thing == thing))
      diagnostics_.add(Rule::kInstanceAgreement, fmt::format("{} '{}'", kind, thing.id.text()),
                       fmt::format("{} describes it differently", known->second.binding));
  }

  // Ranks of one process may each have a pool of the same name: regions are told apart by name and address.
  void agree_on_region(const Region& region, const std::string& binding) {
    const auto [first, is_first] = has_address_.emplace(region.id, Stated<Region>{&region, binding});
    if (!is_first && first->second.thing->address.has_value() != region.address.has_value()) {
      diagnostics_.add(Rule::kInstanceAgreement, fmt::format("region '{}'", region.id.text()),
                       fmt::format("{} describes it differently", first->second.binding));
      return;
    }
    const auto [known, is_new] =
        regions_.emplace(std::pair(region.id, region.address), Stated<Region>{&region, binding});
    if (!is_new && !(*known->second.thing == region))
      diagnostics_.add(Rule::kInstanceAgreement, fmt::format("region '{}'", region.id.text()),
                       fmt::format("{} describes it differently", known->second.binding));
  }

  void agree_on_generation(const RuntimeBinding& binding) {
    const RuntimeBinding& first = **bound_.front()->binding;
    if (binding.generation != first.generation)
      diagnostics_.add(Rule::kInstanceAgreement, "",
                       fmt::format("generation {} of instance '{}', in {} {}", binding.generation,
                                   binding.instance.text(), label(*bound_.front()), first.generation));
  }

  // Two views of one binding were compared when it was validated. They are compared again here, in the one sweep that
  // finds overlaps between bindings; leaving them out would need a second kind of sweep.
  void check_shared_bytes() {
    std::map<std::pair<RegionId, std::optional<uint64_t>>, std::vector<StridedBytes>> bytes;  // by region and address
    std::vector<std::pair<size_t, std::string>> owners;  // the first owner number of each binding
    size_t first_owner = 0;
    for (const BoundParticipant* participant : bound_) {
      const RuntimeBinding& binding = **participant->binding;
      owners.emplace_back(first_owner, label(*participant));
      for (auto& [id, sets] : bytes_by_space(view_document(binding), participant->context->placement().cache_schema))
        for (StridedBytes& set : sets) {
          set.owner += first_owner;
          bytes[{id, find_sorted(binding.regions, &Region::id, id)->address}].push_back(set);
        }
      first_owner += binding.views.size();
    }
    const auto name = [&](size_t owner) {
      const auto after = std::partition_point(owners.begin(), owners.end(),
                                              [owner](const auto& entry) { return entry.first <= owner; });
      const auto& [first, text] = *std::prev(after);
      return fmt::format("{} view {}", text, owner - first);
    };
    for (auto& [region, sets] : bytes) {
      const RegionId& id = region.first;
      const StridedOverlap overlap = find_overlap(std::move(sets), kOverlapWorkMax);
      if (!overlap.complete)
        diagnostics_.add(Rule::kWorkLimit, fmt::format("region '{}'", id.text()),
                         fmt::format("looking for shared bytes needs more than {} pieces", kOverlapWorkMax));
      else if (overlap.owners)
        diagnostics_.add(
            Rule::kViewsOverlap, fmt::format("region '{}'", id.text()),
            fmt::format("{} and {} share bytes", name(overlap.owners->first), name(overlap.owners->second)));
    }
  }

  std::span<const BoundParticipant* const> bound_;
  Diagnostics& diagnostics_;
  std::map<DeviceId, Stated<Device>> devices_;
  std::map<RegionId, Stated<Region>> has_address_;  // the first region of each name
  std::map<std::pair<RegionId, std::optional<uint64_t>>, Stated<Region>> regions_;
};

}  // namespace

std::vector<const Valid<RuntimeBinding>*> pointers_to(const std::vector<BindingPointer>& bindings) {
  std::vector<const Valid<RuntimeBinding>*> pointers;
  pointers.reserve(bindings.size());
  for (const BindingPointer& binding : bindings) pointers.push_back(binding.get());
  return pointers;
}

std::string binding_label(const RuntimeBinding& binding) {
  return fmt::format("binding '{}' of '{}'", binding.operation.text(), binding.participant.text());
}

// A stale or foreign binding must be refused by name, before its views are compared with a placement that they are not
// about (I5).
void check_binding_identity(const RuntimeBinding& binding, const BindingContext& context, Diagnostics& diagnostics) {
  const auto differs = [&](std::string message) { diagnostics.add(Rule::kBindingIdentity, "", std::move(message)); };
  const PlacementManifest& placement = context.placement();
  if (binding.placement_digest != context.placement_digest())
    differs(fmt::format("placement_digest {} is not that of placement '{}' ({})", binding.placement_digest.hex(),
                        placement.name, context.placement_digest().hex()));
  if (binding.resource != placement.resource)
    differs(
        fmt::format("resource '{}' is not the placement's '{}'", binding.resource.text(), placement.resource.text()));
  if (binding.revision != placement.revision)
    differs(
        fmt::format("revision '{}' is not the placement's '{}'", binding.revision.text(), placement.revision.text()));
  if (placement.topology.find(binding.participant) == nullptr)
    differs(fmt::format("placement '{}' has no participant '{}'", placement.name, binding.participant.text()));
  if (!placement.tokens.contains(binding.tokens))
    diagnostics.add(Rule::kTokenBounds, "",
                    fmt::format("tokens {} lie outside the placement's tokens {}", range_text(binding.tokens),
                                range_text(placement.tokens)));
  const SnapshotDescriptor* snapshot = context.snapshot();
  if (snapshot == nullptr) return;
  if (binding.snapshot_digest != *context.snapshot_digest())
    differs(fmt::format("snapshot_digest {} is not that of the snapshot ({})", binding.snapshot_digest.hex(),
                        context.snapshot_digest()->hex()));
  if (binding.resource != snapshot->resource)
    differs(
        fmt::format("resource '{}' is not the snapshot's '{}'", binding.resource.text(), snapshot->resource.text()));
  if (binding.tokens != snapshot->tokens)
    differs(
        fmt::format("tokens {} are not the snapshot's {}", range_text(binding.tokens), range_text(snapshot->tokens)));
  if (snapshot->cache_schema_digest != context.cache_schema_digest())
    differs(fmt::format("the snapshot's cache schema {} is not that of placement '{}' ({})",
                        snapshot->cache_schema_digest.hex(), placement.name, context.cache_schema_digest().hex()));
}

// Stable, so that repeated ids stay in the order of the document and the message names the later one.
void canonicalize(RuntimeBinding& binding) {
  std::stable_sort(binding.devices.begin(), binding.devices.end(),
                   [](const Device& a, const Device& b) { return a.id < b.id; });
  std::stable_sort(binding.regions.begin(), binding.regions.end(),
                   [](const Region& a, const Region& b) { return a.id < b.id; });
  canonicalize_views(binding.page_tables, binding.views);
}

void validate(const RuntimeBinding& binding, Diagnostics& diagnostics) {
  diagnostics.set_document(binding_label(binding));
  const uint64_t diagnostics_before = diagnostics.total();
  check_name(binding.operation.text(), "", "operation", diagnostics);
  check_name(binding.resource.text(), "", "resource", diagnostics);
  check_name(binding.revision.text(), "", "revision", diagnostics);
  check_name(binding.participant.text(), "", "participant", diagnostics);
  check_name(binding.instance.text(), "", "instance", diagnostics);
  if (binding.tokens.empty()) diagnostics.add(Rule::kSnapshotEmpty, "", "the binding's tokens are empty");
  for (size_t i = 0; i < binding.devices.size(); ++i) {
    const Device& device = binding.devices[i];
    const std::string place = fmt::format("device '{}'", device.id.text());
    check_name(device.id.text(), place, "the device's id", diagnostics);
    check_name(device.kind, place, "kind", diagnostics);
    if (device.registration_bytes_max == 0)
      diagnostics.add(Rule::kFieldMinimum, place, "registration_bytes_max 0 is below 1");
    if (i > 0 && binding.devices[i - 1].id == device.id)
      diagnostics.add(Rule::kDeviceRepeated, place, "the device is listed twice");
  }
  const std::optional<std::string>* endpoint = nullptr;
  for (size_t i = 0; i < binding.regions.size(); ++i) {
    const Region& region = binding.regions[i];
    const std::string place = fmt::format("region '{}'", region.id.text());
    check_region(region, binding, diagnostics);
    if (i > 0 && binding.regions[i - 1].id == region.id)
      diagnostics.add(Rule::kRegionRepeated, place, "the region is listed twice");
    if (endpoint == nullptr) endpoint = &region.endpoint;
    if (*endpoint != region.endpoint)
      diagnostics.add(Rule::kInstanceEndpoint, place,
                      fmt::format("endpoint '{}' differs from '{}' of another region", region.endpoint.value_or("none"),
                                  endpoint->value_or("none")));
  }
  check_views_alone(view_document(binding), diagnostics);
  // Addresses may be added only where check_region() found that they fit.
  if (diagnostics.total() != diagnostics_before) return;
  std::vector<AddressRange> addresses;
  append_addresses(binding, "", addresses);
  check_addresses(std::move(addresses), diagnostics);
}

BindingContext::BindingContext(const Valid<PlacementManifest>& placement, const Valid<SnapshotDescriptor>* snapshot)
    : placement_(&placement),
      snapshot_(snapshot),
      placement_digest_(digest(placement)),
      cache_schema_digest_(crossdock::cache_schema_digest(placement)) {
  if (snapshot != nullptr) snapshot_digest_ = digest(*snapshot);
}

BindingContext BindingContext::with_snapshot(const Valid<SnapshotDescriptor>& snapshot) const {
  BindingContext context = *this;
  context.snapshot_ = &snapshot;
  context.snapshot_digest_ = digest(snapshot);
  return context;
}

BindingContext BindingContext::without_snapshot() const {
  BindingContext context = *this;
  context.snapshot_ = nullptr;
  context.snapshot_digest_.reset();
  return context;
}

Sha256Digest cache_schema_digest(const Valid<PlacementManifest>& placement) {
  return digest_of_part(placement->cache_schema);
}

void check_binding(const Valid<RuntimeBinding>& binding, const BindingContext& context, Diagnostics& diagnostics) {
  diagnostics.set_document(binding_label(*binding));
  const uint64_t diagnostics_before = diagnostics.total();
  check_binding_identity(*binding, context, diagnostics);
  if (diagnostics.total() != diagnostics_before) return;
  const PlacementManifest& placement = context.placement();
  // Not null: the identity rules found the participant, and a placement has a part for each (rule part-missing).
  const Part* part = placement.find_part(binding->participant);
  check_views(view_document(*binding), placement.cache_schema, part->owns, placement.tokens, diagnostics);
  if (placement.paging && diagnostics.total() == diagnostics_before) check_axis_order(*binding, placement, diagnostics);
}

void check_binding(const Valid<RuntimeBinding>& binding, const Valid<PlacementManifest>& placement,
                   const Valid<SnapshotDescriptor>& snapshot, Diagnostics& diagnostics) {
  check_binding(binding, BindingContext(placement, &snapshot), diagnostics);
}

// An endpoint is one process and so one address space. Two instances at one endpoint, or two endpoints of one instance,
// would make overlaps invisible.
void check_instances(std::span<const BoundParticipant> bound, Diagnostics& diagnostics) {
  std::map<InstanceId, std::vector<const BoundParticipant*>> instances;
  std::map<std::string, const BoundParticipant*> by_endpoint;   // the first of each endpoint
  std::map<InstanceId, const BoundParticipant*> with_endpoint;  // the first of each instance
  const auto endpoint_of = [](const BoundParticipant& participant) {
    const std::vector<Region>& regions = (*participant.binding)->regions;
    return regions.empty() ? std::optional<std::string>() : regions.front().endpoint;
  };
  for (const BoundParticipant& participant : bound) {
    const InstanceId& instance = (*participant.binding)->instance;
    instances[instance].push_back(&participant);
    const std::optional<std::string> endpoint = endpoint_of(participant);
    if (!endpoint) continue;
    diagnostics.set_document(label(participant));
    const BoundParticipant& first_there = *by_endpoint.emplace(*endpoint, &participant).first->second;
    if ((*first_there.binding)->instance != instance)
      diagnostics.add(Rule::kInstanceEndpoint, "",
                      fmt::format("endpoint '{}' belongs to instance '{}', in {} to '{}'", *endpoint, instance.text(),
                                  label(first_there), (*first_there.binding)->instance.text()));
    const BoundParticipant& first_of_instance = *with_endpoint.emplace(instance, &participant).first->second;
    if (endpoint_of(first_of_instance) != endpoint)
      diagnostics.add(Rule::kInstanceEndpoint, "",
                      fmt::format("instance '{}' has endpoint '{}', in {} '{}'", instance.text(), *endpoint,
                                  label(first_of_instance), *endpoint_of(first_of_instance)));
  }
  for (const auto& [instance, participants] : instances) InstanceCheck(participants, diagnostics).run();
}

}  // namespace crossdock
