#include "planner/kv/diagnostic_tokens.h"

#include <algorithm>
#include <span>

// For the messages of the command line only, so it takes the direct way: it expands both sets of one (layer, head) and
// subtracts them. The proof does not depend on it.
namespace crossdock {
namespace {

// What the ownerships hold of one (component, layer, head) within `tokens`.
// Limits hold for each set alone; a union of a few of them stays in the same order of size.
std::optional<IntervalSet> owned_tokens(std::span<const Ownership> owns, const PlanTensor& tensor, uint64_t layer,
                                        uint64_t head, Range tokens, uint64_t range_count_max) {
  IntervalSet all;
  for (const Ownership& owned : owns) {
    if (!owned.layers.contains(layer) || !owned.heads.contains(head) ||
        !std::binary_search(owned.components.begin(), owned.components.end(), tensor.component.name))
      continue;
    const std::optional<IntervalSet> some = tokens_within(owned.tokens, tokens, range_count_max);
    if (!some) return std::nullopt;
    all = all.unite(*some);
  }
  return all;
}

// What the edges bring of one (target, tensor, layer, head).
std::optional<IntervalSet> brought_tokens(const TransferPlan& plan, const PlanDiagnostic& diagnostic,
                                          uint64_t range_count_max) {
  IntervalSet all;
  for (const Edge& edge : plan.edges) {
    if (edge.target != diagnostic.target || edge.tensor != diagnostic.tensor ||
        !edge.heads.contains(diagnostic.heads.begin()) ||
        !plan.layer_sets[edge.layer_set].contains(diagnostic.layers.begin()))
      continue;
    const std::optional<IntervalSet> some = expand_tokens(plan.token_sets[edge.token_set], range_count_max);
    if (!some) return std::nullopt;
    all = all.unite(*some);
  }
  return all;
}

std::optional<IntervalSet> minus(const std::optional<IntervalSet>& a, const std::optional<IntervalSet>& b) {
  if (!a || !b) return std::nullopt;
  return a->subtract(*b);
}

}  // namespace

std::optional<IntervalSet> diagnostic_tokens(const TransferPlan& plan, const PlanSide& source, const PlanSide& target,
                                             const PlanDiagnostic& diagnostic, uint64_t range_count_max) {
  const PlanTensor& tensor = plan.tensors[diagnostic.tensor];
  const auto edge_tokens = [&](size_t position) {
    return expand_tokens(plan.token_sets[plan.edges[diagnostic.edges[position]].token_set], range_count_max);
  };
  // Cut to the tensor's tokens: for a target that is Live and Asked.
  const auto owned = [&](const PlanSide& side, const PlanEnd& end) -> std::optional<IntervalSet> {
    const PlanOwner* owner = side.find(end.text());
    if (owner == nullptr) return IntervalSet();
    return owned_tokens(owner->owns, tensor, diagnostic.layers.begin(), diagnostic.heads.begin(),
                        tensor.component.is_state() ? tensor.tokens : tensor.tokens.intersect(side.tokens()),
                        range_count_max);
  };
  switch (diagnostic.kind) {
    case PlanDiagnostic::Kind::kGap:
      return minus(owned(target, plan.targets[diagnostic.target]), brought_tokens(plan, diagnostic, range_count_max));
    case PlanDiagnostic::Kind::kOverlap: {
      const std::optional<IntervalSet> first = edge_tokens(0);
      const std::optional<IntervalSet> second = edge_tokens(1);
      if (!first || !second) return std::nullopt;
      return first->intersect(*second);
    }
    case PlanDiagnostic::Kind::kNotTarget: return minus(edge_tokens(0), owned(target, plan.targets[diagnostic.target]));
    case PlanDiagnostic::Kind::kNotSource:
      return minus(edge_tokens(0), owned(source, plan.sources[plan.edges[diagnostic.edges[0]].source]));
  }
  return std::nullopt;
}

}  // namespace crossdock
