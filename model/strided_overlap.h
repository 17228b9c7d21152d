// Do sets of strided bytes share a byte? Exact, without walking through the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace crossdock {

struct StridedAxis {
  uint64_t stride_bytes;
  uint64_t extent;  // at least 2
};

// The bytes base + sum(i_k * stride_k) + [0, width) for all 0 <= i_k < extent_k. Nested: each stride is at least the
// span of everything inside it, so no byte is reached twice. The end of the set fits in 64 bits.
struct StridedBytes {
  uint64_t base = 0;
  std::vector<StridedAxis> axes;  // outermost (longest stride) first
  uint64_t width = 0;             // at least 1
  size_t owner = 0;               // the caller's

  // The bytes from base to the end of the last run.
  uint64_t span() const;
};

struct StridedOverlap {
  std::optional<std::pair<size_t, size_t>> owners;  // of two sets that share a byte; empty: none do
  bool complete = true;                             // false: stopped at the work limit without finding any
};

// Sweeps over the spans. Where spans interleave (packed [K|V] rows, heads of one row, layers of one page) and have the
// same outer stride, the sets are compared modulo that stride; else the longest axis is unrolled, for which `work_max`
// bounds the number of sets made.
StridedOverlap find_overlap(std::vector<StridedBytes> sets, uint64_t work_max);

}  // namespace crossdock
