#include "base/interval_set.h"

#include <gtest/gtest.h>

#include <bitset>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/interval_rank.h"

namespace crossdock {
namespace {

constexpr size_t kUniverse = 7;
constexpr uint64_t kLast = Range::kUnbounded;
using Members = std::bitset<kUniverse>;

// The one form, read off number by number. `origin` is the number of bit 0.
std::vector<Range> runs(const Members& members, uint64_t origin) {
  std::vector<Range> found;
  for (size_t i = 0; i < kUniverse; ++i) {
    if (!members[i]) continue;
    const size_t first = i;
    while (i < kUniverse && members[i]) ++i;
    found.push_back(Range(origin + first, origin + i));
  }
  return found;
}

// The set written number by number, so that nothing depends on the merging of longer ranges.
IntervalSet set_of(const Members& members, uint64_t origin) {
  std::vector<Range> ranges;
  for (size_t i = 0; i < kUniverse; ++i)
    if (members[i]) ranges.push_back(Range(origin + i, origin + i + 1));
  return IntervalSet::from_ranges(ranges);
}

// A copy of the ranges, so that they can be read off a temporary set.
std::vector<Range> ranges_of(const IntervalSet& set) { return set.ranges(); }

void expect_pair_agrees(const Members& a, const Members& b, uint64_t origin) {
  const IntervalSet set_a = set_of(a, origin);
  const IntervalSet set_b = set_of(b, origin);
  SCOPED_TRACE(testing::Message() << a << " " << b << " from " << origin);
  EXPECT_EQ(ranges_of(set_a.unite(set_b)), runs(a | b, origin));
  EXPECT_EQ(ranges_of(set_a.intersect(set_b)), runs(a & b, origin));
  EXPECT_EQ(ranges_of(set_a.subtract(set_b)), runs(a & ~b, origin));
  EXPECT_EQ(set_a.contains(set_b), (b & ~a).none());
  EXPECT_EQ(set_a.overlaps(set_b), (a & b).any());
  EXPECT_EQ(set_a == set_b, a == b);
}

// A range-for over a temporary set would read freed memory, so it does not compile.
template <class Set>
constexpr bool kRangesCanBeRead = requires(Set&& set) {
  std::forward<Set>(set).ranges();
};
static_assert(kRangesCanBeRead<const IntervalSet&> && !kRangesCanBeRead<IntervalSet>);

class IntervalSetAtEachEnd : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Origins, IntervalSetAtEachEnd, testing::Values(uint64_t{0}, kLast - kUniverse));

TEST_P(IntervalSetAtEachEnd, EveryPairAgreesWithItsBits) {
  for (uint64_t a = 0; a < uint64_t{1} << kUniverse; ++a)
    for (uint64_t b = 0; b < uint64_t{1} << kUniverse; ++b) expect_pair_agrees(Members(a), Members(b), GetParam());
}

TEST_P(IntervalSetAtEachEnd, EverySetAgreesWithItsBits) {
  const uint64_t origin = GetParam();
  for (uint64_t bits = 0; bits < uint64_t{1} << kUniverse; ++bits) {
    const Members members(bits);
    const std::vector<Range> expected = runs(members, origin);
    const IntervalSet set = set_of(members, origin);
    SCOPED_TRACE(testing::Message() << members << " from " << origin);
    EXPECT_EQ(set.ranges(), expected);
    EXPECT_EQ(set.empty(), members.none());
    EXPECT_EQ(set.count(), members.count());
    EXPECT_EQ(set.hull(), expected.empty() ? Range() : Range(expected.front().begin(), expected.back().end()));
    for (size_t i = 0; i < kUniverse; ++i) EXPECT_EQ(set.contains(origin + i), members[i]) << i;
    EXPECT_FALSE(set.contains(origin + kUniverse));
    EXPECT_FALSE(set.contains(origin - 1));  // of origin 0: the number 2^64 - 1, which no set holds
    const IntervalRank rank(set);
    EXPECT_EQ(rank.count(), members.count());
    EXPECT_EQ(rank.count_below(0), 0u);
    EXPECT_EQ(rank.count_below(kLast), members.count());
    uint64_t below = 0;
    for (size_t i = 0; i <= kUniverse; ++i) {
      EXPECT_EQ(set.count_below(origin + i), below) << i;
      EXPECT_EQ(rank.count_below(origin + i), below) << i;
      below += i < kUniverse && members[i] ? 1u : 0u;
    }
  }
}

// All sequences of up to three of the ranges in [0, 5], empty ones among them.
std::vector<std::vector<Range>> short_sequences() {
  std::vector<Range> ranges;
  for (uint64_t begin = 0; begin <= 5; ++begin)
    for (uint64_t end = begin; end <= 5; ++end) ranges.push_back(Range(begin, end));
  std::vector<std::vector<Range>> sequences = {{}};
  for (const Range a : ranges) {
    sequences.push_back({a});
    for (const Range b : ranges) {
      sequences.push_back({a, b});
      for (const Range c : ranges) sequences.push_back({a, b, c});
    }
  }
  return sequences;
}

TEST(IntervalSet, EachSetHasOneFormAndOnlyThatIsCanonical) {
  for (const std::vector<Range>& sequence : short_sequences()) {
    Members members;
    for (const Range range : sequence)
      for (uint64_t number = range.begin(); number < range.end(); ++number) members.set(number);
    const std::vector<Range> form = runs(members, 0);

    EXPECT_EQ(ranges_of(IntervalSet::from_ranges(sequence)), form);
    const std::optional<IntervalSet> taken = IntervalSet::from_canonical(sequence);
    ASSERT_EQ(taken.has_value(), sequence == form);
    if (taken) {
      EXPECT_EQ(taken->ranges(), form);
    }
  }
}

TEST(IntervalSet, AnInitializerListIsAnyRangesInAnyOrder) {
  const IntervalSet set = {Range(6, 8), Range(3, 3), Range(1, 3), Range(2, 4)};
  EXPECT_EQ(set.ranges(), (std::vector<Range>{Range(1, 4), Range(6, 8)}));
}

TEST(IntervalSet, HoldsTheWholeLine) {
  const IntervalSet all = {Range::all()};
  const IntervalSet halves = {Range(0, kLast / 2), Range(kLast / 2, kLast)};
  EXPECT_EQ(all, halves);
  EXPECT_EQ(all.count(), kLast);
  EXPECT_EQ(all.hull(), Range::all());
  EXPECT_TRUE(all.contains(uint64_t{0}));
  EXPECT_TRUE(all.contains(kLast - 1));
  EXPECT_FALSE(all.contains(kLast));
  EXPECT_TRUE(all.subtract(all).empty());
}

TEST(IntervalSet, TheWholeLineWithoutAPieceIsWhatIsLeftAndRight) {
  const IntervalSet all = {Range::all()};
  const IntervalSet middle = {Range(1, kLast - 1)};
  const IntervalSet ends = {Range(0, 1), Range(kLast - 1, kLast)};
  EXPECT_EQ(all.subtract(middle), ends);
  EXPECT_EQ(all.subtract(ends), middle);
  EXPECT_EQ(middle.unite(ends), all);
  EXPECT_EQ(all.intersect(ends), ends);
  EXPECT_FALSE(middle.overlaps(ends));
  EXPECT_EQ(ends.count(), 2u);
}

TEST(IntervalSet, TheEmptySetIsNeutralAndInEverySet) {
  const IntervalSet none;
  const IntervalSet some = {Range(2, 5)};
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.count(), 0u);
  EXPECT_EQ(none.hull(), Range());
  EXPECT_EQ(some.unite(none), some);
  EXPECT_EQ(some.subtract(none), some);
  EXPECT_EQ(some.intersect(none), none);
  EXPECT_TRUE(some.contains(none));
  EXPECT_TRUE(none.contains(none));
  EXPECT_FALSE(none.contains(some));
  EXPECT_FALSE(none.overlaps(none));
}

TEST(IntervalSet, IsOrderedRangeByRange) {
  const std::vector<IntervalSet> ascending = {
      {}, {Range(0, 1)}, {Range(0, 1), Range(2, 3)}, {Range(0, 2)}, {Range::all()}, {Range(1, 2)}};
  for (size_t i = 0; i < ascending.size(); ++i)
    for (size_t j = 0; j < ascending.size(); ++j) EXPECT_EQ(ascending[i] < ascending[j], i < j) << i << " " << j;
}

}  // namespace
}  // namespace crossdock
