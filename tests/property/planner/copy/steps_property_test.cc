// Strided steps, their contiguous pieces, their cuts and their batches, against each byte written out.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/copy/steps.h"
#include "tests/support/byte_ranges.h"
#include "tests/support/copy_steps.h"
#include "tests/support/draw.h"

namespace crossdock::testing {
namespace {

// ---- Definitions, index by index and byte by byte ----

// The contiguous ranges that the comment on CopyStep defines, the last axis fastest.
std::vector<ByteCopy> naive_ranges(const CopyStep& step) {
  std::vector<ByteCopy> ranges = {ByteCopy{step.source_offset, step.target_offset, step.bytes}};
  for (size_t k = 0; k < step.axis_count; ++k) {
    std::vector<ByteCopy> next;
    for (const ByteCopy& range : ranges)
      for (uint64_t i = 0; i < step.axis_list[k].extent; ++i)
        next.push_back(ByteCopy{range.source_offset + i * step.axis_list[k].source_stride_bytes,
                                range.target_offset + i * step.axis_list[k].target_stride_bytes, range.bytes});
    ranges = std::move(next);
  }
  return ranges;
}

using BytePair = std::pair<uint64_t, uint64_t>;  // a source byte, and the target byte that it goes to

std::vector<BytePair> naive_bytes(const CopyStep& step) {
  std::vector<BytePair> bytes;
  for (const ByteCopy& range : naive_ranges(step))
    for (uint64_t i = 0; i < range.bytes; ++i) bytes.emplace_back(range.source_offset + i, range.target_offset + i);
  return bytes;
}

std::vector<BytePair> in_order(std::vector<BytePair> bytes) {
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

// Whether each of the bytes on one side lies between the same two multiples of `unit`.
template <class Side>
bool in_one_registration(const std::vector<BytePair>& bytes, Side side, uint64_t unit) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [&](const BytePair& each) { return side(each) / unit == side(bytes.front()) / unit; });
}

uint64_t source_of(const BytePair& pair) { return pair.first; }

uint64_t target_of(const BytePair& pair) { return pair.second; }

template <class Side>
uint64_t naive_span(const std::vector<BytePair>& bytes, Side side) {
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (const BytePair& each : bytes) {
    least = std::min(least, side(each));
    most = std::max(most, side(each));
  }
  return most - least + 1;
}

// ---- Random steps ----

// Axes in any order; on the target each is longer than what lies inside it, on the source anything goes.
CopyStep draw_step() {
  const uint64_t bytes = draw(1, 9);
  uint64_t span = bytes;
  std::vector<CopyAxis> axes;
  const uint64_t axis_count = draw(0, 9) == 0 ? CopyStep::kAxisCountMax : draw(0, 3);
  for (uint64_t i = 0; i < axis_count; ++i) {
    const uint64_t extent = axis_count > 3 ? 2 : draw(2, 5);
    axes.push_back(CopyAxis{extent, draw(0, 40), span + draw(0, 1) * draw(0, 6)});
    span += axes.back().target_stride_bytes * (extent - 1);
  }
  for (size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[draw(0, i - 1)]);
  return make_step(draw(0, 200), draw(0, 200), bytes, axes);
}

uint64_t draw_limit(uint64_t most) { return draw(0, 2) == 0 ? UINT64_MAX : draw(1, most); }

StepSplit draw_split() { return StepSplit{draw_limit(150), draw_limit(20), draw_limit(150), draw_limit(150)}; }

RC_GTEST_PROP(ByteRanges, GivesEachRangeInTheOrderOfTheAxes, ()) {
  const CopyStep step = draw_step();
  const std::vector<ByteCopy> ranges = naive_ranges(step);
  RC_ASSERT(ranges_of(step) == ranges);
  RC_ASSERT(step.range_count() == ranges.size());
  const std::vector<BytePair> bytes = naive_bytes(step);
  RC_ASSERT(step.total_bytes() == bytes.size());
  RC_ASSERT(step.source_span() == naive_span(bytes, source_of));
  RC_ASSERT(step.target_span() == naive_span(bytes, target_of));
}

// ---- append_split ----

RC_GTEST_PROP(AppendSplit, CopiesTheSameBytesWithinTheLimits, ()) {
  const CopyStep step = draw_step();
  const StepSplit split = draw_split();
  const CopyStep before = make_step(1, 2, 3, {});
  std::vector<CopyStep> pieces = {before};
  append_split(step, split, pieces);
  RC_ASSERT(pieces.front() == before);
  pieces.erase(pieces.begin());

  std::vector<BytePair> moved;
  for (const CopyStep& piece : pieces) {
    RC_ASSERT(piece.source_region == step.source_region && piece.target_region == step.target_region);
    RC_ASSERT(piece.bytes > 0 && piece.bytes <= step.bytes);
    for (size_t k = 0; k < CopyStep::kAxisCountMax; ++k)
      RC_ASSERT((k < piece.axis_count ? piece.axis_list[k].extent >= 2 : piece.axis_list[k] == CopyAxis()));
    const std::vector<BytePair> bytes = naive_bytes(piece);
    RC_ASSERT(bytes.size() <= split.bytes_max);
    RC_ASSERT(naive_ranges(piece).size() <= split.range_count_max);
    RC_ASSERT(in_one_registration(bytes, source_of, split.source_registration_bytes));
    RC_ASSERT(in_one_registration(bytes, target_of, split.target_registration_bytes));
    moved.insert(moved.end(), bytes.begin(), bytes.end());
  }
  RC_ASSERT(in_order(moved) == in_order(naive_bytes(step)));
}

RC_GTEST_PROP(AppendSplit, LeavesAStepThatKeepsToTheLimitsAlone, ()) {
  const CopyStep step = draw_step();
  const std::vector<BytePair> bytes = naive_bytes(step);
  StepSplit split{bytes.size() + draw(0, 5), step.range_count() + draw(0, 5), 0, 0};
  // A registration that begins at 0 or with the step, and ends behind it.
  split.source_registration_bytes = step.source_offset + naive_span(bytes, source_of) + draw(0, 5);
  split.target_registration_bytes = step.target_offset + naive_span(bytes, target_of) + draw(0, 5);
  if (draw(0, 1) == 1 && step.source_offset >= naive_span(bytes, source_of))
    split.source_registration_bytes = step.source_offset;
  std::vector<CopyStep> pieces;
  append_split(step, split, pieces);
  RC_ASSERT(pieces == std::vector<CopyStep>{step});
}

// Contiguous bytes are cut last: a piece is shorter than the step's only where a limit on bytes or a boundary cuts it.
RC_GTEST_PROP(AppendSplit, CutsContiguousBytesOnlyWhereALimitDoes, ()) {
  const CopyStep step = draw_step();
  const StepSplit split = draw_split();
  std::vector<CopyStep> pieces;
  append_split(step, split, pieces);
  size_t uncut_count = 0;
  for (const ByteCopy& range : naive_ranges(step)) {
    const auto fits = [&](uint64_t offset, uint64_t unit) {
      return offset / unit == (offset + range.bytes - 1) / unit;
    };
    if (range.bytes <= split.bytes_max && fits(range.source_offset, split.source_registration_bytes) &&
        fits(range.target_offset, split.target_registration_bytes))
      ++uncut_count;
  }
  size_t whole_count = 0;
  for (const CopyStep& piece : pieces)
    if (piece.bytes == step.bytes) whole_count += naive_ranges(piece).size();
  RC_ASSERT(whole_count == uncut_count);
}

// Neighbouring pieces along the one axis of a step do not fit together.
RC_GTEST_PROP(AppendSplit, TakesAsManyIndicesAsFit, ()) {
  const uint64_t bytes = draw(1, 9);
  const CopyStep step = make_step(draw(0, 200), draw(0, 200), bytes, {{draw(2, 40), draw(0, 20), bytes + draw(0, 6)}});
  StepSplit split = draw_split();
  split.bytes_max = std::max(split.bytes_max, bytes);
  const auto fits = [&](const std::vector<ByteCopy>& ranges, size_t begin, size_t end) {
    const auto in_one = [&](uint64_t first, uint64_t last, uint64_t unit) { return first / unit == last / unit; };
    return end - begin <= split.range_count_max && (end - begin) * bytes <= split.bytes_max &&
           in_one(ranges[begin].source_offset, ranges[end - 1].source_offset + bytes - 1,
                  split.source_registration_bytes) &&
           in_one(ranges[begin].target_offset, ranges[end - 1].target_offset + bytes - 1,
                  split.target_registration_bytes);
  };
  const std::vector<ByteCopy> ranges = naive_ranges(step);
  for (size_t i = 0; i < ranges.size(); ++i)
    if (!fits(ranges, i, i + 1)) RC_DISCARD("a range that has to be cut");
  size_t piece_count = 0;  // one index after the other, as long as it fits
  for (size_t begin = 0; begin < ranges.size(); ++piece_count) {
    size_t end = begin + 1;
    while (end < ranges.size() && fits(ranges, begin, end + 1)) ++end;
    begin = end;
  }
  std::vector<CopyStep> pieces;
  append_split(step, split, pieces);
  RC_ASSERT(pieces.size() == piece_count);
}

// ---- batch_ends ----

RC_GTEST_PROP(BatchEnds, BatchesFollowEachOtherKeepToTheLimitsAndAreFull, ()) {
  std::vector<CopyStep> steps(draw(0, 40));
  for (CopyStep& step : steps) step = draw_step();
  uint64_t largest = 1;
  for (const CopyStep& step : steps) largest = std::max<uint64_t>(largest, naive_bytes(step).size());
  const BatchLimits limits{draw(0, 2) == 0 ? UINT64_MAX : draw(1, 12),
                           draw(0, 2) == 0 ? UINT64_MAX : largest + draw(0, 300)};

  const std::vector<size_t> ends = batch_ends(steps, limits);
  size_t begin = 0;
  for (const size_t end : ends) {
    RC_ASSERT(begin < end && end <= steps.size());
    uint64_t bytes = 0;
    for (size_t i = begin; i < end; ++i) bytes += naive_bytes(steps[i]).size();
    RC_ASSERT(end - begin <= limits.step_count_max && bytes <= limits.bytes_max);
    if (end < steps.size())  // the next step would have been too much
      RC_ASSERT(end - begin == limits.step_count_max || bytes + naive_bytes(steps[end]).size() > limits.bytes_max);
    begin = end;
  }
  RC_ASSERT(begin == steps.size());
}

}  // namespace
}  // namespace crossdock::testing
