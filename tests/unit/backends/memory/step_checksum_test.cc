// Checksums of steps against the bytes picked one by one.
#include "backends/memory/step_checksum.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "base/crc32c.h"

namespace crossdock {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counting(size_t count, uint8_t first) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + 3 * i);
  return bytes;
}

StepSpan span_of(std::vector<CopyStep> steps) {
  auto work = std::make_shared<CopyWork>();
  work->source_regions.resize(2);
  work->target_regions.resize(2);
  work->steps = std::move(steps);
  return StepSpan(std::move(work));
}

// Two rows of three pieces of two bytes, whose rows lie in another order at the target.
CopyStep two_axes(uint32_t source_region, uint32_t target_region) {
  CopyStep step;
  step.source_region = source_region;
  step.target_region = target_region;
  step.source_offset = 5;
  step.target_offset = 1;
  step.bytes = 2;
  step.push_axis(CopyAxis{2, 20, 3});
  step.push_axis(CopyAxis{3, 4, 7});
  return step;
}

class StepChecksum : public ::testing::Test {
 protected:
  BytesOfRegion regions() const {
    return [this](uint32_t region) -> Result<std::span<const std::byte>> {
      return std::span<const std::byte>(regions_[region]);
    };
  }
  const std::array<Bytes, 2> regions_ = {counting(40, 1), counting(30, 101)};
};

TEST_F(StepChecksum, IsThatOfThePiecesInOrderStepAfterStep) {
  const StepSpan steps = span_of({two_axes(0, 1), two_axes(1, 0)});
  Bytes sources, targets;
  for (const size_t region : {size_t{0}, size_t{1}})
    for (size_t row = 0; row < 2; ++row)
      for (size_t piece = 0; piece < 3; ++piece)
        for (size_t i = 0; i < 2; ++i) {
          const size_t source_at = 5 + 20 * row + 4 * piece + i;
          // The second step's source would leave its region; only the first is summed at that end.
          if (region == 0) sources.push_back(regions_[0][source_at]);
          targets.push_back(regions_[1 - region][1 + 3 * row + 7 * piece + i]);
        }
  EXPECT_EQ(checksum_steps(span_of({two_axes(0, 1)}), StepEnd::kSource, regions()).value(), crc32c(sources));
  EXPECT_EQ(checksum_steps(steps, StepEnd::kTarget, regions()).value(), crc32c(targets));
  EXPECT_EQ(checksum_steps(steps, StepEnd::kSource, regions()).status().code(), Code::kInvalidArgument);
}

TEST_F(StepChecksum, OfNoStepsIsZeroAndAsksForNoRegion) {
  const BytesOfRegion none = [](uint32_t) -> Result<std::span<const std::byte>> {
    return Status(Code::kNotFound, "no region");
  };
  EXPECT_EQ(checksum_steps(StepSpan(), StepEnd::kSource, none).value(), 0u);
  EXPECT_EQ(checksum_steps(span_of({two_axes(0, 1)}), StepEnd::kSource, none).status().code(), Code::kNotFound);
}

TEST_F(StepChecksum, AStepThatLeavesItsRegionIsRefusedAlsoWhenItPassesTheLastAddress) {
  CopyStep late = two_axes(0, 1);
  late.source_offset = regions_[0].size() - 30 + 1;  // the step spans 30 bytes at its source
  EXPECT_EQ(checksum_steps(span_of({late}), StepEnd::kSource, regions()).status().code(), Code::kInvalidArgument);
  --late.source_offset;
  EXPECT_TRUE(checksum_steps(span_of({late}), StepEnd::kSource, regions()).ok());
  CopyStep wrapping;
  wrapping.bytes = 5;
  wrapping.push_axis(CopyAxis{3, uint64_t{1} << 63, uint64_t{1} << 63});  // its span is 5, modulo 2^64
  for (const StepEnd end : {StepEnd::kSource, StepEnd::kTarget})
    EXPECT_EQ(checksum_steps(span_of({wrapping}), end, regions()).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace crossdock
