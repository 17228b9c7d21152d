// Field cases of descriptors: how many operations scattered pages need, and offsets past 32 and 64 bits.
// Failures that users of cache transfer reported, as small inputs with their right values: each is planned, proved,
// bound, lowered and run byte by byte, see tests/support/field_world.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "planner/copy/gather.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"
#include "planner/kv/store_geometry.h"
#include "tests/support/builders.h"
#include "tests/support/byte_world.h"
#include "tests/support/example_documents.h"
#include "tests/support/field_world.h"

namespace crossdock::testing {
namespace {

// 101 layers of fp8 latents of 576 bytes, and 1,000 pages of 64 tokens: 3.7 GB, which no test allocates.
struct ManyPages {
  static constexpr uint64_t kLayers = 101;
  static constexpr uint64_t kPages = 1000;
  static constexpr uint64_t kPageBytes = 64 * 576;  // of one layer

  Valid<CacheSchema> schema = schema_of({group(Range(0, kLayers), {rows("latent", 1, 576, {"float8_e4m3fn", 1})})});
  Range tokens = Range(0, kPages * 64);
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source{"source", placed(schema, {}, "prefill"), snapshot};
  FieldRuntime target{"target", placed(schema, {}, "decode"), snapshot};

  // Runs of `together` neighbouring slots, and at least one slot between two runs.
  static std::vector<uint64_t> slots(uint64_t together, uint64_t seed) {
    std::vector<uint64_t> starts(kPages / together);
    std::iota(starts.begin(), starts.end(), uint64_t{0});
    Rng(seed).shuffle(starts);
    std::vector<uint64_t> slots;
    for (const uint64_t start : starts)
      for (uint64_t i = 0; i < together; ++i) slots.push_back(start * (together + 1) + i);
    return slots;
  }
  static uint64_t slot_count(uint64_t together) { return kPages / together * (together + 1); }

  static std::string layer_region(uint64_t layer) { return fmt::format("layer-{:03}", layer); }
  // A region for each layer.
  void bind_layers(FieldRuntime& runtime, uint64_t together, const std::vector<uint64_t>& of_slots) const {
    RuntimeBinding& binding = runtime.bindings[0];
    binding.page_tables = {PageTable{PageTableId("pages"), 64, 0, of_slots}};
    for (uint64_t layer = 0; layer < kLayers; ++layer) {
      const std::string region = layer_region(layer);
      add_region(binding, region.c_str(), slot_count(together) * kPageBytes);
      add_view(binding, "latent", Range(layer, layer + 1), tokens, Range(0, 1), Range(0, 576), region.c_str(), 0,
               {.layer = 0, .row = 576, .head = 0, .dim = 1})
          .pages = ViewPages{PageTableId("pages"), kPageBytes};
    }
  }
  // One region with all layers of a page together: [slot][layer][token][576], or [slot][token][layer][576].
  void bind_pool(FieldRuntime& runtime, bool token_major, const std::vector<uint64_t>& of_slots) const {
    RuntimeBinding& binding = runtime.bindings[0];
    binding.page_tables = {PageTable{PageTableId("pages"), 64, 0, of_slots}};
    add_region(binding, "pool", slot_count(1) * kLayers * kPageBytes);
    add_view(binding, "latent", Range(0, kLayers), tokens, Range(0, 1), Range(0, 576), "pool", 0,
             token_major ? ByteStrides{.layer = 576, .row = kLayers * 576, .head = 0, .dim = 1}
                         : ByteStrides{.layer = kPageBytes, .row = 576, .head = 0, .dim = 1})
        .pages = ViewPages{PageTableId("pages"), kLayers * kPageBytes};
  }
};

// (source region, target region, source offset, target offset, bytes) of each contiguous range.
using ByteMove = std::tuple<std::string, std::string, uint64_t, uint64_t, uint64_t>;

std::vector<ByteMove> sorted_ranges(const LoweredPlan& lowered) {
  std::vector<ByteMove> moves;
  for (const LoweredPair& pair : lowered.pairs())
    lowered.for_each_step(pair, [&](const CopyStep& step) {
      ByteRanges ranges(step);
      for (ByteCopy range; ranges.next(range);)
        moves.emplace_back(lowered.source_regions()[step.source_region].id.text(),
                           lowered.target_regions()[step.target_region].id.text(), range.source_offset,
                           range.target_offset, range.bytes);
    });
  std::sort(moves.begin(), moves.end());
  return moves;
}

// Case U71: a cache of 101 regions with 1,000 scattered pages each needed up to 120,000 operations of 576 bytes.
TEST(FieldCases, U71AThousandScatteredPagesOf101RegionsAreOneStepEach) {
  ManyPages pages;
  const std::vector<uint64_t> from = ManyPages::slots(1, 1);
  const std::vector<uint64_t> to = ManyPages::slots(1, 2);
  pages.bind_layers(pages.source, 1, from);
  pages.bind_layers(pages.target, 1, to);
  const FieldMove move = move_live(pages.source, pages.target);
  EXPECT_EQ(move.plan->edges.size(), 1u);
  EXPECT_EQ(move.lowered.counts(), (StepCounts{.bytes = 101 * 1000 * ManyPages::kPageBytes,
                                               .row_pieces = 101 * 64000,
                                               .steps_planned = 101'000,
                                               .steps = 101'000,
                                               .ranges = 101'000}));
  std::vector<ByteMove> expected;
  for (uint64_t layer = 0; layer < ManyPages::kLayers; ++layer)
    for (uint64_t page = 0; page < ManyPages::kPages; ++page)
      expected.emplace_back(ManyPages::layer_region(layer), ManyPages::layer_region(layer),
                            from[page] * ManyPages::kPageBytes, to[page] * ManyPages::kPageBytes,
                            ManyPages::kPageBytes);
  std::sort(expected.begin(), expected.end());
  EXPECT_TRUE(sorted_ranges(move.lowered) == expected);
}

TEST(FieldCases, U71PagesInNeighbouringSlotsAreOneStepTogether) {
  ManyPages pages;
  const std::vector<uint64_t> from = ManyPages::slots(10, 3);
  const std::vector<uint64_t> to = ManyPages::slots(10, 4);
  pages.bind_layers(pages.source, 10, from);
  pages.bind_layers(pages.target, 10, to);
  const FieldMove move = move_live(pages.source, pages.target);
  EXPECT_EQ(move.lowered.counts().steps_planned, 101'000u);
  EXPECT_EQ(move.lowered.counts().steps, 10'100u);
  EXPECT_EQ(move.lowered.counts().ranges, 10'100u);
  std::vector<ByteMove> expected;
  for (uint64_t layer = 0; layer < ManyPages::kLayers; ++layer)
    for (uint64_t page = 0; page < ManyPages::kPages; page += 10)
      expected.emplace_back(ManyPages::layer_region(layer), ManyPages::layer_region(layer),
                            from[page] * ManyPages::kPageBytes, to[page] * ManyPages::kPageBytes,
                            10 * ManyPages::kPageBytes);
  std::sort(expected.begin(), expected.end());
  EXPECT_TRUE(sorted_ranges(move.lowered) == expected);
}

TEST(FieldCases, U71LayersOfOneRegionAreOneStepPerPageEvenInPiecesOf576Bytes) {
  for (const bool token_major : {false, true}) {
    SCOPED_TRACE(token_major ? "[slot][token][layer] to [slot][layer][token]" : "[slot][layer][token]");
    ManyPages pages;
    const std::vector<uint64_t> from = ManyPages::slots(1, 5);
    const std::vector<uint64_t> to = ManyPages::slots(1, 6);
    pages.bind_pool(pages.source, token_major, from);
    pages.bind_pool(pages.target, false, to);
    const FieldMove move = move_live(pages.source, pages.target);
    EXPECT_EQ(move.lowered.counts().bytes, 101 * 1000 * ManyPages::kPageBytes);
    EXPECT_EQ(move.lowered.counts().steps_planned, 1000u);
    EXPECT_EQ(move.lowered.counts().steps, 1000u);
    EXPECT_EQ(move.lowered.counts().ranges, token_major ? 101u * 64 * 1000 : 1000u);
    // Each piece of one page, by the formulas.
    const CopyStep step = move.lowered.steps(move.lowered.pairs()[0])[17];
    std::set<ByteCopy> pieces;
    ByteRanges ranges(step);
    for (ByteCopy piece; ranges.next(piece);) pieces.insert(piece);
    std::set<ByteCopy> expected;
    const uint64_t source_page = from[17] * 101 * 36864;
    const uint64_t target_page = to[17] * 101 * 36864;
    if (!token_major) expected.insert(ByteCopy{source_page, target_page, 101 * 36864});
    for (uint64_t layer = 0; layer < 101 && token_major; ++layer)
      for (uint64_t token = 0; token < 64; ++token)
        expected.insert(
            ByteCopy{source_page + (token * 101 + layer) * 576, target_page + (layer * 64 + token) * 576, 576});
    EXPECT_TRUE(pieces == expected);
  }
}

TEST(FieldCases, U71PiecesOf576BytesAreStagedUnlessOneOperationMayHaveTheirStrides) {
  ManyPages pages;
  pages.bind_pool(pages.source, true, ManyPages::slots(1, 7));
  pages.bind_pool(pages.target, false, ManyPages::slots(1, 8));
  const FieldMove move = move_live(pages.source, pages.target);
  TransportLimits limits{.operation_ns = 2'000,
                         .bandwidth_bytes_per_s = 50'000'000'000,
                         .gather_bytes_per_s = 2'000'000'000'000,
                         .staging_bytes_max = 64 << 20};
  // 3,723,264,000 bytes take 74,465,280 ns on the link, and 1,861,632 ns to gather or to scatter. They fill 55 staging
  // buffers and a part of one more.
  const GatherChoice staged = choose_gather(move.lowered, move.lowered.pairs()[0], limits);
  EXPECT_EQ(staged.bytes, 3'723'264'000u);
  EXPECT_EQ(staged.direct, (TransferCost{.operations = 101 * 64 * 1000, .time_ns = 6'464'000ull * 2'000 + 74'465'280}));
  EXPECT_EQ(staged.packed, (TransferCost{.operations = 56,
                                         .pieces = 2 * 6'464'000,
                                         .staging_bytes = 64 << 20,
                                         .time_ns = 2 * 1'861'632 + 56 * 2'000 + 74'465'280}));
  EXPECT_TRUE(staged.pack);

  limits.strided_axis_count_max = 2;  // layers and tokens: a page is one operation
  const GatherChoice direct = choose_gather(move.lowered, move.lowered.pairs()[0], limits);
  EXPECT_EQ(direct.direct, (TransferCost{.operations = 1000, .time_ns = 1'000 * 2'000 + 74'465'280}));
  EXPECT_FALSE(direct.pack);
}

// 13 layers of a latent; a page of 64 tokens has 958,464 bytes of data in whatever stride.
struct FarPages {
  static constexpr uint64_t kLayerBytes = 64 * 1152;
  static constexpr uint64_t kDataBytes = 13 * kLayerBytes;

  explicit FarPages(uint64_t page_count) : tokens(0, page_count * 64) {}

  void bind(FieldRuntime& runtime, uint64_t base, uint64_t page_stride, std::vector<uint64_t> slots,
            uint64_t region_bytes) const {
    RuntimeBinding& binding = runtime.bindings[0];
    add_region(binding, "pool", region_bytes);
    binding.page_tables = {PageTable{PageTableId("pages"), 64, 0, std::move(slots)}};
    add_view(binding, "latent", Range(0, 13), tokens, Range(0, 1), Range(0, 576), "pool", base,
             {.layer = kLayerBytes, .row = 1152, .head = 0, .dim = 2})
        .pages = ViewPages{PageTableId("pages"), page_stride};
  }

  Valid<CacheSchema> schema = schema_of({group(Range(0, 13), {rows("latent", 1, 576)})});
  Range tokens;
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source{"source", placed(schema, {}, "prefill"), snapshot};
  FieldRuntime target{"target", placed(schema, {}, "decode"), snapshot};
};

// Case U73: page number x stride passes 32 bits at some page, and offsets pass 2^40; products were computed in 32 bits.
TEST(FieldCases, U73BlocksTimesStridesPast32BitsAndBasesPast2To40AreExact) {
  FarPages pages(5);
  const uint64_t base = uint64_t{1} << 40;
  pages.bind(pages.source, base, 1'039'680, {2'065, 2'066, 4'131, 4'132, 1'048'576}, uint64_t{1} << 42);
  pages.bind(pages.target, 3 * base, 1'002'240, {2'142, 2'143, 4'285, 4'286, 2'097'152}, uint64_t{1} << 43);
  const FieldMove move = move_live(pages.source, pages.target);
  std::vector<ByteMove> expected;
  // 2,066 x 1,039,680 and 2,143 x 1,002,240 are the first products past 2^31; 4,132 and 4,286 those past 2^32.
  for (const auto& [from, to] : std::vector<std::pair<uint64_t, uint64_t>>{{2'146'939'200, 2'146'798'080},
                                                                           {2'147'978'880, 2'147'800'320},
                                                                           {4'294'918'080, 4'294'598'400},
                                                                           {4'295'957'760, 4'295'600'640},
                                                                           {1'090'183'495'680, 2'101'849'620'480}})
    expected.emplace_back("pool", "pool", 1'099'511'627'776 + from, 3'298'534'883'328 + to, 958'464);
  EXPECT_EQ(sorted_ranges(move.lowered), expected);
}

TEST(FieldCases, U73TheLastPageBelow2To64IsExactAndOneFurtherIsRefused) {
  // (2^64 - 1 - 958,464) / 1,039,680: the last slot that ends at 2^64 - 1 or before.
  const uint64_t last = (UINT64_MAX - FarPages::kDataBytes) / 1'039'680;
  FarPages pages(1);
  pages.bind(pages.source, 0, 1'039'680, {last}, UINT64_MAX);
  pages.bind(pages.target, 0, FarPages::kDataBytes, {0}, FarPages::kDataBytes);
  const FieldMove move = move_live(pages.source, pages.target);
  EXPECT_EQ(sorted_ranges(move.lowered), (std::vector<ByteMove>{{"pool", "pool", last * 1'039'680, 0, 958'464}}));

  for (const uint64_t slot : {last + 1, last + 2, uint64_t{1} << 45, uint64_t{1} << 63, UINT64_MAX}) {
    pages.source.bindings[0].page_tables[0].slots = {slot};
    Diagnostics diagnostics;
    EXPECT_FALSE(FieldBound(pages.source, diagnostics).ok()) << slot;
    EXPECT_TRUE(diagnostics.has(Rule::kSizeOverflow) || diagnostics.has(Rule::kViewBounds)) << slot;
  }
  // A base that pushes the same page past the end.
  pages.source.bindings[0].page_tables[0].slots = {last};
  pages.source.bindings[0].views[0].offset_bytes = 1'039'680;
  Diagnostics diagnostics;
  EXPECT_FALSE(FieldBound(pages.source, diagnostics).ok());
  EXPECT_TRUE(diagnostics.has(Rule::kViewBounds));
}

TEST(FieldCases, U73AStridePastTheEndOf64BitsIsRefusedInTheStoreToo) {
  const FarPages pages(1);
  const auto geometry_diagnostics = [&](uint64_t page_tokens) {
    const Valid<StoreLayout> layout =
        layout_with("pages", pages.schema, page_tokens, {part("all", Range(0, 13), {"latent"}, Range(0, 1))});
    Diagnostics diagnostics;
    const auto geometry = store_geometry(layout, diagnostics);
    EXPECT_NE(geometry.has_value(), !diagnostics.empty());
    if (geometry.has_value()) {
      EXPECT_EQ(geometry->parts[0].page, page_tokens * 13 * 1152);
    }
    return lines_of(diagnostics);
  };
  const uint64_t most = UINT64_MAX / (13 * 1152);
  EXPECT_EQ(geometry_diagnostics(most), Lines{});
  EXPECT_EQ(geometry_diagnostics(most + 1),
            Lines{fmt::format("an object of {} tokens passes 2^64 bytes (component latent) "
                              "[size-overflow]",
                              most + 1)});
}

}  // namespace
}  // namespace crossdock::testing
