// All tokens that a diagnostic of a proof is about. The proof itself tells the first stretch.
#pragma once

#include <cstdint>
#include <optional>

#include "base/interval_set.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/verify_plan.h"

namespace crossdock {

// Compared for the first layer and head of the diagnostic, which stand for all of its block. Empty when there would be
// more than `range_count_max` stretches, as for cycles over tokens without end. The diagnostic is one of verify_plan's
// for this plan and these sides.
std::optional<IntervalSet> diagnostic_tokens(const TransferPlan& plan, const PlanSide& source, const PlanSide& target,
                                             const PlanDiagnostic& diagnostic, uint64_t range_count_max);

}  // namespace crossdock
