// A set of unsigned 64-bit numbers as sorted, disjoint, non-touching, non-empty ranges.
// Two sets with the same members are equal: there is one form for each set.
#pragma once

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/range.h"

namespace crossdock {

class IntervalSet {
 public:
  IntervalSet() = default;
  IntervalSet(std::initializer_list<Range> ranges) : IntervalSet(from_ranges(ranges)) {}

  // The union of any ranges, in any order: O(n log n).
  static IntervalSet from_ranges(std::vector<Range> ranges);
  // Takes ranges that are in the one form already; empty when they are not. O(n).
  static std::optional<IntervalSet> from_canonical(std::vector<Range> ranges);

  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const& { return ranges_; }
  const std::vector<Range>& ranges() && = delete;  // would outlive a temporary set in a range-for
  // How many numbers are members; at most 2^64 - 1, since no range holds the number 2^64 - 1.
  uint64_t count() const;
  // How many members lie below `value`. O(n); base/interval_rank.h answers often.
  uint64_t count_below(uint64_t value) const;
  // The smallest range that holds every member; an empty range when there are none.
  Range hull() const { return empty() ? Range() : Range(ranges_.front().begin(), ranges_.back().end()); }

  bool contains(uint64_t value) const;
  bool contains(const IntervalSet& other) const;
  bool overlaps(const IntervalSet& other) const;

  // Each O(n + m).
  IntervalSet unite(const IntervalSet& other) const;
  IntervalSet intersect(const IntervalSet& other) const;
  IntervalSet subtract(const IntervalSet& other) const;

  friend bool operator==(const IntervalSet&, const IntervalSet&) = default;
  friend auto operator<=>(const IntervalSet&, const IntervalSet&) = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace crossdock
