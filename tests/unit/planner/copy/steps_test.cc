// Strided steps, their contiguous pieces, their cuts and their batches: examples, and the largest numbers.
#include "planner/copy/steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "tests/support/byte_ranges.h"
#include "tests/support/copy_steps.h"

namespace crossdock {

void PrintTo(const ByteCopy& piece, std::ostream* out) {
  *out << fmt::format("{} bytes {} -> {}", piece.bytes, piece.source_offset, piece.target_offset);
}

}  // namespace crossdock

namespace crossdock::testing {
namespace {

constexpr uint64_t kStepMiB = uint64_t{1} << 20;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// ---- Random steps ----

TEST(ByteRanges, TwoRowsOfTwoHeads) {
  // Rows 100 apart with heads 10 apart become heads 1000 apart with rows 10 apart.
  const CopyStep step = make_step(7, 20, 10, {{2, 10, 1000}, {2, 100, 10}});
  EXPECT_EQ(ranges_of(step), (std::vector<ByteCopy>{{7, 20, 10}, {107, 30, 10}, {17, 1020, 10}, {117, 1030, 10}}));
  EXPECT_EQ(ranges_of(make_step(7, 20, 10, {})), (std::vector<ByteCopy>{{7, 20, 10}}));
}

// ---- append_split ----

std::vector<CopyStep> split_of(const CopyStep& step, const StepSplit& split) {
  std::vector<CopyStep> pieces;
  append_split(step, split, pieces);
  return pieces;
}

StepSplit registered_in(uint64_t source_bytes, uint64_t target_bytes) {
  return StepSplit{UINT64_MAX, UINT64_MAX, source_bytes, target_bytes};
}

// Case U66: a device registers 2 GiB at most; a buffer of 5 GiB was registered in part and advertised whole. It has
// three registrations.
TEST(AppendSplit, FiveGibibytesAreCutAtEachMultipleOfTwo) {
  const CopyStep whole = make_step(0, 0, 5 * kGiB, {});
  const std::vector<CopyStep> three = {make_step(0, 0, 2 * kGiB, {}), make_step(2 * kGiB, 2 * kGiB, 2 * kGiB, {}),
                                       make_step(4 * kGiB, 4 * kGiB, kGiB, {})};
  EXPECT_EQ(split_of(whole, registered_in(2 * kGiB, UINT64_MAX)), three);
  EXPECT_EQ(split_of(whole, registered_in(UINT64_MAX, 2 * kGiB)), three);
  EXPECT_EQ(split_of(whole, registered_in(2 * kGiB, 2 * kGiB)), three);
  EXPECT_EQ(split_of(whole, registered_in(5 * kGiB, 8 * kGiB)), std::vector<CopyStep>{whole});
}

TEST(AppendSplit, BoundariesOfBothSidesCutWhereTheyDoNotCoincide) {
  // Source [1,6) GiB in pieces of 2 is cut at 2 and 4; target [0.5,5.5) GiB in pieces of 3 at 3, which is 3.5 there.
  const CopyStep step = make_step(kGiB, kGiB / 2, 5 * kGiB, {});
  EXPECT_EQ(split_of(step, registered_in(2 * kGiB, 3 * kGiB)),
            (std::vector<CopyStep>{
                make_step(kGiB, kGiB / 2, kGiB, {}), make_step(2 * kGiB, 3 * kGiB / 2, 3 * kGiB / 2, {}),
                make_step(7 * kGiB / 2, 3 * kGiB, kGiB / 2, {}), make_step(4 * kGiB, 7 * kGiB / 2, 2 * kGiB, {})}));
}

TEST(AppendSplit, PagesAreCutBetweenRegistrationsAndOneThatLiesAcrossWithin) {
  // 4 pages of 768 MiB, 1 GiB apart from 512 MiB on: the 2nd lies across 2 GiB, the 4th across 4 GiB.
  const uint64_t page = 768 * kStepMiB;
  const CopyStep step = make_step(512 * kStepMiB, 0, page, {{4, kGiB, page}});
  EXPECT_EQ(
      split_of(step, registered_in(2 * kGiB, UINT64_MAX)),
      (std::vector<CopyStep>{
          make_step(512 * kStepMiB, 0, page, {}), make_step(1536 * kStepMiB, page, 512 * kStepMiB, {}),
          make_step(2 * kGiB, page + 512 * kStepMiB, 256 * kStepMiB, {}),
          make_step(2560 * kStepMiB, 2 * page, page, {}), make_step(3584 * kStepMiB, 3 * page, 512 * kStepMiB, {}),
          make_step(4 * kGiB, 3 * page + 512 * kStepMiB, 256 * kStepMiB, {})}));
}

TEST(AppendSplit, CutsTheOutermostAxisAndKeepsTheInnerOnes) {
  // 10 layers of 4 rows of 8 bytes; 3 layers have 12 ranges and 96 bytes.
  const auto layers = [](uint64_t first, std::vector<CopyAxis> axes) {
    return make_step(first * 1000, first * 40, 8, axes);
  };
  const CopyAxis rows = {4, 100, 10};
  const CopyStep step = layers(0, {{10, 1000, 40}, rows});
  const std::vector<CopyStep> by_three = {layers(0, {{3, 1000, 40}, rows}), layers(3, {{3, 1000, 40}, rows}),
                                          layers(6, {{3, 1000, 40}, rows}), layers(9, {rows})};
  EXPECT_EQ(split_of(step, StepSplit{UINT64_MAX, 15, UINT64_MAX, UINT64_MAX}), by_three);
  EXPECT_EQ(split_of(step, StepSplit{127, UINT64_MAX, UINT64_MAX, UINT64_MAX}), by_three);
  // Of 4 rows only 3 fit: each layer is cut, and what is left of it does not join with the next.
  EXPECT_EQ(split_of(step, StepSplit{UINT64_MAX, 3, UINT64_MAX, UINT64_MAX}).size(), 20u);
  // Not even one row fits: each of 40 is two pieces.
  EXPECT_EQ(split_of(step, StepSplit{5, UINT64_MAX, UINT64_MAX, UINT64_MAX}).size(), 80u);
}

// Case U73: strides whose product with a page number passes 32 bits, at a base past 2^40.
TEST(AppendSplit, OffsetsPastThirtyTwoAndFortyBitsStayExact) {
  const uint64_t base = uint64_t{1} << 40;
  const CopyStep step = make_step(base, base + 5, 4096, {{5000, 1'039'680, 1'002'240}});
  const std::vector<CopyStep> halves = split_of(step, StepSplit{UINT64_MAX, 2500, UINT64_MAX, UINT64_MAX});
  EXPECT_EQ(halves, (std::vector<CopyStep>{make_step(base, base + 5, 4096, {{2500, 1'039'680, 1'002'240}}),
                                           make_step(base + 2'599'200'000, base + 5 + 2'505'600'000, 4096,
                                                     {{2500, 1'039'680, 1'002'240}})}));
}

TEST(AppendSplit, WorkFollowsThePiecesAndNotTheRanges) {
  const uint64_t extent = uint64_t{1} << 40;
  const CopyStep step = make_step(0, 0, 1, {{extent, 2, 3}});
  const std::vector<CopyStep> pieces = split_of(step, StepSplit{UINT64_MAX, extent / 2 - 1, UINT64_MAX, UINT64_MAX});
  EXPECT_EQ(pieces, (std::vector<CopyStep>{make_step(0, 0, 1, {{extent / 2 - 1, 2, 3}}),
                                           make_step(extent - 2, 3 * (extent / 2 - 1), 1, {{extent / 2 - 1, 2, 3}}),
                                           make_step(2 * extent - 4, 3 * (extent - 2), 1, {{2, 2, 3}})}));
}

TEST(AppendSplitDeathTest, ALimitOfNothingIsAMistakeOfTheCaller) {
  std::vector<CopyStep> pieces;
  EXPECT_DEATH(append_split(make_step(0, 0, 8, {}), StepSplit{.bytes_max = 0}, pieces), "");
  EXPECT_DEATH(append_split(make_step(0, 0, 8, {}), StepSplit{.range_count_max = 0}, pieces), "");
  EXPECT_DEATH(append_split(make_step(0, 0, 8, {}), registered_in(0, 1), pieces), "");
  EXPECT_DEATH(append_split(make_step(0, 0, 8, {}), registered_in(1, 0), pieces), "");
}

// ---- batch_ends ----

TEST(BatchEnds, ByCountByBytesAndByTheDefaults) {
  const CopyStep ten = make_step(0, 0, 5, {{2, 8, 8}});
  const std::vector<CopyStep> steps(7, ten);
  EXPECT_EQ(batch_ends(steps, BatchLimits{3, 1000}), (std::vector<size_t>{3, 6, 7}));
  EXPECT_EQ(batch_ends(steps, BatchLimits{100, 29}), (std::vector<size_t>{2, 4, 6, 7}));
  EXPECT_EQ(batch_ends(steps, BatchLimits{100, 10}), (std::vector<size_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(batch_ends(steps, BatchLimits()), (std::vector<size_t>{7}));
  EXPECT_EQ(batch_ends({}, BatchLimits()), (std::vector<size_t>{}));
  // 4 MiB and 1,024 steps.
  EXPECT_EQ(batch_ends(std::vector<CopyStep>(5, make_step(0, 0, 3 * kStepMiB / 2, {})), BatchLimits()),
            (std::vector<size_t>{2, 4, 5}));
  EXPECT_EQ(batch_ends(std::vector<CopyStep>(1025, ten), BatchLimits()), (std::vector<size_t>{1024, 1025}));
}

TEST(BatchEnds, SumsPastSixtyFourBitsDoNotWrap) {
  const std::vector<CopyStep> steps(3, make_step(0, 0, uint64_t{1} << 63, {}));
  EXPECT_EQ(batch_ends(steps, BatchLimits{100, UINT64_MAX}), (std::vector<size_t>{1, 2, 3}));
}

TEST(BatchEndsDeathTest, AStepThatIsTooLongHasToBeSplitBefore) {
  const std::vector<CopyStep> steps(1, make_step(0, 0, 11, {}));
  EXPECT_DEATH((void)batch_ends(steps, BatchLimits{100, 10}), "");
  EXPECT_DEATH((void)batch_ends(steps, BatchLimits{0, 100}), "");
}

}  // namespace
}  // namespace crossdock::testing
