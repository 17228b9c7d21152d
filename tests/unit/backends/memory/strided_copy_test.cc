// Copies of steps, whole and in part, against each byte written out.
#include "backends/memory/strided_copy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace crossdock {

void PrintTo(const CopyStep& step, std::ostream* out) {
  *out << fmt::format("{} bytes {} -> {}", step.bytes, step.source_offset, step.target_offset);
  for (const CopyAxis& axis : step.axes())
    *out << fmt::format(" [{} by {} -> {}]", axis.extent, axis.source_stride_bytes, axis.target_stride_bytes);
}

namespace {

using Bytes = std::vector<std::byte>;
constexpr uint64_t kGiB = uint64_t{1} << 30;

CopyStep make_step(uint64_t source_offset, uint64_t target_offset, uint64_t bytes, const std::vector<CopyAxis>& axes) {
  CopyStep step;
  step.source_offset = source_offset;
  step.target_offset = target_offset;
  step.bytes = bytes;
  for (const CopyAxis& axis : axes) step.push_axis(axis);
  return step;
}

// ---- Definitions, index by index and byte by byte ----

// visit(source byte, target byte) for every byte of the step, from axis k on.
template <class Visit>
void naive_bytes(const CopyStep& step, size_t k, uint64_t source_at, uint64_t target_at, const Visit& visit) {
  if (k < step.axis_count) {
    const CopyAxis& axis = step.axis_list[k];
    for (uint64_t i = 0; i < axis.extent; ++i)
      naive_bytes(step, k + 1, source_at + i * axis.source_stride_bytes, target_at + i * axis.target_stride_bytes,
                  visit);
  } else {
    for (uint64_t i = 0; i < step.bytes; ++i) visit(source_at + i, target_at + i);
  }
}
template <class Visit>
void naive_bytes(const CopyStep& step, const Visit& visit) {
  naive_bytes(step, 0, step.source_offset, step.target_offset, visit);
}

// The target after a copy of what `chosen` says; the other bytes keep what they were.
template <class Chosen>
Bytes naive_copy(const CopyStep& step, const Bytes& source, Bytes target, const Chosen& chosen) {
  naive_bytes(step, [&](uint64_t from, uint64_t to) {
    if (chosen(from, to)) target[to] = source[from];
  });
  return target;
}
Bytes naive_copy(const CopyStep& step, const Bytes& source, Bytes target) {
  return naive_copy(step, source, std::move(target), [](uint64_t, uint64_t) { return true; });
}

uint64_t at_end(StepEnd end, uint64_t from, uint64_t to) { return end == StepEnd::kSource ? from : to; }

uint64_t naive_count(const CopyStep& step, StepEnd end, Range within) {
  uint64_t count = 0;
  naive_bytes(step, [&](uint64_t from, uint64_t to) {
    if (within.contains(at_end(end, from, to))) ++count;
  });
  return count;
}

// One past the last byte at an end, in arithmetic that cannot wrap.
__extension__ using Wide = unsigned __int128;
Wide naive_end(const CopyStep& step, StepEnd end) {
  Wide last = at_end(end, step.source_offset, step.target_offset);
  for (const CopyAxis& axis : step.axes())
    last += static_cast<Wide>(axis.extent - 1) * at_end(end, axis.source_stride_bytes, axis.target_stride_bytes);
  return last + step.bytes;
}

// ---- Random steps and their memory ----

uint64_t draw(uint64_t least, uint64_t most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint64_t>(least, most + 1));
}

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

// Bytes that differ from their neighbours and from those a row, a page and so on away.
Bytes make_bytes(uint64_t count, uint64_t seed) {
  Bytes bytes(count);
  for (uint64_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(((i + 1) * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03) >> 56);
  return bytes;
}
uint64_t end_of(const CopyStep& step, StepEnd end) { return static_cast<uint64_t>(naive_end(step, end)); }

// A source that ends with the step, and a target with a guard behind it; what lies before the offsets and between the
// pieces guards too.
struct World {
  explicit World(const CopyStep& step)
      : source(make_bytes(end_of(step, StepEnd::kSource), 1)),
        target(make_bytes(end_of(step, StepEnd::kTarget) + 70, 2)) {}
  Bytes source, target;
};

Bytes copied(const CopyStep& step, const Bytes& source, Bytes target, CopyStores stores) {
  copy_step(step, source, target, stores);
  return target;
}

// ---- copy_step ----

RC_GTEST_PROP(CopyStepTo, CopiesTheBytesOfTheStepAndNoOther, ()) {
  const CopyStep step = draw(0, 1) == 0 ? draw_step() : draw_long_step();
  const World world(step);
  const Bytes expected = naive_copy(step, world.source, world.target);
  RC_ASSERT(copied(step, world.source, world.target, CopyStores::kCached) == expected);
  RC_ASSERT(copied(step, world.source, world.target, CopyStores::kStreaming) == expected);
}

TEST(CopyStepTo, EveryLengthAtEveryPlaceInALine) {
  const World world(make_step(64, 64, 600, {{2, 700, 640}}));
  for (uint64_t bytes = 1; bytes <= 600; bytes = bytes < 260 ? bytes + 1 : bytes + 41)
    for (uint64_t offset = 0; offset < 64; ++offset) {
      const CopyStep step = make_step(3, offset, bytes, {{2, 700, 640}});
      const Bytes expected = naive_copy(step, world.source, world.target);
      ASSERT_EQ(copied(step, world.source, world.target, CopyStores::kCached), expected) << bytes << " at " << offset;
      ASSERT_EQ(copied(step, world.source, world.target, CopyStores::kStreaming), expected)
          << bytes << " at " << offset;
    }
}

TEST(CopyStepTo, RowsThatTouchOnBothSidesAreCopiedAsOnePiece) {
  const CopyStep step = make_step(5, 7, 30, {{2, 3000, 5000}, {100, 30, 30}});
  const World world(step);
  const Bytes expected = naive_copy(step, world.source, world.target);
  EXPECT_EQ(copied(step, world.source, world.target, CopyStores::kCached), expected);
  EXPECT_EQ(copied(step, world.source, world.target, CopyStores::kStreaming), expected);
}

TEST(CopyStepToDeathTest, RefusesAStepThatDoesNotFit) {
  Bytes source(100);
  Bytes target(100);
  const CopyStep step = make_step(0, 0, 11, {{10, 10, 10}});
  EXPECT_DEATH(copy_step(step, source, target, CopyStores::kCached), "CHECK failed");
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

TEST(Fits, BeyondFourGiB) {
  const CopyStep step = make_step(3 * kGiB, 5 * kGiB, kGiB, {{1000, 7 * kGiB, kGiB}, {2, 0, 1000 * kGiB}});
  EXPECT_TRUE(fits(step, (3 + 7 * 999 + 1) * kGiB, (5 + 2000) * kGiB));
  EXPECT_FALSE(fits(step, (3 + 7 * 999 + 1) * kGiB - 1, (5 + 2000) * kGiB));
  EXPECT_FALSE(fits(step, (3 + 7 * 999 + 1) * kGiB, (5 + 2000) * kGiB - 1));
  EXPECT_TRUE(fits(make_step(UINT64_MAX - 1, 0, 1, {}), UINT64_MAX, 1));
  EXPECT_FALSE(fits(make_step(UINT64_MAX, 0, 1, {}), UINT64_MAX, 1));
}

// ---- copy_step_within and touches ----

constexpr StepEnd kEnds[] = {StepEnd::kSource, StepEnd::kTarget};

// Copies within a window that is cut out of the memory of its end, and puts the target together again.
struct WindowResult {
  uint64_t count;
  Bytes target;
};
WindowResult copy_window(const CopyStep& step, StepEnd end, Range within, const Bytes& source, Bytes target) {
  const Bytes& whole = end == StepEnd::kSource ? source : target;
  Bytes window(whole.begin() + static_cast<ptrdiff_t>(within.begin()),
               whole.begin() + static_cast<ptrdiff_t>(within.end()));
  if (end == StepEnd::kSource) {
    const uint64_t count = copy_step_within(step, end, within, window, target);
    return {count, std::move(target)};
  }
  const uint64_t count = copy_step_within(step, end, within, source, window);
  std::copy(window.begin(), window.end(), target.begin() + static_cast<ptrdiff_t>(within.begin()));
  return {count, std::move(target)};
}

std::optional<std::string> window_mistake(const CopyStep& step, const World& world, StepEnd end, Range within) {
  const uint64_t count = naive_count(step, end, within);
  const WindowResult result = copy_window(step, end, within, world.source, world.target);
  const Bytes expected = naive_copy(step, world.source, world.target,
                                    [&](uint64_t from, uint64_t to) { return within.contains(at_end(end, from, to)); });
  const bool is_touched = touches(step, end, within);
  if (result.count == count && result.target == expected && is_touched == (count > 0)) return std::nullopt;
  return fmt::format("{} [{}, {}): {} bytes, expected {}; touches: {}", end == StepEnd::kSource ? "source" : "target",
                     within.begin(), within.end(), result.count, count, is_touched);
}

RC_GTEST_PROP(CopyStepWithin, CopiesWhatLiesInTheWindowAndNothingElse, ()) {
  const CopyStep step = draw(0, 4) == 0 ? draw_long_step() : draw_step();
  const World world(step);
  for (const StepEnd end : kEnds) {
    const uint64_t size = end == StepEnd::kSource ? world.source.size() : world.target.size();
    const uint64_t begin = draw(0, size);
    const Range within(begin, std::min(size, begin + draw(0, draw(0, 1) == 0 ? 20 : size)));
    const auto mistake = window_mistake(step, world, end, within);
    if (mistake) RC_FAIL(*mistake);
  }
}

// All windows of some small steps of each kind: nested, interleaved on either side, overlapping on the source, standing
// still on the source, a single piece, six axes.
TEST(CopyStepWithin, AllWindowsOfSmallSteps) {
  const std::vector<CopyStep> steps = {
      make_step(3, 2, 7, {}),
      make_step(1, 2, 3, {{3, 5, 4}}),
      make_step(0, 1, 2, {{3, 2, 9}, {3, 6, 2}}),
      make_step(2, 0, 2, {{2, 9, 2}, {4, 2, 5}}),
      make_step(2, 3, 1, {{3, 3, 2}, {2, 2, 3}}),
      make_step(1, 1, 4, {{4, 1, 5}}),
      make_step(1, 1, 2, {{3, 0, 6}, {2, 3, 3}}),
      make_step(0, 0, 1, {{2, 0, 1}, {2, 1, 2}, {2, 2, 4}, {2, 3, 8}, {2, 0, 16}, {2, 1, 32}}),
  };
  for (const CopyStep& step : steps) {
    const World world(step);
    for (const StepEnd end : kEnds) {
      const uint64_t size = end == StepEnd::kSource ? world.source.size() : end_of(step, end) + 2;
      for (uint64_t begin = 0; begin <= size; ++begin)
        for (uint64_t last = begin; last <= size; ++last) {
          const auto mistake = window_mistake(step, world, end, Range(begin, last));
          ASSERT_FALSE(mistake) << testing::PrintToString(step) << ": " << *mistake;
        }
    }
  }
}

RC_GTEST_PROP(CopyStepWithin, WindowsThatDivideAnEndCopyTheWholeStep, ()) {
  const CopyStep step = draw_step();
  const World world(step);
  const Bytes expected = naive_copy(step, world.source, world.target);
  for (const StepEnd end : kEnds) {
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

// 2^51 pieces, of which the window has one to three: if the others were looked at, this would not end.
TEST(CopyStepWithin, SkipsWhatLiesOutsideTheWindow) {
  const uint64_t rows = uint64_t{1} << 31;
  const uint64_t begin = 1024 * rows * 3 + 1024 * (rows / 2);
  const Bytes source = make_bytes(200, 1);
  const CopyAxis page = {1 << 18, 0, 1024 * rows};  // a source that stands still, so that it needs no memory
  const CopyAxis row = {rows, 0, 1024};
  const CopyAxis head = {4, 0, 256};
  for (const std::vector<CopyAxis>& axes :
       {std::vector<CopyAxis>{page, row, head}, std::vector<CopyAxis>{head, row, page}}) {
    const CopyStep step = make_step(0, 100, 200, axes);
    EXPECT_TRUE(touches(step, StepEnd::kTarget, Range(begin + 99, begin + 101)));
    EXPECT_FALSE(touches(step, StepEnd::kTarget, Range(begin + 44, begin + 100)));
    EXPECT_FALSE(touches(step, StepEnd::kTarget, Range(begin + 300, begin + 356)));
    EXPECT_TRUE(touches(step, StepEnd::kSource, Range(199, 1000)));
    EXPECT_FALSE(touches(step, StepEnd::kSource, Range(200, 1000)));

    Bytes window(512);
    Bytes expected(512);
    std::copy(source.begin() + 156, source.end(), expected.begin());  // the end of the last head of the row before
    std::copy(source.begin(), source.end(), expected.begin() + 100);
    std::copy(source.begin(), source.begin() + 156, expected.begin() + 356);
    EXPECT_EQ(copy_step_within(step, StepEnd::kTarget, Range(begin, begin + 512), source, window), 44U + 200 + 156);
    EXPECT_EQ(window, expected);
  }
}

TEST(Touches, BeyondFourGiB) {
  const CopyStep step = make_step(3 * kGiB, 5 * kGiB, 1000, {{3, 7 * kGiB, kGiB}, {2, 5, 100 * kGiB}});
  EXPECT_TRUE(touches(step, StepEnd::kSource, Range(17 * kGiB + 1004, 18 * kGiB)));
  EXPECT_FALSE(touches(step, StepEnd::kSource, Range(17 * kGiB + 1005, UINT64_MAX)));
  EXPECT_FALSE(touches(step, StepEnd::kSource, Range(3 * kGiB + 1005, 10 * kGiB)));
  EXPECT_TRUE(touches(step, StepEnd::kTarget, Range(106 * kGiB + 999, 106 * kGiB + 1000)));
  EXPECT_FALSE(touches(step, StepEnd::kTarget, Range(106 * kGiB + 1000, 107 * kGiB)));
  EXPECT_TRUE(touches(step, StepEnd::kTarget, Range(0, UINT64_MAX)));
  EXPECT_FALSE(touches(step, StepEnd::kTarget, Range(5 * kGiB, 5 * kGiB)));
}

TEST(ChooseStores, StreamsWhatIsLongAndLarge) {
  EXPECT_EQ(choose_stores(128, 8 << 20), CopyStores::kStreaming);
  EXPECT_EQ(choose_stores(127, UINT64_MAX), CopyStores::kCached);
  EXPECT_EQ(choose_stores(UINT64_MAX, (8 << 20) - 1), CopyStores::kCached);
}

}  // namespace
}  // namespace crossdock
