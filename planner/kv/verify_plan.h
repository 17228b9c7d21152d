// Proof of a plan against the two documents it is about, by another way than it was made: the planner joins regions by
// look-up; the verifier sweeps over their boundaries.
#pragma once

#include "model/diagnostics.h"
#include "model/valid.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_proof.h"
#include "planner/kv/plan_side.h"

namespace crossdock {

// Adds a diagnostic for each broken rule: plan-identity (digests, kinds), plan-participant (an end that the document
// does not have), plan-tensor (dims, layers or tokens that are not those of the documents), plan-source, plan-target,
// plan-gap, plan-overlap, plan-empty (something is required and there is no edge), plan-limit. `plan` keeps its own
// rules already. O(n log n) in edges and the regions of the targets.
// The plan is proved (I1) exactly when no diagnostic was added; then complete is true and diagnostic_count is 0.
PlanProof verify_plan(const Valid<TransferPlan>& plan, const PlanSide& source, const PlanSide& target,
                      const VerifyLimits& limits, Diagnostics& diagnostics);

}  // namespace crossdock
