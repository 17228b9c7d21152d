// Right plans, made element by element: what each target requires, from sources drawn for each row of tokens.
#pragma once

#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"

namespace crossdock::testing {

using Kind = PlanDiagnostic::Kind;

Valid<PlacementManifest> placed(const CacheSchema& schema, const PartitionSizes& sizes);

// Two documents and their sides. The digests stand for the documents; what they are is of no account here.
struct SidePair {
  Valid<PlacementManifest> source;
  Valid<PlacementManifest> target;
  PlanSide source_side{source, sha256("source")};
  PlanSide target_side{target, sha256("target")};

  SidePair(Valid<PlacementManifest> of_source, Valid<PlacementManifest> of_target)
      : source(std::move(of_source)), target(std::move(of_target)) {}
  SidePair(const CacheSchema& schema, const PartitionSizes& of_source, const PartitionSizes& of_target)
      : SidePair(placed(schema, of_source), placed(schema, of_target)) {}
  SidePair(const SidePair&) = delete;  // the sides refer to the documents
  SidePair& operator=(const SidePair&) = delete;
};

bool naive_in(const TokenSet& set, uint64_t token);

bool naive_owns(const PlanSide& side, size_t owner, const Component& component, uint64_t layer, uint64_t head,
                uint64_t token);

size_t naive_group_of(const CacheSchema& schema, uint64_t layer);

// Of the last tokens, as many as the window has, and what shares a row with the first of them.
Range naive_live_tokens(const LayerGroup& of, const Component& component, Range snapshot);

struct AskedTokens {
  std::optional<Range> snapshot_tokens;
  Range tokens = Range::all();
};

std::vector<PlanTensor> naive_tensors(const CacheSchema& source, const PlanSide& target, const AskedTokens& asked);

// Where tokens have no end, all cycles of these tests repeat after a divisor of kPeriod and intervals end below it.
inline constexpr uint64_t kTokenPeriod = 24;

inline constexpr uint64_t kTokensLookedAt = 4 * kTokenPeriod;

Range tokens_looked_at(const PlanTensor& tensor);

template <class Visit>  // visit(layer, head)
void for_each_row(const PlanTensor& tensor, Visit visit) {
  for (const Range range : tensor.layers.ranges())
    for (uint64_t layer = range.begin(); layer < range.end(); ++layer)
      for (uint64_t head = 0; head < tensor.component.head_count; ++head) visit(layer, head);
}

std::vector<PlanEnd> all_ends(const PlanSide& side);

uint32_t add_layer_set(TransferPlan& plan, IntervalSet layers);

uint32_t add_token_set(TransferPlan& plan, TokenSet tokens);

void drop_idle_sources(TransferPlan& plan);

// Tokens that one source brings, in either form.
TokenSet drawn_set_of(const std::vector<bool>& chosen, const PlanTensor& tensor, Rng& rng);

// A right plan: for each target, tensor, layer and head an edge from each source that is drawn for a row of tokens.
// Edges that differ in nothing but their layers or heads are sometimes one.
TransferPlan naive_plan(const PlanSide& source, const PlanSide& target, const AskedTokens& asked, Rng& rng);

}  // namespace crossdock::testing
