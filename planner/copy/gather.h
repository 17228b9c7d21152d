// Direct or packed: for each pair of participants, either every contiguous range (or strided step) is its own
// operation, or the source gathers them into staging memory, one operation moves each full staging buffer, and the
// target scatters.
#pragma once

#include <cstdint>

#include "planner/copy/copy_plan.h"
#include "planner/copy/transport_limits.h"

namespace crossdock {

// Estimates of one pair; counts saturate like the time.
struct TransferCost {
  uint64_t operations = 0;
  uint64_t pieces = 0;         // copied by a processor, at both ends together
  uint64_t staging_bytes = 0;  // taken at each end
  uint64_t time_ns = 0;        // saturates at 2^64 - 1

  friend bool operator==(const TransferCost&, const TransferCost&) = default;
};

struct GatherChoice {
  uint64_t bytes = 0;
  TransferCost direct;
  TransferCost packed;  // all zero where there is no staging memory
  bool pack = false;    // the rule: packed where it takes less time

  friend bool operator==(const GatherChoice&, const GatherChoice&) = default;
};

// The one rule that executor and simulator use. Times are rounded up to whole nanoseconds, term by term.
//
// Direct:  operations * operation_ns + bytes / bandwidth. A step that has no more axes than an operation may have is
// one operation; of any other its innermost axes are, for each index of the outer ones. An operation of more than
// operation_bytes_max is cut as append_split() cuts a step.
//
// Packed:  2 * (ranges * gather_piece_ns + bytes / gather rate) + operations * operation_ns + bytes / bandwidth, where
// a staging buffer of staging_bytes_max is one operation, unless operation_bytes_max cuts it too, and what is left over
// is a shorter one. Gather, operations and scatter come one after the other: the model is deliberately without overlap,
// so that packing is chosen only where it wins even so. A range that lies in two buffers counts as one piece.
//
// O(steps of the pair), however many ranges they have.
GatherChoice choose_gather(const CopyPlan& plan, const CopyPair& pair, const TransportLimits& limits);

}  // namespace crossdock
