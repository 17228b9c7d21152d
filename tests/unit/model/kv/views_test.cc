// Views of real cache layouts, and failures that users of cache transfer reported, as small inputs with their right
// values.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/geometry/box_cover.h"
#include "model/kv/binding_rules.h"
#include "model/kv/partition.h"
#include "model/kv/view_rules.h"
#include "model/kv/volume.h"
#include "model/wire/documents.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// One participant that owns everything, with one region, for one request.
struct Request {
  explicit Request(LayerGroup group, Range tokens, uint64_t region_bytes = kGiB) : placement(place(std::move(group))) {
    binding.operation = OperationId("op");
    binding.resource = ResourceId("r");
    binding.revision = RevisionId("1");
    binding.participant = ParticipantId("p0-t0");
    binding.instance = InstanceId("i");
    binding.placement_digest = digest(placement);
    binding.tokens = tokens;
    binding.devices = {Device{DeviceId("d"), "host", UINT64_MAX}};
    binding.regions = {Region{RegionId("pool"), 1, region_bytes, DeviceId("d"), {}, {}}};
  }

  static Valid<PlacementManifest> place(LayerGroup group) {
    PartitionRequest request;
    request.name = "p";
    request.resource = ResourceId("r");
    request.revision = RevisionId("1");
    request.layer_count = group.layers.hull().end();
    Diagnostics diagnostics;
    return *partition(valid_or_die(CacheSchema{{std::move(group)}}), request, diagnostics);
  }

  View& add(const char* component, Range tokens, uint64_t offset, ByteStrides strides) {
    const LayerGroup& group = placement->cache_schema.groups[0];
    const Component& shape = *group.find(ComponentName(component));
    View view;
    view.component = shape.name;
    view.layers = group.layers.hull();
    view.tokens = tokens;
    view.heads = Range(0, shape.head_count);
    view.dims = Range(0, shape.head_dim);
    view.region = RegionId("pool");
    view.offset_bytes = offset;
    view.strides = strides;
    binding.views.push_back(view);
    return binding.views.back();
  }

  // The lines of the diagnostics, without the binding's own name.
  std::vector<std::string> diagnostics() const {
    Diagnostics found;
    const auto valid = Valid<RuntimeBinding>::make(binding, found);
    if (valid) check_binding(*valid, BindingContext(placement), found);
    std::vector<std::string> lines;
    for (const Diagnostic& diagnostic : found.kept())
      lines.push_back(diagnostic.message + " [" + std::string(rule_name(diagnostic.rule)) + "]");
    return lines;
  }

  Valid<PlacementManifest> placement;
  RuntimeBinding binding;
};

using Lines = std::vector<std::string>;

LayerGroup latent(uint64_t layer_count) { return group(Range(0, layer_count), {rows("latent", 1, 576)}); }

// Keys and values of one head side by side in the last dim, 2 * D items: the row stride is that of both.
TEST(Views, RowsMayPackKeyAndValue) {
  Request request(attention_group(1, 4, 64), Range(0, 16));
  const ByteStrides strides{.layer = 0, .row = 4 * 256, .head = 256, .dim = 2};
  request.add("key", Range(0, 16), 0, strides);
  request.add("value", Range(0, 16), 128, strides);
  EXPECT_EQ(request.diagnostics(), Lines{});
  // The stride of the key alone makes slots of neighbouring rows share bytes.
  for (View& view : request.binding.views) view.strides.row = 4 * 128;
  EXPECT_EQ(request.diagnostics(),
            (Lines{"row stride 512 is shorter than the 896 bytes of the head inside it [view-strides]",
                   "row stride 512 is shorter than the 896 bytes of the head inside it [view-strides]"}));
}

TEST(Views, HeadMajorAndTokenMajorPagesAreBothViews) {
  Request request(attention_group(1, 8, 128), Range(0, 100));
  request.binding.page_tables = {PageTable{PageTableId("t"), 64, 0, {3, 1}}};
  request.add("key", Range(0, 100), 0, {.layer = 0, .row = 2048, .head = 256, .dim = 2}).pages =
      ViewPages{PageTableId("t"), 262144};
  request.add("value", Range(0, 100), 131072, {.layer = 0, .row = 256, .head = 16384, .dim = 2}).pages =
      ViewPages{PageTableId("t"), 262144};
  EXPECT_EQ(request.diagnostics(), Lines{});
  request.binding.regions[0].bytes = 4 * 262144 - 1;
  EXPECT_EQ(request.diagnostics(), Lines{"the view ends at byte 1048576, region 'pool' at 1048575 [view-bounds]"});
}

// 300 tokens, pages of 64, a window of 128: tokens 172-299 live, in pages 2 to 4. Pages 0 and 1 are gone.
TEST(Views, OfASlidingWindowOnlyLivePagesAreMapped) {
  LayerGroup group = attention_group(1, 1, 8);
  group.live = LiveTokens::window(128);
  Request request(group, Range(0, 300));
  request.binding.page_tables = {PageTable{PageTableId("t"), 64, 128, {9, 4, 7}}};
  const ByteStrides strides{.layer = 0, .row = 32, .head = 32, .dim = 2};
  request.add("key", Range(172, 300), 0, strides).pages = ViewPages{PageTableId("t"), 2048};
  request.add("value", Range(172, 300), 16, strides).pages = ViewPages{PageTableId("t"), 2048};
  EXPECT_EQ(request.diagnostics(), Lines{});
  // The page of the first live token is there in full: its other rows live no more, and are allowed.
  request.binding.views[0].tokens = Range(128, 300);
  EXPECT_EQ(request.diagnostics(), Lines{});
  // A page without a live token may be another request's by now.
  request.binding.page_tables = {PageTable{PageTableId("t"), 64, 64, {2, 9, 4, 7}}};
  request.binding.views[0].tokens = Range(100, 300);
  EXPECT_EQ(
      request.diagnostics(),
      Lines{"component key layers 0 heads [0,1) dims [0,8) tokens [100,172): not owned or not live [view-not-owned]"});
  request.binding.views[0].tokens = Range(173, 300);
  EXPECT_EQ(request.diagnostics(),
            Lines{"component key layers 0 heads [0,1) dims [0,8) tokens [172,173): owned, but in no view "
                  "[coverage-gap]"});
}

// Case V10 of the field: with a window of 128 the next token needs the 127 before it, and vLLM frees what is older when
// a page ends there. Of 2,047 tokens it holds those from 1,920 on.
TEST(Views, V10ABindingOfWhatTheEngineKeepsIsComplete) {
  LayerGroup group = attention_group(1, 1, 8);
  group.live = LiveTokens::window(127);  // of a config with sliding_window 128
  Request request(group, Range(0, 2047));
  request.binding.page_tables = {PageTable{PageTableId("t"), 16, 1920, {9, 4, 7, 1, 2, 3, 5, 8}}};
  const ByteStrides strides{.layer = 0, .row = 32, .head = 32, .dim = 2};
  request.add("key", Range(1920, 2047), 0, strides).pages = ViewPages{PageTableId("t"), 2048};
  request.add("value", Range(1920, 2047), 16, strides).pages = ViewPages{PageTableId("t"), 2048};
  EXPECT_EQ(request.diagnostics(), Lines{});
}

// A state row of 4,000 bytes in a stride of 4,096.
TEST(Views, APaddedStateIsAView) {
  Component state{ComponentName("state"), "float32", "plain", 4, 3, 1000, std::nullopt};
  Request request(LayerGroup{IntervalSet{Range(0, 2)}, LiveTokens::all(), {state}}, Range(0, 5), 6 * 4096 - 96);
  request.add("state", Range(0, 1), 0, {.layer = 3 * 4096, .row = 0, .head = 4096, .dim = 4});
  EXPECT_EQ(request.diagnostics(), Lines{});
  request.binding.views[0].strides.head = 3999;
  EXPECT_EQ(request.diagnostics(), Lines{"head stride 3999 is not a multiple of the item size 4 [view-alignment]"});
}

// 100 tokens in pages of 64: the second page holds exactly 36, and may end with them.
TEST(Views, ThePartialLastPageEndsWithItsTokens) {
  Request request(latent(1), Range(0, 100), 100 * 1152);
  request.binding.page_tables = {PageTable{PageTableId("t"), 64, 0, {0, 1}}};
  request.add("latent", Range(0, 100), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2}).pages =
      ViewPages{PageTableId("t"), 64 * 1152};
  EXPECT_EQ(request.diagnostics(), Lines{});
  const std::vector<StridedBytes> bytes =
      bytes_by_space(ViewDocument{request.binding.page_tables, request.binding.views, {}, request.binding.tokens},
                     request.placement->cache_schema)[RegionId("pool")];
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(bytes[1].base, 64u * 1152);
  EXPECT_EQ(bytes[1].span(), 36u * 1152);
}

// A request whose target reserved one page more than its tokens need: the view stays as it is, the third page
// untouched.
TEST(Views, ATableMayHaveMorePagesThanTheTokensNeed) {
  Request request(latent(1), Range(0, 128), 10 * 64 * 1152);
  request.binding.page_tables = {PageTable{PageTableId("t"), 64, 0, {4, 2, 9}}};
  request.add("latent", Range(0, 128), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2}).pages =
      ViewPages{PageTableId("t"), 64 * 1152};
  EXPECT_EQ(request.diagnostics(), Lines{});
}

// 27 layers of one latent component: 27 x tokens x 576 x 2 bytes, not 27 times that.
TEST(Views, ALatentCacheHasOneRowPerLayerAndToken) {
  Request request(latent(27), Range(0, 10));
  EXPECT_EQ(volume_of(request.placement->cache_schema).bytes_per_token, 27 * 576 * 2);
}

// What engines store for an indexer key: all values of a page, then all scales of the page.
TEST(Views, DimsOfOneComponentMayLieInTwoPlaces) {
  Component indexer{ComponentName("indexer_key"), "uint8", "fp8_e4m3+float32_scale_per_128", 1, 1, 132, 1};
  Request request(LayerGroup{IntervalSet{Range(0, 1)}, LiveTokens::all(), {indexer}}, Range(0, 70), 2 * 64 * 132);
  request.binding.page_tables = {PageTable{PageTableId("t"), 64, 0, {1, 0}}};
  View values = request.add("indexer_key", Range(0, 70), 0, {.layer = 0, .row = 128, .head = 0, .dim = 1});
  values.dims = Range(0, 128);
  values.pages = ViewPages{PageTableId("t"), 64 * 132};
  View scales = values;
  scales.dims = Range(128, 132);
  scales.offset_bytes = 64 * 128;
  scales.strides.row = 4;
  request.binding.views = {values, scales};
  EXPECT_EQ(request.diagnostics(), Lines{});
  request.binding.views = {values};
  EXPECT_EQ(request.diagnostics(),
            Lines{"component indexer_key layers 0 heads [0,1) dims [128,132) tokens [0,70): owned, "
                  "but in no view [coverage-gap]"});
}

// Block numbers times strides that pass 32 bits, and regions whose offsets lie above 2^40.
TEST(Views, OffsetsAreExactFarAbove32Bits) {
  for (const auto& [page_stride, slot] :
       {std::pair<uint64_t, uint64_t>(1'039'680, 2'066), {1'002'240, 2'143}, {1'039'680, 1 << 20}}) {
    const uint64_t base = uint64_t{1} << 40;
    const uint64_t end = base + slot * page_stride + 576 * 2;
    Request request(latent(1), Range(0, 1), end);
    request.binding.page_tables = {PageTable{PageTableId("t"), 64, 0, {slot}}};
    request.add("latent", Range(0, 1), base, {.layer = 0, .row = 1152, .head = 0, .dim = 2}).pages =
        ViewPages{PageTableId("t"), page_stride};
    EXPECT_EQ(request.diagnostics(), Lines{}) << page_stride << " x " << slot;
    request.binding.regions[0].bytes = end - 1;
    EXPECT_EQ(request.diagnostics().size(), 1u);
  }
}

TEST(Views, AProductPast64BitsIsRefusedNotWrapped) {
  Request request(latent(1), Range(0, 64), UINT64_MAX);
  request.binding.page_tables = {PageTable{PageTableId("t"), 32, 0, {uint64_t{1} << 62, 0}}};
  request.add("latent", Range(0, 64), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2}).pages =
      ViewPages{PageTableId("t"), 1 << 16};
  EXPECT_EQ(request.diagnostics(),
            Lines{"4611686018427387905 indices at page stride 65536 do not fit in 64 bits [size-overflow]"});
  request.binding.page_tables[0].slots = {uint64_t{1} << 62, (uint64_t{1} << 62) + 1};
  EXPECT_EQ(request.diagnostics(),
            Lines{"the view ends past 2^64, region 'pool' at 18446744073709551615 [view-bounds]"});
}

// A device that registers 2 GiB at most: a buffer of 5 GiB is three regions, never one that is cut short.
TEST(Views, ALongBufferIsSeveralRegions) {
  Request request(latent(1), Range(0, 1), 5 * kGiB);
  request.add("latent", Range(0, 1), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2});
  request.binding.devices[0].registration_bytes_max = 2 * kGiB;
  EXPECT_EQ(request.diagnostics(),
            Lines{"5368709120 bytes are more than the 2147483648 that device 'd' can register; split "
                  "the region [registration-limit]"});
  request.binding.regions = {};
  for (const auto& [name, bytes] :
       {std::pair("pool", 2 * kGiB), std::pair("pool-1", 2 * kGiB), std::pair("pool-2", kGiB)})
    request.binding.regions.push_back(Region{RegionId(name), 1, bytes, DeviceId("d"), {}, {}});
  EXPECT_EQ(request.diagnostics(), Lines{});
}

const CyclicTokens kEvenBlocks{4, 2, IntervalSet{Range(0, 1)}};  // tokens 0-3, 8-11, ...
const CyclicTokens kOddBlocks{4, 2, IntervalSet{Range(1, 2)}};

// Makes two ranks of context parallelism of the one participant: "a" has the even blocks of 4 tokens, "b" the odd ones.
void share_with_b(Request& request) {
  PlacementManifest placement = *request.placement;
  placement.topology.sizes.cp = 2;
  placement.topology.participants = {Participant{ParticipantId("a"), {}}, Participant{ParticipantId("b"), {.cp = 1}}};
  placement.parts = {Part{ParticipantId("a"), placement.parts[0].owns},
                     Part{ParticipantId("b"), placement.parts[0].owns}};
  placement.parts[0].owns[0].tokens = kEvenBlocks;
  placement.parts[1].owns[0].tokens = kOddBlocks;
  request.placement = valid_or_die(placement);
  request.binding.placement_digest = digest(request.placement);
}

// A context-parallel rank keeps every second block of 4 tokens, packed into its own pages.
TEST(Views, ACycleIsPackedIntoPages) {
  Request request(latent(1), Range(0, 20), 1 << 20);
  share_with_b(request);
  request.binding.participant = ParticipantId("b");
  request.binding.page_tables = {PageTable{PageTableId("t"), 8, 0, {3}}};  // its 8 tokens 4-7 and 12-15 fill one page
  View& view = request.add("latent", Range(0, 20), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2});
  view.pages = ViewPages{PageTableId("t"), 8 * 1152};
  view.cycle = kOddBlocks;
  EXPECT_EQ(request.diagnostics(), Lines{});
  view.cycle = kEvenBlocks;  // the other rank's 12 tokens
  EXPECT_EQ(request.diagnostics(), Lines{"tokens [0,20) need 2 pages, page table 't' has 1 [view-pages]"});
}

// One cycle on both sides: tokens are counted, and a view that begins or ends within a block is seen to the token.
TEST(Views, TokensOfACycleAreCoveredToTheToken) {
  Request request(latent(1), Range(0, 98));
  share_with_b(request);
  request.binding.participant = ParticipantId("a");
  const auto lines_of = [&](std::vector<Range> views) {
    Request with_views = request;
    uint64_t offset = 0;
    for (const Range tokens : views) {
      View& view = with_views.add("latent", tokens, 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2});
      view.offset_bytes = offset;
      view.cycle = kEvenBlocks;
      offset += 100 * 1152;
    }
    return with_views.diagnostics();
  };
  const std::string box = "component latent layers 0 heads [0,1) dims [0,576) tokens ";
  EXPECT_EQ(lines_of({Range(0, 98)}), Lines{});
  EXPECT_EQ(lines_of({Range(0, 27), Range(27, 98)}), Lines{});
  EXPECT_EQ(lines_of({Range(1, 98)}), Lines{box + "[0,1): owned, but in no view [coverage-gap]"});
  EXPECT_EQ(lines_of({Range(3, 98)}), Lines{box + "[0,3): owned, but in no view [coverage-gap]"});
  EXPECT_EQ(lines_of({Range(0, 97)}), Lines{box + "[97,98): owned, but in no view [coverage-gap]"});
  EXPECT_EQ(lines_of({Range(0, 27), Range(25, 98)}), Lines{box + "[25,27): also in view 0 [coverage-overlap]"});
  EXPECT_EQ(lines_of({Range(1, 27), Range(26, 98)}), (Lines{box + "[0,1): owned, but in no view [coverage-gap]",
                                                            box + "[26,27): also in view 0 [coverage-overlap]"}));
}

TEST(Views, BindingsOfOneInstanceMustNotShareBytes) {
  Request first(latent(1), Range(0, 4));
  first.add("latent", Range(0, 4), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2});
  Request second = first;
  second.binding.operation = OperationId("other");
  const auto line_at = [&](uint64_t offset) {
    second.binding.views[0].offset_bytes = offset;
    const Valid<RuntimeBinding> a = valid_or_die(first.binding);
    const Valid<RuntimeBinding> b = valid_or_die(second.binding);
    const BindingContext context(first.placement);
    Diagnostics diagnostics;
    check_instances(std::vector<BoundParticipant>{{&a, &context}, {&b, &context}}, diagnostics);
    return diagnostics.empty() ? "" : diagnostics.kept()[0].message;
  };
  EXPECT_EQ(line_at(4 * 1152), "");
  EXPECT_EQ(line_at(3 * 1152), "binding 'op' of 'p0-t0' view 0 and binding 'other' of 'p0-t0' view 0 share bytes");
}

TEST(Views, ARegionInsideALongerOneIsFoundPastItsNeighbours) {
  Request request(latent(1), Range(0, 1));
  request.add("latent", Range(0, 1), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2});
  request.binding.regions[0].address = 0;  // up to 1 GiB
  request.binding.regions.push_back(Region{RegionId("a"), 1, 10, DeviceId("d"), 2 * kGiB, {}});
  request.binding.regions.push_back(Region{RegionId("b"), 1, 10, DeviceId("d"), 2 * kGiB + 10, {}});
  EXPECT_EQ(request.diagnostics(), Lines{});
  request.binding.regions[0].address = 2 * kGiB - 1;  // before both, and over both
  EXPECT_EQ(
      request.diagnostics(),
      (Lines{"addresses [2147483648,2147483658) overlap [2147483647,3221225471) of region 'pool' [regions-overlap]",
             "addresses [2147483658,2147483668) overlap [2147483647,3221225471) of region 'pool' [regions-overlap]"}));
}

TEST(Views, ARegionMayEndWhereTheAddressesEnd) {
  Request request(latent(1), Range(0, 1));
  request.add("latent", Range(0, 1), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2});
  request.binding.regions[0].address = UINT64_MAX - kGiB + 1;  // 1 GiB
  EXPECT_EQ(request.diagnostics(), Lines{});
  request.binding.regions.push_back(Region{RegionId("last"), 1, 1, DeviceId("d"), UINT64_MAX, {}});
  EXPECT_EQ(request.diagnostics(),
            (Lines{"addresses [18446744073709551615,18446744073709551616) overlap "
                   "[18446744072635809792,18446744073709551616) of region 'pool' [regions-overlap]"}));
  request.binding.regions.pop_back();
  ++*request.binding.regions[0].address;
  EXPECT_EQ(request.diagnostics(),
            (Lines{"1073741824 bytes from address 18446744072635809793 end past 2^64 [size-overflow]"}));
}

// A row of four tokens whose first tokens the snapshot does not have.
TEST(Views, ASnapshotMayBeginWithinARow) {
  Component scale{ComponentName("key_scale"), "float32", "plain", 4, 1, 1, 4};
  const LayerGroup group{IntervalSet{Range(0, 1)}, LiveTokens::all(), {scale}};
  Request request(group, Range(3, 10), 3 * 4);  // the rows of tokens 0-3, 4-7 and 8-11
  request.add("key_scale", Range(3, 10), 0, {.layer = 0, .row = 4, .head = 0, .dim = 4});
  EXPECT_EQ(request.diagnostics(), Lines{});
  request.binding.views[0].tokens = Range(3, 6);
  EXPECT_EQ(request.diagnostics(), Lines{"tokens [3,6) cut a row of 4 tokens [token-alignment]"});
}

// Small documents whose naive expansion is huge: each must end at a limit, with its rule.
TEST(HostileDocuments, PartsThatCrossManyGroupsStopAtTheLimit) {
  PlacementManifest placement = *example_placement();
  CacheSchema schema;
  for (uint64_t layer = 0; layer < 4000; ++layer)
    schema.groups.push_back(LayerGroup{IntervalSet{Range(layer, layer + 1)},
                                       LiveTokens::all(),
                                       {Component{ComponentName("key"), "bfloat16", "plain", 2, 1, 1 + layer, 1}}});
  placement.cache_schema = schema;
  const Ownership all{IntervalSet{Range(0, 4000)}, {ComponentName("key")}, IntervalSet{Range(0, 1)}, AllTokens(), {}};
  for (Part& part : placement.parts) part.owns = {};
  placement.parts[0].owns.assign(4000, all);
  Diagnostics diagnostics;
  EXPECT_FALSE(Valid<PlacementManifest>::make(placement, diagnostics));
  EXPECT_EQ(diagnostics.kept()[0].message,
            "the parts own more than 8388608 pieces of layer groups and their token intervals");

  StoreLayout layout = *example_store_layout();
  layout.cache_schema = schema;
  layout.parts.clear();
  for (int i = 0; i < 4000; ++i)
    layout.parts.push_back(StorePart{ObjectKey(std::to_string(i)), all.layers, all.components, all.heads});
  Diagnostics layout_diagnostics;
  EXPECT_FALSE(Valid<StoreLayout>::make(layout, layout_diagnostics));
  EXPECT_FALSE(layout_diagnostics.empty());
}

TEST(HostileDocuments, ManyLayersThatAreUnknownAreToldQuickly) {
  PlacementManifest placement = *example_placement();
  std::vector<Range> even;
  std::vector<Range> odd;
  for (uint64_t layer = 0; layer < 60'000; layer += 2) {
    even.push_back(Range(layer, layer + 1));
    odd.push_back(Range(layer + 1, layer + 2));
  }
  placement.cache_schema.groups = {placement.cache_schema.groups[1]};
  placement.cache_schema.groups[0].layers = IntervalSet::from_ranges(even);
  for (Part& part : placement.parts) part.owns = {};
  placement.parts[0].owns = {
      Ownership{IntervalSet::from_ranges(odd), {ComponentName("key")}, IntervalSet{Range(0, 2)}, AllTokens(), {}}};
  Diagnostics diagnostics;
  EXPECT_FALSE(Valid<PlacementManifest>::make(placement, diagnostics));
  EXPECT_EQ(diagnostics.total(), 30'000u);
}

TEST(HostileDocuments, TokenIntervalsOverTheLimitStopAtOnce) {
  PlacementManifest placement = *example_placement();
  std::vector<Range> tokens;
  for (uint64_t i = 0; i <= (uint64_t{1} << 20); ++i) tokens.push_back(Range(2 * i, 2 * i + 1));
  placement.cache_schema.groups = {placement.cache_schema.groups[1]};
  placement.cache_schema.groups[0].components = {placement.cache_schema.groups[0].components[0]};
  placement.cache_schema.groups[0].components[0].head_count = 1000;
  for (Part& part : placement.parts) part.owns = {};
  Ownership own{
      IntervalSet{Range(2, 3)}, {ComponentName("key")}, {}, TokenIntervals{IntervalSet::from_ranges(tokens)}, {}};
  std::vector<Range> heads;
  for (uint64_t head = 0; head < 1000; head += 2) heads.push_back(Range(head, head + 1));
  own.heads = IntervalSet::from_ranges(heads);
  placement.parts[0].owns = {own};
  Diagnostics diagnostics;
  EXPECT_FALSE(Valid<PlacementManifest>::make(placement, diagnostics));
  EXPECT_TRUE(diagnostics.has(Rule::kWorkLimit));
  EXPECT_LE(diagnostics.total(), 2u);
}

TEST(HostileDocuments, CyclesOfSingleTokensStopAtTheLimit) {
  Request request(latent(1), Range(0, uint64_t{1} << 40));
  View& view = request.add("latent", Range(0, uint64_t{1} << 40), 0, {.layer = 0, .row = 1152, .head = 0, .dim = 2});
  view.cycle = CyclicTokens{1, 2, IntervalSet{Range(0, 1)}};
  request.binding.regions[0].bytes = UINT64_MAX;
  EXPECT_EQ(request.diagnostics(),
            Lines{"comparing the views with what is required of them takes more than 1048576 boxes or "
                  "their steps [work-limit]"});
}

TEST(HostileDocuments, DiagnosticsWithoutNumberAreNotAllKept) {
  // 40,000 heads, each with an owner that claims to be one of two.
  PlacementManifest placement = *example_placement();
  placement.cache_schema.groups = {LayerGroup{IntervalSet{Range(0, 1)},
                                              LiveTokens::all(),
                                              {Component{ComponentName("key"), "bfloat16", "plain", 2, 40'000, 1, 1}}}};
  for (Part& part : placement.parts) part.owns = {};
  for (uint64_t head = 0; head < 40'000; ++head)
    placement.parts[0].owns.push_back(Ownership{
        IntervalSet{Range(0, 1)}, {ComponentName("key")}, IntervalSet{Range(head, head + 1)}, AllTokens(), {0, 2}});
  Diagnostics diagnostics;
  EXPECT_FALSE(Valid<PlacementManifest>::make(placement, diagnostics));
  EXPECT_EQ(diagnostics.kept().size(), Diagnostics::kKeptMax);
  EXPECT_LT(diagnostics.total(), 20'000u);
}

TEST(Views, OrthogonalStripesStopAtTheLimitInsteadOfGrowing) {
  // 128 rows against 128 columns is compact enough; the limit is there for what is not.
  std::vector<Box> rows;
  std::vector<Box> columns;
  for (uint64_t i = 0; i < 128; ++i) {
    rows.push_back(Box{Range(i, i + 1), Range(0, 128)});
    columns.push_back(Box{Range(0, 128), Range(i, i + 1)});
  }
  EXPECT_TRUE(check_box_cover(rows, columns, BoxCoverLimits()).exact());
  EXPECT_FALSE(check_box_cover(rows, columns, BoxCoverLimits{.work_max = 10000}).complete);
}

}  // namespace
}  // namespace crossdock::testing
