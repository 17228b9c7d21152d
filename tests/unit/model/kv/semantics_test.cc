// Each kind of cache and split that the documents have to be able to say: that they can, who then owns what, and that
// the nearest wrong document is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/hf/config.h"
#include "model/kv/partition.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

using Owners = std::vector<std::string>;

PartitionRequest sizes(uint64_t tp, uint64_t pp = 1, uint64_t dp = 1, uint64_t cp = 1) {
  PartitionRequest request;
  request.name = "p";
  request.resource = ResourceId("r");
  request.revision = RevisionId("1");
  request.tp = tp;
  request.pp = pp;
  request.dp = dp;
  request.cp = cp;
  return request;
}

PlacementManifest split(const Valid<CacheSchema>& schema, PartitionRequest request, uint64_t layer_count) {
  request.layer_count = layer_count;
  Diagnostics diagnostics;
  const auto placement = partition(schema, request, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.kept()) ADD_FAILURE() << diagnostic.to_line();
  return placement ? **placement : PlacementManifest();
}

HfModel model_of(const char* folder, const HfOptions& options = {}) {
  const auto text = read_file(source_path("examples/models/") + folder + "/config.json", 1 << 20);
  Diagnostics diagnostics;
  return *read_hf_config(text.value(), options, JsonLimits(), diagnostics);
}

// The rules that a changed placement breaks.
std::vector<Rule> broken_rules(PlacementManifest placement) {
  Diagnostics diagnostics;
  std::vector<Rule> rules;
  if (Valid<PlacementManifest>::make(std::move(placement), diagnostics)) return rules;
  for (const Diagnostic& diagnostic : diagnostics.kept()) rules.push_back(diagnostic.rule);
  return rules;
}

TEST(Semantics, TensorParallelAboveTheHeadCountMakesReplicas) {
  PlacementManifest placement = split(attention(2, 2), sizes(4), 2);
  EXPECT_EQ(naive_owners(placement, 0, 0, "key", 0, 0), (Owners{"p0-t0", "p0-t1"}));
  EXPECT_EQ(naive_owners(placement, 0, 1, "value", 1, 7), (Owners{"p0-t2", "p0-t3"}));
  EXPECT_EQ(placement.parts[3].owns[0].replica, (ReplicaOrdinal{1, 2}));
  EXPECT_TRUE(naive_is_covered(placement, 3));
  placement.parts[3].owns[0].replica.ordinal = 0;
  EXPECT_EQ(broken_rules(placement), (std::vector<Rule>{Rule::kReplicaSet, Rule::kReplicaSet}));  // key and value
}

TEST(Semantics, HeadsThatDoNotDivideAreStatedPerRank) {
  PartitionRequest request = sizes(4);
  request.heads_per_rank = {2, 2, 1, 1};
  PlacementManifest placement = split(attention(1, 6), request, 1);
  EXPECT_EQ(naive_owners(placement, 0, 0, "key", 3, 0), Owners{"p0-t1"});
  EXPECT_EQ(naive_owners(placement, 0, 0, "key", 4, 0), Owners{"p0-t2"});
  EXPECT_EQ(naive_owners(placement, 0, 0, "key", 5, 0), Owners{"p0-t3"});
  placement.parts[2].owns[0].heads = IntervalSet{Range(3, 5)};
  EXPECT_EQ(broken_rules(placement), (std::vector<Rule>{Rule::kCoverageOverlap, Rule::kCoverageOverlap}));
}

TEST(Semantics, HeadsOfOnePartMayHaveDifferentReplicaSets) {
  // Three heads on two ranks: the middle one is on both.
  PlacementManifest placement = split(attention(1, 2), sizes(2), 1);
  for (Component& c : placement.cache_schema.groups[0].components) c.head_count = 3;
  const auto own = [&](Range heads, ReplicaOrdinal replica) {
    Ownership ownership = placement.parts[0].owns[0];
    ownership.heads = IntervalSet{heads};
    ownership.replica = replica;
    return ownership;
  };
  placement.parts[1].owns = {own(Range(1, 2), {1, 2}), own(Range(2, 3), {0, 1})};
  placement.parts[0].owns = {own(Range(0, 1), {0, 1}), own(Range(1, 2), {0, 2})};
  EXPECT_EQ(broken_rules(placement), std::vector<Rule>());
  EXPECT_EQ(naive_owners(placement, 0, 0, "key", 1, 0), (Owners{"p0-t0", "p0-t1"}));
  EXPECT_TRUE(naive_is_covered(placement, 2));
  placement.parts[0].owns[1].replica = {0, 1};
  EXPECT_EQ(broken_rules(placement), (std::vector<Rule>{Rule::kReplicaSet, Rule::kReplicaSet}));
}

TEST(Semantics, OneLatentHeadIsReplicatedOnEachTensorParallelRank) {
  const HfModel model = model_of("deepseek-v3");
  const PlacementManifest placement = split(model.cache_schema, sizes(8), model.layer_count);
  ASSERT_EQ(placement.cache_schema.groups[0].components.size(), 1u);
  EXPECT_EQ(placement.cache_schema.groups[0].components[0].head_dim, 576u);
  for (uint64_t rank = 0; rank < 8; ++rank) {
    ASSERT_EQ(placement.parts[rank].owns.size(), 1u);
    EXPECT_EQ(placement.parts[rank].owns[0].heads, IntervalSet{Range(0, 1)});
    EXPECT_EQ(placement.parts[rank].owns[0].replica, (ReplicaOrdinal{rank, 8}));
  }
}

TEST(Semantics, KeyDimMayDifferFromValueDim) {
  const Valid<CacheSchema> schema = attention(1, 4, 192, 128);
  EXPECT_EQ(schema->groups[0].find(ComponentName("key"))->head_bytes(), 384u);
  EXPECT_EQ(schema->groups[0].find(ComponentName("value"))->head_bytes(), 256u);
  EXPECT_TRUE(naive_is_covered(split(schema, sizes(4), 1), 1));
}

TEST(Semantics, DimsMayAlternateByLayer) {
  const LayerGroup even{
      IntervalSet{Range(0, 1), Range(2, 3)}, LiveTokens::all(), {rows("key", 2, 256), rows("value", 2, 256)}};
  const LayerGroup odd{
      IntervalSet{Range(1, 2), Range(3, 4)}, LiveTokens::all(), {rows("key", 2, 512), rows("value", 2, 512)}};
  const Valid<CacheSchema> schema = schema_of({odd, even});
  EXPECT_EQ(schema->find_group(2)->components[0].head_dim, 256u);
  EXPECT_EQ(schema->find_group(3)->components[0].head_dim, 512u);
  const PlacementManifest placement = split(schema, sizes(2), 4);
  EXPECT_EQ(placement.parts[0].owns.size(), 1u) << "layers that are owned alike are one ownership";
  EXPECT_TRUE(naive_is_covered(placement, 1));
}

TEST(Semantics, ScalesAreComponentsOfTheirOwn) {
  HfOptions options;
  options.kv_dtype = "float8_e4m3fn";
  options.kv_scales = true;
  const HfModel model = model_of("llama-3.1-8b", options);
  const LayerGroup& group = model.cache_schema->groups[0];
  ASSERT_EQ(group.components.size(), 4u);
  EXPECT_EQ(group.find(ComponentName("key"))->item_bytes, 1u);
  EXPECT_EQ(group.find(ComponentName("key_scale"))->head_bytes(), 4u);
  PlacementManifest placement = split(model.cache_schema, sizes(2), model.layer_count);
  EXPECT_EQ(naive_owners(placement, 0, 31, "key_scale", 4, 0), Owners{"p0-t1"}) << "a scale lies where its head lies";
  std::vector<ComponentName>& components = placement.parts[1].owns[0].components;
  components.erase(components.begin() + 1);
  EXPECT_EQ(broken_rules(placement), std::vector<Rule>{Rule::kCoverageGap})
      << "a cache without its scales is incomplete";
}

TEST(Semantics, BlockScalesHaveOneRowForSeveralTokens) {
  Component scale = rows("key_scale", 2, 1);
  scale.tokens_per_row = 64;
  const Valid<CacheSchema> schema =
      schema_of({LayerGroup{IntervalSet{Range(0, 1)}, LiveTokens::all(), {rows("key", 2, 8), scale}}});
  PartitionRequest request = sizes(1, 1, 1, 2);
  request.cp_block_tokens = 64;
  EXPECT_TRUE(naive_is_covered(split(schema, request, 1), 256));
  request.cp_block_tokens = 32;
  request.layer_count = 1;
  Diagnostics diagnostics;
  EXPECT_FALSE(partition(schema, request, diagnostics));
  EXPECT_TRUE(diagnostics.has(Rule::kTokenAlignment));
}

TEST(Semantics, AnIndexerKeyIsASidecarOfTheLatent) {
  const HfModel model = model_of("deepseek-v3.2-exp");
  const LayerGroup& group = model.cache_schema->groups[0];
  EXPECT_EQ(group.find(ComponentName("latent"))->head_bytes(), 1152u);
  EXPECT_EQ(group.find(ComponentName("indexer_key"))->head_bytes(), 132u);
  // Row sizes do not depend on the topology: what tp 1 stores, tp 4 can load.
  EXPECT_EQ(split(model.cache_schema, sizes(1), model.layer_count).cache_schema,
            split(model.cache_schema, sizes(4), model.layer_count).cache_schema);
}

TEST(Semantics, InHybridModelsOnlySomeLayersHaveRowsAndOthersAState) {
  const HfModel model = model_of("qwen3-next-80b-a3b");
  const PlacementManifest placement = split(model.cache_schema, sizes(4, 2), model.layer_count);
  EXPECT_TRUE(model.cache_schema->find_group(0)->components[0].is_state());
  EXPECT_FALSE(model.cache_schema->find_group(3)->components[0].is_state());
  EXPECT_EQ(naive_owners(placement, 0, 3, "key", 1, 0), (Owners{"p0-t2", "p0-t3"})) << "two heads on four ranks";
  EXPECT_EQ(naive_owners(placement, 0, 46, "recurrent_state", 8, 0), Owners{"p1-t1"}) << "32 heads on four ranks";
}

TEST(Semantics, AStateIsReplicatedOverContextParallelRanks) {
  const HfModel model = model_of("qwen3-next-80b-a3b");
  const PlacementManifest placement = split(model.cache_schema, sizes(2, 1, 1, 2), model.layer_count);
  EXPECT_EQ(naive_owners(placement, 0, 0, "recurrent_state", 0, 0), (Owners{"p0-t0-c0", "p0-t0-c1"}));
  EXPECT_EQ(naive_owners(placement, 0, 3, "key", 0, 5), Owners{"p0-t0-c1"});
}

TEST(Semantics, ASlidingWindowKeepsTheLastTokensOnly) {
  const HfModel model = model_of("gemma-3-27b");
  const LayerGroup* local = model.cache_schema->find_group(0);
  const LayerGroup* global = model.cache_schema->find_group(5);
  ASSERT_EQ(local->live, LiveTokens::window(1023));
  ASSERT_EQ(global->live, LiveTokens::all());
  EXPECT_EQ(live_tokens(*local, local->components[0], Range(0, 3000)), Range(1977, 3000));
  EXPECT_EQ(live_tokens(*local, local->components[0], Range(0, 100)), Range(0, 100));
  EXPECT_EQ(live_tokens(*global, global->components[0], Range(0, 3000)), Range(0, 3000));
}

TEST(Semantics, AWindowOverRowsOfSeveralTokensBeginsAtAWholeRow) {
  LayerGroup group{IntervalSet{Range(0, 1)}, LiveTokens::window(100), {rows("key", 1, 8)}};
  group.components[0].tokens_per_row = 64;
  EXPECT_EQ(live_tokens(group, group.components[0], Range(0, 300)), Range(192, 300));
  group.components[0].tokens_per_row = std::nullopt;
  EXPECT_EQ(live_tokens(group, group.components[0], Range(0, 300)), Range(0, 1));
}

TEST(Semantics, PipelineSplitsMayBeUnevenAndNameLayersOneByOne) {
  // 44 layers as {21,23} and as {11,11,22}: layer 21 is the first of the second stage, whatever a rank number times a
  // layer count says.
  PartitionRequest request = sizes(1, 2);
  request.layers_per_stage = {21, 23};
  EXPECT_EQ(naive_owners(split(attention(44, 1), request, 44), 0, 21, "key", 0, 0), Owners{"p1-t0"});
  request = sizes(1, 3);
  request.layers_per_stage = {11, 11, 22};
  PlacementManifest placement = split(attention(44, 1), request, 44);
  EXPECT_EQ(naive_owners(placement, 0, 21, "key", 0, 0), Owners{"p1-t0"});
  // Layers 0, 2, 4, ... on one stage and 1, 3, 5, ... on the other two.
  const IntervalSet even = IntervalSet::from_ranges([] {
    std::vector<Range> ranges;
    for (uint64_t layer = 0; layer < 44; layer += 2) ranges.push_back(Range(layer, layer + 1));
    return ranges;
  }());
  const IntervalSet odd = IntervalSet{Range(0, 44)}.subtract(even);
  placement.parts[0].owns[0].layers = even;
  placement.parts[1].owns[0].layers = odd.intersect(IntervalSet{Range(0, 22)});
  placement.parts[2].owns[0].layers = odd.intersect(IntervalSet{Range(22, 44)});
  EXPECT_EQ(broken_rules(placement), std::vector<Rule>());
  EXPECT_EQ(naive_owners(placement, 0, 43, "value", 0, 0), Owners{"p2-t0"});
  placement.parts[2].owns[0].layers = odd.intersect(IntervalSet{Range(24, 44)});
  EXPECT_EQ(broken_rules(placement), (std::vector<Rule>{Rule::kCoverageGap, Rule::kCoverageGap}));
}

TEST(Semantics, ADraftLayerIsOnTheLastStage) {
  HfOptions options;
  options.draft_layers = true;
  const HfModel model = model_of("deepseek-v3", options);
  EXPECT_EQ(model.layer_count, 61u);
  EXPECT_EQ(model.draft_layer_count, 1u);
  const PlacementManifest placement = split(model.cache_schema, sizes(1, 4), model.layer_count);
  EXPECT_EQ(naive_owners(placement, 0, 60, "latent", 0, 0), Owners{"p3-t0"});
  EXPECT_EQ(naive_owners(placement, 0, 61, "latent", 0, 0), Owners{"p3-t0"});
}

TEST(Semantics, EachDataParallelReplicaOwnsEverything) {
  PlacementManifest placement = split(attention(2, 2), sizes(2, 1, 3), 2);
  EXPECT_TRUE(naive_is_covered(placement, 2));
  EXPECT_EQ(naive_owners(placement, 2, 1, "key", 1, 0), Owners{"d2-p0-t1"});
  placement.parts[5].owns.clear();
  Diagnostics diagnostics;
  EXPECT_FALSE(Valid<PlacementManifest>::make(placement, diagnostics));
  EXPECT_EQ(diagnostics.kept()[0].to_line(),
            "placement 'p' dp 2: layers 0-1 component key heads [1,2): no owner [coverage-gap]");
}

TEST(Semantics, ContextParallelRanksShareOutTokensInTurn) {
  PartitionRequest request = sizes(1, 1, 1, 3);
  request.cp_block_tokens = 4;
  PlacementManifest placement = split(attention(1, 1), request, 1);
  EXPECT_EQ(naive_owners(placement, 0, 0, "key", 0, 11), Owners{"p0-t0-c2"});
  EXPECT_EQ(naive_owners(placement, 0, 0, "key", 0, 12), Owners{"p0-t0-c0"});
  EXPECT_TRUE(naive_is_covered(placement, 30));
  std::get<CyclicTokens>(placement.parts[2].owns[0].tokens).blocks = IntervalSet{Range(1, 2)};
  EXPECT_EQ(broken_rules(placement), (std::vector<Rule>{Rule::kCoverageGap, Rule::kCoverageOverlap,     // key
                                                        Rule::kCoverageGap, Rule::kCoverageOverlap}));  // value
}

TEST(Semantics, ContextParallelZigzagAndStatedIntervalsAreTokenOwnershipsToo) {
  PlacementManifest placement = split(attention(1, 1), sizes(1, 1, 1, 2), 1);
  placement.parts[0].owns[0].tokens = CyclicTokens{8, 4, IntervalSet{Range(0, 1), Range(3, 4)}};
  placement.parts[1].owns[0].tokens = CyclicTokens{8, 4, IntervalSet{Range(1, 3)}};
  EXPECT_EQ(broken_rules(placement), std::vector<Rule>());
  placement.parts[0].owns[0].tokens = TokenIntervals{IntervalSet{Range(0, 100)}};
  placement.parts[1].owns[0].tokens = TokenIntervals{IntervalSet{Range(100, Range::kUnbounded)}};
  EXPECT_EQ(broken_rules(placement), std::vector<Rule>());
  placement.parts[1].owns[0].tokens = TokenIntervals{IntervalSet{Range(101, Range::kUnbounded)}};
  EXPECT_EQ(broken_rules(placement), (std::vector<Rule>{Rule::kCoverageGap, Rule::kCoverageGap}));
}

TEST(Semantics, StagesMayBeEmptyWhenTheModelHasFewerLayers) {
  const PlacementManifest placement = split(attention(2, 1), sizes(1, 4), 2);
  EXPECT_TRUE(naive_is_covered(placement, 1));
  EXPECT_TRUE(placement.parts[0].owns.empty());
}

TEST(PlacementIdentity, WhatCanBeSaidInSeveralWaysHasOneForm) {
  const PlacementManifest plain = split(attention(2, 1), sizes(1), 2);
  const auto identity = [&](auto change) {
    PlacementManifest placement = plain;
    change(placement.parts[0].owns);
    return digest(valid_or_die(placement));
  };
  const Sha256Digest wanted = digest(valid_or_die(plain));
  EXPECT_EQ(identity([](auto& owns) { owns[0].tokens = TokenIntervals{IntervalSet{Range::all()}}; }), wanted);
  EXPECT_EQ(identity([](auto& owns) { owns[0].tokens = CyclicTokens{3, 4, IntervalSet{Range(0, 4)}}; }), wanted);
  EXPECT_EQ(identity([](auto& owns) {
              owns.push_back(owns[0]);
              owns[0].layers = IntervalSet{Range(1, 2)};
              owns[1].layers = IntervalSet{Range(0, 1)};
            }),
            wanted);
  // Layers that are named twice are not made one: the placement stays wrong.
  PlacementManifest twice = plain;
  twice.parts[0].owns.push_back(twice.parts[0].owns[0]);
  EXPECT_EQ(broken_rules(twice), (std::vector<Rule>{Rule::kCoverageOverlap, Rule::kCoverageOverlap}));
}

TEST(BindingIdentity, TheOrderOfViewsIsNoContent) {
  RuntimeBinding binding = *example_binding();
  View other = binding.views[0];
  other.strides.row += 16;  // differs in nothing else
  binding.views.push_back(other);
  RuntimeBinding reversed = binding;
  std::reverse(reversed.views.begin(), reversed.views.end());
  EXPECT_EQ(digest(valid_or_die(binding)), digest(valid_or_die(reversed)));
}

TEST(SplitLayers, FollowsTheRuleOfEachEngine) {
  using Counts = std::vector<uint64_t>;
  EXPECT_EQ(split_layers(Engine::kVllm, 61, 4), (Counts{15, 15, 16, 15}));
  EXPECT_EQ(split_layers(Engine::kSglang, 61, 4), (Counts{15, 15, 15, 16}));
  EXPECT_EQ(split_layers(Engine::kVllm, 126, 4), (Counts{31, 32, 32, 31}));
  EXPECT_EQ(split_layers(Engine::kSglang, 126, 4), (Counts{31, 31, 32, 32}));
  EXPECT_EQ(split_layers(Engine::kVllm, 7, 4), (Counts{2, 2, 2, 1}));
  EXPECT_EQ(split_layers(Engine::kVllm, 80, 2), (Counts{40, 40}));
  EXPECT_EQ(split_layers(Engine::kVllm, 2, 3), (Counts{1, 1, 0}));
}

TEST(Partition, RefusesWhatCannotBeSplit) {
  const auto line_of = [](PartitionRequest request, uint64_t heads) {
    request.layer_count = 4;
    Diagnostics diagnostics;
    EXPECT_FALSE(partition(attention(4, heads), request, diagnostics));
    return diagnostics.empty() ? "" : diagnostics.kept()[0].message;
  };
  PartitionRequest request = sizes(1, 2);
  request.layers_per_stage = {1, 2};
  EXPECT_EQ(line_of(request, 1), "the stages have 1+2 layers together, the model has 4");
  request.layers_per_stage = {4};
  EXPECT_EQ(line_of(request, 1), "1 stages are given layers, but pp is 2");
  request.layers_per_stage = {UINT64_MAX, 5};
  EXPECT_EQ(line_of(request, 1), fmt::format("the stages have {}+5 layers together, the model has 4", UINT64_MAX));
  EXPECT_EQ(line_of(sizes(0), 1), "tp 0 is below 1");
  EXPECT_EQ(line_of(sizes(1 << 17, 2), 1), "dp 1 x pp 2 x tp 131072 x cp 1 are more than 131072 participants");
  request = sizes(3);
  request.heads_per_rank = {4, 4};
  EXPECT_EQ(line_of(request, 8), "2 ranks are given heads, but tp is 3");
  request = sizes(2);
  request.heads_per_rank = {3, 4};
  EXPECT_EQ(line_of(request, 8), "the ranks have 3+4 heads together, the components have 8");
  request.heads_per_rank = {3, 5, 1, 3};
  EXPECT_EQ(line_of(request, 8), "the ranks have 1+3 heads together, the components have 8");
}

TEST(SnapshotIdentity, FieldsAreToldApartByNameAndType) {
  const auto identity = [](auto change) {
    SnapshotDescriptor snapshot = *example_snapshot();
    snapshot.adapter = std::nullopt;
    change(snapshot);
    return digest(valid_or_die(snapshot));
  };
  // The same text in two fields, and one text cut in two places.
  EXPECT_NE(identity([](auto& s) { s.adapter = Adapter{"x", "1"}; }), identity([](auto& s) { s.salt = "x"; }));
  EXPECT_NE(identity([](auto& s) { s.model_id = "ab", s.model_revision = "c"; }),
            identity([](auto& s) { s.model_id = "a", s.model_revision = "bc"; }));
  // The base model, and two revisions of one adapter, are three contents.
  EXPECT_NE(identity([](auto&) {}), identity([](auto& s) { s.adapter = Adapter{"a", "1"}; }));
  EXPECT_NE(identity([](auto& s) {
              s.adapter = Adapter{"a", "1"};
            }),
            identity([](auto& s) {
              s.adapter = Adapter{"a", "2"};
            }));
  // Equal tokens of two tenants, and of two cache dtypes.
  EXPECT_NE(identity([](auto& s) { s.tenant = "a"; }), identity([](auto& s) { s.tenant = "b"; }));
  EXPECT_NE(identity([](auto& s) { s.cache_schema_digest = digest(attention(1, 1, 8)); }),
            identity([](auto& s) { s.cache_schema_digest = digest(attention(1, 1, 16)); }));
  EXPECT_EQ(identity([](auto&) {}), identity([](auto&) {}));
}

}  // namespace
}  // namespace crossdock::testing
