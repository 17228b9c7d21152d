#include "planner/kv/prepare.h"

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

std::optional<PreparedCopies> prepare_copies(const PreparedSide& source, const PreparedSide& target,
                                             PlanOptions options, const LowerLimits& limits, Diagnostics& diagnostics) {
  options.snapshot_tokens = source.bytes.tokens();
  std::optional<Valid<TransferPlan>> plan =
      make_proved_plan(source.owners, target.owners, options, PlanLimits(), VerifyLimits(), diagnostics);
  if (!plan) return std::nullopt;
  std::optional<LoweredPlan> lowered = lower(**plan, source.bytes, target.bytes, LowerOptions(), limits, diagnostics);
  if (!lowered) return std::nullopt;
  return PreparedCopies{std::move(*plan), std::move(*lowered)};
}

}  // namespace crossdock
