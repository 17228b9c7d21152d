#include "planner/kv/plan_volume.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace crossdock {
namespace {

// A block of one tensor: layers x heads x tokens.
// Bytes are exact integers. Bytes per token are for reading only, hence double: a cycle's share need not be a whole
// number.
void add_block(const PlanTensor& tensor, uint64_t layer_count, uint64_t head_count, const TokenSet& tokens,
               PairVolume& sum) {
  const Component& component = tensor.component;
  sum.bytes = saturating_add(sum.bytes, block_bytes(component, layer_count, head_count, tokens));
  const double row_bytes =
      static_cast<double>(layer_count) * static_cast<double>(head_count) * static_cast<double>(component.head_bytes());
  if (component.is_state()) {
    sum.volume.state_bytes += row_bytes;
    return;
  }
  const double share =
      tokens.cycle ? static_cast<double>(tokens.cycle->blocks.count()) / static_cast<double>(tokens.cycle->cycle_blocks)
                   : 1.0;
  sum.volume.bytes_per_token += row_bytes * share / static_cast<double>(*component.tokens_per_row);
}

}  // namespace

// Edges are sorted by (target, source), so one pass makes all pairs.
std::vector<PairVolume> pair_volumes(const TransferPlan& plan) {
  std::vector<PairVolume> pairs;
  for (const Edge& edge : plan.edges) {
    if (pairs.empty() || pairs.back().target != edge.target || pairs.back().source != edge.source)
      pairs.push_back(PairVolume{edge.source, edge.target, 0, 0, {}});
    ++pairs.back().edge_count;
    add_block(plan.tensors[edge.tensor], plan.layer_sets[edge.layer_set].count(), edge.heads.size(),
              plan.token_sets[edge.token_set], pairs.back());
  }
  return pairs;
}

PairVolume total_volume(const std::vector<PairVolume>& pairs) {
  PairVolume sum;
  for (const PairVolume& pair : pairs) {
    sum.edge_count += pair.edge_count;
    sum.bytes = saturating_add(sum.bytes, pair.bytes);
    sum.volume += pair.volume;
  }
  return sum;
}

// Required(q) from the ownerships and not from the edges: a report can then show that a plan moves what is required and
// no more (I8). Ownerships of one target are disjoint, so adding them counts nothing twice.
PairVolume required_volume(const TransferPlan& plan, const PlanSide& target) {
  PairVolume sum;
  for (const PlanEnd& end : plan.targets) {
    const PlanOwner* owner = target.find(end.text());
    CHECK(owner != nullptr);
    for (const Ownership& owned : owner->owns) {
      for (const PlanTensor& tensor : plan.tensors) {
        if (!std::binary_search(owned.components.begin(), owned.components.end(), tensor.component.name)) continue;
        const IntervalSet layers = owned.layers.intersect(tensor.layers);
        TokenSet tokens;
        // One side only, so no common period has to be found.
        if (layers.empty() ||
            join_tokens(owned.tokens, AllTokens(), tensor.tokens, UINT64_MAX, tokens) == TokenJoin::kNone)
          continue;
        add_block(tensor, layers.count(), owned.heads.count(), tokens, sum);
      }
    }
  }
  return sum;
}

}  // namespace crossdock
