// What is left of a step while it is taken apart: bytes along some axes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "planner/copy/steps.h"

namespace crossdock::shadow {

struct StepBlock {
  // The axes of a step, its bytes, and those that cutting adds (StepDecoder folds periods only while there is room).
  static constexpr size_t kAxesMax = 20;

  std::array<uint64_t, 2> offset = {};
  std::array<CopyAxis, kAxesMax> axes = {};  // outermost first
  size_t axis_count = 0;

  void push(CopyAxis axis) {
    CHECK(axis_count < kAxesMax);
    axes[axis_count++] = axis;
  }
  void erase(size_t axis) {
    std::copy(axes.begin() + static_cast<ptrdiff_t>(axis) + 1, axes.begin() + static_cast<ptrdiff_t>(axis_count),
              axes.begin() + static_cast<ptrdiff_t>(axis));
    --axis_count;
  }
  void insert(size_t at, CopyAxis axis) {
    CHECK(axis_count < kAxesMax);
    std::copy_backward(axes.begin() + static_cast<ptrdiff_t>(at), axes.begin() + static_cast<ptrdiff_t>(axis_count),
                       axes.begin() + static_cast<ptrdiff_t>(axis_count) + 1);
    axes[at] = axis;
    ++axis_count;
  }
  // An axis with one index is no axis: it is taken out.
  void set_extent(size_t axis, uint64_t extent) {
    if (extent == 1) return erase(axis);
    axes[axis].extent = extent;
  }
};

}  // namespace crossdock::shadow
