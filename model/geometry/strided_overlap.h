// Do sets of strided bytes share a byte? Exact, without walking through the bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace crossdock {

// `extent` indices, `stride_bytes` from one to the next.
struct StridedAxis {
  uint64_t stride_bytes;
  uint64_t extent;  // at least 2
};

// At most as many as a view has axes within one page: layer, row, head, dim.
class StridedAxes {
 public:
  static constexpr size_t kCountMax = 4;

  // At most kCountMax; more is a mistake of the caller.
  void push_back(StridedAxis axis) {
    CHECK(count_ < kCountMax);
    axes_[count_++] = axis;
  }
  void pop_back() { --count_; }
  void pop_front() {
    std::copy(begin() + 1, end(), begin());
    --count_;
  }
  bool empty() const { return count_ == 0; }
  const StridedAxis& front() const { return axes_.front(); }
  const StridedAxis& back() const { return axes_[count_ - 1]; }
  StridedAxis* begin() { return axes_.data(); }
  StridedAxis* end() { return axes_.data() + count_; }
  const StridedAxis* begin() const { return axes_.data(); }
  const StridedAxis* end() const { return axes_.data() + count_; }

 private:
  std::array<StridedAxis, kCountMax> axes_ = {};
  size_t count_ = 0;
};

// The bytes base + sum(i_k * stride_k) + [0, width) for all 0 <= i_k < extent_k. Nested: each stride is at least the
// span of everything inside it, so no byte is reached twice. The end of the set fits in 64 bits.
struct StridedBytes {
  uint64_t base = 0;
  StridedAxes axes;    // outermost (longest stride) first
  uint64_t width = 0;  // at least 1
  size_t owner = 0;    // the caller's

  // The bytes from base to the end of the last run.
  uint64_t span() const;
};

struct StridedOverlap {
  std::optional<std::pair<size_t, size_t>> owners;  // of two sets that share a byte; empty: none do
  bool complete = true;                             // false: stopped at the work limit without finding any
};

// Sweeps over the spans. Where spans interleave (packed [K|V] rows, heads of one row, layers of one page) and have the
// same outer stride, the sets are compared modulo that stride; else the longest axis is unrolled. `work_max` bounds the
// sets of all interleaving clusters, at each axis, and what is unrolled.
// Which of several overlaps is found is not said; equal inputs give the same one.
StridedOverlap find_overlap(std::vector<StridedBytes> sets, uint64_t work_max);

}  // namespace crossdock
