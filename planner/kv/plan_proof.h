// What the proof of a plan has found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/range.h"

namespace crossdock {

// A block of elements of one tensor at one target (or, for a source diagnostic, of one edge) that is not right.
struct PlanDiagnostic {
  enum class Kind {
    kGap,        // the target requires it and no edge brings it
    kOverlap,    // two edges bring it
    kNotTarget,  // an edge brings what the target does not own, or what is not required
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

// A plan is right when complete is true and diagnostic_count is 0, and no other rule was broken (verify_plan()).
struct PlanProof {
  // The first diagnostic_count_max, in the order of targets, tensors, layers, heads, tokens.
  std::vector<PlanDiagnostic> diagnostics;
  // Of all blocks that are wrong, also those that are not kept.
  uint64_t diagnostic_count = 0;
  uint64_t cells = 0;    // blocks of (target, tensor, layers, heads) that were compared
  bool complete = true;  // false: stopped at the work limit
};

// Past work_max or token_range_count_max the proof stops with plan-limit; past diagnostic_count_max it goes on and
// counts.
struct VerifyLimits {
  uint64_t work_max = uint64_t{1} << 27;  // regions active in slabs, and token intervals
  // Ranges of blocks of one cycle in the common period of the cycles of a cell.
  uint64_t token_range_count_max = 1 << 16;
  size_t diagnostic_count_max = 100;
};

}  // namespace crossdock
