// Bindings made for a placement: their layout written out, the models of examples/models, and random placements
// against the definition, element by element.
#include "model/kv/pool_binding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/sha256.h"
#include "model/hf/config.h"
#include "model/kv/binding_rules.h"
#include "model/kv/partition.h"
#include "model/wire/documents.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

// A placement with a snapshot of it.
struct Subject {
  Subject(PlacementManifest manifest, Range tokens)
      : placement(valid_or_die(std::move(manifest))),
        snapshot(snapshot_of(placement, tokens)),
        context(placement, &snapshot) {}
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  static Valid<SnapshotDescriptor> snapshot_of(const Valid<PlacementManifest>& placement, Range tokens) {
    SnapshotDescriptor snapshot = *example_snapshot();
    snapshot.resource = placement->resource;
    snapshot.cache_schema_digest = cache_schema_digest(placement);
    snapshot.tokens = tokens;
    return valid_or_die(snapshot);
  }

  std::optional<Valid<RuntimeBinding>> bind(const char* participant, const PoolRequest& request,
                                            Diagnostics& diagnostics) const {
    return pool_binding(placement, context.placement_digest(), ParticipantId(participant), snapshot->tokens,
                        *context.snapshot_digest(), request, diagnostics);
  }

  // The binding, which has to be made and to be right.
  RuntimeBinding bind(const char* participant, const PoolRequest& request) const {
    Diagnostics diagnostics;
    const auto binding = bind(participant, request, diagnostics);
    EXPECT_TRUE(binding) << diagnostic_lines(diagnostics);
    if (!binding) return RuntimeBinding();
    check_binding(*binding, context, diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << diagnostic_lines(diagnostics);
    return **binding;
  }

  std::string refusal(const char* participant, const PoolRequest& request) const {
    Diagnostics diagnostics;
    EXPECT_FALSE(bind(participant, request, diagnostics));
    return diagnostic_lines(diagnostics);
  }

  Valid<PlacementManifest> placement;
  Valid<SnapshotDescriptor> snapshot;
  BindingContext context;
};

PoolRequest pages_of(uint64_t page_tokens) {
  PoolRequest request;
  request.operation = OperationId("op");
  request.page_tokens = page_tokens;
  return request;
}

// "pages-0 from 16: 0 1 2"
std::vector<std::string> tables_text(const RuntimeBinding& binding) {
  std::vector<std::string> lines;
  for (const PageTable& table : binding.page_tables)
    lines.push_back(fmt::format("{} from {}: {}", table.id.text(), table.token_begin, fmt::join(table.slots, " ")));
  return lines;
}

std::vector<std::string> regions_text(const RuntimeBinding& binding) {
  std::vector<std::string> lines;
  for (const Region& region : binding.regions) lines.push_back(fmt::format("{} {}", region.id.text(), region.bytes));
  return lines;
}

std::string text_of(Range range) { return fmt::format("[{},{})", range.begin(), range.end()); }

// "key layers [0,2) tokens [0,10) heads [0,2) of pages-0: key-g0 + 0, layer 192 head 8 row 16 page 64"
std::vector<std::string> views_text(const RuntimeBinding& binding) {
  std::vector<std::string> lines;
  for (const View& view : binding.views)
    lines.push_back(fmt::format("{} layers {} tokens {} heads {} of {}: {} + {}, layer {} head {} row {} page {}",
                                view.component.text(), text_of(view.layers), text_of(view.tokens), text_of(view.heads),
                                view.pages ? view.pages->table.text() : "none", view.region.text(), view.offset_bytes,
                                view.strides.layer, view.strides.head, view.strides.row,
                                view.pages ? view.pages->page_stride_bytes : 0));
  return lines;
}

using Lines = std::vector<std::string>;

const IntervalSet kTwoLayers{Range(0, 2)};
const IntervalSet kTwoHeads{Range(0, 2)};

// Two layers of keys with two heads of 4 items of 2 bytes, one owner.
PlacementManifest keys_alone() {
  return placement_of({group(kTwoLayers, {rows("key", 2, 4)})}, {{owns(kTwoLayers, {"key"}, kTwoHeads)}});
}

// --- layout

TEST(PoolBinding, ARegionOfAGroupHoldsLayersOfSlotsOfRowsOfHeads) {
  const RuntimeBinding binding = Subject(keys_alone(), Range(0, 10)).bind("a", pages_of(4));
  EXPECT_EQ(tables_text(binding), Lines{"pages-0 from 0: 0 1 2"});
  EXPECT_EQ(regions_text(binding), Lines{"key-g0 384"});  // 2 layers x 3 slots x 4 rows x 2 heads x 8 bytes
  EXPECT_EQ(
      views_text(binding),
      Lines{"key layers [0,2) tokens [0,10) heads [0,2) of pages-0: key-g0 + 0, layer 192 head 8 row 16 page 64"});
  EXPECT_EQ(binding.views[0].strides.dim, 2u);
  EXPECT_EQ(binding.views[0].dims, Range(0, 4));
  EXPECT_EQ(binding.operation, OperationId("op"));
  EXPECT_EQ(binding.instance, InstanceId("a"));
  ASSERT_EQ(binding.devices.size(), 1u);
  EXPECT_EQ(binding.devices[0].kind, "host");
}

TEST(PoolBinding, HeadMajorPagesHoldAllRowsOfAHeadTogether) {
  PoolRequest request = pages_of(4);
  request.axis_order = PoolOrder::kHnd;
  EXPECT_EQ(
      views_text(Subject(keys_alone(), Range(0, 10)).bind("a", request)),
      Lines{"key layers [0,2) tokens [0,10) heads [0,2) of pages-0: key-g0 + 0, layer 192 head 32 row 8 page 64"});
}

TEST(PoolBinding, EachLayerHasItsRegionWhenAsked) {
  PoolRequest request = pages_of(4);
  request.region_per_layer = true;
  const RuntimeBinding binding = Subject(keys_alone(), Range(0, 10)).bind("a", request);
  EXPECT_EQ(regions_text(binding), (Lines{"key-000 192", "key-001 192"}));
  EXPECT_EQ(
      views_text(binding),
      (Lines{"key layers [0,1) tokens [0,10) heads [0,2) of pages-0: key-000 + 0, layer 192 head 8 row 16 page 64",
             "key layers [1,2) tokens [0,10) heads [0,2) of pages-0: key-001 + 0, layer 192 head 8 row 16 page 64"}));
}

TEST(PoolBinding, PageBoundariesLieAtMultiplesOfThePageSizeWhereverTheSnapshotBegins) {
  EXPECT_EQ(tables_text(Subject(keys_alone(), Range(7, 13)).bind("a", pages_of(4))), Lines{"pages-0 from 4: 0 1 2"});
  EXPECT_EQ(tables_text(Subject(keys_alone(), Range(8, 12)).bind("a", pages_of(4))), Lines{"pages-0 from 8: 0"});
}

TEST(PoolBinding, TokensUpToTheLastNumberFit) {
  const Subject subject(keys_alone(), Range(UINT64_MAX - 2, UINT64_MAX));
  EXPECT_EQ(tables_text(subject.bind("a", pages_of(16))), Lines{"pages-0 from 18446744073709551600: 0"});
}

TEST(PoolBinding, SparePagesMakeThePoolLarger) {
  PoolRequest request = pages_of(4);
  request.spare_pages = 2;
  const RuntimeBinding binding = Subject(keys_alone(), Range(0, 10)).bind("a", request);
  EXPECT_EQ(tables_text(binding), Lines{"pages-0 from 0: 0 1 2"});
  EXPECT_EQ(regions_text(binding), Lines{"key-g0 640"});  // 5 slots
}

TEST(PoolBinding, ASeedPutsPagesIntoRandomSlotsOfThePool) {
  const Subject subject(keys_alone(), Range(0, 400));
  PoolRequest request = pages_of(4);
  request.spare_pages = 50;
  request.shuffle_seed = 0;
  const RuntimeBinding binding = subject.bind("a", request);
  EXPECT_EQ(subject.bind("a", request), binding);
  const std::vector<uint64_t>& slots = binding.page_tables[0].slots;
  EXPECT_EQ(slots.size(), 100u);
  EXPECT_EQ(std::set<uint64_t>(slots.begin(), slots.end()).size(), 100u);
  EXPECT_FALSE(std::is_sorted(slots.begin(), slots.end()));
  EXPECT_GE(*std::max_element(slots.begin(), slots.end()), 100u);  // spare slots lie among the others
  EXPECT_LT(*std::max_element(slots.begin(), slots.end()), 150u);
  request.shuffle_seed = 1;
  EXPECT_NE(subject.bind("a", request).page_tables, binding.page_tables);
}

TEST(PoolBinding, AWindowHasATableOfItsLiveTokensAndNoSlotIsGivenTwice) {
  const LayerGroup all = group({Range(0, 1)}, {rows("key", 1, 4)});
  const LayerGroup window = group({Range(1, 3)}, {rows("key", 1, 4)}, 6);
  const IntervalSet head{Range(0, 1)};
  const Subject subject(placement_of({all, window}, {{owns({Range(0, 3)}, {"key"}, head)}}), Range(0, 16));
  const RuntimeBinding binding = subject.bind("a", pages_of(4));
  EXPECT_EQ(tables_text(binding), (Lines{"pages-0 from 0: 0 1 2 3", "pages-1 from 8: 4 5"}));
  EXPECT_EQ(regions_text(binding), (Lines{"key-g0 192", "key-g1 384"}));  // 6 slots x 4 rows x 8 bytes
  EXPECT_EQ(views_text(binding),
            (Lines{"key layers [0,1) tokens [0,16) heads [0,1) of pages-0: key-g0 + 0, layer 192 head 8 row 8 page 32",
                   "key layers [1,3) tokens [10,16) heads [0,1) of pages-1: key-g1 + 0, layer 192 head 8 row 8 page "
                   "32"}));
}

TEST(PoolBinding, BlockScalesHaveOneRowForTheirTokens) {
  const LayerGroup scaled = group({Range(0, 1)}, {rows("key", 1, 4), rows("key_scale", 1, 1, 4)});
  const Subject subject(placement_of({scaled}, {{owns({Range(0, 1)}, {"key", "key_scale"}, {Range(0, 1)})}}),
                        Range(0, 13));
  const RuntimeBinding binding = subject.bind("a", pages_of(8));
  EXPECT_EQ(tables_text(binding), Lines{"pages-0 from 0: 0 1"});
  EXPECT_EQ(regions_text(binding), (Lines{"key-g0 128", "key_scale-g0 8"}));  // 2 slots x 2 rows x 2 bytes
  EXPECT_EQ(subject.refusal("a", pages_of(6)),
            "binding 'op' of 'a' component 'key_scale' (layers 0): pages of 6 tokens cut a row of 4 tokens "
            "[token-alignment]\n");
}

TEST(PoolBinding, AStateHasARegionOfItsOwnAndNoPages) {
  const LayerGroup states = group({Range(3, 5)}, {state("recurrent_state", 4, 8)});
  const Subject subject(placement_of({states}, {{owns({Range(3, 5)}, {"recurrent_state"}, {Range(0, 4)})}}),
                        Range(100, 200));
  PoolRequest request = pages_of(16);
  request.spare_pages = 9;
  const RuntimeBinding binding = subject.bind("a", request);
  EXPECT_EQ(tables_text(binding), Lines{});
  EXPECT_EQ(regions_text(binding), Lines{"recurrent_state-g0 256"});  // 2 layers x 4 heads x 32 bytes
  EXPECT_EQ(views_text(binding),
            Lines{"recurrent_state layers [3,5) tokens [0,1) heads [0,4) of none: recurrent_state-g0 + 0, layer 128 "
                  "head 32 row 128 page 0"});
}

TEST(PoolBinding, SeveralRunsOfLayersAndHeadsArePacked) {
  const LayerGroup keys = group({Range(0, 9)}, {rows("key", 9, 4)});
  const IntervalSet layers{Range(1, 3), Range(5, 6)};
  const IntervalSet heads{Range(0, 1), Range(4, 6)};
  const IntervalSet all_layers{Range(0, 9)};
  const IntervalSet all_heads{Range(0, 9)};
  const Subject subject(placement_of({keys}, {{owns(layers, {"key"}, heads)},
                                              {owns(layers, {"key"}, all_heads.subtract(heads)),
                                               owns(all_layers.subtract(layers), {"key"}, all_heads)}}),
                        Range(0, 4));
  const RuntimeBinding binding = subject.bind("a", pages_of(4));
  EXPECT_EQ(regions_text(binding), Lines{"key-g0 288"});  // 3 layers x 4 rows x 3 heads x 8 bytes
  EXPECT_EQ(views_text(binding),
            (Lines{"key layers [1,3) tokens [0,4) heads [0,1) of pages-0: key-g0 + 0, layer 96 head 8 row 24 page 96",
                   "key layers [1,3) tokens [0,4) heads [4,6) of pages-0: key-g0 + 8, layer 96 head 8 row 24 page 96",
                   "key layers [5,6) tokens [0,4) heads [0,1) of pages-0: key-g0 + 192, layer 96 head 8 row 24 page 96",
                   "key layers [5,6) tokens [0,4) heads [4,6) of pages-0: key-g0 + 200, layer 96 head 8 row 24 page "
                   "96"}));
  subject.bind("b", pages_of(4));
}

// --- who owns which tokens

// One layer and one head, shared out by tokens.
PlacementManifest shared_out(const std::vector<TokenOwnership>& shares, std::optional<uint64_t> window = std::nullopt) {
  std::vector<std::vector<Ownership>> parts;
  for (const TokenOwnership& share : shares) parts.push_back({owns({Range(0, 1)}, {"key"}, {Range(0, 1)}, share)});
  return placement_of({group({Range(0, 1)}, {rows("key", 1, 4)}, window)}, parts);
}

TEST(PoolBinding, PagesOfACycleHoldItsTokensOnly) {
  // Blocks of 2 tokens in turn: "b" has the tokens 2 3 6 7 10 11 14 15.
  const CyclicTokens first{2, 2, {Range(0, 1)}};
  const CyclicTokens second{2, 2, {Range(1, 2)}};
  const RuntimeBinding binding = Subject(shared_out({first, second}), Range(0, 15)).bind("b", pages_of(4));
  EXPECT_EQ(tables_text(binding), Lines{"pages-0 from 0: 0 1"});
  EXPECT_EQ(binding.views.at(0).cycle, second);
  EXPECT_EQ(binding.views[0].tokens, Range(0, 15));
  // Live are 9 to 14: the page of 8, 9, 12 and 13, like that of 10, 11 and 14, begins with the cycle at 8.
  const Subject window(shared_out({first, second}, 6), Range(0, 15));
  EXPECT_EQ(tables_text(window.bind("a", pages_of(4))), Lines{"pages-0 from 8: 0"});
  EXPECT_EQ(tables_text(window.bind("b", pages_of(4))), Lines{"pages-0 from 8: 0"});
  // The page of 5, 8 and 9 begins before that cycle.
  EXPECT_EQ(tables_text(window.bind("a", pages_of(3))), Lines{"pages-0 from 5: 0 1"});
}

TEST(PoolBinding, ATableOfALongCycleBeginsWithThePageOfTheFirstLiveToken) {
  const uint64_t block = uint64_t{1} << 40;
  const CyclicTokens first{block, 2, {Range(0, 1)}};
  const CyclicTokens second{block, 2, {Range(1, 2)}};
  const Subject subject(shared_out({first, second}), Range(block + 1003, block + 1020));
  // "b" has 1003 tokens before: its page 62 of 16 began after 992 of them.
  EXPECT_EQ(tables_text(subject.bind("b", pages_of(16))), Lines{fmt::format("pages-0 from {}: 0 1", block + 992)});
  EXPECT_EQ(subject.bind("a", pages_of(16)).views.size(), 0u);
}

TEST(PoolBinding, IntervalsThatShareAPageShareItsTable) {
  const IntervalSet tokens{Range(0, 3), Range(5, 9), Range(12, 13), Range(uint64_t{1} << 50, (uint64_t{1} << 50) + 5)};
  const TokenIntervals own{tokens};
  const TokenIntervals others{IntervalSet{Range::all()}.subtract(tokens)};
  const Subject near(shared_out({own, others}), Range(0, 40));
  const RuntimeBinding binding = near.bind("a", pages_of(4));
  EXPECT_EQ(tables_text(binding), Lines{"pages-0 from 0: 0 1 2 3"});
  EXPECT_EQ(binding.views.size(), 3u);
  EXPECT_EQ(tables_text(near.bind("a", pages_of(2))), (Lines{"pages-0 from 0: 0 1 2 3 4", "pages-1 from 12: 5"}));
  EXPECT_EQ(tables_text(near.bind("b", pages_of(4))), Lines{"pages-0 from 0: 0 1 2 3 4 5 6 7 8 9"});
}

TEST(PoolBinding, AGapOfPagesInTheTokensTakesNoSlots) {
  const uint64_t far = uint64_t{1} << 50;
  const IntervalSet tokens{Range(0, 3), Range(far, far + 5)};
  // What lies between is another's, who may have no binding: it would need more pages than there may be.
  const Subject subject(
      shared_out({TokenIntervals{tokens}, TokenIntervals{IntervalSet{Range::all()}.subtract(tokens)}}),
      Range(0, far + 10));
  EXPECT_EQ(tables_text(subject.bind("a", pages_of(4))),
            (Lines{"pages-0 from 0: 0", fmt::format("pages-1 from {}: 1 2", far)}));
  EXPECT_EQ(subject.refusal("b", pages_of(4)).substr(0, 79),
            "binding 'op' of 'b' component 'key' (layers 0): with its 281474976710658 the vi");
}

TEST(PoolBinding, OwnershipsOfOneComponentWithDifferentTokensLieInDifferentSlots) {
  // Head 0 with all tokens, head 1 with the even blocks only.
  const CyclicTokens even{4, 2, {Range(0, 1)}};
  const CyclicTokens odd{4, 2, {Range(1, 2)}};
  const IntervalSet layer{Range(0, 1)};
  const Subject subject(placement_of({group(layer, {rows("key", 2, 4)})},
                                     {{owns(layer, {"key"}, {Range(0, 1)}), owns(layer, {"key"}, {Range(1, 2)}, even)},
                                      {owns(layer, {"key"}, {Range(1, 2)}, odd)}}),
                        Range(0, 16));
  const RuntimeBinding binding = subject.bind("a", pages_of(4));
  EXPECT_EQ(tables_text(binding), (Lines{"pages-0 from 0: 0 1 2 3", "pages-1 from 0: 4 5"}));
  EXPECT_EQ(regions_text(binding), Lines{"key-g0 384"});  // 6 slots x 4 rows x 2 heads x 8 bytes
}

TEST(PoolBinding, WhoOwnsNothingHasABindingWithoutViews) {
  const Subject subject(
      placement_of({group(kTwoLayers, {rows("key", 2, 4)})}, {{owns(kTwoLayers, {"key"}, kTwoHeads)}, {}}),
      Range(0, 10));
  const RuntimeBinding binding = subject.bind("b", pages_of(4));
  EXPECT_TRUE(binding.views.empty() && binding.regions.empty() && binding.page_tables.empty());
}

// --- names

TEST(PoolBinding, RegionsAreNumberedWithAsManyDigitsAsTheLastLayerHas) {
  const IntervalSet layers{Range(7, 8), Range(12345, 12346)};
  const Subject subject(placement_of({group(layers, {rows("key", 1, 4)})}, {{owns(layers, {"key"}, {Range(0, 1)})}}),
                        Range(0, 1));
  PoolRequest request = pages_of(1);
  request.region_per_layer = true;
  EXPECT_EQ(regions_text(subject.bind("a", request)), (Lines{"key-00007 8", "key-12345 8"}));
}

TEST(PoolBinding, RegionsOfComponentsWithUnusualNamesAreDifferent) {
  const IntervalSet layers{Range(0, 2)};
  const std::string longest(256, 'k');
  std::vector<Component> components;
  const std::string digest_of_longest = sha256(longest).hex();
  const std::vector<std::string> names = {
      "k", "k-000", "k-", "-", longest, longest.substr(4), longest.substr(3), digest_of_longest};
  for (const std::string& name : names) components.push_back(rows(name, 1, 4));
  std::sort(components.begin(), components.end(),
            [](const Component& a, const Component& b) { return a.name < b.name; });
  const Subject subject(placement_of({group(layers, components)}, {{owns(layers, names, {Range(0, 1)})}}), Range(0, 1));
  PoolRequest request = pages_of(1);
  request.region_per_layer = true;
  EXPECT_EQ(subject.bind("a", request).regions.size(), 16u);
  request.region_per_layer = false;
  EXPECT_EQ(subject.bind("a", request).regions.size(), 8u);
}

TEST(PoolBinding, AnInstanceHasThePrefixAndTheParticipantInItsName) {
  const Subject subject(keys_alone(), Range(0, 1));
  PoolRequest request = pages_of(1);
  request.instance_prefix = "prefill/";
  EXPECT_EQ(subject.bind("a", request).instance, InstanceId("prefill/a"));
  request.instance_prefix = std::string(255, 'x');
  EXPECT_EQ(subject.bind("a", request).instance, InstanceId(request.instance_prefix + "a"));
  request.instance_prefix = std::string(256, 'x');
  EXPECT_EQ(subject.bind("a", request).instance, InstanceId(sha256(request.instance_prefix + "a").hex()));
}

// --- what is refused

TEST(PoolBinding, WhatDoesNotBelongToThePlacementIsNamed) {
  PlacementManifest placement = keys_alone();
  placement.tokens = Range(0, 8);
  const Subject subject(placement, Range(0, 10));
  EXPECT_EQ(subject.refusal("z", pages_of(0)),
            "binding 'op' of 'z': placement 'p' has no participant 'z' [binding-identity]\n"
            "binding 'op' of 'z': tokens [0,10) lie outside the placement's tokens [0,8) [token-bounds]\n"
            "binding 'op' of 'z': page_tokens 0 is below 1 [field-minimum]\n");
}

TEST(PoolBinding, WhatIsTooLargeIsRefusedBeforeMemoryIsTaken) {
  const Subject subject(keys_alone(), Range(0, uint64_t{1} << 40));
  const std::string place = "binding 'op' of 'a' component 'key' (layers 0-1): ";
  EXPECT_EQ(subject.refusal("a", pages_of(1)),
            place + "with its 1099511627776 the views hold more than 4194304 pages [work-limit]\n");
  EXPECT_EQ(subject.refusal("a", pages_of(uint64_t{1} << 63)),
            "binding 'op' of 'a' region 'key-g0': 2 layers x 1 slots x 9223372036854775808 rows x 2 heads x 8 bytes do "
            "not fit in 64 bits [size-overflow]\n");
  PoolRequest request = pages_of(uint64_t{1} << 40);
  request.spare_pages = uint64_t{1} << 24;
  EXPECT_EQ(subject.refusal("a", request),
            "binding 'op' of 'a': 1 pages and 16777216 spare ones are more than the 16777216 slots that a pool may "
            "have [work-limit]\n");
  request.spare_pages = UINT64_MAX;
  EXPECT_NE(subject.refusal("a", request).find("[work-limit]"), std::string::npos);
}

TEST(PoolBinding, MoreViewsThanABindingMayHaveAreRefused) {
  const IntervalSet layers{Range(0, UINT64_MAX)};
  const Subject subject(
      placement_of({group(layers, {rows("key", 3, 4)})},
                   {{owns(layers, {"key"}, {Range(0, 1), Range(2, 3)})}, {owns(layers, {"key"}, {Range(1, 2)})}}),
      Range(0, 1));
  PoolRequest request = pages_of(1);
  EXPECT_EQ(subject.refusal("a", request).substr(0, 27), "binding 'op' of 'a' region ");  // too many bytes
  request.region_per_layer = true;
  EXPECT_NE(
      subject.refusal("a", request).find("with its 2^64 or more the binding has more than 1048576 views [work-limit]"),
      std::string::npos);
  EXPECT_NE(subject.refusal("b", request)
                .find("with its 18446744073709551615 the binding has more than 1048576 views [work-limit]"),
            std::string::npos);
}

// --- models

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Split {
  uint64_t tp;
  uint64_t pp;
  uint64_t cp;
  uint64_t cp_block_tokens;
};

constexpr Split kSplits[] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {4, 3, 1, 1}, {8, 2, 2, 16}, {2, 4, 3, 1}, {16, 1, 1, 1}};

// How many bindings were made and found right.
size_t bind_all(const HfModel& model, const Split& split, Range tokens, const PoolRequest& pool) {
  PartitionRequest request;
  request.name = "p";
  request.resource = ResourceId("r");
  request.revision = RevisionId("1");
  request.layer_count = model.layer_count;
  request.tp = split.tp;
  request.pp = split.pp;
  request.cp = split.cp;
  request.cp_block_tokens = split.cp_block_tokens;
  Diagnostics diagnostics;
  const auto placement = partition(model.cache_schema, request, diagnostics);
  if (!placement) return 0;  // the heads do not divide
  const Subject subject(**placement, tokens);
  size_t count = 0;
  for (const Part& part : (*placement)->parts) {
    const Valid<RuntimeBinding> binding = valid_or_die(subject.bind(part.participant.text().c_str(), pool));
    const auto again = read_document<RuntimeBinding>(to_json(binding), JsonLimits(), diagnostics);
    EXPECT_TRUE(again && *again == binding) << diagnostic_lines(diagnostics);
    ++count;
  }
  return count;
}

TEST(PoolBinding, EveryParticipantOfEveryExampleModelGetsOne) {
  PoolRequest other = pages_of(64);
  other.axis_order = PoolOrder::kHnd;
  other.region_per_layer = true;
  other.shuffle_seed = 7;
  other.spare_pages = 100;
  size_t model_count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("examples/models"))) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path().filename().string());
    Diagnostics diagnostics;
    const auto model =
        read_hf_config(text_of_file(entry.path() / "config.json"), HfOptions(), JsonLimits(), diagnostics);
    ASSERT_TRUE(model) << diagnostic_lines(diagnostics);
    size_t made = 0;
    for (const Split& split : kSplits) {
      SCOPED_TRACE(fmt::format("tp {} pp {} cp {}", split.tp, split.pp, split.cp));
      made += bind_all(*model, split, Range(0, 5000), pages_of(16));
      made += bind_all(*model, split, Range(123, 2345), other);
    }
    EXPECT_GE(made, 2u * (1 + 2 + 12));
    ++model_count;
  }
  EXPECT_GE(model_count, 16u);
}

TEST(PoolBinding, DraftLayersAndPackedAndScaledCachesGetOneToo) {
  struct Case {
    const char* model;
    HfOptions options;
  };
  for (const Case& c :
       {Case{"deepseek-v3", {.draft_layers = true}}, Case{"deepseek-v3.2-exp", {.kv_dtype = "fp8_ds_mla"}},
        Case{"gemma-3-27b", {.kv_dtype = "float8_e4m3fn", .kv_scales = true}}}) {
    SCOPED_TRACE(c.model);
    Diagnostics diagnostics;
    const std::string path = source_path("examples/models/") + c.model + "/config.json";
    const auto model = read_hf_config(text_of_file(path), c.options, JsonLimits(), diagnostics);
    ASSERT_TRUE(model) << diagnostic_lines(diagnostics);
    size_t made = 0;
    for (const Split& split : kSplits) made += bind_all(*model, split, Range(0, 5000), pages_of(16));
    EXPECT_GE(made, 1u + 2 + 12);
  }
}

// --- random placements

uint64_t pick(Rng& rng, uint64_t low, uint64_t high) { return rng.in(Range(low, high + 1)); }

// The numbers of `all`, each in one of at most `share_count_max` sets, none of them empty.
std::vector<IntervalSet> draw_shares(Rng& rng, const IntervalSet& all, uint64_t share_count_max) {
  std::vector<std::vector<Range>> shares(pick(rng, 1, share_count_max));
  for (const Range range : all.ranges())
    for (uint64_t number = range.begin(); number < range.end(); ++number)
      shares[rng.below(shares.size())].push_back(Range(number, number + 1));
  std::vector<IntervalSet> sets;
  for (std::vector<Range>& share : shares)
    if (!share.empty()) sets.push_back(IntervalSet::from_ranges(std::move(share)));
  return sets;
}

// `unit` is a whole number of rows of each component.
std::vector<TokenOwnership> draw_token_shares(Rng& rng, Range universe, uint64_t unit) {
  std::vector<TokenOwnership> shares;
  const uint64_t kind = rng.below(3);
  if (kind == 0) return {AllTokens()};
  if (kind == 1) {
    const CyclicTokens cycle{unit * pick(rng, 1, 3), pick(rng, 1, 5), {}};
    for (const IntervalSet& blocks : draw_shares(rng, {Range(0, cycle.cycle_blocks)}, 3))
      shares.push_back(CyclicTokens{cycle.block_tokens, cycle.cycle_blocks, blocks});
    return shares;
  }
  // Blocks of one unit and, as one of them, everything after the last.
  const uint64_t block_count = std::min<uint64_t>(8, (universe.size() - 1) / unit);
  for (const IntervalSet& blocks : draw_shares(rng, {Range(0, block_count + 1)}, 3)) {
    std::vector<Range> tokens;
    for (const Range range : blocks.ranges())
      tokens.push_back(Range(universe.begin() + range.begin() * unit,
                             range.end() > block_count ? universe.end() : universe.begin() + range.end() * unit));
    shares.push_back(TokenIntervals{IntervalSet::from_ranges(std::move(tokens))});
  }
  return shares;
}

LayerGroup draw_group(Rng& rng, IntervalSet layers, uint64_t unit) {
  LayerGroup drawn = group(std::move(layers), {});
  if (rng.chance(1, 2)) drawn.window_tokens = pick(rng, 1, 12);
  const uint64_t component_count = pick(rng, 1, 3);
  for (uint64_t i = 0; i < component_count; ++i) {
    const std::string name(1, static_cast<char>('x' + i));
    drawn.components.push_back(rng.chance(1, 5)
                                   ? state(name, pick(rng, 1, 4), pick(rng, 1, 2))
                                   : rows(name, pick(rng, 1, 4), pick(rng, 1, 2), rng.chance(1, 2) ? unit : 1));
  }
  return drawn;
}

// Gives each (layers, component, heads, tokens) to one participant, or to two as replicas.
void give_out(Rng& rng, const Ownership& ownership, std::vector<Part>& parts) {
  const uint64_t first = rng.below(parts.size());
  if (parts.size() == 1 || !rng.chance(1, 4)) {
    parts[first].owns.push_back(ownership);
    return;
  }
  const uint64_t second = (first + pick(rng, 1, parts.size() - 1)) % parts.size();
  for (const auto& [part, ordinal] : {std::pair(first, uint64_t{0}), std::pair(second, uint64_t{1})}) {
    parts[part].owns.push_back(ownership);
    parts[part].owns.back().replica = ReplicaOrdinal{ordinal, 2};
  }
}

PlacementManifest draw_placement(Rng& rng, uint64_t unit) {
  std::vector<LayerGroup> groups;
  for (const IntervalSet& layers : draw_shares(rng, {Range(0, pick(rng, 1, 3)), Range(4, 7)}, 3))
    groups.push_back(draw_group(rng, layers, unit));
  PlacementManifest placement = placement_of(groups, std::vector<std::vector<Ownership>>(pick(rng, 1, 3)));
  if (rng.chance(1, 2)) placement.tokens = Range(unit * rng.below(3), 20 + rng.below(10));
  for (const LayerGroup& drawn : groups)
    for (const Component& component : drawn.components)
      for (const IntervalSet& layers : draw_shares(rng, drawn.layers, 2))
        for (const IntervalSet& heads : draw_shares(rng, {Range(0, component.head_count)}, 3)) {
          const auto shares = component.is_state() ? std::vector<TokenOwnership>{AllTokens()}
                                                   : draw_token_shares(rng, placement.tokens, unit);
          for (const TokenOwnership& tokens : shares)
            give_out(rng, owns(layers, {component.name.text()}, heads, tokens), placement.parts);
        }
  return placement;
}

PoolRequest draw_request(Rng& rng, uint64_t unit) {
  PoolRequest request = pages_of(unit * pick(rng, 1, 4));
  request.axis_order = rng.chance(1, 2) ? PoolOrder::kHnd : PoolOrder::kNhd;
  request.region_per_layer = rng.chance(1, 2);
  if (rng.chance(1, 2)) request.shuffle_seed = rng.next();
  request.spare_pages = rng.below(3);
  return request;
}

// Whether a snapshot of `tokens` holds the token for the component; a row lives as a whole.
bool is_live(const LayerGroup& group, const Component& component, Range tokens, uint64_t token) {
  if (component.is_state()) return token == 0;
  const uint64_t row_end = token / *component.tokens_per_row * *component.tokens_per_row + *component.tokens_per_row;
  return tokens.contains(token) && (!group.window_tokens || row_end + *group.window_tokens > tokens.end());
}

// Each element that the participant owns and that lives is in one view, no other is in any, and no byte belongs to two
// or lies outside its region. Tokens of one row have one element.
void check_elements(const PlacementManifest& placement, const RuntimeBinding& binding) {
  std::map<RegionId, uint64_t> region_bytes;
  for (const Region& region : binding.regions) region_bytes[region.id] = region.bytes;
  using Element = std::tuple<const Component*, uint64_t, uint64_t, uint64_t, uint64_t>;
  std::map<std::pair<RegionId, uint64_t>, Element> used;
  for (const LayerGroup& group : placement.cache_schema.groups)
    for (const Component& component : group.components)
      for (uint64_t layer = 0; layer < 8; ++layer)
        for (uint64_t head = 0; head < component.head_count; ++head)
          for (uint64_t token = 0; token < 32 && group.layers.contains(layer); ++token) {
            const auto owners = naive_owners(placement, 0, layer, component.name.text(), head, token);
            const bool is_owned = std::count(owners.begin(), owners.end(), binding.participant.text()) > 0;
            const bool is_required = is_owned && is_live(group, component, binding.tokens, token);
            for (uint64_t dim = 0; dim < component.head_dim; ++dim) {
              int times = 0;
              for (const View& view : binding.views) {
                if (view.component != component.name) continue;
                const auto address = naive_address(view, binding.page_tables, component, layer, token, head, dim);
                if (!address) continue;
                ++times;
                const Element element(&component, layer, head, token / component.tokens_per_row.value_or(1), dim);
                for (uint64_t byte = *address; byte < *address + component.item_bytes; ++byte) {
                  RC_ASSERT(byte < region_bytes.at(view.region));
                  RC_ASSERT(used.try_emplace({view.region, byte}, element).first->second == element);
                }
              }
              RC_ASSERT(times == (is_required ? 1 : 0));
            }
          }
}

uint64_t naive_count_below(const std::optional<CyclicTokens>& cycle, uint64_t token) {
  uint64_t count = 0;
  for (uint64_t t = 0; t < token; ++t) count += !cycle || naive_owns_token(TokenOwnership(*cycle), t);
  return count;
}

// No slot is given out twice, none is unused, and pages begin at multiples of their size.
void check_pages(const RuntimeBinding& binding, uint64_t spare_pages) {
  std::set<uint64_t> slots;
  size_t page_count = 0;
  for (const PageTable& table : binding.page_tables) {
    slots.insert(table.slots.begin(), table.slots.end());
    page_count += table.slots.size();
    std::set<uint64_t> used;  // pages of the table
    for (const View& view : binding.views) {
      if (!view.pages || view.pages->table != table.id) continue;
      const uint64_t before = naive_count_below(view.cycle, table.token_begin);
      RC_ASSERT(before % table.page_tokens == 0);
      for (uint64_t token = view.tokens.begin(); token < view.tokens.end(); ++token)
        if (!view.cycle || naive_owns_token(TokenOwnership(*view.cycle), token))
          used.insert((naive_count_below(view.cycle, token) - before) / table.page_tokens);
    }
    RC_ASSERT(used.size() == table.slots.size());
  }
  RC_ASSERT(slots.size() == page_count);
  if (!slots.empty()) RC_ASSERT(*slots.rbegin() < page_count + spare_pages);
}

// A region holds the layers and heads that its views show, in each slot of the pool, and nothing else.
void check_regions(const PlacementManifest& placement, const RuntimeBinding& binding, const PoolRequest& request) {
  uint64_t slot_count = request.spare_pages;
  for (const PageTable& table : binding.page_tables) slot_count += table.slots.size();
  for (const Region& region : binding.regions) {
    std::set<uint64_t> layers;
    std::set<uint64_t> heads;
    std::set<ComponentName> components;
    for (const View& view : binding.views) {
      if (view.region != region.id) continue;
      components.insert(view.component);
      for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) layers.insert(layer);
      for (uint64_t head = view.heads.begin(); head < view.heads.end(); ++head) heads.insert(head);
    }
    RC_ASSERT(components.size() == 1u);
    if (request.region_per_layer) RC_ASSERT(layers.size() == 1u);
    const LayerGroup& group = *placement.cache_schema.find_group(*layers.begin());
    for (const uint64_t layer : layers) RC_ASSERT(placement.cache_schema.find_group(layer) == &group);
    const Component& component = *group.find(*components.begin());
    const uint64_t rows = component.is_state() ? 1 : slot_count * (request.page_tokens / *component.tokens_per_row);
    RC_ASSERT(region.bytes == layers.size() * rows * heads.size() * component.head_dim * component.item_bytes);
  }
}

RC_GTEST_PROP(PoolBinding, HoldsExactlyWhatIsOwnedOfAnyPlacement, (uint64_t seed)) {
  Rng rng(seed);
  const uint64_t unit = uint64_t{1} << rng.below(3);
  PlacementManifest placement = draw_placement(rng, unit);
  const uint64_t begin = placement.tokens.begin() + rng.below(10);
  const uint64_t end_max = std::min(placement.tokens.end(), begin + 16);
  const Subject subject(std::move(placement), Range(begin, pick(rng, begin + 1, end_max)));
  const PoolRequest request = draw_request(rng, unit);
  for (const Part& part : subject.placement->parts) {
    Diagnostics diagnostics;
    const auto binding = subject.bind(part.participant.text().c_str(), request, diagnostics);
    RC_ASSERT(binding.has_value());
    check_binding(*binding, subject.context, diagnostics);
    RC_ASSERT(diagnostics.empty());
    RC_CLASSIFY((*binding)->views.empty(), "nothing owned");
    RC_CLASSIFY((*binding)->page_tables.size() > 1, "several tables");
    check_elements(*subject.placement, **binding);
    check_pages(**binding, request.spare_pages);
    check_regions(*subject.placement, **binding, request);
  }
}

}  // namespace
}  // namespace crossdock::testing
