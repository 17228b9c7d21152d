#include "base/interval_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace crossdock {
namespace {

// Appends to ranges sorted by begin, merging what touches.
void append(std::vector<Range>& ranges, Range next) {
  if (next.empty()) return;
  if (!ranges.empty() && next.begin() <= ranges.back().end()) {
    ranges.back() = Range(ranges.back().begin(), std::max(ranges.back().end(), next.end()));
    return;
  }
  ranges.push_back(next);
}

}  // namespace

IntervalSet IntervalSet::from_ranges(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  IntervalSet set;
  for (const Range range : ranges) append(set.ranges_, range);
  return set;
}

std::optional<IntervalSet> IntervalSet::from_canonical(std::vector<Range> ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].empty()) return std::nullopt;
    if (i > 0 && ranges[i].begin() <= ranges[i - 1].end()) return std::nullopt;
  }
  IntervalSet set;
  set.ranges_ = std::move(ranges);
  return set;
}

uint64_t IntervalSet::count() const {
  uint64_t total = 0;
  for (const Range range : ranges_)  // disjoint members of [0, 2^64 - 1) cannot pass 2^64 - 1
    total += range.size();
  return total;
}

uint64_t IntervalSet::count_below(uint64_t value) const {
  uint64_t total = 0;
  for (const Range range : ranges_) total += range.intersect(Range(0, value)).size();
  return total;
}

bool IntervalSet::contains(uint64_t value) const {
  // The only range that can hold the value is the last one that does not begin behind it.
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), value,
                                      [](uint64_t v, Range range) { return v < range.begin(); });
  return after != ranges_.begin() && std::prev(after)->contains(value);
}

bool IntervalSet::contains(const IntervalSet& other) const {
  auto mine = ranges_.begin();
  for (const Range range : other.ranges_) {
    while (mine != ranges_.end() && mine->end() < range.end()) ++mine;
    if (mine == ranges_.end() || !mine->contains(range)) return false;
  }
  return true;
}

bool IntervalSet::overlaps(const IntervalSet& other) const {
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    if (a->overlaps(*b)) return true;
    a->end() <= b->end() ? ++a : ++b;
  }
  return false;
}

IntervalSet IntervalSet::unite(const IntervalSet& other) const {
  std::vector<Range> merged;
  merged.reserve(ranges_.size() + other.ranges_.size());
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(), std::back_inserter(merged));
  IntervalSet set;
  for (const Range range : merged) append(set.ranges_, range);
  return set;
}

IntervalSet IntervalSet::intersect(const IntervalSet& other) const {
  IntervalSet set;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    append(set.ranges_, a->intersect(*b));
    a->end() <= b->end() ? ++a : ++b;
  }
  return set;
}

IntervalSet IntervalSet::subtract(const IntervalSet& other) const {
  IntervalSet set;
  auto cut = other.ranges_.begin();
  for (const Range range : ranges_) {
    uint64_t begin = range.begin();
    while (cut != other.ranges_.end() && cut->end() <= begin) ++cut;
    // `cut` stays: its last range may reach into the next of ours.
    for (auto c = cut; c != other.ranges_.end() && c->begin() < range.end(); ++c) {
      if (begin < c->begin()) append(set.ranges_, Range(begin, c->begin()));
      begin = std::max(begin, std::min(c->end(), range.end()));
    }
    if (begin < range.end()) append(set.ranges_, Range(begin, range.end()));
  }
  return set;
}

}  // namespace crossdock
