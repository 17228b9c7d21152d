// The diagnostics of a proof in words.
#pragma once

#include "model/diagnostics.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_proof.h"

namespace crossdock {

// One diagnostic for blocks of elements that differ in their layers only, in the order of the first of each; and one
// that counts what the proof has not kept, so that no wrong plan is without a diagnostic.
void report_plan_diagnostics(const TransferPlan& plan, const PlanProof& proof, Diagnostics& diagnostics);

}  // namespace crossdock
