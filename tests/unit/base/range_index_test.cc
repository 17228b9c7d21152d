#include "base/range_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace crossdock {
namespace {

std::vector<size_t> found(const RangeIndex& index, Range wanted) {
  std::vector<size_t> positions;
  index.for_each_overlapping(wanted, [&](size_t position) { positions.push_back(position); });
  return positions;
}

TEST(RangeIndex, FindsWhatAWalkThroughAllFinds) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<Range> ranges;
    for (uint64_t i = rng.next() % 40; i > 0; --i) {
      const uint64_t begin = rng.next() % 100;
      ranges.emplace_back(begin, begin + 1 + rng.next() % (rng.chance(1, 8) ? 200 : 10));
    }
    std::sort(ranges.begin(), ranges.end());
    const RangeIndex index(ranges);
    for (uint64_t begin = 0; begin < 110; begin += 1 + rng.next() % 5) {
      const Range wanted(begin, begin + 1 + rng.next() % 20);
      std::vector<size_t> expected;
      for (size_t i = 0; i < ranges.size(); ++i)
        if (ranges[i].begin() < wanted.end() && wanted.begin() < ranges[i].end()) expected.push_back(i);
      EXPECT_EQ(found(index, wanted), expected);
    }
  }
}

TEST(RangeIndex, AnEmptyIndexHasNothing) { EXPECT_EQ(found(RangeIndex(), Range::all()), std::vector<size_t>()); }

}  // namespace
}  // namespace crossdock
