// What a transport can do and what its operations cost: planners and executors split, batch and pack by it.
#pragma once

#include <cstdint>

namespace crossdock {

// What a transport says of itself. Costs are those of one endpoint; 0 bytes per second means without limit.
// A value, not a promise: time estimates use it to choose, and a limit of bytes or axes is kept by cutting steps before
// they are posted.
struct TransportLimits {
  uint64_t operation_ns = 0;                  // to post and complete one operation
  uint64_t strided_axis_count_max = 0;        // axes that one operation may have; 0: contiguous ranges only
  uint64_t bandwidth_bytes_per_s = 0;         // of the link
  uint64_t gather_bytes_per_s = 0;            // at which pieces are copied to or from staging memory
  uint64_t gather_piece_ns = 0;               // for each contiguous piece, besides its bytes
  uint64_t staging_bytes_max = 0;             // at each end; 0: there is none, so nothing is packed
  uint64_t operation_bytes_max = UINT64_MAX;  // at least 1

  friend bool operator==(const TransportLimits&, const TransportLimits&) = default;
};

}  // namespace crossdock
