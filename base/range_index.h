// Finds the ranges of a list that overlap a given one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/range.h"

namespace crossdock {

// A balanced tree over ranges that are sorted by where they begin: each node keeps the furthest end below it. Unlike a
// running maximum of the ends, one long range at the front does not turn a look-up into a walk.
class RangeIndex {
 public:
  RangeIndex() = default;
  // `ranges` are sorted by begin and not empty; they may overlap. O(n).
  explicit RangeIndex(std::vector<Range> ranges) : ranges_(std::move(ranges)), reach_(ranges_.size()) {
    build(0, ranges_.size());
  }

  // Calls visit(size_t position) for each range that shares a number with `wanted`, in their order.
  // O((found + 1) log n).
  template <class Visit>
  void for_each_overlapping(Range wanted, Visit visit) const {
    walk(0, ranges_.size(), wanted, visit);
  }

 private:
  static size_t middle(size_t begin, size_t end) { return begin + (end - begin) / 2; }

  uint64_t build(size_t begin, size_t end) {
    if (begin == end) return 0;
    const size_t at = middle(begin, end);
    return reach_[at] = std::max({ranges_[at].end(), build(begin, at), build(at + 1, end)});
  }

  // Depth: log n.
  template <class Visit>
  void walk(size_t begin, size_t end, Range wanted, Visit& visit) const {
    if (begin == end) return;
    const size_t at = middle(begin, end);
    if (reach_[at] <= wanted.begin()) return;
    walk(begin, at, wanted, visit);
    if (ranges_[at].begin() >= wanted.end()) return;  // so does all that follows
    if (ranges_[at].end() > wanted.begin()) visit(at);
    walk(at + 1, end, wanted, visit);
  }

  std::vector<Range> ranges_;
  std::vector<uint64_t> reach_;  // of the subtree whose root is here
};

}  // namespace crossdock
