// How many bytes a plan moves, in all and between each pair of ends. For tables and reports.
#pragma once

#include <cstdint>
#include <vector>

#include "model/kv/volume.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_side.h"

namespace crossdock {

// What one source sends to one target.
struct PairVolume {
  uint32_t source = 0;  // numbers in the plan's lists
  uint32_t target = 0;
  uint64_t edge_count = 0;
  uint64_t bytes = 0;  // exact; 2^64 - 1 for tokens without end
  CacheVolume volume;  // the same for each token, and of states: for tokens without end
};

// Sorted by (target, source).
std::vector<PairVolume> pair_volumes(const TransferPlan& plan);

PairVolume total_volume(const std::vector<PairVolume>& pairs);

// What the plan's targets require of its tensors, computed from what they own and not from the edges: no plan can move
// less. `target` is the side that the plan is for.
PairVolume required_volume(const TransferPlan& plan, const PlanSide& target);

}  // namespace crossdock
