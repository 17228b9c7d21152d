// Lowering: the edges of a plan and the views of both sides become strided copies. One implementation for all three
// paths: runtime -> runtime, runtime -> store objects, store objects -> runtime.
//
// For each edge the views of its two ends are joined: by layers, then by heads, then by tokens, all lists sorted. What
// two views have in common is a CopyPattern (bases and strides of both sides) together with PageRuns (where the rows
// lie in pages): planner/copy/copy_plan.h. So a lowering's size follows views + pages, not views x pages. Patterns at
// equal distances are joined (layers, then components), pages in neighbouring slots are joined.
//
//   Bytes(edge) = { bytes of the items of edge.layers x heads x tokens, once } = union of the steps of its patterns
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/diagnostics.h"
#include "planner/copy/copy_plan.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/page_runs.h"
#include "planner/kv/plan.h"

namespace crossdock {

struct LowerLimits {
  uint64_t work_max = uint64_t{1} << 28;              // pairs of views that are looked at
  uint64_t pattern_count_max = uint64_t{1} << 22;     // of all pairs
  uint64_t page_piece_count_max = uint64_t{1} << 24;  // of all lists of runs
  uint64_t step_count_max = uint64_t{1} << 28;        // of all pairs; they are not stored, but a transport posts each
  uint64_t bytes_max = uint64_t{1} << 60;
};

struct LowerOptions {
  // Only what this end sends or receives; empty: all. A writer lowers its own part of a plan.
  std::optional<PlanEnd> source;
  std::optional<PlanEnd> target;
};

// A pair of a lowered plan: numbers are those of the plan's lists of ends.
using LoweredPair = CopyPair;

// A copy plan that remembers the edges and tokens it was made of.
class LoweredPlan : public CopyPlan {
 public:
  LoweredPlan() = default;

  // The edges whose bytes a pattern moves.
  std::span<const uint32_t> edges(size_t pattern) const {
    const std::vector<size_t>& begin = edges_->begin;
    return std::span(edges_->list).subspan(begin[pattern], begin[pattern + 1] - begin[pattern]);
  }

  // The same with the pages and epochs of the two sides it was made of after BoundSide::rebind() changed them. `plan`
  // is the one it was made of. Costs one walk over the pages of each list of runs; patterns are shared.
  LoweredPlan rebound(const TransferPlan& plan, const BoundSide& source, const BoundSide& target) const;

 private:
  friend class Lowering;

  // What a list of runs was made of.
  struct RunOrigin {
    uint32_t token_set;
    Range within;
    uint64_t tokens_per_row;
    RowMap source;
    RowMap target;
  };
  // Of all patterns; it does not depend on pages, so copies of a lowering share it.
  struct PatternEdges {
    std::vector<uint32_t> list;
    std::vector<size_t> begin = {0};  // of each, and the end
  };

  LoweredPlan(CopyPlan copies, std::shared_ptr<const PatternEdges> edges, std::vector<RunOrigin> run_origins)
      : CopyPlan(std::move(copies)), edges_(std::move(edges)), run_origins_(std::move(run_origins)) {}

  std::shared_ptr<const PatternEdges> edges_;
  std::vector<RunOrigin> run_origins_;
};

// Whether the two sides belong to the plan and to each other; adds diagnostics when they do not: plan-identity, and the
// rules of instances where one is on both sides (no byte may be source and target).
bool check_sides(const TransferPlan& plan, const BoundSide& source, const BoundSide& target, Diagnostics& diagnostics);

// Requires that the plan passed verify_plan against the documents that the two sides are of. Diagnostics: plan-identity
// (a side of another document, operation, snapshot or interval of tokens), plan-participant (an end of an edge is not
// bound), plan-gap (views hold less than an edge: they do not belong to what the plan was made of), plan-limit.
std::optional<LoweredPlan> lower(const TransferPlan& plan, const BoundSide& source, const BoundSide& target,
                                 const LowerOptions& options, const LowerLimits& limits, Diagnostics& diagnostics);

}  // namespace crossdock
