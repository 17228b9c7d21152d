// The one preparation of copies: plan, prove, lower. Transfers, uploads, restores and the command line all go this way,
// so none of them moves bytes by a plan that was not proved.
#pragma once

#include <optional>

#include "model/diagnostics.h"
#include "model/valid.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/verify_plan.h"

namespace crossdock {

struct ProvedPlan {
  Valid<TransferPlan> plan;
  PlanProof proof;
  BalanceReport balance;  // zeros unless the options ask for balanced selection
};

// make_plan(), then verify_plan(). Empty, and diagnostics are added, when one of them finds any.
std::optional<ProvedPlan> make_proved_plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                           const PlanLimits& plan_limits, const VerifyLimits& verify_limits,
                                           Diagnostics& diagnostics);

// Who owns what on one side, and where the bytes lie there. Both outlive it.
struct PreparedSide {
  const PlanSide& owners;
  const BoundSide& bytes;
};

struct PreparedCopies {
  Valid<TransferPlan> plan;
  LoweredPlan lowered;
};

// The plan is made for the interval of tokens that the source's bytes hold. Empty, and diagnostics are added, when a
// step finds any.
std::optional<PreparedCopies> prepare_copies(const PreparedSide& source, const PreparedSide& target,
                                             PlanOptions options, const LowerLimits& limits, Diagnostics& diagnostics);

}  // namespace crossdock
