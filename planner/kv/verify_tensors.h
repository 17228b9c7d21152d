// Which tensors a plan must have, by its two cache schemas.
#pragma once

#include "model/diagnostics.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/verify_sweep.h"

namespace crossdock {

// Adds plan-schema where the schemas do not fit together, and plan-tensor where the plan's tensors are not exactly
// those that follow from them. Steps: for each two groups with common layers, their ranges times the target's
// components. When the work limit ends it, `work` is stopped and some tensors are not checked.
void check_plan_tensors(const TransferPlan& plan, const PlanSide& source, const PlanSide& target, WorkMeter& work,
                        Diagnostics& diagnostics);

}  // namespace crossdock
