#include "tests/support/load_sharing.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace crossdock::testing {

std::vector<LoadDemand> demands_of(const std::vector<DrawnDemand>& drawn) {
  std::vector<LoadDemand> demands;
  for (const auto& [weight, mask] : drawn) {
    LoadDemand& demand = demands.emplace_back(LoadDemand{weight, {}});
    for (uint32_t candidate = 0; candidate < 32; ++candidate)
      if ((mask >> candidate & 1) != 0) demand.candidates.push_back(candidate);
  }
  return demands;
}

uint64_t largest_bound(const std::vector<DrawnDemand>& drawn) {
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

bool is_sharing(std::span<const LoadDemand> demands, const Shares& shares) {
  if (shares.size() != demands.size()) return false;
  for (size_t i = 0; i < demands.size(); ++i) {
    if (shares[i].size() != demands[i].candidates.size()) return false;
    if (std::accumulate(shares[i].begin(), shares[i].end(), uint64_t{0}) != demands[i].weight) return false;
  }
  return true;
}

Loads sorted_down(Loads loads) {
  std::sort(loads.begin(), loads.end(), std::greater<>());
  return loads;
}

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

}  // namespace crossdock::testing
