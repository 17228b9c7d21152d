// Loads shared out over candidates, against bounds that are computed by trying everything.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/min_max_load.h"
#include "tests/support/load_sharing.h"

namespace crossdock::testing {
namespace {

// At RapidCheck's nominal size throughout: with its growing sizes most cases have a demand or two.
rc::Gen<std::vector<DrawnDemand>> any_demands(size_t demand_count_max, uint32_t candidate_count,
                                              rc::Gen<uint64_t> weight) {
  const auto drawn = rc::gen::pair(std::move(weight), rc::gen::inRange<uint32_t>(1, uint32_t{1} << candidate_count));
  const auto demands = rc::gen::mapcat(rc::gen::inRange<size_t>(0, demand_count_max + 1), [drawn](size_t count) {
    return rc::gen::container<std::vector<DrawnDemand>>(count, drawn);
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

RC_GTEST_PROP(MinMaxLoadProperty, TheMaximumIsTheLargestBoundOfAnySubsetOfDemands, ()) {
  constexpr uint32_t kCandidateCount = 6;
  const std::vector<DrawnDemand> drawn = *any_demands(8, kCandidateCount, any_weight());
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

}  // namespace
}  // namespace crossdock::testing
