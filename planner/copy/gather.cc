#include "planner/copy/gather.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/checked.h"

namespace crossdock {
namespace {

// Bytes times 10^9 pass 64 bits from 18 GB on, which a long context of a large model has.
__extension__ using Wide = unsigned __int128;

// Rounded up.
uint64_t time_of_bytes(uint64_t bytes, uint64_t bytes_per_s) {
  if (bytes_per_s == 0) return 0;
  const Wide byte_ns = Wide{bytes} * 1'000'000'000;
  const Wide time_ns = byte_ns / bytes_per_s + (byte_ns % bytes_per_s == 0 ? 0 : 1);
  return time_ns > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(time_ns);
}

// From the innermost axis outwards: how many operations the bytes up to there are.
// An estimate from the shape alone, in O(axes): flattening the step into ranges would cost more than the transfer's
// planning. Once the bytes up to an axis pass operation_bytes_max, indices_that_fit is 0 for it and all outer ones, and
// operations multiply. step.bytes is at least 1, so nothing is divided by zero.
uint64_t direct_operations(const CopyStep& step, const TransportLimits& limits) {
  uint64_t operations = div_round_up(step.bytes, limits.operation_bytes_max);
  uint64_t bytes = step.bytes;
  for (size_t inner_axis_count = 1; inner_axis_count <= step.axis_count; ++inner_axis_count) {
    const uint64_t extent = step.axis_list[step.axis_count - inner_axis_count].extent;
    const bool within_operation = inner_axis_count <= limits.strided_axis_count_max;
    const uint64_t indices_that_fit = within_operation ? limits.operation_bytes_max / bytes : 0;
    operations = indices_that_fit > 0 ? div_round_up(extent, indices_that_fit) : saturating_mul(extent, operations);
    bytes = saturating_mul(bytes, extent);
  }
  return operations;
}

uint64_t wire_time(uint64_t operations, uint64_t bytes, const TransportLimits& limits) {
  return saturating_add(saturating_mul(operations, limits.operation_ns),
                        time_of_bytes(bytes, limits.bandwidth_bytes_per_s));
}

TransferCost direct_cost(const CopyPlan& plan, const CopyPair& pair, const TransportLimits& limits) {
  TransferCost cost;
  plan.for_each_step(pair, [&](const CopyStep& step) {
    cost.operations = saturating_add(cost.operations, direct_operations(step, limits));
  });
  cost.time_ns = wire_time(cost.operations, pair.counts.bytes, limits);
  return cost;
}

// Each range is copied by a processor at both ends, hence the factors of 2. staging_bytes_max is at least 1: the caller
// does not ask where there is no staging memory.
TransferCost packed_cost(const CopyPair& pair, const TransportLimits& limits) {
  const uint64_t bytes = pair.counts.bytes;
  TransferCost cost;
  cost.staging_bytes = std::min(bytes, limits.staging_bytes_max);
  cost.operations = saturating_mul(bytes / limits.staging_bytes_max,
                                   div_round_up(limits.staging_bytes_max, limits.operation_bytes_max));
  cost.operations =
      saturating_add(cost.operations, div_round_up(bytes % limits.staging_bytes_max, limits.operation_bytes_max));
  cost.pieces = saturating_mul(2, pair.counts.ranges);
  const uint64_t one_end_ns = saturating_add(saturating_mul(pair.counts.ranges, limits.gather_piece_ns),
                                             time_of_bytes(bytes, limits.gather_bytes_per_s));
  cost.time_ns = saturating_add(saturating_mul(2, one_end_ns), wire_time(cost.operations, bytes, limits));
  return cost;
}

}  // namespace

GatherChoice choose_gather(const CopyPlan& plan, const CopyPair& pair, const TransportLimits& limits) {
  CHECK(limits.operation_bytes_max > 0);
  GatherChoice choice;
  choice.bytes = pair.counts.bytes;
  choice.direct = direct_cost(plan, pair, limits);
  if (limits.staging_bytes_max == 0) return choice;
  choice.packed = packed_cost(pair, limits);
  // Strictly less: with equal times the direct way wins, because it needs no memory and no processor.
  choice.pack = choice.packed.time_ns < choice.direct.time_ns;
  return choice;
}

}  // namespace crossdock
