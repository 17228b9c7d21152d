#include "planner/kv/verify_diagnostics.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace crossdock {
namespace {

auto order_key(const PlanDiagnostic& diagnostic) {
  return std::tie(diagnostic.target, diagnostic.tensor, diagnostic.layers, diagnostic.heads, diagnostic.tokens,
                  diagnostic.kind, diagnostic.edges);
}

}  // namespace

// A wrong plan may have millions of diagnostics: memory is bounded by twice the number that is kept, and the count goes
// on.
void DiagnosticKeeper::add(PlanDiagnostic diagnostic) {
  ++count_;
  has_gap_ |= diagnostic.kind == PlanDiagnostic::Kind::kGap;
  if (kept_max_ == 0) return;
  diagnostics_.push_back(std::move(diagnostic));
  if (diagnostics_.size() / 2 >= kept_max_) prune();  // twice as many, so that sorting costs little for each
}

std::vector<PlanDiagnostic> DiagnosticKeeper::take() {
  prune();
  return std::move(diagnostics_);
}

// By their place and not by when they were found, so the first ones are the same whichever way the sweep went (I7).
void DiagnosticKeeper::prune() {
  std::sort(diagnostics_.begin(), diagnostics_.end(),
            [](const PlanDiagnostic& a, const PlanDiagnostic& b) { return order_key(a) < order_key(b); });
  if (diagnostics_.size() > kept_max_)
    diagnostics_.erase(diagnostics_.begin() + static_cast<ptrdiff_t>(kept_max_), diagnostics_.end());
}

}  // namespace crossdock
