// Copy plan: which bytes of which regions go where, for each pair of ends. It knows regions, offsets and strides, and
// nothing of what the bytes mean. Planners of each resource make one (planner/kv/lower.h); executors, transports,
// stores and the simulator work by it.
//
// A pattern has the strides of both sides; runs of rows in pages say where its rows lie. The steps of a pattern are its
// product with its runs, and those of a pair are the steps of its patterns:
//   Steps(pair) = { step(p, r) : p in patterns(pair), r in runs(p) }
// The product is never stored, so the size of a plan follows patterns + pages, not patterns x pages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/diagnostics.h"
#include "planner/copy/bound_region.h"
#include "planner/copy/page_runs.h"
#include "planner/copy/plan_end.h"
#include "planner/copy/steps.h"

namespace crossdock {

inline constexpr CopyAxis kNoAxis = {1, 0, 0};

// The axes of a copy that do not depend on pages, and what a slot and a row mean on both sides, in bytes.
struct CopyPattern {
  static constexpr size_t kAxisCountMax = 4;

  uint32_t source_region = 0;
  uint32_t target_region = 0;
  uint32_t runs = 0;  // number in the plan's lists of runs
  // In bytes from the begin of the region: the place of slot 0, row 0 and index 0 of every axis.
  uint64_t source_base = 0;
  uint64_t target_base = 0;
  uint64_t item_bytes = 0;
  CopyAxis page = kNoAxis;  // strides from one slot to the next; extents of page and row come from the runs
  CopyAxis row = kNoAxis;
  // Innermost first; extents may be 1. The first one runs along the items of one piece of a row.
  std::array<CopyAxis, kAxisCountMax> axes = {kNoAxis, kNoAxis, kNoAxis, kNoAxis};
  uint64_t joined = 1;  // patterns that were joined into this one, itself included
};

// Counts at each stage. All are of copies that move every byte of the plan once. They saturate at 2^64 - 1.
struct StepCounts {
  uint64_t bytes = 0;
  uint64_t row_pieces = 0;     // for each row and index of the outer axes: what a plan without strides would post
  uint64_t steps_planned = 0;  // one strided step for each pattern before joining and stretch of rows within a page
  uint64_t steps = 0;          // after joining patterns and neighbouring pages
  uint64_t ranges = 0;         // contiguous byte ranges of all steps: descriptors, if none may be strided

  StepCounts& operator+=(const StepCounts& other);
  friend bool operator==(const StepCounts&, const StepCounts&) = default;
};

// What one source sends to one target.
struct CopyPair {
  uint32_t source = 0;  // numbers in the lists of ends
  uint32_t target = 0;
  size_t pattern_begin = 0;
  size_t pattern_end = 0;
  StepCounts counts;
};

struct CopyEnds {
  std::vector<PlanEnd> sources;  // each sorted
  std::vector<PlanEnd> targets;
};

class CopyPlan {
 public:
  using PatternList = std::shared_ptr<const std::vector<CopyPattern>>;

  CopyPlan() = default;
  // Pairs are sorted by (target, source); their counts are computed here, as are those of the runs. Ends and patterns
  // do not depend on pages, so plans that differ in their pages share them.
  CopyPlan(std::shared_ptr<const CopyEnds> ends, std::vector<BoundRegion> source_regions,
           std::vector<BoundRegion> target_regions, PatternList patterns, std::vector<CopyPair> pairs,
           std::vector<PageRuns> runs);

  const std::vector<PlanEnd>& sources() const { return ends_->sources; }
  const std::vector<PlanEnd>& targets() const { return ends_->targets; }
  const std::vector<BoundRegion>& source_regions() const { return source_regions_; }
  const std::vector<BoundRegion>& target_regions() const { return target_regions_; }
  const std::vector<CopyPair>& pairs() const { return pairs_; }
  const std::vector<CopyPattern>& patterns() const { return *patterns_; }
  const PageRuns& runs(const CopyPattern& pattern) const { return runs_[pattern.runs]; }
  // O(pairs).
  StepCounts counts() const;  // of all pairs

  // Calls visit(const CopyStep&) for each step of the pair, in a fixed order. The numbers of regions are those of
  // source_regions() and target_regions().
  template <class Visit>
  void for_each_step(const CopyPair& pair, Visit visit) const {
    for (size_t i = pair.pattern_begin; i < pair.pattern_end; ++i) {
      const CopyPattern& pattern = (*patterns_)[i];
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
  // The same steps as a list. It takes memory for all of them, so a caller bounds pair.counts.steps first
  // (LowerLimits).
  std::vector<CopyStep> steps(const CopyPair& pair) const;

 protected:
  const std::shared_ptr<const CopyEnds>& shared_ends() const { return ends_; }
  const PatternList& shared_patterns() const { return patterns_; }

 private:
  // One run of each shape, and how many there are.
  using Shapes = std::vector<std::pair<PageRun, uint64_t>>;

  // The step of a pattern along a run, without its offsets.
  static CopyStep shape_of(const CopyPattern& pattern, const PageRun& run);
  static Shapes shapes_of(const PageRuns& runs);
  void count_pairs();

  std::shared_ptr<const CopyEnds> ends_;
  std::vector<BoundRegion> source_regions_;
  std::vector<BoundRegion> target_regions_;
  PatternList patterns_;
  std::vector<CopyPair> pairs_;
  std::vector<PageRuns> runs_;
};

// The steps of one pair as a transport is given them: none crosses a boundary or passes a limit of `split`, and they
// lie in consecutive batches.
// Offsets and counts are in bytes and steps; region numbers are those of the plan that the steps are from.
struct BatchedSteps {
  std::vector<CopyStep> steps;
  std::vector<size_t> batch_ends;  // one past the last step of each batch
  uint64_t steps_before = 0;       // before any was split
  uint64_t ranges = 0;             // contiguous byte ranges after splitting
};

// Steps are cut to the bytes of a batch as well. Empty, with a diagnostic (plan-limit), when there would be more than
// split.step_count_max steps.
std::optional<BatchedSteps> batch_steps(const CopyPlan& plan, const CopyPair& pair, StepSplit split,
                                        const BatchLimits& limits, Diagnostics& diagnostics);

}  // namespace crossdock
