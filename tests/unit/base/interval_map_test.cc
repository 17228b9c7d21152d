#include "base/interval_map.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace crossdock {
namespace {

constexpr uint64_t kUniverse = 4;
constexpr int kAbsent = 0;
using Values = std::array<int, kUniverse>;  // the naive map: a value, or kAbsent, for each key
using Piece = std::pair<Range, int>;

struct Step {
  Range range;
  int value;  // kAbsent: erase
};

std::vector<Step> all_steps() {
  std::vector<Step> steps;
  for (uint64_t begin = 0; begin <= kUniverse; ++begin)
    for (uint64_t end = begin; end <= kUniverse; ++end)
      for (const int value : {kAbsent, 1, 2}) steps.push_back({Range(begin, end), value});
  return steps;
}

void apply(const Step& step, IntervalMap<int>& map, Values& naive) {
  if (step.value == kAbsent)
    map.erase(step.range);
  else
    map.assign(step.range, step.value);
  for (uint64_t key = step.range.begin(); key < step.range.end(); ++key) naive[key] = step.value;
}

// The longest runs of one value within `range`, read off key by key.
std::vector<Piece> pieces(const Values& naive, Range range) {
  std::vector<Piece> found;
  for (uint64_t key = range.begin(); key < range.end(); ++key) {
    if (naive[key] == kAbsent) continue;
    if (!found.empty() && found.back().first.end() == key && found.back().second == naive[key])
      found.back().first = Range(found.back().first.begin(), key + 1);
    else
      found.emplace_back(Range(key, key + 1), naive[key]);
  }
  return found;
}

std::vector<Piece> pieces(const IntervalMap<int>& map, Range range) {
  std::vector<Piece> found;
  map.for_each_in(range, [&](Range piece, int value) { found.emplace_back(piece, value); });
  return found;
}

// The map that holds `naive`, written key by key.
IntervalMap<int> map_of(const Values& naive) {
  IntervalMap<int> map;
  for (uint64_t key = 0; key < kUniverse; ++key)
    if (naive[key] != kAbsent) map.assign(Range(key, key + 1), naive[key]);
  return map;
}

void expect_agrees(const IntervalMap<int>& map, const Values& naive) {
  const std::vector<Piece> all = pieces(naive, Range(0, kUniverse));
  EXPECT_EQ(pieces(map, Range::all()), all);
  EXPECT_EQ(map.range_count(), all.size());
  EXPECT_EQ(map.empty(), all.empty());
  EXPECT_EQ(map, map_of(naive));
  for (uint64_t key = 0; key < kUniverse; ++key) {
    const int* value = map.find(key);
    EXPECT_EQ(value == nullptr ? kAbsent : *value, naive[key]) << key;
  }
  EXPECT_EQ(map.find(kUniverse), nullptr);
}

TEST(IntervalMap, EveryThreeStepsAgreeWithAnArray) {
  const std::vector<Step> steps = all_steps();
  for (const Step& a : steps)
    for (const Step& b : steps)
      for (const Step& c : steps) {
        IntervalMap<int> map;
        Values naive = {};
        for (const Step& step : {a, b, c}) apply(step, map, naive);
        expect_agrees(map, naive);
        if (HasFailure())
          FAIL() << "steps " << &a - steps.data() << " " << &b - steps.data() << " " << &c - steps.data();
      }
}

TEST(IntervalMap, EveryPartOfEveryMapIsCutToWhatWasAskedFor) {
  for (int code = 0; code < 3 * 3 * 3 * 3; ++code) {
    Values naive = {};
    int rest = code;
    for (int& value : naive) {
      value = rest % 3;
      rest /= 3;
    }
    const IntervalMap<int> map = map_of(naive);
    for (uint64_t begin = 0; begin <= kUniverse; ++begin)
      for (uint64_t end = begin; end <= kUniverse; ++end)
        EXPECT_EQ(pieces(map, Range(begin, end)), pieces(naive, Range(begin, end)))
            << code << " [" << begin << ", " << end << ")";
  }
}

TEST(IntervalMap, MapsAreEqualExactlyWhenTheirContentsAre) {
  IntervalMap<int> left_to_right;
  left_to_right.assign(Range(0, 2), 5);
  left_to_right.assign(Range(2, 4), 5);
  IntervalMap<int> carved;
  carved.assign(Range(0, 9), 5);
  carved.assign(Range(1, 3), 6);
  carved.assign(Range(1, 3), 5);
  carved.erase(Range(4, 9));
  EXPECT_EQ(left_to_right, carved);
  EXPECT_EQ(carved.range_count(), 1u);

  carved.assign(Range(3, 4), 6);
  EXPECT_NE(left_to_right, carved);
}

TEST(IntervalMap, ClosingAGapJoinsBothNeighbours) {
  IntervalMap<std::string> map;
  map.assign(Range(0, 3), "a");
  map.assign(Range(6, 9), "a");
  EXPECT_EQ(map.range_count(), 2u);
  map.assign(Range(3, 6), "a");
  EXPECT_EQ(map.range_count(), 1u);
  map.assign(Range(4, 5), "b");
  EXPECT_EQ(map.range_count(), 3u);
  EXPECT_EQ(*map.find(3), "a");
  EXPECT_EQ(*map.find(4), "b");
  EXPECT_EQ(*map.find(5), "a");
}

TEST(IntervalMap, HoldsTheWholeLine) {
  constexpr uint64_t kLast = Range::kUnbounded;
  IntervalMap<int> map;
  map.assign(Range::all(), 1);
  EXPECT_EQ(*map.find(0), 1);
  EXPECT_EQ(*map.find(kLast - 1), 1);
  EXPECT_EQ(map.find(kLast), nullptr);

  map.assign(Range(kLast - 1, kLast), 2);
  map.assign(Range(0, 1), 2);
  EXPECT_EQ(pieces(map, Range::all()),
            (std::vector<Piece>{{Range(0, 1), 2}, {Range(1, kLast - 1), 1}, {Range(kLast - 1, kLast), 2}}));
  map.erase(Range::all());
  EXPECT_TRUE(map.empty());
}

TEST(IntervalMap, AnEmptyRangeChangesNothing) {
  IntervalMap<int> map;
  map.assign(Range(3, 3), 1);
  EXPECT_TRUE(map.empty());
  map.assign(Range(0, 9), 1);
  map.assign(Range(5, 5), 2);
  map.erase(Range(5, 5));
  EXPECT_EQ(map.range_count(), 1u);
  EXPECT_TRUE(pieces(map, Range(5, 5)).empty());
}

}  // namespace
}  // namespace crossdock
