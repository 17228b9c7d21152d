// The first diagnostics of a proof, however many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/kv/plan_proof.h"

namespace crossdock {

class DiagnosticKeeper {
 public:
  explicit DiagnosticKeeper(size_t kept_max) : kept_max_(kept_max) {}

  // Amortised O(log kept_max).
  void add(PlanDiagnostic diagnostic);

  uint64_t count() const { return count_; }
  // Of all that were added, also those that are not kept.
  bool has_gap() const { return has_gap_; }
  // The first `kept_max` in the order of targets, tensors, layers, heads, tokens, kinds, edges.
  std::vector<PlanDiagnostic> take();

 private:
  void prune();

  size_t kept_max_;
  uint64_t count_ = 0;
  bool has_gap_ = false;
  std::vector<PlanDiagnostic> diagnostics_;
};

}  // namespace crossdock
