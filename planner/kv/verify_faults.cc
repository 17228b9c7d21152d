#include "planner/kv/verify_faults.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace crossdock {
namespace {

auto order_key(const PlanFault& fault) {
  return std::tie(fault.target, fault.tensor, fault.layers, fault.heads, fault.tokens, fault.kind, fault.edges);
}

}  // namespace

void FaultKeeper::add(PlanFault fault) {
  ++count_;
  has_gap_ |= fault.kind == PlanFault::Kind::kGap;
  if (kept_max_ == 0) return;
  faults_.push_back(std::move(fault));
  if (faults_.size() / 2 >= kept_max_) prune();  // twice as many, so that sorting costs little for each
}

std::vector<PlanFault> FaultKeeper::take() {
  prune();
  return std::move(faults_);
}

void FaultKeeper::prune() {
  std::sort(faults_.begin(), faults_.end(),
            [](const PlanFault& a, const PlanFault& b) { return order_key(a) < order_key(b); });
  if (faults_.size() > kept_max_) faults_.erase(faults_.begin() + static_cast<ptrdiff_t>(kept_max_), faults_.end());
}

}  // namespace crossdock
