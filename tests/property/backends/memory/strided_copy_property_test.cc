// Copies of random steps and of random windows of them, against a copy byte by byte.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "backends/memory/strided_copy.h"
#include "tests/support/copy_steps.h"
#include "tests/support/draw.h"
#include "tests/support/step_memory.h"

namespace crossdock::testing {
namespace {

// ---- Random steps and their memory ----

// Axes in any order. On the target each is longer than what lies inside it, by a gap or none; on the source anything
// goes: axes that overlap, that interleave, and that stand still.
std::vector<CopyAxis> draw_axes(uint64_t axis_count, uint64_t extent_max, uint64_t bytes) {
  uint64_t span = bytes;
  uint64_t source_span = bytes;
  std::vector<CopyAxis> axes;
  for (uint64_t i = 0; i < axis_count; ++i) {
    const uint64_t extent = draw(2, extent_max);
    const uint64_t target_stride = span + draw(0, 1) * draw(0, 3 + bytes);
    const uint64_t source_stride = draw(0, 2) == 0 ? draw(0, 40) : source_span + draw(0, 1) * draw(0, 3 + bytes);
    axes.push_back(CopyAxis{extent, source_stride, target_stride});
    span += target_stride * (extent - 1);
    source_span += source_stride * (extent - 1);
  }
  for (size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[draw(0, i - 1)]);
  return axes;
}

CopyStep draw_small_step() {
  const uint64_t bytes = draw(1, 9);
  const uint64_t axis_count = draw(0, 9) == 0 ? draw(4, CopyStep::kAxisCountMax) : draw(0, 3);
  return make_step(draw(0, 70), draw(0, 70), bytes, draw_axes(axis_count, axis_count > 3 ? 2 : 5, bytes));
}

// On the target the pieces of one axis lie between those of another: even multiples of the length, and odd ones.
CopyStep draw_interleaved_step() {
  const uint64_t bytes = draw(1, 5);
  const uint64_t extent = draw(2, 5);
  const CopyAxis even = {extent, draw(0, 30), 2 * bytes};
  const CopyAxis odd = {2, draw(0, 30), (2 * draw(0, extent) + 1) * bytes};
  const CopyAxis outer = {2, draw(0, 90), 6 * extent * bytes};
  std::vector<CopyAxis> axes = {even, odd, outer};
  std::swap(axes[0], axes[draw(0, 2)]);
  return make_step(draw(0, 70), draw(0, 70), bytes, axes);
}

CopyStep draw_step() { return draw(0, 3) == 0 ? draw_interleaved_step() : draw_small_step(); }

// Pieces that go through each of the inner loops, a little more or less than whole lines, at any alignment.
CopyStep draw_long_step() {
  constexpr uint64_t kLengths[] = {64, 128, 192, 256, 512, 1024, 4096};
  const uint64_t length = kLengths[draw(0, std::size(kLengths) - 1)];
  const uint64_t bytes = draw(0, 1) == 0 ? length : length + draw(0, 130) - 60;
  const uint64_t axis_count = draw(0, 2);
  std::vector<CopyAxis> axes = draw_axes(axis_count, axis_count == 1 ? 20 : 4, bytes);
  if (draw(0, 1) == 0)  // all pieces alike in the lines of the target
    for (CopyAxis& axis : axes) axis.target_stride_bytes = (axis.target_stride_bytes + 63) / 64 * 64;
  if (axis_count == 2) {  // what was rounded up may have become shorter than what lies inside it
    CopyAxis& inner = axes[0].target_stride_bytes < axes[1].target_stride_bytes ? axes[0] : axes[1];
    CopyAxis& outer = &inner == &axes[0] ? axes[1] : axes[0];
    outer.target_stride_bytes = std::max(outer.target_stride_bytes, inner.target_stride_bytes * inner.extent);
  }
  return make_step(draw(0, 1) * draw(0, 200), draw(0, 1) * draw(0, 200), bytes, axes);
}

// ---- copy_step ----

RC_GTEST_PROP(CopyStepTo, CopiesTheBytesOfTheStepAndNoOther, ()) {
  const CopyStep step = draw(0, 1) == 0 ? draw_step() : draw_long_step();
  const StepMemory world(step);
  const StepBytes expected = naive_copy(step, world.source, world.target);
  RC_ASSERT(copied_step(step, world.source, world.target, CopyStores::kCached) == expected);
  RC_ASSERT(copied_step(step, world.source, world.target, CopyStores::kStreaming) == expected);
}

// ---- fits ----

RC_GTEST_PROP(Fits, ExactlyUpToTheLastByteOfEachEnd, ()) {
  const CopyStep step = draw_step();
  const uint64_t source_end = end_of(step, StepEnd::kSource);
  const uint64_t target_end = end_of(step, StepEnd::kTarget);
  RC_ASSERT(fits(step, source_end, target_end));
  RC_ASSERT(!fits(step, source_end - 1, target_end));
  RC_ASSERT(!fits(step, source_end, target_end - 1));
  RC_ASSERT(fits(step, UINT64_MAX, UINT64_MAX));
}

// Numbers near 2^64 and near the roots that make a product pass it.
uint64_t draw_large() {
  const uint64_t near = draw(0, 4);
  const uint64_t power = uint64_t{1} << draw(0, 63);
  return draw(0, 1) == 0 ? power - near : power + near;
}

RC_GTEST_PROP(Fits, NoStepThatPassesTheLastNumber, ()) {
  std::vector<CopyAxis> axes(draw(0, 3));
  for (CopyAxis& axis : axes) axis = {std::max<uint64_t>(2, draw_large()), draw_large(), draw_large()};
  const CopyStep step = make_step(draw_large(), draw_large(), std::max<uint64_t>(1, draw_large()), axes);
  const uint64_t source_bytes = draw(0, 1) == 0 ? UINT64_MAX : draw_large();
  const uint64_t target_bytes = draw(0, 1) == 0 ? UINT64_MAX : draw_large();
  RC_ASSERT(fits(step, source_bytes, target_bytes) ==
            (naive_end(step, StepEnd::kSource) <= source_bytes && naive_end(step, StepEnd::kTarget) <= target_bytes));
}

// ---- copy_step_within and touches ----

RC_GTEST_PROP(CopyStepWithin, CopiesWhatLiesInTheWindowAndNothingElse, ()) {
  const CopyStep step = draw(0, 4) == 0 ? draw_long_step() : draw_step();
  const StepMemory world(step);
  for (const StepEnd end : kStepEnds) {
    const uint64_t size = end == StepEnd::kSource ? world.source.size() : world.target.size();
    const uint64_t begin = draw(0, size);
    const Range within(begin, std::min(size, begin + draw(0, draw(0, 1) == 0 ? 20 : size)));
    const auto mistake = window_mistake(step, world, end, within);
    if (mistake) RC_FAIL(*mistake);
  }
}

RC_GTEST_PROP(CopyStepWithin, WindowsThatDivideAnEndCopyTheWholeStep, ()) {
  const CopyStep step = draw_step();
  const StepMemory world(step);
  const StepBytes expected = naive_copy(step, world.source, world.target);
  for (const StepEnd end : kStepEnds) {
    const uint64_t size = end == StepEnd::kSource ? world.source.size() : world.target.size();
    const uint64_t window_bytes = draw(1, 60);
    WindowResult all = {0, world.target};
    for (uint64_t begin = 0; begin < size; begin += window_bytes) {
      WindowResult part = copy_window(step, end, Range(begin, std::min(begin + window_bytes, size)), world.source,
                                      std::move(all.target));
      all = {all.count + part.count, std::move(part.target)};
    }
    RC_ASSERT(all.target == expected);
    RC_ASSERT(all.count == step.total_bytes());
  }
}

}  // namespace
}  // namespace crossdock::testing
