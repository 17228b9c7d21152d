#include "planner/kv/proved_plan.h"

namespace crossdock {

std::optional<Valid<TransferPlan>> make_proved_plan(const PlanSide& source, const PlanSide& target,
                                                    const PlanOptions& options, const PlanLimits& plan_limits,
                                                    const VerifyLimits& verify_limits, Diagnostics& diagnostics) {
  std::optional<Valid<TransferPlan>> plan = make_plan(source, target, options, plan_limits, diagnostics);
  if (!plan) return std::nullopt;
  const uint64_t diagnostics_before = diagnostics.total();
  verify_plan(*plan, source, target, verify_limits, diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  return plan;
}

}  // namespace crossdock
