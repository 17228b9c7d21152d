// Copies of steps, whole and in part, against each byte written out.
#include "backends/memory/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/copy_steps.h"
#include "tests/support/step_memory.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// ---- copy_step ----

TEST(CopyStepTo, EveryLengthAtEveryPlaceInALine) {
  const StepMemory world(make_step(64, 64, 600, {{2, 700, 640}}));
  for (uint64_t bytes = 1; bytes <= 600; bytes = bytes < 260 ? bytes + 1 : bytes + 41)
    for (uint64_t offset = 0; offset < 64; ++offset) {
      const CopyStep step = make_step(3, offset, bytes, {{2, 700, 640}});
      const StepBytes expected = naive_copy(step, world.source, world.target);
      ASSERT_EQ(copied_step(step, world.source, world.target, CopyStores::kCached), expected)
          << bytes << " at " << offset;
      ASSERT_EQ(copied_step(step, world.source, world.target, CopyStores::kStreaming), expected)
          << bytes << " at " << offset;
    }
}

TEST(CopyStepTo, RowsThatTouchOnBothSidesAreCopiedAsOnePiece) {
  const CopyStep step = make_step(5, 7, 30, {{2, 3000, 5000}, {100, 30, 30}});
  const StepMemory world(step);
  const StepBytes expected = naive_copy(step, world.source, world.target);
  EXPECT_EQ(copied_step(step, world.source, world.target, CopyStores::kCached), expected);
  EXPECT_EQ(copied_step(step, world.source, world.target, CopyStores::kStreaming), expected);
}

TEST(CopyStepToDeathTest, RefusesAStepThatDoesNotFit) {
  StepBytes source(100);
  StepBytes target(100);
  const CopyStep step = make_step(0, 0, 11, {{10, 10, 10}});
  EXPECT_DEATH(copy_step(step, source, target, CopyStores::kCached), "CHECK failed");
}

// ---- fits ----

TEST(Fits, BeyondFourGiB) {
  const CopyStep step = make_step(3 * kGiB, 5 * kGiB, kGiB, {{1000, 7 * kGiB, kGiB}, {2, 0, 1000 * kGiB}});
  EXPECT_TRUE(fits(step, (3 + 7 * 999 + 1) * kGiB, (5 + 2000) * kGiB));
  EXPECT_FALSE(fits(step, (3 + 7 * 999 + 1) * kGiB - 1, (5 + 2000) * kGiB));
  EXPECT_FALSE(fits(step, (3 + 7 * 999 + 1) * kGiB, (5 + 2000) * kGiB - 1));
  EXPECT_TRUE(fits(make_step(UINT64_MAX - 1, 0, 1, {}), UINT64_MAX, 1));
  EXPECT_FALSE(fits(make_step(UINT64_MAX, 0, 1, {}), UINT64_MAX, 1));
}

// ---- copy_step_within and touches ----

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
    const StepMemory world(step);
    for (const StepEnd end : kStepEnds) {
      const uint64_t size = end == StepEnd::kSource ? world.source.size() : end_of(step, end) + 2;
      for (uint64_t begin = 0; begin <= size; ++begin)
        for (uint64_t last = begin; last <= size; ++last) {
          const auto mistake = window_mistake(step, world, end, Range(begin, last));
          ASSERT_FALSE(mistake) << ::testing::PrintToString(step) << ": " << *mistake;
        }
    }
  }
}

// 2^51 pieces, of which the window has one to three: if the others were looked at, this would not end.
TEST(CopyStepWithin, SkipsWhatLiesOutsideTheWindow) {
  const uint64_t rows = uint64_t{1} << 31;
  const uint64_t begin = 1024 * rows * 3 + 1024 * (rows / 2);
  const StepBytes source = make_bytes(200, 1);
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

    StepBytes window(512);
    StepBytes expected(512);
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
}  // namespace crossdock::testing
