// The faults of a proof in words.
#pragma once

#include "model/faults.h"
#include "planner/kv/plan.h"
#include "planner/kv/verify_plan.h"

namespace crossdock {

// One fault for blocks of elements that differ in their layers only, in the order of the first of each; and one that
// counts what the proof has not kept, so that no wrong plan is without a fault.
void report_plan_faults(const TransferPlan& plan, const PlanProof& proof, Faults& faults);

}  // namespace crossdock
