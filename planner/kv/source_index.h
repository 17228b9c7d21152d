// The claims of the sources, arranged so that those which overlap a region of a target are found by binary search.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/range.h"
#include "planner/kv/claims.h"

namespace crossdock {

// `work` counts the claims and ranges that are looked at, for the caller's limit.
class SourceIndex {
 public:
  // Claims with equal tensor, dp, layer set, replica count and ordinal.
  struct Class {
    uint32_t tensor, dp, layer_set, replica_count, replica_ordinal;
    uint32_t begin, end;  // into claims()
  };
  // Sources of one layer set and replica count that share layers with a target.
  struct LayerOverlap {
    uint32_t source_layer_set;
    uint32_t class_begin, class_end;  // by replica ordinal
    uint32_t common = kNotKnown;      // the layers in common
  };
  static constexpr uint32_t kNotKnown = UINT32_MAX;
  static constexpr uint32_t kNothing = UINT32_MAX - 1;

  // O(n log n). `numbers` outlives the index, and gets the sets of common layers.
  SourceIndex(std::vector<Claim> claims, ClaimNumbers& numbers);

  // Sorted by (tensor, dp, layer set, replica count, ordinal, heads, ownership, owner).
  const std::vector<Claim>& claims() const { return claims_; }
  std::span<const Class> classes(const LayerOverlap& overlap) const {
    return std::span(classes_).subspan(overlap.class_begin, overlap.class_end - overlap.class_begin);
  }
  // The class of that ordinal, or null. O(1) where all ordinals are there.
  const Class* find(const LayerOverlap& overlap, uint32_t replica_ordinal) const;

  // Found once for each (tensor, dp, layer set) and kept. O(log n + overlaps) for stages whose hulls do not interleave.
  // Only the hulls of the layers are compared here.
  std::vector<LayerOverlap>& overlaps(uint32_t tensor, uint32_t dp, uint32_t layer_set, uint64_t& work);
  // The number of the layers in common, or empty when there are none. Found when it is first asked for, so that nothing
  // is kept for pairs that have no heads in common.
  std::optional<uint32_t> common_layers(LayerOverlap& overlap, uint32_t layer_set, uint64_t& work);

  // Calls visit(std::span<const Claim>) for each run of claims of the class that have the same heads and share a head
  // with `heads`. The claims of a run are sorted by token ownership.
  template <class Visit>
  void for_each_overlapping(const Class& members, Range heads, uint64_t& work, Visit visit) const {
    const auto begin = reach_.begin() + members.begin;
    const auto end = reach_.begin() + members.end;
    const auto first = std::partition_point(begin, end, [&](uint64_t reach) { return reach <= heads.begin(); });
    for (size_t i = static_cast<size_t>(first - reach_.begin()); i < members.end; i = run_end_[i], ++work) {
      if (claims_[i].heads.begin() >= heads.end()) return;
      if (claims_[i].heads.end() > heads.begin()) visit(std::span(claims_).subspan(i, run_end_[i] - i));
    }
  }

 private:
  // The classes of one (tensor, dp) with one layer set and replica count, sorted by where the layers begin.
  struct LayerEntry {
    Range hull;
    uint64_t reach;  // the furthest end of a hull up to here
    uint32_t layer_set;
    uint32_t class_begin, class_end;
  };
  using OverlapKey = std::tuple<uint32_t, uint32_t, uint32_t>;

  void add_layer_entries(std::vector<LayerEntry> entries, uint32_t tensor, uint32_t dp);

  ClaimNumbers& numbers_;
  std::vector<Claim> claims_;      // sorted
  std::vector<uint64_t> reach_;    // for each claim the furthest head end of its class up to it
  std::vector<uint32_t> run_end_;  // of each claim: where the claims of its class with its heads end
  std::vector<Class> classes_;     // sorted
  std::map<std::pair<uint32_t, uint32_t>, std::vector<LayerEntry>> layer_entries_;  // by (tensor, dp)
  std::map<OverlapKey, std::vector<LayerOverlap>> overlaps_;
};

}  // namespace crossdock
