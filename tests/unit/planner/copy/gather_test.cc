// Direct or packed: the counts and times of plans small enough to reckon by hand, the cases from the field that count
// descriptors, and random limits against operations cut one by one.
#include "planner/copy/gather.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"

namespace crossdock {

void PrintTo(const TransferCost& cost, std::ostream* out) {
  *out << fmt::format("{} operations, {} pieces, {} bytes staged, {} ns", cost.operations, cost.pieces,
                      cost.staging_bytes, cost.time_ns);
}

void PrintTo(const StepCounts& counts, std::ostream* out) {
  *out << fmt::format("{} bytes, {} head rows, {} planned, {} steps, {} ranges", counts.bytes, counts.head_rows,
                      counts.steps_planned, counts.steps, counts.ranges);
}

namespace testing {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// ---- Documents ----

// One component, "kv", of items of one byte.
Valid<CacheSchema> bytes_of(uint64_t layer_count, uint64_t head_count, uint64_t head_dim) {
  return schema_of({group(Range(0, layer_count), {rows("kv", head_count, head_dim, {"float8_e4m3fn", 1})})});
}

// Where the rows of one participant lie.
struct Memory {
  std::string participant = "p0-t0";
  Range heads = Range(0, 1);
  ByteStrides strides;
  bool region_per_layer = false;
  std::vector<uint64_t> slots = {};  // of the pages; empty: no pages
  uint64_t page_tokens = 0;
  uint64_t page_stride_bytes = 0;
};

// A region for each layer, or one for all, with its size as in the binding of a real pool: what the strides reach.
Valid<RuntimeBinding> bound(const Memory& memory, const std::string& instance,
                            const Valid<PlacementManifest>& placement, const Valid<SnapshotDescriptor>& snapshot) {
  const Component& component = placement->cache_schema.groups[0].components[0];
  const uint64_t layer_count = placement->cache_schema.layers().count();
  RuntimeBinding binding;
  binding.operation = OperationId("move");
  binding.resource = snapshot->resource;
  binding.revision = RevisionId("1");
  binding.participant = ParticipantId(memory.participant);
  binding.instance = InstanceId(instance);
  binding.generation = 1;
  binding.placement_digest = digest(placement);
  binding.snapshot_digest = digest(snapshot);
  binding.tokens = snapshot->tokens;
  binding.devices = {Device{DeviceId("gpu"), "cuda", uint64_t{1} << 60}};
  if (!memory.slots.empty())
    binding.page_tables = {PageTable{PageTableId("pages"), memory.page_tokens, 0, memory.slots}};
  for (uint64_t i = 0; i < (memory.region_per_layer ? layer_count : 1); ++i) {
    const Range layers = memory.region_per_layer ? Range(i, i + 1) : Range(0, layer_count);
    View view;
    view.component = component.name;
    view.layers = layers;
    view.tokens = snapshot->tokens;
    view.heads = memory.heads;
    view.dims = Range(0, component.head_dim);
    view.region = RegionId(fmt::format("region-{:03}", i));
    view.strides = memory.strides;
    if (memory.region_per_layer) view.strides.layer = 0;
    uint64_t bytes =
        (layers.size() - 1) * view.strides.layer + (memory.heads.size() - 1) * view.strides.head + component.head_dim;
    if (memory.slots.empty()) {
      bytes += (snapshot->tokens.size() - 1) * view.strides.row;
    } else {
      view.pages = ViewPages{PageTableId("pages"), memory.page_stride_bytes};
      bytes += *std::max_element(memory.slots.begin(), memory.slots.end()) * memory.page_stride_bytes +
               (memory.page_tokens - 1) * view.strides.row;
    }
    binding.regions.push_back(Region{view.region, 1, bytes, DeviceId("gpu"), {}, {}});
    binding.views.push_back(view);
  }
  return valid_or_die(binding);
}

// Plans, proves and lowers between one source and any targets that share its heads.
LoweredPlan lower_between(const Valid<CacheSchema>& schema, uint64_t token_count, const Memory& source,
                          const std::vector<Memory>& targets) {
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, Range(0, token_count));
  const Valid<PlacementManifest> source_placement = placed(schema, {});
  const Valid<PlacementManifest> target_placement = placed(schema, {.tp = targets.size()});
  const Valid<RuntimeBinding> source_binding = bound(source, "source", source_placement, snapshot);
  std::vector<Valid<RuntimeBinding>> target_bindings;
  for (const Memory& target : targets)
    target_bindings.push_back(bound(target, "target-" + target.participant, target_placement, snapshot));
  const std::vector<const Valid<RuntimeBinding>*> from = {&source_binding};
  std::vector<const Valid<RuntimeBinding>*> to;
  for (const Valid<RuntimeBinding>& binding : target_bindings) to.push_back(&binding);

  Diagnostics diagnostics;
  const auto source_side = BoundSide::bind(BindingContext(source_placement, &snapshot), from, diagnostics);
  const auto target_side = BoundSide::bind(BindingContext(target_placement, &snapshot), to, diagnostics);
  const PlanSide plan_source(source_placement, digest(source_placement));
  const PlanSide plan_target(target_placement, digest(target_placement));
  PlanOptions options;
  options.snapshot_tokens = snapshot->tokens;
  const auto plan = make_plan(plan_source, plan_target, options, PlanLimits(), diagnostics);
  std::optional<LoweredPlan> lowered;
  if (plan && verify_plan(*plan, plan_source, plan_target, VerifyLimits(), diagnostics).complete && source_side &&
      target_side)
    lowered = lower(**plan, *source_side, *target_side, LowerOptions(), LowerLimits(), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.kept()) ADD_FAILURE() << diagnostic.to_line();
  return lowered.value();
}

GatherChoice choose(const LoweredPlan& lowered, const TransportLimits& limits) {
  EXPECT_EQ(lowered.pairs().size(), 1u);
  return choose_gather(lowered, lowered.pairs().front(), limits);
}

uint64_t direct_operations(const LoweredPlan& lowered, uint64_t axis_count_max,
                           uint64_t operation_bytes_max = UINT64_MAX) {
  TransportLimits limits;
  limits.strided_axis_count_max = axis_count_max;
  limits.operation_bytes_max = operation_bytes_max;
  return choose(lowered, limits).direct.operations;
}

// Rows of `row_bytes` that follow each other on both sides: one contiguous range.
LoweredPlan contiguous(uint64_t row_count, uint64_t row_bytes) {
  const Memory memory{.strides = {.layer = 0, .row = row_bytes, .head = row_bytes, .dim = 1}};
  return lower_between(bytes_of(1, 1, row_bytes), row_count, memory, {memory});
}

// 3 layers of 4 heads of 8 tokens of 128 bytes, [layer, token, head] to [layer, head, token].
LoweredPlan token_major_to_head_major() {
  const Memory source{.heads = Range(0, 4), .strides = {.layer = 4096, .row = 512, .head = 128, .dim = 1}};
  const Memory target{.heads = Range(0, 4), .strides = {.layer = 4096, .row = 128, .head = 1024, .dim = 1}};
  return lower_between(bytes_of(3, 4, 128), 8, source, {target});
}

// Pages of 10 rows of 100 bytes in every second slot.
LoweredPlan scattered_pages(uint64_t page_count) {
  Memory memory{.strides = {.layer = 0, .row = 100, .head = 100, .dim = 1}};
  for (uint64_t page = 0; page < page_count; ++page) memory.slots.push_back(2 * page);
  memory.page_tokens = 10;
  memory.page_stride_bytes = 1000;
  return lower_between(bytes_of(1, 1, 100), 10 * page_count, memory, {memory});
}

// ---- Operations ----

TEST(ChooseGather, AStepIsOneOperationForEachIndexOfTheAxesThatAnOperationCannotHave) {
  const LoweredPlan lowered = token_major_to_head_major();
  EXPECT_EQ(lowered.counts(),
            (StepCounts{.bytes = 12288, .head_rows = 96, .steps_planned = 1, .steps = 1, .ranges = 96}));
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
  const GatherChoice choice = choose(lowered, limits);
  EXPECT_EQ(choice.bytes, 50'000u);
  EXPECT_EQ(choice.direct, (TransferCost{.operations = 50, .time_ns = 50 * 1000 + 50'000}));
  EXPECT_EQ(choice.packed, TransferCost());
  EXPECT_FALSE(choice.pack);
}

// Case U70: 9 MiB in buffers of 4 MiB.
TEST(ChooseGather, NineMebibytesAreThreeBuffersOfFour) {
  const LoweredPlan lowered = contiguous(9 * 1024, 1024);
  TransportLimits limits{.staging_bytes_max = 4 * kMiB};
  EXPECT_EQ(choose(lowered, limits).direct.operations, 1u);
  EXPECT_EQ(choose(lowered, limits).packed,
            (TransferCost{.operations = 3, .pieces = 2, .staging_bytes = 4 * kMiB, .time_ns = 0}));
  limits.operation_bytes_max = 3 * kMiB;  // 3 + 3 + 3 directly; (3 + 1) + (3 + 1) + 1 packed
  EXPECT_EQ(choose(lowered, limits).direct.operations, 3u);
  EXPECT_EQ(choose(lowered, limits).packed.operations, 5u);
  limits.operation_bytes_max = kMiB;
  EXPECT_EQ(choose(lowered, limits).direct.operations, 9u);
  EXPECT_EQ(choose(lowered, limits).packed.operations, 9u);
  limits = TransportLimits{.staging_bytes_max = 3 * kMiB};
  EXPECT_EQ(choose(lowered, limits).packed.operations, 3u);
  limits.staging_bytes_max = 16 * kMiB;  // no more is taken than there are bytes
  EXPECT_EQ(choose(lowered, limits).packed, (TransferCost{.operations = 1, .pieces = 2, .staging_bytes = 9 * kMiB}));
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
    const GatherChoice choice = choose(scattered_pages(page_count), limits);
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
  EXPECT_EQ(choose(lowered, limits).direct.time_ns, 2 * 10 + 667u);
  EXPECT_EQ(choose(lowered, limits).packed.time_ns, 2 * (2 * 5 + 286) + 10 + 667u);
}

TEST(ChooseGather, NoRateMeansNoTimeForBytes) {
  const LoweredPlan lowered = scattered_pages(4);
  const GatherChoice choice =
      choose(lowered, TransportLimits{.operation_ns = 7, .gather_piece_ns = 3, .staging_bytes_max = 1500});
  EXPECT_EQ(choice.direct.time_ns, 4 * 7u);
  EXPECT_EQ(choice.packed, (TransferCost{3, 8, 1500, 2 * 4 * 3 + 3 * 7}));
  EXPECT_FALSE(choice.pack);
}

TEST(ChooseGather, TimesPastSixtyFourBitsSaturateAndThoseBelowAreExact) {
  const LoweredPlan tebibyte = contiguous(uint64_t{1} << 20, kMiB);
  TransportLimits limits{.bandwidth_bytes_per_s = 1'000'000'000, .staging_bytes_max = uint64_t{1} << 50};
  EXPECT_EQ(choose(tebibyte, limits).direct.time_ns, uint64_t{1} << 40);
  limits.bandwidth_bytes_per_s = 1'000;  // 2^40 bytes in 2^40 * 10^6 ns, about 2^60
  EXPECT_EQ(choose(tebibyte, limits).direct.time_ns, (uint64_t{1} << 40) * 1'000'000);
  limits.bandwidth_bytes_per_s = 1;
  EXPECT_EQ(choose(tebibyte, limits).direct.time_ns, UINT64_MAX);
  EXPECT_EQ(choose(tebibyte, limits).packed.time_ns, UINT64_MAX);
  EXPECT_FALSE(choose(tebibyte, limits).pack);
  limits = TransportLimits{.operation_ns = UINT64_MAX / 2, .gather_piece_ns = UINT64_MAX, .staging_bytes_max = 1000};
  const GatherChoice choice = choose(scattered_pages(3), limits);
  EXPECT_EQ(choice.direct, (TransferCost{3, 0, 0, UINT64_MAX}));
  EXPECT_EQ(choice.packed, (TransferCost{3, 6, 1000, UINT64_MAX}));
}

// Rows of 2 bytes, 3 bytes apart: 2^40 ranges in one step.
TEST(ChooseGather, WorkFollowsTheStepsAndNotTheRanges) {
  const Memory source{.strides = {.layer = 0, .row = 3, .head = 2, .dim = 1}};
  const Memory target{.strides = {.layer = 0, .row = 2, .head = 2, .dim = 1}};
  const uint64_t count = uint64_t{1} << 40;
  const LoweredPlan lowered = lower_between(bytes_of(1, 1, 2), count, source, {target});
  EXPECT_EQ(direct_operations(lowered, 0), count);
  EXPECT_EQ(direct_operations(lowered, 1), 1u);
  const GatherChoice choice = choose(lowered, TransportLimits{.staging_bytes_max = uint64_t{1} << 30});
  EXPECT_EQ(choice.packed, (TransferCost{2048, 2 * count, uint64_t{1} << 30, 0}));
}

TEST(ChooseGather, EachPairIsChosenForItself) {
  // Heads 0-1 go to one target as they lie, heads 2-3 to the other in head-major order.
  const Memory source{.heads = Range(0, 4), .strides = {.layer = 0, .row = 512, .head = 128, .dim = 1}};
  const Memory same{"p0-t0", Range(0, 2), {.layer = 0, .row = 256, .head = 128, .dim = 1}};
  const Memory other{"p0-t1", Range(2, 4), {.layer = 0, .row = 128, .head = 1024, .dim = 1}};
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
  EXPECT_DEATH((void)choose(lowered, TransportLimits{.operation_bytes_max = 0}), "");
}

// ---- Case U71: 101 regions, one for each layer, of 1,000 scattered pages of 16 rows of 576 bytes ----

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
  const Memory source{.strides = {.layer = 0, .row = source_row_stride, .head = 576, .dim = 1},
                      .region_per_layer = true,
                      .slots = std::move(source_slots),
                      .page_tokens = 16,
                      .page_stride_bytes = 16 * source_row_stride};
  const Memory target{.strides = {.layer = 0, .row = 576, .head = 576, .dim = 1},
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
                                          .head_rows = 1'616'000,
                                          .steps_planned = 101'000,
                                          .steps = 101'000,
                                          .ranges = 101'000}));
  const GatherChoice choice = choose(lowered, kFast);
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
          .bytes = 930'816'000, .head_rows = 1'616'000, .steps_planned = 101'000, .steps = 50'500, .ranges = 50'500}));
  EXPECT_EQ(choose(lowered, kFast).direct.operations, 50'500u);
  EXPECT_EQ(choose(lowered, kFast).packed.operations, 222u);
  EXPECT_EQ(choose(lowered, kFast).packed.pieces, 101'000u);
  // On one side alone they are not.
  EXPECT_EQ(lower_regions(scattered_slots(389), paired_slots(117), 576).counts().steps, 101'000u);
}

TEST(ChooseGather, RowsOf576BytesAreOneOperationEachUnlessOneMayBeStrided) {
  const LoweredPlan lowered = lower_regions(scattered_slots(389), scattered_slots(617), 640);
  EXPECT_EQ(lowered.counts(), (StepCounts{.bytes = 930'816'000,
                                          .head_rows = 1'616'000,
                                          .steps_planned = 101'000,
                                          .steps = 101'000,
                                          .ranges = 1'616'000}));
  EXPECT_EQ(direct_operations(lowered, 0), 1'616'000u);
  EXPECT_EQ(direct_operations(lowered, 1), 101'000u);
  const GatherChoice choice = choose(lowered, kFast);
  EXPECT_EQ(choice.direct.time_ns, 1'616'000'000 + 18'616'320u);
  EXPECT_EQ(choice.packed,
            (TransferCost{222, 3'232'000, 4'194'304, 2 * (80'800'000 + 4'654'080) + 222'000 + 18'616'320}));
  EXPECT_TRUE(choice.pack);
  // 16 rows in one strided operation are cheaper than 16 copies at each end.
  TransportLimits strided = kFast;
  strided.strided_axis_count_max = 1;
  EXPECT_FALSE(choose(lowered, strided).pack);
}

// ---- Random limits ----

// Every operation made: the indices of the outer axes one by one, then what append_split cuts.
uint64_t naive_direct_operations(const LoweredPlan& lowered, const TransportLimits& limits) {
  uint64_t count = 0;
  for (const CopyStep& step : lowered.steps(lowered.pairs().front())) {
    std::vector<CopyStep> posted = {step};
    while (posted.front().axis_count > limits.strided_axis_count_max) {
      std::vector<CopyStep> next;
      for (const CopyStep& each : posted)
        for (uint64_t index = 0; index < each.axis_list[0].extent; ++index) {
          CopyStep inner = each;
          inner.axis_count = 0;
          inner.axis_list = {};
          for (size_t k = 1; k < each.axis_count; ++k) inner.push_axis(each.axis_list[k]);
          next.push_back(inner);
        }
      posted = std::move(next);
    }
    for (const CopyStep& each : posted) {
      std::vector<CopyStep> pieces;
      append_split(each, StepSplit{.bytes_max = limits.operation_bytes_max}, pieces);
      count += pieces.size();
    }
  }
  return count;
}

uint64_t naive_packed_operations(uint64_t bytes, const TransportLimits& limits) {
  uint64_t count = 0;
  for (uint64_t filled = 0; filled < bytes; filled += limits.staging_bytes_max) {
    const uint64_t buffer = std::min(limits.staging_bytes_max, bytes - filled);
    for (uint64_t sent = 0; sent < buffer; sent += limits.operation_bytes_max) ++count;
  }
  return count;
}

RC_GTEST_PROP(ChooseGather, CountsTheOperationsThatCuttingMakes, ()) {
  static const std::vector<LoweredPlan> plans = {
      token_major_to_head_major(), scattered_pages(7), contiguous(100, 30),
      lower_between(bytes_of(5, 3, 7), 40,
                    Memory{.heads = Range(0, 3),
                           .strides = {.layer = 250, .row = 25, .head = 8, .dim = 1},
                           .slots = {4, 5, 9, 2, 7, 8},
                           .page_tokens = 8,
                           .page_stride_bytes = 1300},
                    {Memory{.heads = Range(0, 3),
                            .strides = {.layer = 22 * 48, .row = 22, .head = 7, .dim = 1},
                            .slots = {3, 4, 1, 0},
                            .page_tokens = 12,
                            .page_stride_bytes = 22 * 48 * 5}})};
  const auto draw = [](uint64_t least, uint64_t most) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint64_t>(least, most + 1));
  };
  const LoweredPlan& lowered = plans[draw(0, plans.size() - 1)];
  TransportLimits limits;
  limits.strided_axis_count_max = draw(0, 5);
  limits.operation_bytes_max = draw(0, 1) == 0 ? draw(1, 200) : draw(1, 14'000);
  limits.staging_bytes_max = draw(1, 14'000);
  const GatherChoice choice = choose(lowered, limits);
  RC_ASSERT(choice.direct.operations == naive_direct_operations(lowered, limits));
  RC_ASSERT(choice.packed.operations == naive_packed_operations(choice.bytes, limits));
  uint64_t range_count = 0;
  uint64_t bytes = 0;
  for (const CopyStep& step : lowered.steps(lowered.pairs().front())) {
    ByteRanges ranges(step);
    for (ByteCopy range; ranges.next(range); ++range_count) bytes += range.bytes;
  }
  RC_ASSERT(choice.bytes == bytes);
  RC_ASSERT(choice.packed.pieces == 2 * range_count);
}

}  // namespace
}  // namespace testing
}  // namespace crossdock
