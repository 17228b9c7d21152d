#include "planner/kv/proved_plan.h"

namespace crossdock {

std::optional<Valid<TransferPlan>> make_proved_plan(const PlanSide& source, const PlanSide& target,
                                                    const PlanOptions& options, const PlanLimits& plan_limits,
                                                    const VerifyLimits& verify_limits, Faults& faults) {
  std::optional<Valid<TransferPlan>> plan = make_plan(source, target, options, plan_limits, faults);
  if (!plan) return std::nullopt;
  const uint64_t faults_before = faults.total();
  verify_plan(*plan, source, target, verify_limits, faults);
  if (faults.total() != faults_before) return std::nullopt;
  return plan;
}

}  // namespace crossdock
