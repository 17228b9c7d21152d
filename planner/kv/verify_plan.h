// Proof of a plan against the two documents it is about, by another way than it was made: the planner joins regions by
// look-up; the verifier sweeps over their boundaries.
#pragma once

#include <cstdint>
#include <vector>

#include "model/diagnostics.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_side.h"

namespace crossdock {

// A block of elements of one tensor at one target (or, for a source diagnostic, of one edge) that is not right.
struct PlanDiagnostic {
  enum class Kind {
    kGap,        // the target requires it and no edge brings it
    kOverlap,    // two edges bring it
    kNotTarget,  // an edge brings what the target does not own, or what nobody asked for
    kNotSource,  // an edge takes what its source does not own
  } kind;
  uint32_t tensor = 0;
  uint32_t target = 0;  // indices into the plan's lists
  Range layers;
  Range heads;
  Range tokens;                 // the first stretch of tokens concerned; planner/kv/diagnostic_tokens.h has all
  std::vector<uint32_t> edges;  // those concerned: none for a gap, two for an overlap, else one

  friend bool operator==(const PlanDiagnostic&, const PlanDiagnostic&) = default;
};

struct PlanProof {
  std::vector<PlanDiagnostic>
      diagnostics;  // the first diagnostic_count_max; in the order of targets, tensors, layers, heads, tokens
  uint64_t diagnostic_count = 0;
  uint64_t cells = 0;    // blocks of (target, tensor, layers, heads) that were compared
  bool complete = true;  // false: stopped at the work limit
};

struct VerifyLimits {
  uint64_t work_max = uint64_t{1} << 27;  // regions active in slabs, and token intervals
  uint64_t token_range_count_max = 1 << 16;
  size_t diagnostic_count_max = 100;
};

// Adds a diagnostic for each broken rule: plan-identity (digests, kinds), plan-participant (an end that the document
// does not have), plan-tensor (dims, layers or tokens that are not those of the documents), plan-source, plan-target,
// plan-gap, plan-overlap, plan-empty (something is required and there is no edge), plan-limit. `plan` keeps its own
// rules already. O(n log n) in edges and the regions of the targets.
PlanProof verify_plan(const Valid<TransferPlan>& plan, const PlanSide& source, const PlanSide& target,
                      const VerifyLimits& limits, Diagnostics& diagnostics);

}  // namespace crossdock
