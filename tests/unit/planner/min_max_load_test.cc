#include "planner/min_max_load.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace crossdock {
namespace {

using Loads = std::vector<uint64_t>;
using Shares = std::vector<std::vector<uint64_t>>;

// A demand as RapidCheck can print and shrink it: its weight, and a bit for each candidate.
using Drawn = std::pair<uint64_t, uint32_t>;

std::vector<LoadDemand> demands_of(const std::vector<Drawn>& drawn) {
  std::vector<LoadDemand> demands;
  for (const auto& [weight, mask] : drawn) {
    LoadDemand& demand = demands.emplace_back(LoadDemand{weight, {}});
    for (uint32_t candidate = 0; candidate < 32; ++candidate)
      if ((mask >> candidate & 1) != 0) demand.candidates.push_back(candidate);
  }
  return demands;
}

// At RapidCheck's nominal size throughout: with its growing sizes most cases have a demand or two.
rc::Gen<std::vector<Drawn>> any_demands(size_t demand_count_max, uint32_t candidate_count, rc::Gen<uint64_t> weight) {
  const auto drawn = rc::gen::pair(std::move(weight), rc::gen::inRange<uint32_t>(1, uint32_t{1} << candidate_count));
  const auto demands = rc::gen::mapcat(rc::gen::inRange<size_t>(0, demand_count_max + 1), [drawn](size_t count) {
    return rc::gen::container<std::vector<Drawn>>(count, drawn);
  });
  return rc::gen::resize(rc::kNominalSize, demands);
}

// Small, middling, and so large that eight of them just stay below 2^63.
rc::Gen<uint64_t> any_weight() {
  constexpr uint64_t kLargest = (uint64_t{1} << 60) - 1;
  return rc::gen::oneOf(rc::gen::inRange<uint64_t>(0, 4), rc::gen::inRange<uint64_t>(0, 1000),
                        rc::gen::inRange<uint64_t>(0, kLargest),
                        rc::gen::map(rc::gen::inRange<uint64_t>(0, 4), [](uint64_t less) { return kLargest - less; }));
}

// No sharing is below this: what a set of demands weighs lies on the candidates of the set.
uint64_t largest_bound(const std::vector<Drawn>& drawn) {
  uint64_t largest = 0;
  for (uint32_t subset = 1; subset < uint32_t{1} << drawn.size(); ++subset) {
    uint64_t weight = 0;
    uint32_t united = 0;
    for (size_t i = 0; i < drawn.size(); ++i)
      if ((subset >> i & 1) != 0) {
        weight += drawn[i].first;
        united |= drawn[i].second;
      }
    const auto candidates = static_cast<uint64_t>(std::popcount(united));
    largest = std::max(largest, (weight + candidates - 1) / candidates);
  }
  return largest;
}

Loads loads_of(std::span<const LoadDemand> demands, const Shares& shares, uint32_t candidate_count) {
  Loads loads(candidate_count, 0);
  for (size_t i = 0; i < demands.size(); ++i)
    for (size_t k = 0; k < demands[i].candidates.size(); ++k) loads[demands[i].candidates[k]] += shares[i][k];
  return loads;
}

// Every demand has one share for each of its candidates, and they make up its weight.
bool is_sharing(std::span<const LoadDemand> demands, const Shares& shares) {
  if (shares.size() != demands.size()) return false;
  for (size_t i = 0; i < demands.size(); ++i) {
    if (shares[i].size() != demands[i].candidates.size()) return false;
    if (std::accumulate(shares[i].begin(), shares[i].end(), uint64_t{0}) != demands[i].weight) return false;
  }
  return true;
}

// Shares, after making sure that they are shares and that `load_max` is theirs.
Shares checked_shares(std::span<const LoadDemand> demands, uint32_t candidate_count, uint64_t load_max) {
  const LoadShares found = minimize_max_load(demands, candidate_count);
  EXPECT_TRUE(is_sharing(demands, found.shares));
  EXPECT_EQ(found.load_max, load_max);
  const Loads loads = loads_of(demands, found.shares, candidate_count);
  EXPECT_EQ(loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end()), load_max);
  return found.shares;
}

Loads sorted_down(Loads loads) {
  std::sort(loads.begin(), loads.end(), std::greater<>());
  return loads;
}

// Tries every way to place every unit.
Loads least_loads(std::span<const LoadDemand> demands, uint32_t candidate_count) {
  std::set<Loads> reachable = {Loads(candidate_count, 0)};
  for (const LoadDemand& demand : demands)
    for (uint64_t unit = 0; unit < demand.weight; ++unit) {
      std::set<Loads> next;
      for (const Loads& loads : reachable)
        for (const uint32_t candidate : demand.candidates) {
          Loads more = loads;
          ++more[candidate];
          next.insert(more);
        }
      reachable = std::move(next);
    }
  Loads least = sorted_down(*reachable.begin());
  for (const Loads& loads : reachable) least = std::min(least, sorted_down(loads));
  return least;
}

// A class of n demands with a weight needs at most n + candidates - 1 pairs of them.
bool has_few_pairs(std::span<const LoadDemand> demands, const Shares& shares) {
  std::map<std::vector<uint32_t>, std::pair<size_t, size_t>> classes;  // demands, and pairs with a share
  for (size_t i = 0; i < demands.size(); ++i) {
    auto& [demand_count, pair_count] = classes[demands[i].candidates];
    if (demands[i].weight > 0) ++demand_count;
    pair_count += shares[i].size() - static_cast<size_t>(std::count(shares[i].begin(), shares[i].end(), uint64_t{0}));
  }
  return std::all_of(classes.begin(), classes.end(), [](const auto& entry) {
    const auto& [demand_count, pair_count] = entry.second;
    return demand_count == 0 ? pair_count == 0 : pair_count <= demand_count + entry.first.size() - 1;
  });
}

RC_GTEST_PROP(MinMaxLoadProperty, TheMaximumIsTheLargestBoundOfAnySubsetOfDemands, ()) {
  constexpr uint32_t kCandidateCount = 6;
  const std::vector<Drawn> drawn = *any_demands(8, kCandidateCount, any_weight());
  const std::vector<LoadDemand> demands = demands_of(drawn);
  const LoadShares found = minimize_max_load(demands, kCandidateCount);
  RC_ASSERT(found.load_max == largest_bound(drawn));
  RC_ASSERT(is_sharing(demands, found.shares));
  const Loads loads = loads_of(demands, found.shares, kCandidateCount);
  RC_ASSERT(*std::max_element(loads.begin(), loads.end()) == found.load_max);
}

RC_GTEST_PROP(MinMaxLoadProperty, NoSharingHasLexicographicallyLowerLoads, ()) {
  constexpr uint32_t kCandidateCount = 5;
  const std::vector<LoadDemand> demands =
      demands_of(*any_demands(4, kCandidateCount, rc::gen::inRange<uint64_t>(0, 6)));
  const LoadShares found = minimize_max_load(demands, kCandidateCount);
  RC_ASSERT(is_sharing(demands, found.shares));
  RC_ASSERT(sorted_down(loads_of(demands, found.shares, kCandidateCount)) == least_loads(demands, kCandidateCount));
}

RC_GTEST_PROP(MinMaxLoadProperty, FewPairsHaveAShare, ()) {
  // Few candidates and many demands, so that lists repeat.
  const std::vector<LoadDemand> demands = demands_of(*any_demands(40, 3, any_weight()));
  std::vector<LoadDemand> light = demands;
  for (LoadDemand& demand : light) demand.weight /= 8;
  RC_ASSERT(has_few_pairs(light, minimize_max_load(light, 3).shares));
}

RC_GTEST_PROP(MinMaxLoadProperty, EqualInputsGiveEqualShares, ()) {
  const std::vector<LoadDemand> demands = demands_of(*any_demands(8, 6, any_weight()));
  std::vector<LoadDemand> copy;  // elsewhere in memory, in other allocations
  for (const LoadDemand& demand : demands) copy.push_back(demand);
  const LoadShares first = minimize_max_load(demands, 6);
  const LoadShares second = minimize_max_load(copy, 6);
  RC_ASSERT(first.shares == second.shares);
  RC_ASSERT(first.load_max == second.load_max);
}

RC_GTEST_PROP(MinMaxLoadProperty, ADemandWithoutWeightChangesNoOtherShare, ()) {
  const std::vector<LoadDemand> demands = demands_of(*any_demands(8, 6, any_weight()));
  std::vector<LoadDemand> heavy;
  for (const LoadDemand& demand : demands)
    if (demand.weight > 0) heavy.push_back(demand);
  const LoadShares with = minimize_max_load(demands, 6);
  const LoadShares without = minimize_max_load(heavy, 6);
  Shares left;
  for (size_t i = 0; i < demands.size(); ++i)
    if (demands[i].weight > 0) left.push_back(with.shares[i]);
  RC_ASSERT(left == without.shares);
  RC_ASSERT(with.load_max == without.load_max);
}

TEST(MinMaxLoad, EverySmallCaseMeetsItsBound) {
  // All pairs of weights up to 5 with all three lists of a demand over {0, 1}, and a third demand of 3 units.
  for (uint64_t a = 0; a <= 5; ++a)
    for (uint64_t b = 0; b <= 5; ++b)
      for (uint32_t lists = 0; lists < 27; ++lists) {
        const std::vector<Drawn> drawn = {{a, lists % 3 + 1}, {b, lists / 3 % 3 + 1}, {3, lists / 9 + 1}};
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
  std::vector<Drawn> classes;  // a bit stands for a block of candidates here
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
}  // namespace crossdock
