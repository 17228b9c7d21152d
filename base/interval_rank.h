// Counts the members of a set below a number, often: by binary search instead of a walk through the set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/interval_set.h"

namespace crossdock {

class IntervalRank {
 public:
  explicit IntervalRank(IntervalSet set) : set_(std::move(set)) {
    before_.reserve(set_.ranges().size());
    for (const Range range : set_.ranges()) {
      before_.push_back(count_);
      count_ += range.size();
    }
  }

  // Cannot overflow (IntervalSet::count).
  uint64_t count() const { return count_; }
  // How many members lie below `value`: a member's position among all. O(log n).
  uint64_t count_below(uint64_t value) const {
    const std::vector<Range>& ranges = set_.ranges();
    const auto after =
        std::partition_point(ranges.begin(), ranges.end(), [value](Range range) { return range.begin() < value; });
    if (after == ranges.begin()) return 0;
    const auto index = static_cast<size_t>(after - ranges.begin()) - 1;
    return before_[index] + (std::min(value, ranges[index].end()) - ranges[index].begin());
  }

 private:
  IntervalSet set_;
  std::vector<uint64_t> before_;  // members below each range
  uint64_t count_ = 0;
};

}  // namespace crossdock
