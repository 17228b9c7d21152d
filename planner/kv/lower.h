// Lowering: the edges of a plan and the views of both sides become strided copies. One implementation for all three
// paths: runtime -> runtime, runtime -> store objects, store objects -> runtime.
//
// For each edge the views of its two ends are joined: by layers, then by heads, then by tokens, all lists sorted. What
// two views have in common is a StepPattern (bases and strides of both sides) together with PageRuns (where the rows
// lie in pages). The product of the two is the list of steps; it is never stored, so a lowering's size follows views +
// pages, not views x pages. Patterns at equal distances are joined (layers, then components), pages in neighbouring
// slots are joined, and contiguous axes collapse.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/diagnostics.h"
#include "planner/copy/steps.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/page_runs.h"
#include "planner/kv/plan.h"

namespace crossdock {

// The axes of a copy that do not depend on pages, and what a slot and a row mean on both sides.
struct StepPattern {
  uint32_t source_region = 0;
  uint32_t target_region = 0;
  uint32_t runs = 0;  // number in the lowering's lists of runs
  uint64_t source_base = 0;
  uint64_t target_base = 0;
  uint64_t item_bytes = 0;
  CopyAxis page = {};  // strides from one slot to the next; extents of page and row come from the runs
  CopyAxis row = {};
  CopyAxis dim = {};  // extents may be 1 here
  CopyAxis head = {};
  CopyAxis layer = {};
  CopyAxis component = {};  // several edges whose patterns lie at equal distances

  friend auto operator<=>(const StepPattern&, const StepPattern&) = default;
};

// Counts at each stage. All are of copies that move every byte of the plan once. They saturate at 2^64 - 1.
struct StepCounts {
  uint64_t bytes = 0;
  uint64_t head_rows = 0;      // one piece for each layer, row and head: what a plan without strides would post
  uint64_t steps_planned = 0;  // one strided step for each pair of views and stretch of rows within a page
  uint64_t steps = 0;          // after joining layers, components and neighbouring pages
  uint64_t ranges = 0;         // contiguous byte ranges of all steps: descriptors, if none may be strided

  StepCounts& operator+=(const StepCounts& other);
  friend bool operator==(const StepCounts&, const StepCounts&) = default;
};

// What one source sends to one target.
struct LoweredPair {
  uint32_t source = 0;  // numbers in the plan's lists
  uint32_t target = 0;
  size_t pattern_begin = 0;
  size_t pattern_end = 0;
  StepCounts counts;
};

struct LowerLimits {
  uint64_t work_max = uint64_t{1} << 28;              // pairs of views that are looked at
  uint64_t pattern_count_max = uint64_t{1} << 22;     // of all pairs
  uint64_t page_piece_count_max = uint64_t{1} << 24;  // of all lists of runs
  uint64_t step_count_max = uint64_t{1} << 28;        // of all pairs; they are not stored, but somebody posts them
  uint64_t bytes_max = uint64_t{1} << 60;
};

struct LowerOptions {
  // Only what this end sends or receives; empty: all. A writer lowers its own part of a plan.
  std::optional<PlanEnd> source;
  std::optional<PlanEnd> target;
};

class LoweredPlan {
 public:
  const std::vector<BoundRegion>& source_regions() const { return source_regions_; }
  const std::vector<BoundRegion>& target_regions() const { return target_regions_; }
  const std::vector<LoweredPair>& pairs() const { return pairs_; }  // sorted by (target, source)
  const std::vector<StepPattern>& patterns() const { return patterns_->list; }
  const PageRuns& runs(const StepPattern& pattern) const { return runs_[pattern.runs].runs; }
  // The edges whose bytes a pattern moves.
  std::span<const uint32_t> edges(size_t pattern) const {
    const std::vector<size_t>& begin = patterns_->edge_begin;
    return std::span(patterns_->edges).subspan(begin[pattern], begin[pattern + 1] - begin[pattern]);
  }
  StepCounts counts() const;

  // Calls visit(const CopyStep&) for each step of the pair, in a fixed order. The numbers of regions are those of
  // source_regions() and target_regions().
  template <class Visit>
  void for_each_step(const LoweredPair& pair, Visit visit) const {
    for (size_t i = pair.pattern_begin; i < pair.pattern_end; ++i) {
      const StepPattern& pattern = patterns_->list[i];
      const PageRun* before = nullptr;
      CopyStep step;
      for (const PageRun& run : runs(pattern).runs) {
        if (before == nullptr || !before->same_shape(run)) step = shape_of(pattern, run);
        step.source_offset = pattern.source_base + run.source.slot * pattern.page.source_stride_bytes +
                             run.source.row * pattern.row.source_stride_bytes;
        step.target_offset = pattern.target_base + run.target.slot * pattern.page.target_stride_bytes +
                             run.target.row * pattern.row.target_stride_bytes;
        before = &run;
        visit(static_cast<const CopyStep&>(step));
      }
    }
  }
  std::vector<CopyStep> steps(const LoweredPair& pair) const;

  // The same with the pages and epochs of the two sides it was made of after BoundSide::rebind() changed them. `plan`
  // is the one it was made of. Costs one walk over the pages of each list of runs; patterns are shared.
  LoweredPlan rebound(const TransferPlan& plan, const BoundSide& source, const BoundSide& target) const;

 private:
  friend class Lowering;

  // A list of runs and what it is made of.
  struct RunList {
    uint32_t token_set;
    Range within;
    uint64_t tokens_per_row;
    RowMap source;
    RowMap target;
    PageRuns runs;
    std::vector<std::pair<PageRun, uint64_t>> shapes;  // one run of each shape, and how many there are
  };

  // What does not depend on pages; copies of a lowering share it.
  struct Patterns {
    std::vector<StepPattern> list;
    std::vector<uint64_t> joined;  // of each: how many pairs of views it came from
    std::vector<uint32_t> edges;
    std::vector<size_t> edge_begin = {0};  // of each, and the end
  };

  static CopyStep shape_of(const StepPattern& pattern, const PageRun& run);
  static void note_shapes(RunList& list);
  void count_pairs();

  std::vector<BoundRegion> source_regions_;
  std::vector<BoundRegion> target_regions_;
  std::vector<LoweredPair> pairs_;
  std::shared_ptr<const Patterns> patterns_;
  std::vector<RunList> runs_;
};

// The steps of one pair as a transport is given them: none crosses a boundary or passes a limit of `split`, and they
// lie in consecutive batches.
struct BatchedSteps {
  std::vector<CopyStep> steps;
  std::vector<size_t> batch_ends;  // one past the last step of each batch
  uint64_t steps_before = 0;       // before any was split
  uint64_t ranges = 0;             // contiguous byte ranges after splitting
};

// Steps are cut to the bytes of a batch as well. Empty, with a diagnostic (plan-limit), when there would be more than
// split.step_count_max steps.
std::optional<BatchedSteps> batch_steps(const LoweredPlan& lowered, const LoweredPair& pair, StepSplit split,
                                        const BatchLimits& limits, Diagnostics& diagnostics);

// Whether the two sides belong to the plan and to each other; adds diagnostics when they do not: plan-identity, and the
// rules of instances where one stands on both sides (no byte may be source and target).
bool check_sides(const TransferPlan& plan, const BoundSide& source, const BoundSide& target, Diagnostics& diagnostics);

// Requires that the plan passed verify_plan against the documents that the two sides are of. Diagnostics: plan-identity
// (a side of another document, operation, snapshot or interval of tokens), plan-participant (an end of an edge is not
// bound), plan-gap (views hold less than an edge: they do not belong to what the plan was made of), plan-limit.
std::optional<LoweredPlan> lower(const TransferPlan& plan, const BoundSide& source, const BoundSide& target,
                                 const LowerOptions& options, const LowerLimits& limits, Diagnostics& diagnostics);

}  // namespace crossdock
