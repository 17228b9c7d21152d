#include "base/range.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace crossdock {
namespace {

constexpr uint64_t kUniverse = 7;

std::vector<Range> all_ranges() {
  std::vector<Range> ranges;
  for (uint64_t begin = 0; begin <= kUniverse; ++begin)
    for (uint64_t end = begin; end <= kUniverse; ++end) ranges.push_back(Range(begin, end));
  return ranges;
}

std::set<uint64_t> members(Range range) {
  std::set<uint64_t> numbers;
  for (uint64_t number = range.begin(); number != range.end(); ++number) numbers.insert(number);
  return numbers;
}

static_assert(Range().empty() && Range::all().size() == Range::kUnbounded);
static_assert(Range(2, 5).intersect(Range(4, 9)) == Range(4, 5));

TEST(Range, AgreesWithItsSetOfNumbers) {
  for (const Range range : all_ranges()) {
    const std::set<uint64_t> numbers = members(range);
    EXPECT_EQ(range.size(), numbers.size());
    EXPECT_EQ(range.empty(), numbers.empty());
    for (uint64_t number = 0; number <= kUniverse + 1; ++number)
      EXPECT_EQ(range.contains(number), numbers.contains(number))
          << "[" << range.begin() << ", " << range.end() << ") " << number;
  }
}

TEST(Range, PairsAgreeWithTheirSetsOfNumbers) {
  for (const Range a : all_ranges())
    for (const Range b : all_ranges()) {
      SCOPED_TRACE(testing::Message() << "[" << a.begin() << ", " << a.end() << ") [" << b.begin() << ", " << b.end()
                                      << ")");
      const std::set<uint64_t> in_b = members(b);
      std::set<uint64_t> common;
      for (const uint64_t number : members(a))
        if (in_b.contains(number)) common.insert(number);

      EXPECT_EQ(members(a.intersect(b)), common);
      EXPECT_EQ(a.overlaps(b), !common.empty());
      EXPECT_EQ(a.contains(b), common.size() == in_b.size());
    }
}

TEST(Range, IsOrderedByBeginThenByEnd) {
  for (const Range a : all_ranges())
    for (const Range b : all_ranges()) {
      EXPECT_EQ(a < b, std::pair(a.begin(), a.end()) < std::pair(b.begin(), b.end()));
      EXPECT_EQ(a == b, std::pair(a.begin(), a.end()) == std::pair(b.begin(), b.end()));
    }
}

TEST(Range, IsMadeExactlyWhenItDoesNotEndBeforeItBegins) {
  const std::vector<uint64_t> numbers = {0, 1, 2, Range::kUnbounded - 1, Range::kUnbounded};
  for (const uint64_t begin : numbers)
    for (const uint64_t end : numbers) {
      const std::optional<Range> range = Range::make(begin, end);
      ASSERT_EQ(range.has_value(), begin <= end) << begin << " " << end;
      if (!range) continue;
      EXPECT_EQ(range->begin(), begin);
      EXPECT_EQ(range->end(), end);
    }
}

TEST(Range, IsMadeBySizeExactlyWhenItsEndFits) {
  __extension__ using Wide = unsigned __int128;
  const std::vector<uint64_t> numbers = {0, 1, 2, Range::kUnbounded / 2, Range::kUnbounded - 1, Range::kUnbounded};
  for (const uint64_t begin : numbers)
    for (const uint64_t count : numbers) {
      const std::optional<Range> range = Range::make_sized(begin, count);
      ASSERT_EQ(range.has_value(), Wide{begin} + count <= Range::kUnbounded) << begin << " " << count;
      if (!range) continue;
      EXPECT_EQ(range->begin(), begin);
      EXPECT_EQ(range->size(), count);
    }
}

TEST(Range, AllHoldsEveryNumberButTheLast) {
  EXPECT_TRUE(Range::all().contains(uint64_t{0}));
  EXPECT_TRUE(Range::all().contains(Range::kUnbounded - 1));
  EXPECT_FALSE(Range::all().contains(Range::kUnbounded));
}

TEST(RangeDeathTest, ARangeThatEndsBeforeItBeginsDies) {
  EXPECT_DEATH(Range(1, 0), "CHECK failed: begin <= end at .*range.h:[0-9]+");
  EXPECT_DEATH(Range(Range::kUnbounded, Range::kUnbounded - 1), "CHECK failed: begin <= end at ");
}

}  // namespace
}  // namespace crossdock
