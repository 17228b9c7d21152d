// Loads shared out over candidates: examples, and all small cases.
#include "planner/min_max_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tests/support/load_sharing.h"

namespace crossdock::testing {
namespace {

// Shares, after making sure that they are shares and that `load_max` is theirs.
Shares checked_shares(std::span<const LoadDemand> demands, uint32_t candidate_count, uint64_t load_max) {
  const LoadShares found = minimize_max_load(demands, candidate_count);
  EXPECT_TRUE(is_sharing(demands, found.shares));
  EXPECT_EQ(found.load_max, load_max);
  const Loads loads = loads_of(demands, found.shares, candidate_count);
  EXPECT_EQ(loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end()), load_max);
  return found.shares;
}

TEST(MinMaxLoad, EverySmallCaseMeetsItsBound) {
  // All pairs of weights up to 5 with all three lists of a demand over {0, 1}, and a third demand of 3 units.
  for (uint64_t a = 0; a <= 5; ++a)
    for (uint64_t b = 0; b <= 5; ++b)
      for (uint32_t lists = 0; lists < 27; ++lists) {
        const std::vector<DrawnDemand> drawn = {{a, lists % 3 + 1}, {b, lists / 3 % 3 + 1}, {3, lists / 9 + 1}};
        const Shares shares = checked_shares(demands_of(drawn), 2, largest_bound(drawn));
        EXPECT_EQ(sorted_down(loads_of(demands_of(drawn), shares, 2)), least_loads(demands_of(drawn), 2));
      }
}

TEST(MinMaxLoad, OneDemandIsSplitEvenlyWithTheRemainderFirst) {
  const std::vector<LoadDemand> demands = {{10, {1, 2, 5, 7}}};
  EXPECT_EQ(checked_shares(demands, 8, 3), (Shares{{3, 3, 2, 2}}));
}

TEST(MinMaxLoad, FewerUnitsThanCandidatesGoToTheFirst) {
  const std::vector<LoadDemand> demands = {{2, {0, 1, 2, 3}}};
  EXPECT_EQ(checked_shares(demands, 4, 1), (Shares{{1, 1, 0, 0}}));
}

TEST(MinMaxLoad, TheLighterOfTwoDemandsLeavesTheSharedCandidate) {
  // 10 units on two candidates are 5 each; the 2 others fit beside them.
  const std::vector<LoadDemand> demands = {{10, {0, 1}}, {2, {1, 2}}};
  EXPECT_EQ(checked_shares(demands, 3, 5), (Shares{{5, 5}, {0, 2}}));
}

TEST(MinMaxLoad, TwoEqualDemandsUseTheSharedCandidateTogether) {
  const std::vector<LoadDemand> demands = {{6, {0, 1}}, {6, {1, 2}}};  // 12 units on three candidates
  EXPECT_EQ(checked_shares(demands, 3, 4), (Shares{{4, 2}, {2, 4}}));
}

TEST(MinMaxLoad, ADemandWithOneCandidatePushesTheOthersAway) {
  const std::vector<LoadDemand> demands = {{4, {0, 1}}, {4, {0}}};
  EXPECT_EQ(checked_shares(demands, 2, 4), (Shares{{0, 4}, {4}}));
}

TEST(MinMaxLoad, DemandsOfOneClassFillItsSharesInOrder) {
  // 12 units on three candidates, 4 each.
  const std::vector<LoadDemand> demands = {{1, {0, 1, 2}}, {6, {0, 1, 2}}, {5, {0, 1, 2}}};
  EXPECT_EQ(checked_shares(demands, 3, 4), (Shares{{1, 0, 0}, {3, 3, 0}, {0, 1, 4}}));
}

TEST(MinMaxLoad, IndependentSetsAreEvenEachForItself) {
  const std::vector<LoadDemand> demands = {{100, {0}}, {8, {1, 3}}, {9, {2, 4, 5}}};
  EXPECT_EQ(checked_shares(demands, 6, 100), (Shares{{100}, {4, 4}, {3, 3, 3}}));
}

TEST(MinMaxLoad, ASetBehindACutIsEvenEachForItself) {
  // The heavy demand fills 0 and 1; the one that could use 1 too spreads over its other candidates.
  const std::vector<LoadDemand> demands = {{200, {0, 1}}, {12, {1, 2, 3}}, {3, {3, 4}}};
  EXPECT_EQ(checked_shares(demands, 5, 100), (Shares{{100, 100}, {0, 6, 6}, {0, 3}}));
}

TEST(MinMaxLoad, NothingToShareIsNoLoad) {
  EXPECT_EQ(checked_shares({}, 0, 0), Shares());
  EXPECT_EQ(checked_shares({}, 3, 0), Shares());
}

TEST(MinMaxLoad, DemandsWithoutWeightGetSharesOfZero) {
  const std::vector<LoadDemand> demands = {{0, {0, 2}}, {0, {1}}, {0, {0, 2}}};
  EXPECT_EQ(checked_shares(demands, 3, 0), (Shares{{0, 0}, {0}, {0, 0}}));
}

TEST(MinMaxLoad, TheLargestSumOfWeightsIsExact) {
  constexpr uint64_t kHalf = uint64_t{1} << 62;
  const std::vector<LoadDemand> one = {{kHalf, {0}}, {kHalf - 1, {0}}};
  EXPECT_EQ(checked_shares(one, 1, 2 * kHalf - 1), (Shares{{kHalf}, {kHalf - 1}}));
  const std::vector<LoadDemand> two = {{kHalf, {0, 1}}, {kHalf - 1, {0}}};
  EXPECT_EQ(checked_shares(two, 2, kHalf), (Shares{{1, kHalf - 1}, {kHalf - 1}}));
}

// The one sharing of a chain: link i of n takes n - i units from candidate i and i + 1 from candidate i + 1, so that
// every candidate carries n. In shuffled order, what is sent first must be moved on along long paths.
TEST(MinMaxLoad, ALongChainIsBalancedExactly) {
  constexpr uint32_t kLinkCount = 4000;
  std::vector<uint32_t> links(kLinkCount), places(kLinkCount + 1);
  std::iota(links.begin(), links.end(), 0);
  std::iota(places.begin(), places.end(), 0);
  Rng rng(20240611);
  rng.shuffle(links);
  rng.shuffle(places);
  std::vector<LoadDemand> demands;
  Shares expected;
  for (const uint32_t link : links) {
    const bool swapped = places[link] > places[link + 1];
    LoadDemand& demand = demands.emplace_back(LoadDemand{kLinkCount + 1, {places[link], places[link + 1]}});
    std::vector<uint64_t>& shares = expected.emplace_back(std::vector<uint64_t>{kLinkCount - link, link + 1});
    if (swapped) std::swap(demand.candidates[0], demand.candidates[1]);
    if (swapped) std::swap(shares[0], shares[1]);
  }
  EXPECT_EQ(checked_shares(demands, kLinkCount + 1, kLinkCount), expected);
}

TEST(MinMaxLoad, ManyDemandsOfEightClassesMeetTheirBound) {
  constexpr uint32_t kBlock = 256;
  constexpr uint32_t kBlockCount = 6;
  Rng rng(8);
  std::vector<DrawnDemand> classes;  // a bit stands for a block of candidates here
  for (uint32_t c = 0; c < 8; ++c) classes.push_back({0, 1 + static_cast<uint32_t>(rng.below((1 << kBlockCount) - 1))});
  std::vector<LoadDemand> demands;
  for (uint32_t i = 0; i < 4096; ++i) {
    auto& [weight, blocks] = classes[i % 8];
    LoadDemand& demand = demands.emplace_back(LoadDemand{rng.below(uint64_t{1} << (20 + i % 8)), {}});
    weight += demand.weight;
    for (uint32_t candidate = 0; candidate < kBlock * kBlockCount; ++candidate)
      if ((blocks >> candidate / kBlock & 1) != 0) demand.candidates.push_back(candidate);
  }
  // The bound of a set of whole blocks is that of one candidate a block, with the divisor a block's size larger.
  uint64_t bound = 0;
  for (uint32_t subset = 1; subset < 256; ++subset) {
    uint64_t weight = 0;
    uint32_t united = 0;
    for (size_t c = 0; c < 8; ++c)
      if ((subset >> c & 1) != 0) {
        weight += classes[c].first;
        united |= classes[c].second;
      }
    const uint64_t candidates = uint64_t{kBlock} * static_cast<uint64_t>(std::popcount(united));
    bound = std::max(bound, (weight + candidates - 1) / candidates);
  }
  EXPECT_TRUE(has_few_pairs(demands, checked_shares(demands, kBlock * kBlockCount, bound)));
}

TEST(MinMaxLoadDeathTest, MalformedDemandsEndTheProcess) {
  const auto minimize = [](const std::vector<LoadDemand>& demands) {
    static_cast<void>(minimize_max_load(demands, 3));
  };
  EXPECT_DEATH(minimize({{1, {}}}), "CHECK failed: .* at .*min_max_load.cc:[0-9]+");
  EXPECT_DEATH(minimize({{1, {1, 0}}}), "CHECK failed: .* at .*min_max_load.cc:[0-9]+");
  EXPECT_DEATH(minimize({{1, {1, 1}}}), "CHECK failed: .* at .*min_max_load.cc:[0-9]+");
  EXPECT_DEATH(minimize({{1, {0, 3}}}), "CHECK failed: list.back\\(\\) < candidate_count at ");
}

TEST(MinMaxLoadDeathTest, WeightsOfTwoToThe63AndMoreEndTheProcess) {
  constexpr uint64_t kHalf = uint64_t{1} << 62;
  const std::vector<LoadDemand> at_limit = {{kHalf, {0}}, {kHalf, {1}}};
  const std::vector<LoadDemand> wraps = {{4 * kHalf - 1, {0}}, {4 * kHalf - 1, {1}}};
  EXPECT_DEATH(static_cast<void>(minimize_max_load(at_limit, 2)), "CHECK failed: .*kWeightSumLimit at ");
  EXPECT_DEATH(static_cast<void>(minimize_max_load(wraps, 2)), "CHECK failed: .*kWeightSumLimit at ");
}

}  // namespace
}  // namespace crossdock::testing
