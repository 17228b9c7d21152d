// The published vectors: splitmix64 from 1234567 and xoshiro256** from {1, 2, 3, 4} as other implementations of the
// algorithms' reference code give them. Every other expected number was computed with 20 lines of Python written from
// the published algorithms, with the rules of base/rng.h: a seed is four steps of splitmix64; below(n) draws again
// while the draw is less than 2^64 mod n; fork(s) is seeded by one step of splitmix64 from next() xor s.
#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace crossdock {
namespace {

constexpr uint64_t kLast = Range::kUnbounded;

std::vector<uint64_t> drawn(Rng& rng, size_t count) {
  std::vector<uint64_t> numbers(count);
  for (uint64_t& number : numbers) number = rng.next();
  return numbers;
}

// The sum of (observed - expected)^2 / expected.
double chi_square(const std::vector<uint64_t>& observed, double expected) {
  double sum = 0;
  for (const uint64_t count : observed) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  return sum;
}

TEST(Splitmix64, GivesThePublishedNumbers) {
  uint64_t state = 1234567;
  for (const uint64_t expected :
       {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u, 16408922859458223821u})
    EXPECT_EQ(splitmix64(state), expected);
}

TEST(Rng, GivesThePublishedNumbersOfXoshiro256StarStar) {
  Rng rng(std::array<uint64_t, 4>{1, 2, 3, 4});
  EXPECT_EQ(drawn(rng, 10), (std::vector<uint64_t>{11520u, 0u, 1509978240u, 1215971899390074240u, 1216172134540287360u,
                                                   607988272756665600u, 16172922978634559625u, 8476171486693032832u,
                                                   10595114339597558777u, 2904607092377533576u}));
}

TEST(Rng, ASeedGivesTheSameNumbersOnEveryMachine) {
  const std::map<uint64_t, std::vector<uint64_t>> expected = {
      {0, {11091344671253066420u, 13793997310169335082u, 1900383378846508768u, 7684712102626143532u}},
      {1234567, {3504822795582309479u, 1819558768956484042u, 1250851346055027673u, 16940231675099994102u}},
      {kLast, {10328197420357168392u, 14156678507024973869u, 9357971779955476126u, 13791585006304312367u}}};
  for (const auto& [seed, numbers] : expected) {
    Rng rng(seed);
    EXPECT_EQ(drawn(rng, numbers.size()), numbers) << seed;
  }
}

TEST(Rng, BelowGivesTheSameNumbersOnEveryMachine) {
  Rng rng(42);
  for (const uint64_t expected : {2u, 2u, 9u, 3u, 6u, 4u, 4u, 7u, 8u, 5u, 9u, 3u}) EXPECT_EQ(rng.below(10), expected);

  // Of all numbers nearly half are drawn again for this bound; of these draws the first two.
  Rng wide(42);
  const uint64_t bound = (uint64_t{1} << 63) + 1;
  for (const uint64_t expected :
       {3321214725393783200u, 7834202072327348384u, 9072180941210541667u, 4975814793210974775u})
    EXPECT_EQ(wide.below(bound), expected);
}

TEST(Rng, BelowStaysBelow) {
  Rng rng(1);
  for (const uint64_t bound : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{1000}, uint64_t{1} << 63, kLast})
    for (int i = 0; i < 1000; ++i) ASSERT_LT(rng.below(bound), bound);
}

TEST(Rng, BelowReachesEveryNumberAboutEquallyOften) {
  Rng rng(2);
  constexpr int kDraws = 100'000;
  for (const uint64_t bound : {2u, 3u, 7u, 10u}) {
    std::vector<uint64_t> counts(bound);
    for (int i = 0; i < kDraws; ++i) ++counts[rng.below(bound)];
    // 27.9 is passed by one in a thousand fair generators with nine degrees of freedom, by fewer with less freedom.
    EXPECT_LT(chi_square(counts, double{kDraws} / static_cast<double>(bound)), 27.9) << bound;
  }
}

TEST(Rng, BelowIsNotBiasedByABoundThatDoesNotDivideTheRange) {
  // A plain remainder would give the lowest third of these numbers half of the draws.
  constexpr uint64_t kThird = uint64_t{1} << 62;
  constexpr int kDraws = 30'000;
  Rng rng(3);
  std::vector<uint64_t> counts(3);
  for (int i = 0; i < kDraws; ++i) ++counts[rng.below(3 * kThird) / kThird];
  EXPECT_LT(chi_square(counts, kDraws / 3.0), 13.9);  // one in a thousand with two degrees of freedom
}

TEST(Rng, BelowDrawsAgainExactlyBelowTheRemainderOfTheRange) {
  // A draw depends on the second word of the state alone: 0 gives 0, the other word gives 1 (inverted in Python).
  constexpr std::array<uint64_t, 4> kDrawsZero = {1, 0, 3, 4};
  constexpr std::array<uint64_t, 4> kDrawsOne = {1, 9037623572223672684u, 3, 4};
  const auto draws_once = [](const std::array<uint64_t, 4>& state, uint64_t bound) {
    Rng rng(state);
    Rng once(state);
    rng.below(bound);
    once.next();
    return rng.next() == once.next();
  };
  ASSERT_EQ(Rng(kDrawsZero).next(), 0u);
  ASSERT_EQ(Rng(kDrawsOne).next(), 1u);
  EXPECT_TRUE(draws_once(kDrawsZero, 16));  // 2^64 mod 16 is 0
  EXPECT_FALSE(draws_once(kDrawsZero, 3));  // 2^64 mod 3 is 1
  EXPECT_TRUE(draws_once(kDrawsOne, 3));
  EXPECT_FALSE(draws_once(kDrawsOne, 14));  // 2^64 mod 14 is 2
}

TEST(Rng, InStaysWithinTheRangeAndReachesAllOfIt) {
  Rng rng(4);
  std::vector<int> counts(10);
  for (int i = 0; i < 1000; ++i) ++counts.at(rng.in(Range(3, 7)));
  for (size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(counts[i] > 0, 3 <= i && i < 7) << i;
  EXPECT_EQ(rng.in(Range(kLast - 1, kLast)), kLast - 1);
  EXPECT_LT(rng.in(Range::all()), kLast);
}

TEST(Rng, ChanceIsTheStatedShare) {
  Rng rng(5);
  int hits = 0;
  for (int i = 0; i < 40'000; ++i) {
    EXPECT_FALSE(rng.chance(0, 3));
    EXPECT_TRUE(rng.chance(3, 3));
    hits += rng.chance(1, 4) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 10'000, 4 * 87);  // four standard deviations
}

TEST(Rng, AForkGivesTheSameNumbersOnEveryMachine) {
  Rng rng(42);
  Rng fork = rng.fork(7);
  EXPECT_EQ(drawn(fork, 3), (std::vector<uint64_t>{2579316260082167088u, 9335260219445867492u, 3991785855697265452u}));
}

TEST(Rng, ForksOfOneStateDifferFromEachOtherAndFromTheirOrigin) {
  const Rng origin(6);
  std::vector<uint64_t> numbers;
  for (uint64_t stream = 0; stream < 100; ++stream) {
    Rng copy = origin;
    Rng fork = copy.fork(stream);
    for (const uint64_t number : drawn(fork, 10)) numbers.push_back(number);
  }
  Rng copy = origin;
  for (const uint64_t number : drawn(copy, 10)) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
}

TEST(Rng, WhatAForkDrawsDoesNotShiftItsOrigin) {
  Rng busy(7);
  Rng idle(7);
  Rng busy_fork = busy.fork(1);
  static_cast<void>(idle.fork(1));
  for (int i = 0; i < 1000; ++i) busy_fork.next();
  EXPECT_EQ(drawn(busy, 10), drawn(idle, 10));
}

TEST(Rng, ShuffleGivesEveryOrderAboutEquallyOften) {
  constexpr int kShuffles = 24'000;
  Rng rng(8);
  std::map<std::vector<int>, uint64_t> counts;
  for (int i = 0; i < kShuffles; ++i) {
    std::vector<int> items = {1, 2, 3, 4};
    rng.shuffle(items);
    ++counts[items];
  }
  ASSERT_EQ(counts.size(), 24u);
  std::vector<uint64_t> observed;
  for (const auto& [order, count] : counts) observed.push_back(count);
  EXPECT_LT(chi_square(observed, kShuffles / 24.0), 49.8);  // one in a thousand with 23 degrees of freedom
}

TEST(Rng, ShuffleOfNoneOrOneItemDrawsNothing) {
  Rng rng(9);
  Rng untouched(9);
  std::vector<int> none;
  std::vector<int> one = {1};
  rng.shuffle(none);
  rng.shuffle(one);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(one, std::vector<int>{1});
  EXPECT_EQ(rng.next(), untouched.next());
}

TEST(RngDeathTest, DrawingFromNothingDies) {
  Rng rng(10);
  EXPECT_DEATH(rng.below(0), "CHECK failed: bound != 0 at .*rng.cc:[0-9]+");
  EXPECT_DEATH(rng.in(Range(5, 5)), "CHECK failed: bound != 0 at ");
  EXPECT_DEATH(rng.chance(0, 0), "CHECK failed: bound != 0 at ");
}

TEST(RngDeathTest, AnAllZeroStateDies) {
  EXPECT_DEATH(Rng(std::array<uint64_t, 4>{}), "CHECK failed: .* at .*rng.cc:[0-9]+");
}

}  // namespace
}  // namespace crossdock
