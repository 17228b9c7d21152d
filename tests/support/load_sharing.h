// Sharing out loads by trying everything: for small demands.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/min_max_load.h"

namespace crossdock::testing {

using Loads = std::vector<uint64_t>;

using Shares = std::vector<std::vector<uint64_t>>;

// A demand as RapidCheck can print and shrink it: its weight, and a bit for each candidate.
using DrawnDemand = std::pair<uint64_t, uint32_t>;

std::vector<LoadDemand> demands_of(const std::vector<DrawnDemand>& drawn);

// No sharing is below this: what a set of demands weighs lies on the candidates of the set.
uint64_t largest_bound(const std::vector<DrawnDemand>& drawn);

Loads loads_of(std::span<const LoadDemand> demands, const Shares& shares, uint32_t candidate_count);

// Every demand has one share for each of its candidates, and they make up its weight.
bool is_sharing(std::span<const LoadDemand> demands, const Shares& shares);

Loads sorted_down(Loads loads);

// Tries every way to place every unit.
Loads least_loads(std::span<const LoadDemand> demands, uint32_t candidate_count);

// A class of n demands with a weight needs at most n + candidates - 1 pairs of them.
bool has_few_pairs(std::span<const LoadDemand> demands, const Shares& shares);

}  // namespace crossdock::testing
