#include "planner/kv/prepare.h"

// Nothing is lowered that was not proved (I1, I5).
namespace crossdock {

std::optional<ProvedPlan> make_proved_plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                           const PlanLimits& plan_limits, const VerifyLimits& verify_limits,
                                           Diagnostics& diagnostics) {
  BalanceReport balance;
  std::optional<Valid<TransferPlan>> plan = make_plan(source, target, options, plan_limits, diagnostics, &balance);
  if (!plan) return std::nullopt;
  const uint64_t diagnostics_before = diagnostics.total();
  PlanProof proof = verify_plan(*plan, source, target, verify_limits, diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  return ProvedPlan{std::move(*plan), std::move(proof), balance};
}

std::optional<PreparedCopies> prepare_copies(const PreparedSide& source, const PreparedSide& target,
                                             PlanOptions options, const LowerLimits& limits, Diagnostics& diagnostics) {
  // Live depends on the interval that the bytes hold, so the caller has no say in it.
  options.snapshot_tokens = source.bytes.tokens();
  std::optional<ProvedPlan> proved =
      make_proved_plan(source.owners, target.owners, options, PlanLimits(), VerifyLimits(), diagnostics);
  if (!proved) return std::nullopt;
  std::optional<LoweredPlan> lowered =
      lower(*proved->plan, source.bytes, target.bytes, LowerOptions(), limits, diagnostics);
  if (!lowered) return std::nullopt;
  return PreparedCopies{std::move(proved->plan), std::move(*lowered)};
}

}  // namespace crossdock
