// Rules of a cache schema and of a topology inside another document, and look-up by layer.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "model/diagnostics.h"
#include "model/kv/cache_schema.h"
#include "model/topology.h"

namespace crossdock {

// `place` says where in the document the schema or topology is, for messages; empty when it is the document.
// Each adds a diagnostic for each broken rule.
void check_cache_schema(const CacheSchema& schema, const std::string& place, Diagnostics& diagnostics);
void check_topology(const Topology& topology, const std::string& place, Diagnostics& diagnostics);

// Finds the groups of a layer set without looking at every layer.
// Of a schema that keeps rule layer-repeated. The schema need not outlive it: groups are named by number.
class LayerIndex {
 public:
  static constexpr size_t kNoGroup = SIZE_MAX;

  // O(n log n) in the ranges of layers of all groups.
  explicit LayerIndex(const CacheSchema& schema);

  // Calls visit(Range layers, size_t group) for each piece of `layers` within one group, ascending; pieces that no
  // group has come with kNoGroup. A visit that returns false ends the walk; one without a result goes on.
  // O(pieces + ranges of layers * log(ranges of the schema)).
  template <class Visit>
  void for_each_piece(const IntervalSet& layers, Visit visit) const {
    for (const Range range : layers.ranges())
      if (!visit_range(range, visit)) return;
  }

 private:
  struct Entry {
    Range layers;
    size_t group;
  };

  template <class Visit>
  static bool goes_on(Visit& visit, Range layers, size_t group) {
    if constexpr (std::is_void_v<decltype(visit(layers, group))>) {
      visit(layers, group);
      return true;
    } else {
      return visit(layers, group);
    }
  }

  template <class Visit>
  bool visit_range(Range range, Visit& visit) const {
    uint64_t at = range.begin();
    for (size_t i = first_ending_after(at); i < entries_.size() && entries_[i].layers.begin() < range.end(); ++i) {
      const Range piece = entries_[i].layers.intersect(range);
      if (at < piece.begin() && !goes_on(visit, Range(at, piece.begin()), kNoGroup)) return false;
      if (!goes_on(visit, piece, entries_[i].group)) return false;
      at = piece.end();
    }
    return at == range.end() || goes_on(visit, Range(at, range.end()), kNoGroup);
  }
  size_t first_ending_after(uint64_t layer) const;

  std::vector<Entry> entries_;  // sorted, disjoint
};

}  // namespace crossdock
