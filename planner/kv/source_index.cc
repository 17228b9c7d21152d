#include "planner/kv/source_index.h"

#include <algorithm>
#include <utility>

// A join of boxes by look-up: for the box of a target's claim it visits exactly the source claims with layers and heads
// in common. An interval tree for each axis would bound the worst case better; sorted lists with a running maximum of
// the ends ("reach") are enough, since placements have few different layer sets and heads that hardly overlap.
namespace crossdock {
namespace {

auto class_key(const Claim& claim) {
  return std::tie(claim.tensor, claim.dp, claim.layer_set, claim.replica_count, claim.replica_ordinal);
}

auto layer_key(const SourceIndex::Class& members) {
  return std::tie(members.tensor, members.dp, members.layer_set, members.replica_count);
}

}  // namespace

SourceIndex::SourceIndex(std::vector<Claim> claims, ClaimNumbers& numbers)
    : numbers_(numbers), claims_(std::move(claims)) {
  // Claims are compared by all their fields: whichever order the owners came in, the index is the same (I7).
  std::sort(claims_.begin(), claims_.end());
  reach_.reserve(claims_.size());
  for (uint32_t i = 0; i < claims_.size(); ++i) {
    const Claim& claim = claims_[i];
    if (i == 0 || class_key(claims_[i - 1]) != class_key(claim)) {
      classes_.push_back(
          Class{claim.tensor, claim.dp, claim.layer_set, claim.replica_count, claim.replica_ordinal, i, i});
      // The running maximum begins anew with each class, so a binary search within the class is right.
      reach_.push_back(claim.heads.end());
    } else {
      reach_.push_back(std::max(reach_.back(), claim.heads.end()));
    }
    classes_.back().end = i + 1;
  }
  run_end_.resize(claims_.size());
  for (const Class& members : classes_)
    for (uint32_t i = members.end; i-- > members.begin;)
      run_end_[i] = i + 1 < members.end && claims_[i].heads == claims_[i + 1].heads ? run_end_[i + 1] : i + 1;
  std::vector<LayerEntry> entries;
  for (uint32_t begin = 0; begin < classes_.size();) {
    uint32_t end = begin;
    while (end < classes_.size() && layer_key(classes_[end]) == layer_key(classes_[begin])) ++end;
    const Class& first = classes_[begin];
    entries.push_back(LayerEntry{numbers_.layer_sets[first.layer_set].hull(), 0, first.layer_set, begin, end});
    if (end == classes_.size() || classes_[end].tensor != first.tensor || classes_[end].dp != first.dp) {
      add_layer_entries(std::move(entries), first.tensor, first.dp);
      entries = {};
    }
    begin = end;
  }
}

void SourceIndex::add_layer_entries(std::vector<LayerEntry> entries, uint32_t tensor, uint32_t dp) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const LayerEntry& a, const LayerEntry& b) { return a.hull.begin() < b.hull.begin(); });
  uint64_t reach = 0;
  for (LayerEntry& entry : entries) entry.reach = reach = std::max(reach, entry.hull.end());
  layer_entries_.emplace(std::pair(tensor, dp), std::move(entries));
}

// Ordinals of one list are sorted and different. Where none is missing, the ordinal is the position.
const SourceIndex::Class* SourceIndex::find(const LayerOverlap& overlap, uint32_t replica_ordinal) const {
  const std::span<const Class> members = classes(overlap);
  if (replica_ordinal < members.size() && members[replica_ordinal].replica_ordinal == replica_ordinal)
    return &members[replica_ordinal];
  const auto found = std::lower_bound(members.begin(), members.end(), replica_ordinal,
                                      [](const Class& a, uint32_t wanted) { return a.replica_ordinal < wanted; });
  return found != members.end() && found->replica_ordinal == replica_ordinal ? &*found : nullptr;
}

// The reference stays valid: std::map does not move its entries, and later calls only add some.
std::vector<SourceIndex::LayerOverlap>& SourceIndex::overlaps(uint32_t tensor, uint32_t dp, uint32_t layer_set,
                                                              uint64_t& work) {
  const auto [entry, is_new] = overlaps_.try_emplace(OverlapKey(tensor, dp, layer_set));
  const auto layers_found = layer_entries_.find(std::pair(tensor, dp));
  if (!is_new || layers_found == layer_entries_.end()) return entry->second;

  const std::vector<LayerEntry>& sources = layers_found->second;
  const Range hull = numbers_.layer_sets[layer_set].hull();
  auto source = std::partition_point(sources.begin(), sources.end(),
                                     [&](const LayerEntry& each) { return each.reach <= hull.begin(); });
  for (; source != sources.end() && source->hull.begin() < hull.end(); ++source, ++work)
    if (source->hull.end() > hull.begin())
      entry->second.push_back(LayerOverlap{source->layer_set, source->class_begin, source->class_end});
  return entry->second;
}

std::optional<uint32_t> SourceIndex::common_layers(LayerOverlap& overlap, uint32_t layer_set, uint64_t& work) {
  // Kept in the overlap: all claims of a target with this layer set ask the same question.
  if (overlap.common == kNotKnown) {
    const IntervalSet& owned = numbers_.layer_sets[overlap.source_layer_set];
    const IntervalSet& wanted = numbers_.layer_sets[layer_set];
    work += owned.ranges().size() + wanted.ranges().size();
    if (overlap.source_layer_set == layer_set || wanted.contains(owned)) {
      overlap.common = overlap.source_layer_set;
    } else {
      const IntervalSet common = owned.intersect(wanted);
      overlap.common = common.empty() ? kNothing : numbers_.layer_sets.intern(common);
    }
  }
  return overlap.common == kNothing ? std::nullopt : std::optional(overlap.common);
}

}  // namespace crossdock
