// A plan together with its proof: what everybody who runs plans wants.
#pragma once

#include <optional>

#include "model/diagnostics.h"
#include "model/valid.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/verify_plan.h"

namespace crossdock {

// make_plan(), then verify_plan(). Empty, and diagnostics are added, when one of them finds any.
std::optional<Valid<TransferPlan>> make_proved_plan(const PlanSide& source, const PlanSide& target,
                                                    const PlanOptions& options, const PlanLimits& plan_limits,
                                                    const VerifyLimits& verify_limits, Diagnostics& diagnostics);

}  // namespace crossdock
