#include "model/kv/schema_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "model/text.h"

// Rules that a schema and a topology keep alone. They are what later code divides by, multiplies and searches without
// looking: sizes of at least 1, rows that fit in 64 bits, layers in one group, ranks below their sizes. O(n log n).
namespace crossdock {
namespace {

// Inside another document a message begins with where the schema is in it.
std::string join(const std::string& place, const std::string& inner) {
  return place.empty() ? inner : fmt::format("{} {}", place, inner);
}

// The size of a whole row must fit, so head_bytes() and strides within a row never need a check.
void check_component(const Component& component, const std::string& place, Diagnostics& diagnostics) {
  check_name(component.name.text(), place, "the component's name", diagnostics);
  check_name(component.dtype, place, "dtype", diagnostics);
  check_name(component.encoding, place, "encoding", diagnostics);
  const auto at_least_one = [&](uint64_t value, std::string_view field) {
    if (value == 0) diagnostics.add(Rule::kFieldMinimum, place, fmt::format("{} 0 is below 1", field));
  };
  at_least_one(component.item_bytes, "item_bytes");
  at_least_one(component.head_count, "head_count");
  at_least_one(component.head_dim, "head_dim");
  if (component.tokens_per_row) at_least_one(*component.tokens_per_row, "tokens_per_row");
  const std::optional<uint64_t> known = known_item_bytes(component.dtype);
  if (known && *known != component.item_bytes)
    diagnostics.add(
        Rule::kItemBytes, place,
        fmt::format("item_bytes {} differs from the {} of dtype {}", component.item_bytes, *known, component.dtype));
  if (!(Checked(component.head_count) * component.head_dim * component.item_bytes).value())
    diagnostics.add(Rule::kSizeOverflow, place,
                    fmt::format("{} heads x {} x {} bytes do not fit in 64 bits", component.head_count,
                                component.head_dim, component.item_bytes));
}

void check_life(const LiveTokens& live, const std::string& place, Diagnostics& diagnostics) {
  if (live.kind != LiveTokens::Kind::kAll && live.tokens == 0)
    diagnostics.add(Rule::kFieldMinimum, place, "live_tokens: 0 tokens is below 1");
}

void check_group(const LayerGroup& group, const std::string& place, Diagnostics& diagnostics) {
  if (group.layers.empty()) diagnostics.add(Rule::kGroupEmpty, place, "the group has no layers");
  if (group.components.empty()) diagnostics.add(Rule::kGroupEmpty, place, "the group has no components");
  check_life(group.live, place, diagnostics);
  const Component* previous = nullptr;
  for (const Component& component : group.components) {
    check_component(component, fmt::format("{} component '{}'", place, component.name.text()), diagnostics);
    if (previous != nullptr && previous->name == component.name)
      diagnostics.add(Rule::kComponentRepeated, place,
                      fmt::format("component '{}' is listed twice", component.name.text()));
    previous = &component;
  }
  for (size_t i = 0; i < group.component_life.size(); ++i) {
    const ComponentLife& life = group.component_life[i];
    const std::string where = fmt::format("{} component_live_tokens of '{}'", place, life.component.text());
    check_life(life.live, where, diagnostics);
    if (group.find(life.component) == nullptr)
      diagnostics.add(Rule::kComponentUnknown, where, "the group has no such component");
    if (i > 0 && group.component_life[i - 1].component == life.component)
      diagnostics.add(Rule::kComponentRepeated, where, "the component is listed twice");
  }
}

// The one form of a group's rules: that of the first component with rows is the group's own, and the others are listed
// where they differ. A state has no tokens, so none is listed for it.
void canonicalize_life(LayerGroup& group) {
  std::stable_sort(group.component_life.begin(), group.component_life.end(),
                   [](const ComponentLife& a, const ComponentLife& b) { return a.component < b.component; });
  const auto repeated = [](const ComponentLife& a, const ComponentLife& b) { return a.component == b.component; };
  const std::vector<ComponentLife>& listed = group.component_life;
  if (listed.empty() || std::adjacent_find(listed.begin(), listed.end(), repeated) != listed.end()) return;
  if (std::any_of(listed.begin(), listed.end(),
                  [&](const ComponentLife& life) { return group.find(life.component) == nullptr; }))
    return;  // validation refuses it
  const auto first = std::find_if(group.components.begin(), group.components.end(),
                                  [](const Component& component) { return !component.is_state(); });
  const LiveTokens own = first == group.components.end() ? group.live : group.live_of(first->name);
  std::vector<ComponentLife> others;
  for (const Component& component : group.components)
    if (!component.is_state() && group.live_of(component.name) != own)
      others.push_back({component.name, group.live_of(component.name)});
  group.live = own;
  group.component_life = std::move(others);
}

}  // namespace

void canonicalize(CacheSchema& schema) {
  for (LayerGroup& group : schema.groups) {
    std::stable_sort(group.components.begin(), group.components.end(),
                     [](const Component& a, const Component& b) { return a.name < b.name; });
    canonicalize_life(group);
  }
  std::stable_sort(schema.groups.begin(), schema.groups.end(),
                   [](const LayerGroup& a, const LayerGroup& b) { return a.layers < b.layers; });
}

void validate(const CacheSchema& schema, Diagnostics& diagnostics) {
  diagnostics.set_document("cache schema");
  check_cache_schema(schema, "", diagnostics);
}

void check_cache_schema(const CacheSchema& schema, const std::string& place, Diagnostics& diagnostics) {
  if (schema.groups.empty()) diagnostics.add(Rule::kSchemaEmpty, place, "there is no layer group");
  std::vector<Range> ranges;
  for (size_t i = 0; i < schema.groups.size(); ++i) {
    const LayerGroup& group = schema.groups[i];
    check_group(group, join(place, fmt::format("group {} (layers {})", i, set_text(group.layers))), diagnostics);
    ranges.insert(ranges.end(), group.layers.ranges().begin(), group.layers.ranges().end());
  }
  // Over all groups together: a layer may be in one group only (rule layer-repeated), which LayerIndex relies on.
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = 0;  // of all ranges before
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0 && ranges[i].begin() < end)
      diagnostics.add(Rule::kLayerRepeated, place,
                      fmt::format("layers {} are in two groups",
                                  set_text({Range(ranges[i].begin(), std::min(end, ranges[i].end()))})));
    end = std::max(end, ranges[i].end());
  }
}

void canonicalize(Topology& topology) {
  std::stable_sort(topology.participants.begin(), topology.participants.end(),
                   [](const Participant& a, const Participant& b) { return a.id < b.id; });
}

void validate(const Topology& topology, Diagnostics& diagnostics) {
  diagnostics.set_document("topology");
  check_topology(topology, "", diagnostics);
}

// Ranks are stated and compared, never computed from positions in a list. Not every combination of ranks needs a
// participant: coverage says what is missing.
void check_topology(const Topology& topology, const std::string& place, Diagnostics& diagnostics) {
  for (const ParallelAxis& axis : kParallelAxes)
    if (topology.sizes.*axis.member == 0)
      diagnostics.add(Rule::kFieldMinimum, place, fmt::format("{} size 0 is below 1", axis.name));
  if (topology.participants.empty()) diagnostics.add(Rule::kTopologyEmpty, place, "there are no participants");

  std::vector<const Participant*> by_rank;
  const Participant* previous = nullptr;
  for (const Participant& participant : topology.participants) {
    const std::string where = join(place, fmt::format("participant '{}'", participant.id.text()));
    check_name(participant.id.text(), where, "the participant's id", diagnostics);
    if (previous != nullptr && previous->id == participant.id)
      diagnostics.add(Rule::kParticipantRepeated, where, "the participant is listed twice");
    for (const ParallelAxis& axis : kParallelAxes)
      if (participant.rank.*axis.member >= topology.sizes.*axis.member)
        diagnostics.add(Rule::kRankBounds, where,
                        fmt::format("{} rank {} is not below the {} size {}", axis.name, participant.rank.*axis.member,
                                    axis.name, topology.sizes.*axis.member));
    previous = &participant;
    by_rank.push_back(&participant);
  }
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [](const Participant* a, const Participant* b) { return a->rank < b->rank; });
  for (size_t i = 1; i < by_rank.size(); ++i) {
    const ParallelAxes& rank = by_rank[i]->rank;
    if (rank == by_rank[i - 1]->rank)
      diagnostics.add(Rule::kRankRepeated, join(place, fmt::format("participant '{}'", by_rank[i]->id.text())),
                      fmt::format("rank dp {} pp {} tp {} cp {} ep {} is also that of '{}'", rank.dp, rank.pp, rank.tp,
                                  rank.cp, rank.ep, by_rank[i - 1]->id.text()));
  }
}

// Sorted and disjoint once rule layer-repeated holds.
LayerIndex::LayerIndex(const CacheSchema& schema) {
  for (size_t i = 0; i < schema.groups.size(); ++i)
    for (const Range range : schema.groups[i].layers.ranges()) entries_.push_back(Entry{range, i});
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.layers < b.layers; });
}

size_t LayerIndex::first_ending_after(uint64_t layer) const {
  const auto found = std::partition_point(entries_.begin(), entries_.end(),
                                          [layer](const Entry& entry) { return entry.layers.end() <= layer; });
  return static_cast<size_t>(found - entries_.begin());
}

}  // namespace crossdock
