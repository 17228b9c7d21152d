#include "planner/copy/copy_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <tuple>

#include "base/checked.h"

// A copy plan as a set: pattern p and run r make one step, and
//
//   Bytes(p, r) = { (source byte, target byte) of each row of r, each index of p's axes and each byte of an item }
//
// The bytes of a pair are the disjoint union over its patterns and their runs (I1); planner/kv/lower.cc establishes
// this. Here the set is only rewritten: sorting axes, joining contiguous ones and counting leave it as it is. Steps are
// computed on demand and not stored: there are patterns x pages of them.
namespace crossdock {
namespace {

// Counts saturate instead of failing: they only go into reports and limits, and 2^64 - 1 passes every limit.
uint64_t product(std::initializer_list<uint64_t> factors) {
  uint64_t value = 1;
  for (const uint64_t factor : factors) value = saturating_mul(value, factor);
  return value;
}

void add(uint64_t& sum, uint64_t more) { sum = saturating_add(sum, more); }

// Whether the first axis has the shorter strides.
bool is_inside(const CopyAxis& a, const CopyAxis& b) {
  return a.target_stride_bytes != b.target_stride_bytes ? a.target_stride_bytes < b.target_stride_bytes
                                                        : a.source_stride_bytes < b.source_stride_bytes;
}

// Those with more than one index, outermost first. The order of a copy is free, so the target is written in the order
// of its addresses. An insertion sort of six.
// Six is kAxisCountMax: four axes of the pattern, the rows of a run and its repeats. Axes of equal strides keep their
// order, so equal inputs give equal steps (I7).
struct SortedAxes {
  std::array<CopyAxis, CopyStep::kAxisCountMax> list;
  size_t count = 0;

  void insert(const CopyAxis& axis) {
    if (axis.extent == 1) return;
    size_t at = count++;
    for (; at > 0 && is_inside(list[at - 1], axis); --at) list[at] = list[at - 1];
    list[at] = axis;
  }
};

}  // namespace

CopyPlan::CopyPlan(std::shared_ptr<const CopyEnds> ends, std::vector<BoundRegion> source_regions,
                   std::vector<BoundRegion> target_regions, PatternList patterns, std::vector<CopyPair> pairs,
                   std::vector<PageRuns> runs)
    : ends_(std::move(ends)),
      source_regions_(std::move(source_regions)),
      target_regions_(std::move(target_regions)),
      patterns_(std::move(patterns)),
      pairs_(std::move(pairs)),
      runs_(std::move(runs)) {
  count_pairs();
}

// No product here passes 64 bits. The bytes of a pattern lie within its regions (rule view-bounds of a binding, and
// object sizes of a manifest), and every stride times extent is a distance between two of them.
CopyStep CopyPlan::shape_of(const CopyPattern& pattern, const PageRun& run) {
  const auto along = [&](RowPlace step, uint64_t CopyAxis::*stride) {
    return step.slot * pattern.page.*stride + step.row * pattern.row.*stride;
  };
  SortedAxes axes;
  axes.insert(pattern.axes[3]);
  axes.insert(pattern.axes[2]);
  axes.insert(CopyAxis{run.repeat, along(run.source_step, &CopyAxis::source_stride_bytes),
                       along(run.target_step, &CopyAxis::target_stride_bytes)});
  axes.insert(CopyAxis{run.rows, pattern.row.source_stride_bytes, pattern.row.target_stride_bytes});
  axes.insert(pattern.axes[1]);
  axes.insert(pattern.axes[0]);

  CopyStep step;
  step.source_region = pattern.source_region;
  step.target_region = pattern.target_region;
  step.bytes = pattern.item_bytes;
  // The innermost axes first: an axis whose strides are the bytes inside it, on both sides, only makes the contiguous
  // piece longer. One side alone is not enough, since a piece has one length.
  for (; axes.count > 0; --axes.count) {  // contiguous on both sides: longer pieces
    const CopyAxis& axis = axes.list[axes.count - 1];
    if (axis.source_stride_bytes != step.bytes || axis.target_stride_bytes != step.bytes) break;
    step.bytes *= axis.extent;
  }
  // Two neighbouring axes whose strides continue each other on both sides are one axis. This keeps steps within the
  // axes that a transport may have (TransportLimits), without any change of the bytes.
  for (size_t i = 0; i < axes.count; ++i) {
    const CopyAxis& axis = axes.list[i];
    CopyAxis* outer = step.axis_count == 0 ? nullptr : &step.axis_list[step.axis_count - 1];
    if (outer != nullptr && outer->source_stride_bytes == axis.source_stride_bytes * axis.extent &&
        outer->target_stride_bytes == axis.target_stride_bytes * axis.extent)
      *outer = CopyAxis{outer->extent * axis.extent, axis.source_stride_bytes, axis.target_stride_bytes};
    else
      step.push_axis(axis);
  }
  return step;
}

// Neighbouring runs are nearly always alike, so the map is asked only where the shape changes.
CopyPlan::Shapes CopyPlan::shapes_of(const PageRuns& runs) {
  std::map<std::tuple<uint64_t, uint64_t, RowPlace, RowPlace>, uint64_t> known;
  Shapes shapes;
  for (const PageRun& run : runs.runs) {
    if (!shapes.empty() && shapes.back().first.same_shape(run)) {
      ++shapes.back().second;
      continue;
    }
    const auto [entry, is_new] =
        known.try_emplace(std::tuple(run.rows, run.repeat, run.source_step, run.target_step), shapes.size());
    if (is_new)
      shapes.emplace_back(run, 1);
    else
      ++shapes[entry->second].second;
  }
  return shapes;
}

// O(patterns x different shapes of runs), not O(steps): how many ranges a step has does not depend on its offsets.
void CopyPlan::count_pairs() {
  std::vector<Shapes> shapes;
  shapes.reserve(runs_.size());
  for (const PageRuns& runs : runs_) shapes.push_back(shapes_of(runs));
  for (CopyPair& pair : pairs_) {
    pair.counts = StepCounts();
    for (size_t i = pair.pattern_begin; i < pair.pattern_end; ++i) {
      const CopyPattern& pattern = (*patterns_)[i];
      const PageRuns& runs = runs_[pattern.runs];
      StepCounts counts;
      counts.row_pieces =
          product({runs.row_count, pattern.axes[1].extent, pattern.axes[2].extent, pattern.axes[3].extent});
      counts.bytes = product({counts.row_pieces, pattern.axes[0].extent, pattern.item_bytes});
      counts.steps_planned = saturating_mul(pattern.joined, runs.piece_count);
      counts.steps = runs.runs.size();
      for (const auto& [run, count] : shapes[pattern.runs])
        add(counts.ranges, saturating_mul(count, shape_of(pattern, run).range_count()));
      pair.counts += counts;
    }
  }
}

StepCounts& StepCounts::operator+=(const StepCounts& other) {
  add(bytes, other.bytes);
  add(row_pieces, other.row_pieces);
  add(steps_planned, other.steps_planned);
  add(steps, other.steps);
  add(ranges, other.ranges);
  return *this;
}

StepCounts CopyPlan::counts() const {
  StepCounts sum;
  for (const CopyPair& pair : pairs_) sum += pair.counts;
  return sum;
}

std::vector<CopyStep> CopyPlan::steps(const CopyPair& pair) const {
  std::vector<CopyStep> list;
  list.reserve(pair.counts.steps);
  for_each_step(pair, [&](const CopyStep& step) { list.push_back(step); });
  return list;
}

// A step must fit a batch, so the smaller of both byte limits holds; batch_ends() relies on it.
std::optional<BatchedSteps> batch_steps(const CopyPlan& plan, const CopyPair& pair, StepSplit split,
                                        const BatchLimits& limits, Diagnostics& diagnostics) {
  split.bytes_max = std::min(split.bytes_max, limits.bytes_max);
  BatchedSteps batched;
  bool fits = true;
  plan.for_each_step(pair, [&](const CopyStep& step) {
    // The walk goes on after the limit, so that steps_before is the count of all steps; it takes no more memory.
    ++batched.steps_before;
    fits = fits && append_split(step, split, batched.steps);
  });
  if (!fits) {
    diagnostics.add(Rule::kPlanLimit, "", fmt::format("more than {} steps after splitting", split.step_count_max));
    return std::nullopt;
  }
  batched.batch_ends = batch_ends(batched.steps, limits);
  for (const CopyStep& step : batched.steps) add(batched.ranges, step.range_count());
  return batched;
}

}  // namespace crossdock
