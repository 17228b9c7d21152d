// Direct or packed: for each pair of participants, either every contiguous range (or strided step) is its own operation,
// or the source gathers them into staging memory, one operation moves each full staging buffer, and the target scatters.
#pragma once

#include <cstdint>

#include "planner/lower.h"

namespace crossdock {

// What a transport says of itself. Costs are those of one endpoint; 0 bytes per second means without limit.
struct TransportLimits {
  uint64_t operation_ns = 0;             // to post and complete one operation
  uint64_t strided_axis_count_max = 0;   // axes that one operation may have; 0: contiguous ranges only
  uint64_t bandwidth_bytes_per_s = 0;    // of the link
  uint64_t gather_bytes_per_s = 0;       // at which pieces are copied to or from staging memory
  uint64_t gather_piece_ns = 0;          // for each contiguous piece, besides its bytes
  uint64_t staging_bytes_max = 0;        // at each end; 0: there is none, so nothing is packed
  uint64_t operation_bytes_max = UINT64_MAX;

  friend bool operator==(const TransportLimits&, const TransportLimits&) = default;
};

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
};

// The one rule that executor and simulator use. Direct: operations * operation_ns + bytes / bandwidth, where a step that
// has no more axes than an operation may have is one operation, and any other one operation for each index of its outer
// axes. Packed: gather, operations and scatter one after the other, in pieces of staging_bytes_max; the time model is
// deliberately without overlap, so that packing is chosen only where it wins even so.
GatherChoice choose_gather(const LoweredPlan& lowered, const LoweredPair& pair, const TransportLimits& limits);

}  // namespace crossdock
