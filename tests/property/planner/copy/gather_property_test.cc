// What a transfer costs directly and packed, against operations that are counted one by one.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/copy/gather.h"
#include "planner/kv/bound_side.h"
#include "tests/support/draw.h"
#include "tests/support/lowered_rows.h"

namespace crossdock::testing {
namespace {

// ---- Random limits ----

// Every operation made: the indices of the outer axes one by one, then what append_split cuts.
uint64_t naive_direct_operations(const LoweredPlan& lowered, const TransportLimits& limits) {
  uint64_t count = 0;
  for (const CopyStep& step : lowered.steps(lowered.pairs().front())) {
    std::vector<CopyStep> posted = {step};
    while (posted.front().axis_count > limits.strided_axis_count_max) {
      std::vector<CopyStep> next;
      for (const CopyStep& each : posted)
        for (uint64_t index = 0; index < each.axis_list[0].extent; ++index) {
          CopyStep inner = each;
          inner.axis_count = 0;
          inner.axis_list = {};
          for (size_t k = 1; k < each.axis_count; ++k) inner.push_axis(each.axis_list[k]);
          next.push_back(inner);
        }
      posted = std::move(next);
    }
    for (const CopyStep& each : posted) {
      std::vector<CopyStep> pieces;
      append_split(each, StepSplit{.bytes_max = limits.operation_bytes_max}, pieces);
      count += pieces.size();
    }
  }
  return count;
}

uint64_t naive_packed_operations(uint64_t bytes, const TransportLimits& limits) {
  uint64_t count = 0;
  for (uint64_t filled = 0; filled < bytes; filled += limits.staging_bytes_max) {
    const uint64_t buffer = std::min(limits.staging_bytes_max, bytes - filled);
    for (uint64_t sent = 0; sent < buffer; sent += limits.operation_bytes_max) ++count;
  }
  return count;
}

RC_GTEST_PROP(ChooseGather, CountsTheOperationsThatCuttingMakes, ()) {
  static const std::vector<LoweredPlan> plans = {
      token_major_to_head_major(), scattered_pages(7), contiguous(100, 30),
      lower_between(bytes_of(5, 3, 7), 40,
                    RowMemory{.heads = Range(0, 3),
                              .strides = {.layer = 250, .row = 25, .head = 8, .dim = 1},
                              .slots = {4, 5, 9, 2, 7, 8},
                              .page_tokens = 8,
                              .page_stride_bytes = 1300},
                    {RowMemory{.heads = Range(0, 3),
                               .strides = {.layer = 22 * 48, .row = 22, .head = 7, .dim = 1},
                               .slots = {3, 4, 1, 0},
                               .page_tokens = 12,
                               .page_stride_bytes = 22 * 48 * 5}})};
  const LoweredPlan& lowered = plans[draw(0, plans.size() - 1)];
  TransportLimits limits;
  limits.strided_axis_count_max = draw(0, 5);
  limits.operation_bytes_max = draw(0, 1) == 0 ? draw(1, 200) : draw(1, 14'000);
  limits.staging_bytes_max = draw(1, 14'000);
  const GatherChoice choice = choose_between(lowered, limits);
  RC_ASSERT(choice.direct.operations == naive_direct_operations(lowered, limits));
  RC_ASSERT(choice.packed.operations == naive_packed_operations(choice.bytes, limits));
  uint64_t range_count = 0;
  uint64_t bytes = 0;
  for (const CopyStep& step : lowered.steps(lowered.pairs().front())) {
    ByteRanges ranges(step);
    for (ByteCopy range; ranges.next(range); ++range_count) bytes += range.bytes;
  }
  RC_ASSERT(choice.bytes == bytes);
  RC_ASSERT(choice.packed.pieces == 2 * range_count);
}

}  // namespace
}  // namespace crossdock::testing
