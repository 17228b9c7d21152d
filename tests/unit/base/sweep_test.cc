#include "base/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace crossdock {
namespace {

struct Item {
  Range range;
  size_t number;
};

struct Slab {
  Range range;
  std::vector<size_t> active;  // ascending
  friend bool operator==(const Slab&, const Slab&) = default;
};

std::vector<Item> numbered(const std::vector<Range>& ranges) {
  std::vector<Item> items;
  for (const Range range : ranges) items.push_back({range, items.size()});
  return items;
}

// Sweeps and stops after `slabs_max` slabs.
bool swept(const std::vector<Range>& ranges, std::vector<Slab>& slabs, size_t slabs_max) {
  return sweep(
      numbered(ranges), [](const Item& item) { return item.range; },
      [&](Range range, std::span<const Item> active) {
        Slab slab{range, {}};
        for (const Item& item : active) slab.active.push_back(item.number);
        std::sort(slab.active.begin(), slab.active.end());
        slabs.push_back(slab);
        return slabs.size() < slabs_max;
      });
}

// The longest runs of points with the same items, point by point.
std::vector<Slab> slabs_by_point(const std::vector<Range>& ranges, uint64_t universe) {
  std::vector<Slab> slabs;
  for (uint64_t point = 0; point < universe; ++point) {
    std::vector<size_t> active;
    for (size_t i = 0; i < ranges.size(); ++i)
      if (ranges[i].begin() <= point && point < ranges[i].end()) active.push_back(i);
    if (active.empty()) continue;
    if (!slabs.empty() && slabs.back().range.end() == point && slabs.back().active == active)
      slabs.back().range = Range(slabs.back().range.begin(), point + 1);
    else
      slabs.push_back({Range(point, point + 1), active});
  }
  return slabs;
}

TEST(Sweep, EveryThreeItemsAgreeWithACountPointByPoint) {
  constexpr uint64_t kSweptUniverse = 5;
  std::vector<Range> all;
  for (uint64_t begin = 0; begin <= kSweptUniverse; ++begin)
    for (uint64_t end = begin; end <= kSweptUniverse; ++end) all.push_back(Range(begin, end));
  for (const Range a : all)
    for (const Range b : all)
      for (const Range c : all) {
        std::vector<Slab> slabs;
        ASSERT_TRUE(swept({a, b, c}, slabs, SIZE_MAX));
        ASSERT_EQ(slabs, slabs_by_point({a, b, c}, kSweptUniverse));
      }
}

TEST(Sweep, StopsWhereItIsTold) {
  const std::vector<Range> ranges = {Range(0, 4), Range(2, 6), Range(9, 10)};
  const std::vector<Slab> all = slabs_by_point(ranges, 10);
  ASSERT_EQ(all.size(), 4u);
  for (size_t stop = 1; stop <= all.size(); ++stop) {
    std::vector<Slab> slabs;
    EXPECT_FALSE(swept(ranges, slabs, stop)) << stop;
    EXPECT_EQ(slabs, std::vector<Slab>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(stop))) << stop;
  }
}

TEST(Sweep, OfNothingGoesThroughWithoutAVisit) {
  std::vector<Slab> slabs;
  EXPECT_TRUE(swept({}, slabs, 1));
  EXPECT_TRUE(swept({Range(3, 3), Range(Range::kUnbounded, Range::kUnbounded)}, slabs, 1));
  EXPECT_TRUE(slabs.empty());
}

TEST(Sweep, ReachesBothEndsOfTheLine) {
  constexpr uint64_t kLastBegin = Range::kUnbounded;
  std::vector<Slab> slabs;
  EXPECT_TRUE(swept({Range(kLastBegin - 1, kLastBegin), Range::all(), Range(0, 1)}, slabs, SIZE_MAX));
  EXPECT_EQ(slabs, (std::vector<Slab>{{Range(0, 1), {1, 2}},  //
                                      {Range(1, kLastBegin - 1), {1}},
                                      {Range(kLastBegin - 1, kLastBegin), {0, 1}}}));
}

}  // namespace
}  // namespace crossdock
