// Direct or packed: the counts and times of plans small enough to reckon by hand, the cases from the field that count
// descriptors, and random limits against operations cut one by one.
#include "planner/copy/gather.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "planner/kv/bound_side.h"
#include "tests/support/builders.h"
#include "tests/support/lowered_rows.h"

namespace crossdock {

void PrintTo(const TransferCost& cost, std::ostream* out) {
  *out << fmt::format("{} operations, {} pieces, {} bytes staged, {} ns", cost.operations, cost.pieces,
                      cost.staging_bytes, cost.time_ns);
}

void PrintTo(const StepCounts& counts, std::ostream* out) {
  *out << fmt::format("{} bytes, {} head rows, {} planned, {} steps, {} ranges", counts.bytes, counts.row_pieces,
                      counts.steps_planned, counts.steps, counts.ranges);
}

}  // namespace crossdock

namespace crossdock::testing {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// ---- Documents ----

uint64_t direct_operations(const LoweredPlan& lowered, uint64_t axis_count_max,
                           uint64_t operation_bytes_max = UINT64_MAX) {
  TransportLimits limits;
  limits.strided_axis_count_max = axis_count_max;
  limits.operation_bytes_max = operation_bytes_max;
  return choose_between(lowered, limits).direct.operations;
}

// ---- Operations ----

TEST(ChooseGather, AStepIsOneOperationForEachIndexOfTheAxesThatAnOperationCannotHave) {
  const LoweredPlan lowered = token_major_to_head_major();
  EXPECT_EQ(lowered.counts(),
            (StepCounts{.bytes = 12288, .row_pieces = 96, .steps_planned = 1, .steps = 1, .ranges = 96}));
  EXPECT_EQ(direct_operations(lowered, 0), 96u);
  EXPECT_EQ(direct_operations(lowered, 1), 12u);
  EXPECT_EQ(direct_operations(lowered, 2), 3u);
  EXPECT_EQ(direct_operations(lowered, 3), 1u);
  EXPECT_EQ(direct_operations(lowered, 100), 1u);
}

TEST(ChooseGather, AnOperationOfTooManyBytesIsCutBetweenIndicesAndAtLastWithinARange) {
  const LoweredPlan lowered = token_major_to_head_major();
  // 2 of 3 layers of 4,096 bytes fit; 1; of each layer 2 of 4 heads of 1,024; 1.
  EXPECT_EQ(direct_operations(lowered, 3, 8192), 2u);
  EXPECT_EQ(direct_operations(lowered, 3, 8191), 3u);
  EXPECT_EQ(direct_operations(lowered, 3, 2048), 6u);
  EXPECT_EQ(direct_operations(lowered, 3, 1500), 12u);
  // Of each head 7 of 8 rows of 128 bytes fit; of each row 100 bytes.
  EXPECT_EQ(direct_operations(lowered, 3, 1000), 24u);
  EXPECT_EQ(direct_operations(lowered, 3, 100), 192u);
  // Layers cannot be in one operation, or nothing can.
  EXPECT_EQ(direct_operations(lowered, 2, 8192), 3u);
  EXPECT_EQ(direct_operations(lowered, 2, 2048), 6u);
  EXPECT_EQ(direct_operations(lowered, 0, 128), 96u);
  EXPECT_EQ(direct_operations(lowered, 0, 127), 192u);
}

TEST(ChooseGather, WithoutStagingNothingIsPacked) {
  const LoweredPlan lowered = scattered_pages(50);
  const TransportLimits limits{.operation_ns = 1000, .bandwidth_bytes_per_s = 1'000'000'000};
  const GatherChoice choice = choose_between(lowered, limits);
  EXPECT_EQ(choice.bytes, 50'000u);
  EXPECT_EQ(choice.direct, (TransferCost{.operations = 50, .time_ns = 50 * 1000 + 50'000}));
  EXPECT_EQ(choice.packed, TransferCost());
  EXPECT_FALSE(choice.pack);
}

// Case U70: a copy of 9 MiB in staging buffers of 4 MiB was wrong behind the first buffer.
TEST(ChooseGather, NineMebibytesAreThreeBuffersOfFour) {
  const LoweredPlan lowered = contiguous(9 * 1024, 1024);
  TransportLimits limits{.staging_bytes_max = 4 * kMiB};
  EXPECT_EQ(choose_between(lowered, limits).direct.operations, 1u);
  EXPECT_EQ(choose_between(lowered, limits).packed,
            (TransferCost{.operations = 3, .pieces = 2, .staging_bytes = 4 * kMiB, .time_ns = 0}));
  limits.operation_bytes_max = 3 * kMiB;  // 3 + 3 + 3 directly; (3 + 1) + (3 + 1) + 1 packed
  EXPECT_EQ(choose_between(lowered, limits).direct.operations, 3u);
  EXPECT_EQ(choose_between(lowered, limits).packed.operations, 5u);
  limits.operation_bytes_max = kMiB;
  EXPECT_EQ(choose_between(lowered, limits).direct.operations, 9u);
  EXPECT_EQ(choose_between(lowered, limits).packed.operations, 9u);
  limits = TransportLimits{.staging_bytes_max = 3 * kMiB};
  EXPECT_EQ(choose_between(lowered, limits).packed.operations, 3u);
  limits.staging_bytes_max = 16 * kMiB;  // no more is taken than there are bytes
  EXPECT_EQ(choose_between(lowered, limits).packed,
            (TransferCost{.operations = 1, .pieces = 2, .staging_bytes = 9 * kMiB}));
}

// ---- Times ----

// Directly N pages of 1,000 bytes take N * (1000 + 1000) ns. Packed, at each end N * (150 + 100) ns, and one operation:
// N * (2 * 250 + 1000) + 1000 ns. From 3 pages on that is less.
TEST(ChooseGather, PacksFromThePageOnFromWhichItTakesLessTime) {
  const TransportLimits limits{.operation_ns = 1000,
                               .bandwidth_bytes_per_s = 1'000'000'000,
                               .gather_bytes_per_s = 10'000'000'000,
                               .gather_piece_ns = 150,
                               .staging_bytes_max = kMiB};
  const auto check = [&](uint64_t page_count, uint64_t direct_ns, uint64_t packed_ns, bool pack) {
    const GatherChoice choice = choose_between(scattered_pages(page_count), limits);
    EXPECT_EQ(choice.direct, (TransferCost{page_count, 0, 0, direct_ns}));
    EXPECT_EQ(choice.packed, (TransferCost{1, 2 * page_count, 1000 * page_count, packed_ns}));
    EXPECT_EQ(choice.pack, pack);
  };
  check(1, 2000, 2500, false);
  check(2, 4000, 4000, false);  // no faster
  check(3, 6000, 5500, true);
  check(100, 200'000, 151'000, true);
}

TEST(ChooseGather, EachTermOfATimeIsRoundedUp) {
  const LoweredPlan lowered = scattered_pages(2);  // 2,000 bytes at 3 and at 7 bytes a nanosecond: 666.7 and 285.7 ns
  const TransportLimits limits{.operation_ns = 10,
                               .bandwidth_bytes_per_s = 3'000'000'000,
                               .gather_bytes_per_s = 7'000'000'000,
                               .gather_piece_ns = 5,
                               .staging_bytes_max = 2000};
  EXPECT_EQ(choose_between(lowered, limits).direct.time_ns, 2 * 10 + 667u);
  EXPECT_EQ(choose_between(lowered, limits).packed.time_ns, 2 * (2 * 5 + 286) + 10 + 667u);
}

TEST(ChooseGather, NoRateMeansNoTimeForBytes) {
  const LoweredPlan lowered = scattered_pages(4);
  const GatherChoice choice =
      choose_between(lowered, TransportLimits{.operation_ns = 7, .gather_piece_ns = 3, .staging_bytes_max = 1500});
  EXPECT_EQ(choice.direct.time_ns, 4 * 7u);
  EXPECT_EQ(choice.packed, (TransferCost{3, 8, 1500, 2 * 4 * 3 + 3 * 7}));
  EXPECT_FALSE(choice.pack);
}

TEST(ChooseGather, TimesPastSixtyFourBitsSaturateAndThoseBelowAreExact) {
  const LoweredPlan tebibyte = contiguous(uint64_t{1} << 20, kMiB);
  TransportLimits limits{.bandwidth_bytes_per_s = 1'000'000'000, .staging_bytes_max = uint64_t{1} << 50};
  EXPECT_EQ(choose_between(tebibyte, limits).direct.time_ns, uint64_t{1} << 40);
  limits.bandwidth_bytes_per_s = 1'000;  // 2^40 bytes in 2^40 * 10^6 ns, about 2^60
  EXPECT_EQ(choose_between(tebibyte, limits).direct.time_ns, (uint64_t{1} << 40) * 1'000'000);
  limits.bandwidth_bytes_per_s = 1;
  EXPECT_EQ(choose_between(tebibyte, limits).direct.time_ns, UINT64_MAX);
  EXPECT_EQ(choose_between(tebibyte, limits).packed.time_ns, UINT64_MAX);
  EXPECT_FALSE(choose_between(tebibyte, limits).pack);
  limits = TransportLimits{.operation_ns = UINT64_MAX / 2, .gather_piece_ns = UINT64_MAX, .staging_bytes_max = 1000};
  const GatherChoice choice = choose_between(scattered_pages(3), limits);
  EXPECT_EQ(choice.direct, (TransferCost{3, 0, 0, UINT64_MAX}));
  EXPECT_EQ(choice.packed, (TransferCost{3, 6, 1000, UINT64_MAX}));
}

// Rows of 2 bytes, 3 bytes apart: 2^40 ranges in one step.
TEST(ChooseGather, WorkFollowsTheStepsAndNotTheRanges) {
  const RowMemory source{.strides = {.layer = 0, .row = 3, .head = 2, .dim = 1}};
  const RowMemory target{.strides = {.layer = 0, .row = 2, .head = 2, .dim = 1}};
  const uint64_t count = uint64_t{1} << 40;
  const LoweredPlan lowered = lower_between(bytes_of(1, 1, 2), count, source, {target});
  EXPECT_EQ(direct_operations(lowered, 0), count);
  EXPECT_EQ(direct_operations(lowered, 1), 1u);
  const GatherChoice choice = choose_between(lowered, TransportLimits{.staging_bytes_max = uint64_t{1} << 30});
  EXPECT_EQ(choice.packed, (TransferCost{2048, 2 * count, uint64_t{1} << 30, 0}));
}

TEST(ChooseGather, EachPairIsChosenForItself) {
  // Heads 0-1 go to one target as they lie, heads 2-3 to the other in head-major order.
  const RowMemory source{.heads = Range(0, 4), .strides = {.layer = 0, .row = 512, .head = 128, .dim = 1}};
  const RowMemory same{"p0-t0", Range(0, 2), {.layer = 0, .row = 256, .head = 128, .dim = 1}};
  const RowMemory other{"p0-t1", Range(2, 4), {.layer = 0, .row = 128, .head = 1024, .dim = 1}};
  const LoweredPlan lowered = lower_between(bytes_of(1, 4, 128), 8, source, {same, other});
  ASSERT_EQ(lowered.pairs().size(), 2u);
  // Directly 8 and 16 operations of 100 ns; packed one of 100 ns and twice as many copies of 30 ns.
  const TransportLimits limits{.operation_ns = 100, .gather_piece_ns = 30, .staging_bytes_max = kMiB};
  const GatherChoice first = choose_gather(lowered, lowered.pairs()[0], limits);
  EXPECT_EQ(first, (GatherChoice{2048, {8, 0, 0, 800}, {1, 16, 2048, 580}, true}));
  const GatherChoice second = choose_gather(lowered, lowered.pairs()[1], limits);
  EXPECT_EQ(second, (GatherChoice{2048, {16, 0, 0, 1600}, {1, 32, 2048, 1060}, true}));
}

TEST(ChooseGatherDeathTest, AnOperationOfNoBytesIsAMistakeOfTheCaller) {
  const LoweredPlan lowered = scattered_pages(1);
  EXPECT_DEATH((void)choose_between(lowered, TransportLimits{.operation_bytes_max = 0}), "");
}

// ---- Case U71: scattered pages needed one operation for every 576 bytes. Here: 101 regions, one for each layer, of
// 1,000 scattered pages of 16 rows of 576 bytes ----

constexpr uint64_t kPages = 1000;

// `stride` and the number of pages have no common divisor, so that each slot is used once.
std::vector<uint64_t> scattered_slots(uint64_t stride) {
  std::vector<uint64_t> slots(kPages);
  for (uint64_t page = 0; page < kPages; ++page) slots[page] = page * stride % kPages;
  return slots;
}

// Two pages in neighbouring slots, then elsewhere.
std::vector<uint64_t> paired_slots(uint64_t stride) {
  std::vector<uint64_t> slots(kPages);
  for (uint64_t page = 0; page < kPages; ++page) slots[page] = 2 * (page / 2 * stride % (kPages / 2)) + page % 2;
  return slots;
}

LoweredPlan lower_regions(std::vector<uint64_t> source_slots, std::vector<uint64_t> target_slots,
                          uint64_t source_row_stride) {
  const RowMemory source{.strides = {.layer = 0, .row = source_row_stride, .head = 576, .dim = 1},
                         .region_per_layer = true,
                         .slots = std::move(source_slots),
                         .page_tokens = 16,
                         .page_stride_bytes = 16 * source_row_stride};
  const RowMemory target{.strides = {.layer = 0, .row = 576, .head = 576, .dim = 1},
                         .region_per_layer = true,
                         .slots = std::move(target_slots),
                         .page_tokens = 16,
                         .page_stride_bytes = 16 * 576};
  return lower_between(bytes_of(101, 1, 576), kPages * 16, source, {target});
}

// A fast network whose operations cost a microsecond, and GPUs that copy at 200 GB/s.
constexpr TransportLimits kFast = {.operation_ns = 1000,
                                   .bandwidth_bytes_per_s = 50'000'000'000,
                                   .gather_bytes_per_s = 200'000'000'000,
                                   .gather_piece_ns = 50,
                                   .staging_bytes_max = 4 * kMiB};

TEST(ChooseGather, ScatteredPagesOfManyRegionsArePackedIntoFewOperations) {
  const LoweredPlan lowered = lower_regions(scattered_slots(389), scattered_slots(617), 576);
  // 101 * 1,000 pages; no two that are neighbours on both sides; 101 * 16,000 rows of 576 bytes.
  EXPECT_EQ(lowered.counts(), (StepCounts{.bytes = 930'816'000,
                                          .row_pieces = 1'616'000,
                                          .steps_planned = 101'000,
                                          .steps = 101'000,
                                          .ranges = 101'000}));
  const GatherChoice choice = choose_between(lowered, kFast);
  // 101,000 us and 18.6 ms of bytes; packed: 221 full buffers of 4,194,304 bytes and one of 3,874,816, and at each end
  // 101,000 * 50 ns and 4,654,080 ns of bytes.
  EXPECT_EQ(choice.direct, (TransferCost{101'000, 0, 0, 101'000'000 + 18'616'320}));
  EXPECT_EQ(choice.packed, (TransferCost{222, 202'000, 4'194'304, 2 * (5'050'000 + 4'654'080) + 222'000 + 18'616'320}));
  EXPECT_TRUE(choice.pack);
}

TEST(ChooseGather, PagesThatAreNeighboursInPairsAreHalfAsManyOperations) {
  const LoweredPlan lowered = lower_regions(paired_slots(389), paired_slots(117), 576);
  EXPECT_EQ(
      lowered.counts(),
      (StepCounts{
          .bytes = 930'816'000, .row_pieces = 1'616'000, .steps_planned = 101'000, .steps = 50'500, .ranges = 50'500}));
  EXPECT_EQ(choose_between(lowered, kFast).direct.operations, 50'500u);
  EXPECT_EQ(choose_between(lowered, kFast).packed.operations, 222u);
  EXPECT_EQ(choose_between(lowered, kFast).packed.pieces, 101'000u);
  // On one side alone they are not.
  EXPECT_EQ(lower_regions(scattered_slots(389), paired_slots(117), 576).counts().steps, 101'000u);
}

TEST(ChooseGather, RowsOf576BytesAreOneOperationEachUnlessOneMayBeStrided) {
  const LoweredPlan lowered = lower_regions(scattered_slots(389), scattered_slots(617), 640);
  EXPECT_EQ(lowered.counts(), (StepCounts{.bytes = 930'816'000,
                                          .row_pieces = 1'616'000,
                                          .steps_planned = 101'000,
                                          .steps = 101'000,
                                          .ranges = 1'616'000}));
  EXPECT_EQ(direct_operations(lowered, 0), 1'616'000u);
  EXPECT_EQ(direct_operations(lowered, 1), 101'000u);
  const GatherChoice choice = choose_between(lowered, kFast);
  EXPECT_EQ(choice.direct.time_ns, 1'616'000'000 + 18'616'320u);
  EXPECT_EQ(choice.packed,
            (TransferCost{222, 3'232'000, 4'194'304, 2 * (80'800'000 + 4'654'080) + 222'000 + 18'616'320}));
  EXPECT_TRUE(choice.pack);
  // 16 rows in one strided operation are cheaper than 16 copies at each end.
  TransportLimits strided = kFast;
  strided.strided_axis_count_max = 1;
  EXPECT_FALSE(choose_between(lowered, strided).pack);
}

}  // namespace
}  // namespace crossdock::testing
