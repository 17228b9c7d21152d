// Steps: affine copies between two regions, the currency of every transport. A step keeps its strided form as long as a
// backend can use it; ByteRanges flattens it on demand.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace crossdock {

enum class StepEnd { kSource, kTarget };

struct CopyAxis {
  uint64_t extent;               // at least 2
  uint64_t source_stride_bytes;  // from one index to the next
  uint64_t target_stride_bytes;

  friend auto operator<=>(const CopyAxis&, const CopyAxis&) = default;
};

// Copies, for all indices 0 <= i_k < extent_k, the `bytes` at
//   source_offset + sum(i_k * source_stride_k)   of the source region   to
//   target_offset + sum(i_k * target_stride_k)   of the target region.
// No two of these byte ranges overlap on the target.
struct CopyStep {
  static constexpr size_t kAxisCountMax = 6;  // component, layer, page, row, head, dim

  uint32_t source_region = 0;  // numbers in the lists that go with the step
  uint32_t target_region = 0;
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t bytes = 0;                                  // contiguous on both sides; at least 1
  std::array<CopyAxis, kAxisCountMax> axis_list = {};  // outermost first; those past axis_count are zero
  uint32_t axis_count = 0;

  std::span<const CopyAxis> axes() const { return {axis_list.data(), axis_count}; }
  void push_axis(CopyAxis axis) {
    CHECK(axis_count < kAxisCountMax);
    axis_list[axis_count++] = axis;
  }
  // Contiguous ranges, and bytes in all. What a lowering made fits in 64 bits.
  uint64_t range_count() const {
    uint64_t count = 1;
    for (const CopyAxis& axis : axes()) count *= axis.extent;
    return count;
  }
  uint64_t total_bytes() const { return range_count() * bytes; }
  // From the first to one past the last byte that is touched.
  uint64_t source_span() const { return span_of(&CopyAxis::source_stride_bytes); }
  uint64_t target_span() const { return span_of(&CopyAxis::target_stride_bytes); }

  friend auto operator<=>(const CopyStep&, const CopyStep&) = default;

 private:
  uint64_t span_of(uint64_t CopyAxis::*stride) const {
    uint64_t reach = bytes;
    for (const CopyAxis& axis : axes()) reach += axis.*stride * (axis.extent - 1);
    return reach;
  }
};

// One contiguous piece of a step.
struct ByteCopy {
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t bytes = 0;

  friend auto operator<=>(const ByteCopy&, const ByteCopy&) = default;
};

// The contiguous pieces of a step, one after the other, the last axis fastest. The step outlives it.
class ByteRanges {
 public:
  explicit ByteRanges(const CopyStep& step) : step_(step) {
    at_ = {step.source_offset, step.target_offset, step.bytes};
  }

  // False when there is none left.
  bool next(ByteCopy& piece) {
    if (done_) return false;
    piece = at_;
    advance();
    return true;
  }

 private:
  void advance() {
    for (size_t k = step_.axis_count; k-- > 0;) {
      const CopyAxis& axis = step_.axis_list[k];
      if (++index_[k] < axis.extent) {
        at_.source_offset += axis.source_stride_bytes;
        at_.target_offset += axis.target_stride_bytes;
        return;
      }
      index_[k] = 0;
      at_.source_offset -= axis.source_stride_bytes * (axis.extent - 1);
      at_.target_offset -= axis.target_stride_bytes * (axis.extent - 1);
    }
    done_ = true;
  }

  const CopyStep& step_;
  ByteCopy at_;
  std::array<uint64_t, CopyStep::kAxisCountMax> index_ = {};
  bool done_ = false;
};

// What a step may not pass. A registration boundary lies at each multiple of `..._registration_bytes` of a region:
// where one region is registered in several pieces, no operation may cross from one into the next.
// All in bytes, but for the two counts. At least 1 each.
struct StepSplit {
  uint64_t bytes_max = UINT64_MAX;
  uint64_t range_count_max = UINT64_MAX;
  uint64_t source_registration_bytes = UINT64_MAX;
  uint64_t target_registration_bytes = UINT64_MAX;
  uint64_t step_count_max = uint64_t{1} << 22;  // that the list may have afterwards
};

// Appends the step, or the steps it is cut into so that each keeps to `split` (each member at least 1): first between
// indices of the outermost axis, at last within contiguous bytes. The same bytes are copied, each once. False when the
// list would have more than step_count_max; it is then of no use.
bool append_split(const CopyStep& step, const StepSplit& split, std::vector<CopyStep>& steps);

// Of one batch, which is one copy operation. By default a window (executor/window.h) holds as many batches as
// operations: with fewer, a source would serve few targets at a time.
struct BatchLimits {
  uint64_t step_count_max = 1024;
  uint64_t bytes_max = uint64_t{4} << 20;
};

// Cuts a list of steps, none of which has more than bytes_max, into consecutive batches that keep to the limits;
// returns one past the end of each. O(steps).
std::vector<size_t> batch_ends(std::span<const CopyStep> steps, const BatchLimits& limits);

}  // namespace crossdock
