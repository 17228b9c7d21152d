// Bindings made for a placement: their layout written out, and the models of examples/models.
#include "model/kv/pool_binding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/sha256.h"
#include "model/hf/config.h"
#include "model/kv/binding_rules.h"
#include "model/kv/partition.h"
#include "model/wire/documents.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/paths.h"
#include "tests/support/pool_subject.h"

namespace crossdock::testing {
namespace {

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
  const RuntimeBinding binding = PoolSubject(keys_alone(), Range(0, 10)).bind("a", pages_of(4));
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
  request.axis_order = AxisOrder::kHnd;
  EXPECT_EQ(
      views_text(PoolSubject(keys_alone(), Range(0, 10)).bind("a", request)),
      Lines{"key layers [0,2) tokens [0,10) heads [0,2) of pages-0: key-g0 + 0, layer 192 head 32 row 8 page 64"});
}

TEST(PoolBinding, EachLayerHasItsRegionWhenAsked) {
  PoolRequest request = pages_of(4);
  request.region_per_layer = true;
  const RuntimeBinding binding = PoolSubject(keys_alone(), Range(0, 10)).bind("a", request);
  EXPECT_EQ(regions_text(binding), (Lines{"key-000 192", "key-001 192"}));
  EXPECT_EQ(
      views_text(binding),
      (Lines{"key layers [0,1) tokens [0,10) heads [0,2) of pages-0: key-000 + 0, layer 192 head 8 row 16 page 64",
             "key layers [1,2) tokens [0,10) heads [0,2) of pages-0: key-001 + 0, layer 192 head 8 row 16 page 64"}));
}

TEST(PoolBinding, PageBoundariesLieAtMultiplesOfThePageSizeWhereverTheSnapshotBegins) {
  EXPECT_EQ(tables_text(PoolSubject(keys_alone(), Range(7, 13)).bind("a", pages_of(4))),
            Lines{"pages-0 from 4: 0 1 2"});
  EXPECT_EQ(tables_text(PoolSubject(keys_alone(), Range(8, 12)).bind("a", pages_of(4))), Lines{"pages-0 from 8: 0"});
}

TEST(PoolBinding, TokensUpToTheLastNumberFit) {
  const PoolSubject subject(keys_alone(), Range(UINT64_MAX - 2, UINT64_MAX));
  EXPECT_EQ(tables_text(subject.bind("a", pages_of(16))), Lines{"pages-0 from 18446744073709551600: 0"});
}

TEST(PoolBinding, SparePagesMakeThePoolLarger) {
  PoolRequest request = pages_of(4);
  request.spare_pages = 2;
  const RuntimeBinding binding = PoolSubject(keys_alone(), Range(0, 10)).bind("a", request);
  EXPECT_EQ(tables_text(binding), Lines{"pages-0 from 0: 0 1 2"});
  EXPECT_EQ(regions_text(binding), Lines{"key-g0 640"});  // 5 slots
}

TEST(PoolBinding, ASeedPutsPagesIntoRandomSlotsOfThePool) {
  const PoolSubject subject(keys_alone(), Range(0, 400));
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
  const PoolSubject subject(placement_of({all, window}, {{owns({Range(0, 3)}, {"key"}, head)}}), Range(0, 16));
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
  const PoolSubject subject(placement_of({scaled}, {{owns({Range(0, 1)}, {"key", "key_scale"}, {Range(0, 1)})}}),
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
  const PoolSubject subject(placement_of({states}, {{owns({Range(3, 5)}, {"recurrent_state"}, {Range(0, 4)})}}),
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
  const PoolSubject subject(placement_of({keys}, {{owns(layers, {"key"}, heads)},
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
  const RuntimeBinding binding = PoolSubject(shared_out({first, second}), Range(0, 15)).bind("b", pages_of(4));
  EXPECT_EQ(tables_text(binding), Lines{"pages-0 from 0: 0 1"});
  EXPECT_EQ(binding.views.at(0).cycle, second);
  EXPECT_EQ(binding.views[0].tokens, Range(0, 15));
  // Live are 9 to 14: the page of 8, 9, 12 and 13, like that of 10, 11 and 14, begins with the cycle at 8.
  const PoolSubject window(shared_out({first, second}, 6), Range(0, 15));
  EXPECT_EQ(tables_text(window.bind("a", pages_of(4))), Lines{"pages-0 from 8: 0"});
  EXPECT_EQ(tables_text(window.bind("b", pages_of(4))), Lines{"pages-0 from 8: 0"});
  // The page of 5, 8 and 9 begins before that cycle.
  EXPECT_EQ(tables_text(window.bind("a", pages_of(3))), Lines{"pages-0 from 5: 0 1"});
}

TEST(PoolBinding, ATableOfALongCycleBeginsWithThePageOfTheFirstLiveToken) {
  const uint64_t block = uint64_t{1} << 40;
  const CyclicTokens first{block, 2, {Range(0, 1)}};
  const CyclicTokens second{block, 2, {Range(1, 2)}};
  const PoolSubject subject(shared_out({first, second}), Range(block + 1003, block + 1020));
  // "b" has 1003 tokens before: its page 62 of 16 began after 992 of them.
  EXPECT_EQ(tables_text(subject.bind("b", pages_of(16))), Lines{fmt::format("pages-0 from {}: 0 1", block + 992)});
  EXPECT_EQ(subject.bind("a", pages_of(16)).views.size(), 0u);
}

TEST(PoolBinding, IntervalsThatShareAPageShareItsTable) {
  const IntervalSet tokens{Range(0, 3), Range(5, 9), Range(12, 13), Range(uint64_t{1} << 50, (uint64_t{1} << 50) + 5)};
  const TokenIntervals own{tokens};
  const TokenIntervals others{IntervalSet{Range::all()}.subtract(tokens)};
  const PoolSubject near(shared_out({own, others}), Range(0, 40));
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
  const PoolSubject subject(
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
  const PoolSubject subject(
      placement_of({group(layer, {rows("key", 2, 4)})},
                   {{owns(layer, {"key"}, {Range(0, 1)}), owns(layer, {"key"}, {Range(1, 2)}, even)},
                    {owns(layer, {"key"}, {Range(1, 2)}, odd)}}),
      Range(0, 16));
  const RuntimeBinding binding = subject.bind("a", pages_of(4));
  EXPECT_EQ(tables_text(binding), (Lines{"pages-0 from 0: 0 1 2 3", "pages-1 from 0: 4 5"}));
  EXPECT_EQ(regions_text(binding), Lines{"key-g0 384"});  // 6 slots x 4 rows x 2 heads x 8 bytes
}

TEST(PoolBinding, WhoOwnsNothingHasABindingWithoutViews) {
  const PoolSubject subject(
      placement_of({group(kTwoLayers, {rows("key", 2, 4)})}, {{owns(kTwoLayers, {"key"}, kTwoHeads)}, {}}),
      Range(0, 10));
  const RuntimeBinding binding = subject.bind("b", pages_of(4));
  EXPECT_TRUE(binding.views.empty() && binding.regions.empty() && binding.page_tables.empty());
}

// --- names

TEST(PoolBinding, RegionsAreNumberedWithAsManyDigitsAsTheLastLayerHas) {
  const IntervalSet layers{Range(7, 8), Range(12345, 12346)};
  const PoolSubject subject(
      placement_of({group(layers, {rows("key", 1, 4)})}, {{owns(layers, {"key"}, {Range(0, 1)})}}), Range(0, 1));
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
  const PoolSubject subject(placement_of({group(layers, components)}, {{owns(layers, names, {Range(0, 1)})}}),
                            Range(0, 1));
  PoolRequest request = pages_of(1);
  request.region_per_layer = true;
  EXPECT_EQ(subject.bind("a", request).regions.size(), 16u);
  request.region_per_layer = false;
  EXPECT_EQ(subject.bind("a", request).regions.size(), 8u);
}

TEST(PoolBinding, AnInstanceHasThePrefixAndTheParticipantInItsName) {
  const PoolSubject subject(keys_alone(), Range(0, 1));
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
  const PoolSubject subject(placement, Range(0, 10));
  EXPECT_EQ(subject.refusal("z", pages_of(0)),
            "binding 'op' of 'z': placement 'p' has no participant 'z' [binding-identity]\n"
            "binding 'op' of 'z': tokens [0,10) lie outside the placement's tokens [0,8) [token-bounds]\n"
            "binding 'op' of 'z': page_tokens 0 is below 1 [field-minimum]\n");
}

TEST(PoolBinding, WhatIsTooLargeIsRefusedBeforeMemoryIsTaken) {
  const PoolSubject subject(keys_alone(), Range(0, uint64_t{1} << 40));
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
  const PoolSubject subject(
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
  const PoolSubject subject(**placement, tokens);
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
  other.axis_order = AxisOrder::kHnd;
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

}  // namespace
}  // namespace crossdock::testing
