// Which bytes steps write, against a list of bytes.
#include "executor/written_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kBytes = 96;

CopyStep draw_step(Rng& rng) {
  CopyStep step;
  step.target_offset = rng.below(32);
  step.bytes = 1 + rng.below(4);
  for (uint64_t axes = rng.below(4); axes > 0; --axes) step.push_axis({2 + rng.below(2), 0, rng.below(12)});
  return step;
}

// How often each byte is written.
std::vector<int> counts_of(const std::vector<CopyStep>& steps) {
  std::vector<int> counts(4 * kBytes);
  for (const CopyStep& step : steps) {
    ByteRanges pieces(step);
    for (ByteCopy piece; pieces.next(piece);)
      for (uint64_t i = 0; i < piece.bytes; ++i) ++counts.at(piece.target_offset + i);
  }
  return counts;
}

std::vector<Range> ranges_of(const std::vector<bool>& bytes) {
  std::vector<Range> ranges;
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    if (!bytes[i]) continue;
    uint64_t end = i;
    while (end < bytes.size() && bytes[end]) ++end;
    ranges.emplace_back(i, end);
    i = end;
  }
  return ranges;
}

TEST(WrittenRanges, AreTheBytesThatTheStepsWrite) {
  Rng rng(1);
  size_t once = 0;
  for (int i = 0; i < 20000; ++i) {
    auto work = std::make_shared<CopyWork>();
    for (uint64_t count = rng.below(4); count > 0; --count) work->steps.push_back(draw_step(rng));
    const std::vector<int> counts = counts_of(work->steps);
    const auto twice = std::find_if(counts.begin(), counts.end(), [](int count) { return count > 1; });
    const Result<std::vector<Range>> ranges = written_ranges(StepSpan(work));
    ASSERT_EQ(ranges.ok(), twice == counts.end()) << "case " << i;
    if (!ranges.ok()) continue;
    ++once;
    ASSERT_EQ(ranges.value(), ranges_of(std::vector<bool>(counts.begin(), counts.end()))) << "case " << i;
  }
  EXPECT_GT(once, 2000u);
}

TEST(WrittenRanges, AreComparedJoinedAndCutByteForByte) {
  Rng rng(2);
  for (int i = 0; i < 20000; ++i) {
    std::vector<bool> a(kBytes);
    std::vector<bool> b(kBytes);
    std::optional<uint64_t> common;
    const uint64_t density = 1 + rng.below(9);
    for (uint64_t k = 0; k < kBytes; ++k) {
      a[k] = rng.chance(density, 10);
      b[k] = rng.chance(density, 10);
      if (a[k] && b[k] && !common) common = k;
    }
    ASSERT_EQ(first_common_byte(ranges_of(a), ranges_of(b)), common);
    std::vector<bool> rest(kBytes);
    std::vector<bool> both(kBytes);
    for (uint64_t k = 0; k < kBytes; ++k) {
      rest[k] = b[k] && !a[k];
      both[k] = a[k] || b[k];
    }
    ASSERT_EQ(joined(ranges_of(a), ranges_of(rest)), ranges_of(both));
    ASSERT_EQ(without(ranges_of(both), ranges_of(a)), ranges_of(rest));
  }
}

// Strides that fill a span exactly and still leave a hole: three times three single bytes, 2 apart each.
TEST(WrittenRanges, AFullSpanIsNoProofOfNoHole) {
  auto work = std::make_shared<CopyWork>();
  CopyStep step;
  step.bytes = 1;
  step.push_axis({3, 0, 2});
  step.push_axis({3, 0, 2});
  work->steps = {step};
  EXPECT_EQ(step.target_span(), step.total_bytes());
  EXPECT_EQ(written_ranges(StepSpan(work)).status(), Status(Code::kInvalidArgument, "byte 2 is written twice"));
}

}  // namespace
}  // namespace crossdock::testing
