// Plans and their proofs as tables for people and JSON for tools.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/copy/gather.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_volume.h"
#include "planner/kv/verify_plan.h"

namespace crossdock::cli {

// Everything that is shown of a plan.
struct PlanReport {
  const TransferPlan& plan;
  Sha256Digest digest;
  std::string source_label;
  std::string target_label;
  const PlanProof& proof;
  PairVolume required;
  BalanceReport balance;
  const LoweredPlan* lowered = nullptr;           // with bindings
  std::optional<TransportLimits> transport = {};  // with bindings, for the choice between direct and packed
};

std::string plan_table(const PlanReport& report, uint64_t row_count_max);
std::string plan_json(const PlanReport& report);

// The diagnostics of a proof as JSON, with exact coordinates, in an array.
std::string proof_diagnostics_json(const TransferPlan& plan, const PlanSide& source, const PlanSide& target,
                                   const PlanProof& proof);

// The scope of a plan: "4 of 8 targets, only tokens [0,64)", or "all 8 targets" when it leaves nothing out.
std::string scope_text(const TransferPlan& plan, const PlanSide& target);

}  // namespace crossdock::cli
