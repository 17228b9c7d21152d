// The laws of base/ on random input, each against a slower computation that shares no code with it. On failure
// RapidCheck prints the counterexample and the RC_PARAMS line that replays it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/interval_set.h"
#include "base/range.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "base/sweep.h"
#include "base/time.h"

namespace crossdock {
namespace {

__extension__ using WideSigned = __int128;
__extension__ using Wide = unsigned __int128;

constexpr uint64_t kLast = Range::kUnbounded;

// Any number, and often one beside a power of two or an end, where arithmetic goes wrong.
rc::Gen<uint64_t> any_number() {
  const auto beside = [](std::pair<int, int> place) {
    return (uint64_t{1} << place.first) + static_cast<uint64_t>(static_cast<int64_t>(place.second));
  };
  return rc::gen::oneOf(rc::gen::arbitrary<uint64_t>(), rc::gen::inRange<uint64_t>(0, 100),
                        rc::gen::map(rc::gen::inRange<uint64_t>(0, 100), [](uint64_t back) { return kLast - back; }),
                        rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 64), rc::gen::inRange(-2, 3)), beside));
}

rc::Gen<int64_t> any_signed() {
  return rc::gen::map(any_number(), [](uint64_t number) { return static_cast<int64_t>(number); });
}

std::optional<uint64_t> narrowed(Wide exact) {
  if (exact > kLast) return std::nullopt;
  return static_cast<uint64_t>(exact);
}

// Ranges of a window of kUniverse numbers, as offsets: RapidCheck can print and shrink these.
constexpr uint64_t kUniverse = 40;
using Offsets = std::pair<uint64_t, uint64_t>;

rc::Gen<Offsets> any_offsets() {
  const auto bound = rc::gen::inRange<uint64_t>(0, kUniverse + 1);
  return rc::gen::map(rc::gen::pair(bound, bound),
                      [](Offsets ends) -> Offsets { return std::minmax(ends.first, ends.second); });
}

rc::Gen<std::vector<Offsets>> any_window() { return rc::gen::container<std::vector<Offsets>>(any_offsets()); }

// Where the window lies: at one of the ends, or between.
rc::Gen<uint64_t> any_origin() { return rc::gen::element<uint64_t>(0, uint64_t{1} << 63, kLast - kUniverse); }

Range range_at(uint64_t origin, Offsets offsets) { return Range(origin + offsets.first, origin + offsets.second); }

std::vector<Range> ranges_at(uint64_t origin, const std::vector<Offsets>& window) {
  std::vector<Range> ranges;
  for (const Offsets& offsets : window) ranges.push_back(range_at(origin, offsets));
  return ranges;
}

std::set<uint64_t> members(const std::vector<Range>& ranges) {
  std::set<uint64_t> numbers;
  for (const Range range : ranges)
    for (uint64_t number = range.begin(); number != range.end(); ++number) numbers.insert(number);
  return numbers;
}

// The one form of a set, read off number by number.
std::vector<Range> runs(const std::set<uint64_t>& numbers) {
  std::vector<Range> found;
  for (const uint64_t number : numbers) {
    if (!found.empty() && found.back().end() == number)
      found.back() = Range(found.back().begin(), number + 1);
    else
      found.push_back(Range(number, number + 1));
  }
  return found;
}

// A copy of the ranges, so that they can be read off a temporary set.
std::vector<Range> ranges_of(const IntervalSet& set) { return set.ranges(); }

RC_GTEST_PROP(TimeProperty, SumsAndDifferencesAreExactOrTheNearestEnd, ()) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const int64_t a = *any_signed();
  const int64_t b = *any_signed();
  const auto clamped = [](WideSigned exact) { return static_cast<int64_t>(std::clamp<WideSigned>(exact, kMin, kMax)); };
  if (a != kMax || b >= 0) RC_ASSERT((TimePoint::from_ns(a) + Duration::from_ns(b)).ns() == clamped(WideSigned{a} + b));
  RC_ASSERT((TimePoint::from_ns(a) - TimePoint::from_ns(b)).ns() == clamped(WideSigned{a} - b));
}

RC_GTEST_PROP(CheckedProperty, ArithmeticIsExactOrEmpty, ()) {
  const uint64_t a = *any_number();
  const uint64_t b = *any_number();
  RC_ASSERT(checked_add(a, b) == narrowed(Wide{a} + b));
  RC_ASSERT(checked_mul(a, b) == narrowed(Wide{a} * b));
  RC_ASSERT(checked_sub(a, b) == (a < b ? std::nullopt : std::optional(a - b)));
}

RC_GTEST_PROP(CheckedProperty, RoundingUpIsExactOrEmpty, ()) {
  const uint64_t value = *any_number();
  const uint64_t unit = *rc::gen::distinctFrom(any_number(), uint64_t{0});
  const Wide units = (Wide{value} + unit - 1) / unit;
  RC_ASSERT(checked_round_up(value, unit) == narrowed(units * unit));
  RC_ASSERT(div_round_up(value, unit) == narrowed(units));
}

RC_GTEST_PROP(CheckedProperty, AnExpressionIsEmptyExactlyWhenAStepWraps, ()) {
  const uint64_t a = *any_number();
  const uint64_t b = *any_number();
  const uint64_t c = *any_number();
  const uint64_t d = *any_number();
  const Wide product = Wide{a} * b;
  const bool wraps = product > kLast || product + c > kLast || product + c < d;
  RC_ASSERT((Checked(a) * b + c - d).value() == (wraps ? std::nullopt : narrowed(product + c - d)));
}

RC_GTEST_PROP(RangeProperty, PairsAgreeWithTheirSetsOfNumbers, ()) {
  const uint64_t origin = *any_origin();
  const Range a = range_at(origin, *any_offsets());
  const Range b = range_at(origin, *any_offsets());
  const std::set<uint64_t> in_a = members({a});
  const std::set<uint64_t> in_b = members({b});
  std::set<uint64_t> common;
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::inserter(common, common.end()));
  RC_ASSERT(members({a.intersect(b)}) == common);
  RC_ASSERT(a.overlaps(b) == !common.empty());
  RC_ASSERT(a.contains(b) == std::includes(in_a.begin(), in_a.end(), in_b.begin(), in_b.end()));
}

RC_GTEST_PROP(IntervalSetProperty, ASetAgreesWithItsNumbers, ()) {
  const uint64_t origin = *any_origin();
  const std::vector<Range> ranges = ranges_at(origin, *any_window());
  const std::set<uint64_t> numbers = members(ranges);
  const IntervalSet set = IntervalSet::from_ranges(ranges);
  RC_ASSERT(set.ranges() == runs(numbers));
  RC_ASSERT(set.empty() == numbers.empty());
  RC_ASSERT(set.count() == numbers.size());
  RC_ASSERT(set.hull() == (numbers.empty() ? Range() : Range(*numbers.begin(), *numbers.rbegin() + 1)));
  for (uint64_t offset = 0; offset <= kUniverse; ++offset)
    RC_ASSERT(set.contains(origin + offset) == numbers.contains(origin + offset));
}

RC_GTEST_PROP(IntervalSetProperty, PairsAgreeWithTheirNumbers, ()) {
  const uint64_t origin = *any_origin();
  const std::vector<Range> ranges_a = ranges_at(origin, *any_window());
  const std::vector<Range> ranges_b = ranges_at(origin, *any_window());
  const std::set<uint64_t> in_a = members(ranges_a);
  const std::set<uint64_t> in_b = members(ranges_b);
  std::set<uint64_t> either, both, only_a;
  std::set_union(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::inserter(either, either.end()));
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::inserter(both, both.end()));
  std::set_difference(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::inserter(only_a, only_a.end()));

  const IntervalSet a = IntervalSet::from_ranges(ranges_a);
  const IntervalSet b = IntervalSet::from_ranges(ranges_b);
  RC_ASSERT(ranges_of(a.unite(b)) == runs(either));
  RC_ASSERT(ranges_of(a.intersect(b)) == runs(both));
  RC_ASSERT(ranges_of(a.subtract(b)) == runs(only_a));
  RC_ASSERT(a.contains(b) == (both.size() == in_b.size()));
  RC_ASSERT(a.overlaps(b) == !both.empty());
  RC_ASSERT((a == b) == (in_a == in_b));
}

RC_GTEST_PROP(IntervalSetProperty, EachPartOfASetIsContainedInIt, ()) {
  // Random pairs hardly ever contain each other; a set and what is left of it after a cut do.
  const IntervalSet set = IntervalSet::from_ranges(ranges_at(0, *any_window()));
  const IntervalSet cut = IntervalSet::from_ranges(ranges_at(0, *any_window()));
  const IntervalSet part = set.subtract(cut);
  RC_ASSERT(set.contains(part));
  RC_ASSERT(part.contains(set) == (part.count() == set.count()));
  RC_ASSERT(!part.overlaps(cut));
  RC_ASSERT(part.unite(set.intersect(cut)) == set);
}

RC_GTEST_PROP(IntervalSetProperty, TheSameNumbersInAnyOrderAreTheSameSet, ()) {
  std::vector<Offsets> window = *any_window();
  const IntervalSet set = IntervalSet::from_ranges(ranges_at(0, window));
  std::reverse(window.begin(), window.end());
  RC_ASSERT(IntervalSet::from_ranges(ranges_at(0, window)) == set);
  window.insert(window.end(), window.begin(), window.end());
  RC_ASSERT(IntervalSet::from_ranges(ranges_at(0, window)) == set);
}

RC_GTEST_PROP(IntervalSetProperty, OnlyTheOneFormIsCanonical, ()) {
  const uint64_t origin = *any_origin();
  const std::vector<Range> ranges = ranges_at(origin, *any_window());
  const std::vector<Range> form = runs(members(ranges));
  const std::optional<IntervalSet> taken = IntervalSet::from_canonical(form);
  RC_ASSERT(taken.has_value());
  RC_ASSERT(taken->ranges() == form);
  RC_ASSERT(IntervalSet::from_canonical(ranges).has_value() == (ranges == form));
}

RC_GTEST_PROP(SweepProperty, AgreesWithACountPointByPoint, ()) {
  struct Slab {
    Range range;
    std::set<size_t> active;
    bool operator==(const Slab&) const = default;
  };
  const uint64_t origin = *any_origin();
  const std::vector<Range> ranges = ranges_at(origin, *any_window());
  std::vector<Slab> expected;
  for (uint64_t point = origin; point < origin + kUniverse; ++point) {
    std::set<size_t> active;
    for (size_t i = 0; i < ranges.size(); ++i)
      if (ranges[i].begin() <= point && point < ranges[i].end()) active.insert(i);
    if (active.empty()) continue;
    if (!expected.empty() && expected.back().range.end() == point && expected.back().active == active)
      expected.back().range = Range(expected.back().range.begin(), point + 1);
    else
      expected.push_back({Range(point, point + 1), active});
  }

  std::vector<size_t> items(ranges.size());
  std::iota(items.begin(), items.end(), size_t{0});
  const size_t slabs_max = *rc::gen::inRange<size_t>(1, 2 * kUniverse);
  std::vector<Slab> slabs;
  bool repeated = false;
  const bool went_through = sweep(
      items, [&](size_t i) { return ranges[i]; },
      [&](Range range, std::span<const size_t> active) {
        slabs.push_back({range, {active.begin(), active.end()}});
        repeated = repeated || slabs.back().active.size() != active.size();
        return slabs.size() < slabs_max;
      });
  RC_ASSERT(went_through == (expected.size() < slabs_max));
  expected.resize(std::min(expected.size(), slabs_max), Slab{});
  RC_ASSERT(slabs == expected);
  RC_ASSERT(!repeated);
}

RC_GTEST_PROP(RngProperty, DrawsStayWithinTheirBounds, (uint64_t seed)) {
  Rng rng(seed);
  const uint64_t bound = *rc::gen::distinctFrom(any_number(), uint64_t{0});
  RC_ASSERT(rng.below(bound) < bound);
  const uint64_t begin = *rc::gen::distinctFrom(any_number(), kLast);
  const uint64_t count = std::min(bound, kLast - begin);
  const Range range(begin, begin + count);
  RC_ASSERT(range.contains(rng.in(range)));
}

RC_GTEST_PROP(RngProperty, TheSameSeedGivesTheSameNumbers, (uint64_t seed, uint64_t stream)) {
  Rng a(seed);
  Rng b(seed);
  Rng fork_a = a.fork(stream);
  Rng fork_b = b.fork(stream);
  for (int i = 0; i < 20; ++i) {
    RC_ASSERT(a.next() == b.next());
    RC_ASSERT(fork_a.next() == fork_b.next());
  }
}

RC_GTEST_PROP(RngProperty, DifferentSeedsAndStreamsGiveDifferentNumbers, (uint64_t seed, uint64_t stream)) {
  const uint64_t other = *rc::gen::distinctFrom(any_number(), stream);
  Rng a(seed);
  Rng b(seed);
  Rng fork_a = a.fork(stream);
  Rng fork_b = b.fork(other);
  bool differs = false;
  for (int i = 0; i < 4; ++i) differs = (fork_a.next() != fork_b.next()) || differs;
  RC_ASSERT(differs);

  Rng of_stream(stream);
  Rng of_other(other);
  bool seeds_differ = false;
  for (int i = 0; i < 4; ++i) seeds_differ = (of_stream.next() != of_other.next()) || seeds_differ;
  RC_ASSERT(seeds_differ);
}

RC_GTEST_PROP(RngProperty, ShuffleIsAPermutation, (uint64_t seed, const std::vector<int>& items)) {
  std::vector<int> shuffled = items;
  Rng(seed).shuffle(shuffled);
  RC_ASSERT(std::is_permutation(shuffled.begin(), shuffled.end(), items.begin(), items.end()));
}

RC_GTEST_PROP(Sha256Property, PiecesGiveTheDigestOfTheWhole, (const std::vector<std::string>& pieces)) {
  Sha256 state;
  std::string whole;
  for (const std::string& piece : pieces) {
    state.update(piece);
    whole += piece;
  }
  RC_ASSERT(state.finish() == sha256(whole));
}

RC_GTEST_PROP(Sha256Property, HexRoundTrips, ()) {
  const auto text = *rc::gen::container<std::string>(64, rc::gen::elementOf(std::string("0123456789abcdef")));
  const std::optional<Sha256Digest> digest = Sha256Digest::from_hex(text);
  RC_ASSERT(digest.has_value());
  RC_ASSERT(digest->hex() == text);
  RC_ASSERT(Sha256Digest(digest->bytes()) == *digest);
}

// The register of RFC 3720 bit by bit: Castagnoli's polynomial reversed, all ones before and after.
uint32_t crc_bit_by_bit(std::string_view bytes) {
  uint32_t state = 0xffffffff;
  for (const char byte : bytes) {
    state ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state & 1) != 0 ? state >> 1 ^ 0x82f63b78 : state >> 1;
  }
  return ~state;
}

RC_GTEST_PROP(Crc32cProperty, AgreesWithARegisterOfBits, (const std::vector<std::string>& pieces)) {
  std::string whole;
  uint32_t crc = 0;
  for (const std::string& piece : pieces) {
    crc = crc32c(std::as_bytes(std::span(piece)), crc);
    whole += piece;
  }
  RC_ASSERT(crc == crc_bit_by_bit(whole));
  RC_ASSERT(crc32c(std::as_bytes(std::span(whole))) == crc);
}

// A few seeds only: each waits twice for the disk.
TEST(FileProperty, WhatIsWrittenIsReadBack) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const auto draw = [&rng] {
      std::string text(rng.below(200'000), '\0');
      for (char& byte : text) byte = static_cast<char>(rng.below(256));
      return text;
    };
    const std::string before = draw();
    const std::string after = draw();
    std::string directory = ::testing::TempDir() + "crossdock_base_property_XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    const std::string path = directory + "/file";
    EXPECT_TRUE(write_file(path, before).ok());
    EXPECT_TRUE(write_file(path, after).ok());
    const Result<std::string> read = read_file(path, after.size());
    EXPECT_TRUE(read.ok() && read.value() == after);
    const auto entries = std::filesystem::directory_iterator(directory);
    EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "a temporary file is left";
    std::filesystem::remove_all(directory);
  }
}

}  // namespace
}  // namespace crossdock
