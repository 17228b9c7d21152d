// The planner: what it refuses, how compact its plans are, and which sources it chooses. That plans are right is shown
// by tests/property/plan_property_test.cc and the verifier.
#include "planner/kv/make_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/wire/documents.h"
#include "planner/kv/plan_json.h"
#include "planner/kv/plan_volume.h"
#include "planner/kv/store_geometry.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

CacheSchema keys_and_values(uint64_t layers, uint64_t heads) { return *attention(layers, heads, 128); }

Valid<PlacementManifest> placed_as(const CacheSchema& schema, const PartitionSizes& sizes,
                                   const std::string& name = "p") {
  return placed(valid_or_die(schema), sizes, name, "kv:r");
}

Valid<PlacementManifest> changed(const Valid<PlacementManifest>& placement, auto change) {
  PlacementManifest copy = *placement;
  change(copy);
  return valid_or_die(std::move(copy));
}

// A placement with the look of it.
struct Sided {
  explicit Sided(Valid<PlacementManifest> p) : placement(std::move(p)), side(placement, digest(placement)) {}
  Sided(const Sided&) = delete;
  Valid<PlacementManifest> placement;
  PlanSide side;
};

std::optional<Valid<TransferPlan>> plan_of(const Sided& source, const Sided& target, const PlanOptions& options,
                                           Diagnostics& diagnostics, BalanceReport* report = nullptr,
                                           const PlanLimits& limits = {}) {
  auto plan = make_plan(source.side, target.side, options, limits, diagnostics, report);
  if (plan) verify_plan(*plan, source.side, target.side, VerifyLimits(), diagnostics);
  return plan;
}

Valid<TransferPlan> good_plan(const Sided& source, const Sided& target, const PlanOptions& options = {},
                              BalanceReport* report = nullptr) {
  Diagnostics diagnostics("plan");
  auto plan = plan_of(source, target, options, diagnostics, report);
  EXPECT_TRUE(plan && diagnostics.empty()) << diagnostic_lines(diagnostics);
  return std::move(*plan);
}

// The lines of what is refused.
std::string refusal(const Sided& source, const Sided& target, const PlanOptions& options = {},
                    const PlanLimits& limits = {}) {
  Diagnostics diagnostics("plan");
  EXPECT_FALSE(make_plan(source.side, target.side, options, limits, diagnostics).has_value());
  return diagnostic_lines(diagnostics);
}

// Bytes that each source sends, of `token_count` tokens.
std::map<std::string, uint64_t> loads_of(const TransferPlan& plan, uint64_t token_count) {
  std::map<std::string, uint64_t> loads;
  for (const PairVolume& pair : pair_volumes(plan))
    loads[plan.sources[pair.source].text()] += static_cast<uint64_t>(pair.volume.bytes_per_token) * token_count;
  return loads;
}

TEST(MakePlan, NamesTheFieldInWhichComponentsDiffer) {
  const Sided source(placed_as(keys_and_values(4, 2), {}));
  const auto target_with = [&](auto change) {
    return changed(source.placement, [&](PlacementManifest& p) { change(p.cache_schema.groups[0].components[1]); });
  };
  const std::string start = "plan component value of layers 0-3: ";
  const Sided dtype(target_with([](Component& c) { c.dtype = "float16"; }));
  EXPECT_EQ(refusal(source, dtype), start + "dtype bfloat16 in the source and float16 in the target [plan-schema]\n");
  const Sided encoding(target_with([](Component& c) { c.encoding = "packed"; }));
  EXPECT_EQ(refusal(source, encoding), start + "encoding plain in the source and packed in the target [plan-schema]\n");
  const Sided dim(target_with([](Component& c) { c.head_dim = 64; }));
  EXPECT_EQ(refusal(source, dim), start + "head_dim 128 in the source and 64 in the target [plan-schema]\n");
  const Sided row(target_with([](Component& c) { c.tokens_per_row = 2; }));
  EXPECT_EQ(refusal(source, row),
            start + "token_axis 1 tokens per row in the source and 2 tokens per row in the target [plan-schema]\n");
  const Sided name(changed(source.placement, [&](PlacementManifest& p) {
    p.cache_schema.groups[0].components[1].name = ComponentName("zeta");
    for (Part& part : p.parts) part.owns[0].components[1] = ComponentName("zeta");
  }));
  EXPECT_EQ(refusal(source, name), "plan component zeta of layers 0-3: the source has none [plan-schema]\n");
  const Sided heads(placed_as(keys_and_values(4, 4), {}));
  EXPECT_EQ(refusal(source, heads),
            "plan component key of layers 0-3: head_count 2 in the source and 4 in the target [plan-schema]\n"
            "plan component value of layers 0-3: head_count 2 in the source and 4 in the target [plan-schema]\n");
}

TEST(MakePlan, RefusesLayersThatTheSourceDoesNotHave) {
  const Sided source(placed_as(keys_and_values(4, 2), {}, "small"));
  const Sided target(placed_as(keys_and_values(6, 2), {}, "big"));
  EXPECT_EQ(refusal(source, target),
            "plan layers 4-5: placement 'big' has them, placement 'small' has not [plan-schema]\n");
  // The other way round the target wants a subset, which is fine.
  const auto plan = good_plan(target, source);
  EXPECT_EQ(plan->layer_sets, (std::vector<IntervalSet>{{Range(0, 4)}}));
}

TEST(MakePlan, RefusesAWindowThatTheSourceDoesNotKeep) {
  CacheSchema windowed = keys_and_values(4, 2);
  windowed.groups[0].live = LiveTokens::window(128);
  CacheSchema longer = windowed;
  longer.groups[0].live = LiveTokens::window(256);
  const Sided full(placed_as(keys_and_values(4, 2), {}));
  const Sided window(placed_as(windowed, {}));
  const Sided long_window(placed_as(longer, {}));
  EXPECT_EQ(refusal(window, full),
            "plan component key of layers 0-3: live_tokens: the last 128 tokens in the source, all tokens in the "
            "target [plan-schema]\n"
            "plan component value of layers 0-3: live_tokens: the last 128 tokens in the source, all tokens in the "
            "target [plan-schema]\n");
  EXPECT_EQ(refusal(window, long_window),
            "plan component key of layers 0-3: live_tokens: the last 128 tokens in the source, the last 256 tokens "
            "in the target [plan-schema]\n"
            "plan component value of layers 0-3: live_tokens: the last 128 tokens in the source, the last 256 tokens "
            "in the target [plan-schema]\n");
  PlanOptions options;
  options.snapshot_tokens = Range(0, 300);
  const auto plan = good_plan(full, window, options);
  EXPECT_EQ(plan->tensors[0].tokens, Range(172, 300));
  EXPECT_EQ(plan->token_sets, (std::vector<TokenSet>{{{Range(172, 300)}, std::nullopt}}));
}

TEST(MakePlan, RefusesSidesThatAreAboutDifferentThings) {
  const Sided source(placed_as(keys_and_values(4, 2), {}, "a"));
  const Sided resource(changed(source.placement, [](PlacementManifest& p) {
    p.resource = ResourceId("kv:other");
    p.name = "b";
  }));
  EXPECT_EQ(refusal(source, resource),
            "plan placement 'a': is about resource 'kv:r', placement 'b' about 'kv:other' [plan-identity]\n");
  const Sided revision(changed(source.placement, [](PlacementManifest& p) {
    p.revision = RevisionId("2");
    p.name = "b";
  }));
  EXPECT_EQ(refusal(source, revision),
            "plan placement 'a': is about revision '1', placement 'b' about '2' [plan-identity]\n");
}

TEST(MakePlan, RefusesWhoAndWhatIsNotThere) {
  const Sided source(placed_as(keys_and_values(4, 2), {.dp = 2, .tp = 2}, "a"));
  const Sided target(placed_as(keys_and_values(4, 2), {.tp = 2}, "b"));
  PlanOptions options;
  options.source_dp = 7;
  EXPECT_EQ(refusal(source, target, options),
            "plan placement 'a': has no participant of data-parallel rank 7; its ranks: 0-1 [plan-participant]\n");
  options = {};
  options.target_dp = 1;
  EXPECT_EQ(refusal(source, target, options),
            "plan placement 'b': has no participant of data-parallel rank 1; its ranks: 0 [plan-participant]\n");
  options = {};
  options.targets = {PlanEnd("nobody")};
  EXPECT_EQ(refusal(source, target, options), "plan placement 'b': has no 'nobody' [plan-participant]\n");
  options = {};
  options.sources = {PlanEnd("nobody")};
  EXPECT_EQ(refusal(source, target, options), "plan placement 'a': has no 'nobody' [plan-participant]\n");
  options = {};
  options.selection = SourceSelection::kBalanced;
  options.nics = {NicGroup{"n", {PlanEnd("nobody")}}};
  EXPECT_EQ(refusal(source, target, options),
            "plan network interface 'n': placement 'a' has no 'nobody' [plan-participant]\n");
  const std::string first(source.side.owners().front().end);
  options.nics = {NicGroup{"n", {PlanEnd(first)}}, NicGroup{"m", {PlanEnd(first)}}};
  EXPECT_EQ(refusal(source, target, options),
            fmt::format("plan network interface 'm': '{}' has one already [plan-participant]\n", first));
}

// `count` participants, each with `runs` runs of `run_tokens` tokens of all layers and heads, in turn.
Valid<PlacementManifest> token_runs(const std::string& name, uint64_t count, uint64_t runs, uint64_t run_tokens) {
  PlacementManifest placement;
  placement.name = name;
  placement.resource = ResourceId("kv:r");
  placement.revision = RevisionId("1");
  placement.cache_schema = keys_and_values(1, 1);
  placement.tokens = Range(0, count * runs * run_tokens);
  placement.topology.sizes = ParallelAxes{.dp = 1, .pp = 1, .tp = 1, .cp = count, .ep = 1};
  for (uint64_t i = 0; i < count; ++i) {
    const ParticipantId id(fmt::format("c{:05}", i));
    Participant participant;
    participant.id = id;
    participant.rank.cp = i;
    placement.topology.participants.push_back(participant);
    std::vector<Range> tokens;
    for (uint64_t run = 0; run < runs; ++run) {
      const uint64_t begin = (run * count + i) * run_tokens;
      tokens.emplace_back(begin, begin + run_tokens);
    }
    placement.parts.push_back(Part{id,
                                   {owns({Range(0, 1)}, {"key", "value"}, {Range(0, 1)},
                                         TokenIntervals{IntervalSet::from_ranges(std::move(tokens))})}});
  }
  return valid_or_die(std::move(placement));
}

// Each target shares tokens with one or two sources, so the work follows the intervals and not the pairs: 4 million
// pairs here, and 3 * 4,000 intervals.
TEST(MakePlan, StatedIntervalsAreJoinedBySweeps) {
  const Sided source(token_runs("source", 2000, 3, 10));
  const Sided target(changed(token_runs("target", 2000, 3, 10), [](PlacementManifest& p) {
    for (Part& part : p.parts) {  // 5 tokens later, and the last one ends where the first begins
      std::vector<Range> moved;
      for (const Range range : std::get<TokenIntervals>(part.owns[0].tokens).tokens.ranges()) {
        if (range.end() == p.tokens.end()) moved.emplace_back(0, 5);
        moved.emplace_back(range.begin() + 5, std::min(range.end() + 5, p.tokens.end()));
      }
      part.owns[0].tokens = TokenIntervals{IntervalSet::from_ranges(std::move(moved))};
    }
  }));
  for (const SourceSelection selection : {SourceSelection::kDeterministic, SourceSelection::kBalanced}) {
    Diagnostics diagnostics("plan");
    PlanOptions options;
    options.selection = selection;
    PlanLimits limits;
    limits.work_max = 200'000;
    const auto plan = plan_of(source, target, options, diagnostics, nullptr, limits);
    ASSERT_TRUE(plan && diagnostics.empty()) << diagnostic_lines(diagnostics);
    // Of key and of value: each target gets from its neighbour and from the one before it.
    EXPECT_EQ((*plan)->edges.size(), 2u * 2 * 2000);
  }
}

TEST(MakePlan, CyclesOfOneShapeAreJoinedBySweeps) {
  const Sided source(placed_as(keys_and_values(1, 1), {.cp = 2000, .cp_block_tokens = 16}, "source"));
  const Sided target(placed_as(keys_and_values(1, 1), {.cp = 2000, .cp_block_tokens = 16}, "target"));
  Diagnostics diagnostics("plan");
  PlanLimits limits;
  limits.work_max = 100'000;
  const auto plan = plan_of(source, target, {}, diagnostics, nullptr, limits);
  ASSERT_TRUE(plan && diagnostics.empty()) << diagnostic_lines(diagnostics);
  EXPECT_EQ((*plan)->edges.size(), 2u * 2000);
}

TEST(MakePlan, CyclesOfTwoShapesAndIntervalsAreJoinedBySweeps) {
  const auto cycles = [](const char* name, uint64_t block_tokens) {
    return changed(placed_as(keys_and_values(1, 1), {.cp = 2000, .cp_block_tokens = block_tokens}, name),
                   [](PlacementManifest& p) { p.tokens = Range(0, 2000 * 3 * 10); });
  };
  const Sided sixteens(cycles("sixteens", 16));
  const Sided eights(cycles("eights", 8));
  const Sided intervals(token_runs("intervals", 2000, 3, 10));
  const auto edge_count = [&](const Sided& source, const Sided& target) {
    Diagnostics diagnostics("plan");
    PlanLimits limits;
    limits.work_max = 400'000;
    const auto plan = plan_of(source, target, {}, diagnostics, nullptr, limits);
    EXPECT_TRUE(plan && diagnostics.empty()) << diagnostic_lines(diagnostics);
    return plan ? (*plan)->edges.size() : 0;
  };
  // 60,000 tokens: 16,000 make a cycle of eights, 32,000 one of sixteens. Blocks of 8 lie in one block of 16 each; rank
  // e of the eights has the blocks e, e + 2000, ..., so it meets the sixteens e/2, 1000 + e/2, e/2 + 2000 - 2000, ...
  EXPECT_EQ(edge_count(eights, sixteens), 2u * 2 * 2000);
  EXPECT_EQ(edge_count(sixteens, eights), 2u * 2 * 2000);
  // Counted token by token.
  std::set<std::pair<uint64_t, uint64_t>> pairs;
  for (uint64_t token = 0; token < 60'000; ++token) pairs.emplace(token / 16 % 2000, token / 10 % 2000);
  EXPECT_EQ(edge_count(sixteens, intervals), 2 * pairs.size());
  EXPECT_EQ(edge_count(intervals, sixteens), 2 * pairs.size());
}

// 8 heads over 16 ranks: two replicas of each head. Replica 0 sends the pages 0, 2, 4, ..., replica 1 the others.
TEST(MakePlan, ReplicasTakeTurnsByPage) {
  const Sided source(placed_as(keys_and_values(4, 8), {.tp = 16}, "source"));
  const Sided target(placed_as(keys_and_values(4, 8), {.tp = 8}, "target"));
  PlanOptions options;
  options.snapshot_tokens = Range(0, 1000);
  options.selection = SourceSelection::kByPage;
  options.selection_page_tokens = 64;
  const Valid<TransferPlan> plan = good_plan(source, target, options);
  EXPECT_EQ(plan->edges.size(), 2u * 8 * 2);  // key and value, heads, replicas
  EXPECT_EQ(plan->token_sets, (std::vector<TokenSet>{{{Range(0, 1000)}, CyclicTokens{64, 2, {Range(0, 1)}}},
                                                     {{Range(0, 1000)}, CyclicTokens{64, 2, {Range(1, 2)}}}}));
  for (const Edge& edge : plan->edges) {
    const std::string& sender = plan->sources[edge.source].text();  // t0 and t1 have head 0, t2 and t3 head 1, ...
    const uint64_t rank = std::stoull(sender.substr(sender.rfind('t') + 1));
    EXPECT_EQ(rank / 2, edge.heads.begin()) << sender;
    EXPECT_EQ(rank % 2, edge.token_set) << sender;
  }
  options.sources = {PlanEnd(std::string(source.side.owners().front().end))};
  EXPECT_EQ(refusal(source, target, options),
            "plan placement 'source': each page has its own replica to write it: leave out the choice of participants "
            "[plan-participant]\n");
}

TEST(MakePlan, APageOfAReplicaHoldsWholeRows) {
  const CacheSchema schema = *schema_of({group(Range(0, 1), {rows("key", 1), rows("key_scale", 1, 1, 16)})});
  const Sided source(placed_as(schema, {.tp = 2}, "source"));
  const Sided target(placed_as(schema, {}, "target"));
  PlanOptions options;
  options.selection = SourceSelection::kByPage;
  options.selection_page_tokens = 24;
  EXPECT_EQ(refusal(source, target, options),
            "plan: pages of 24 tokens cut rows of 16 (component key_scale) [token-alignment]\n");
  options.selection_page_tokens = 32;
  EXPECT_EQ(good_plan(source, target, options)->edges.size(), 4u);
}

TEST(MakePlan, RefusesTokensThatASideDoesNotHave) {
  const Sided whole(placed_as(keys_and_values(4, 2), {}, "whole"));
  const Sided part(changed(whole.placement, [](PlacementManifest& p) {
    p.tokens = Range(0, 100);
    p.name = "part";
  }));
  EXPECT_EQ(refusal(part, whole),
            "plan placement 'part': is about tokens [0,100), and [0,end) are to be moved (component key, layers 0-3) "
            "[plan-gap]\n");
  PlanOptions options;
  options.snapshot_tokens = Range(0, 160);
  EXPECT_EQ(refusal(whole, part, options),
            "plan placement 'part': is about tokens [0,100), and [0,160) are to be moved (component key, layers 0-3) "
            "[token-bounds]\n");
  options.tokens = Range(50, 100);
  EXPECT_EQ(good_plan(whole, part, options)->tensors[0].tokens, Range(50, 100));
  options.tokens = Range(160, 200);
  EXPECT_EQ(refusal(whole, part, options), "plan: tokens [160,200) lie outside [0,160) [plan-empty]\n");
}

TEST(MakePlan, RefusesToCutARow) {
  CacheSchema schema = keys_and_values(2, 2);
  schema.groups[0].components[0].tokens_per_row = 4;
  const Sided side(placed_as(schema, {}));
  PlanOptions options;
  options.snapshot_tokens = Range(3, 30);
  good_plan(side, side, options);  // rows may be partial where the snapshot begins and ends
  options.tokens = Range(8, 28);
  good_plan(side, side, options);
  options.tokens = Range(3, 18);
  EXPECT_EQ(refusal(side, side, options),
            "plan component key: tokens [3,18) cut a row of 4 tokens [token-alignment]\n");
}

TEST(MakePlan, TellsWhatExplicitSourcesCannotBring) {
  const Sided source(placed_as(keys_and_values(4, 2), {.tp = 4}));  // each head on two ranks
  const Sided target(placed_as(keys_and_values(4, 2), {.tp = 1}));
  const auto names = [&](std::initializer_list<size_t> owners) {
    std::vector<PlanEnd> ends;
    for (const size_t owner : owners) ends.emplace_back(std::string(source.side.owners()[owner].end));
    return ends;
  };
  PlanOptions options;
  options.sources = names({1, 2});  // rank 0, the first choice for head 0, is left out
  const auto plan = good_plan(source, target, options);
  EXPECT_EQ(plan->sources, options.sources);
  options.sources = names({0, 1});
  const std::string lines = refusal(source, target, options);
  EXPECT_NE(lines.find("layers 0-3 component key heads [1,2)"), std::string::npos) << lines;
  EXPECT_NE(lines.find("[plan-gap]"), std::string::npos) << lines;
}

TEST(MakePlan, RefusesAPlanThatMovesNothingOfWhatIsRequired) {
  // The source's only data-parallel rank 1 owns nothing of what the target wants, as far as it may be taken.
  const Sided source(placed_as(keys_and_values(4, 2), {.tp = 2}));
  const Sided target(placed_as(keys_and_values(4, 2), {.tp = 1}));
  PlanOptions options;
  options.tokens = Range(10, 20);
  options.sources = {PlanEnd(std::string(source.side.owners()[0].end))};
  const std::string lines = refusal(source, target, options);
  EXPECT_NE(lines.find("[plan-gap]"), std::string::npos) << lines;
  // A stage without layers, on the other hand, requires nothing.
  const Sided idle(changed(target.placement, [](PlacementManifest& p) {
    p.topology.sizes.pp = 2;
    p.topology.participants.push_back(Participant{ParticipantId("zz-idle"), {.pp = 1}});
    p.parts.push_back(Part{ParticipantId("zz-idle"), {}});
  }));
  PlanOptions only_idle;
  only_idle.targets = {PlanEnd("zz-idle")};
  EXPECT_TRUE(good_plan(source, idle, only_idle)->edges.empty());
}

TEST(MakePlan, EdgesFollowRegionsAndNotLayersHeadsOrTokens) {
  for (const uint64_t layers : {8u, 64u, 512u}) {
    const Sided source(placed_as(keys_and_values(layers, 64), {.pp = 2, .tp = 8}));
    const Sided target(placed_as(keys_and_values(layers, 64), {.pp = 4, .tp = 4}));
    // Each of 16 targets takes two components from two ranks of one stage.
    EXPECT_EQ(good_plan(source, target)->edges.size(), 64u) << layers;
  }
}

TEST(MakePlan, LayersOfAlternatingWindowsShareAnEdge) {
  CacheSchema schema;
  schema.groups.push_back(
      LayerGroup{{Range(0, 1), Range(2, 3), Range(4, 5)}, LiveTokens::all(), {rows("key", 4, 128)}});
  schema.groups.push_back(
      LayerGroup{{Range(1, 2), Range(3, 4), Range(5, 6)}, LiveTokens::window(128), {rows("key", 4, 128)}});
  const Sided source(placed_as(schema, {.tp = 2}));
  const Sided target(placed_as(schema, {.tp = 1}));
  const auto plan = good_plan(source, target);
  EXPECT_EQ(plan->edges.size(), 4u);  // two tensors from two ranks
  EXPECT_EQ(plan->layer_sets, (std::vector<IntervalSet>{schema.groups[0].layers, schema.groups[1].layers}));
}

// 128 owners of one layer each, and 128 owners of one head each.
std::pair<Valid<PlacementManifest>, Valid<PlacementManifest>> stripes(uint64_t count) {
  CacheSchema schema{{LayerGroup{{Range(0, count)}, LiveTokens::all(), {rows("key", count, 128)}}}};
  return {placed_as(schema, {.pp = count}, "rows"), placed_as(schema, {.tp = count}, "columns")};
}

TEST(MakePlan, OrthogonalStripesAreOneEdgeForEachPairOrStopAtTheLimit) {
  auto [rows, columns] = stripes(128);
  const Sided source(std::move(rows));
  const Sided target(std::move(columns));
  EXPECT_EQ(good_plan(source, target)->edges.size(), 128u * 128u);
  PlanLimits limits;
  limits.edge_count_max = 1000;
  EXPECT_EQ(refusal(source, target, {}, limits), "plan: more than 1000 edges [plan-limit]\n");
  limits = {};
  limits.work_max = 1000;
  EXPECT_EQ(refusal(source, target, {}, limits), "plan: more than 1000 pairs of regions to look at [plan-limit]\n");
}

TEST(MakePlan, RefusesCyclesThatDoNotGoTogether) {
  const Sided source(placed_as(keys_and_values(2, 1), {.cp = 31, .cp_block_tokens = 29}));
  const Sided target(placed_as(keys_and_values(2, 1), {.cp = 37, .cp_block_tokens = 23}));
  PlanLimits limits;
  limits.token_range_count_max = 500;  // the common period has 31 * 29 * 37 * 23 tokens
  EXPECT_EQ(refusal(source, target, {}, limits),
            "plan: the token cycles of source and target have a common period of more than 500 blocks [plan-limit]\n");
  EXPECT_EQ(good_plan(source, target)->sources.size(), 31u);
}

TEST(MakePlan, SpreadsTargetRanksOverTheSourcesDataParallelRanks) {
  const Sided source(placed_as(keys_and_values(4, 2), {.dp = 2}));
  const Sided target(placed_as(keys_and_values(4, 2), {.dp = 3}));
  const auto plan = good_plan(source, target);
  std::map<std::string, std::set<std::string>> sources_of;
  for (const Edge& edge : plan->edges)
    sources_of[plan->targets[edge.target].text()].insert(plan->sources[edge.source].text());
  const auto name = [](const Sided& side, size_t i) { return std::string(side.side.owners()[i].end); };
  EXPECT_EQ(sources_of[name(target, 0)], std::set{name(source, 0)});
  EXPECT_EQ(sources_of[name(target, 1)], std::set{name(source, 1)});
  EXPECT_EQ(sources_of[name(target, 2)], std::set{name(source, 0)});
  PlanOptions options;
  options.source_dp = 1;
  options.target_dp = 2;
  const auto chosen = good_plan(source, target, options);
  EXPECT_EQ(chosen->sources, std::vector{PlanEnd(name(source, 1))});
  EXPECT_EQ(chosen->targets, std::vector{PlanEnd(name(target, 2))});
}

// --- Balance. Known bounds: with all sources able to share in, the even share. ---

struct BalanceCase {
  std::string name;
  uint64_t layers, heads;
  PartitionSizes source, target;
  uint64_t busy_sources;         // that then send all the same
  uint64_t target_replicas = 1;  // in each data-parallel rank: each wants a copy
};

class Balance : public ::testing::TestWithParam<BalanceCase> {};

TEST_P(Balance, ReachesTheEvenShare) {
  const BalanceCase& given = GetParam();
  const Sided source(placed_as(keys_and_values(given.layers, given.heads), given.source));
  const Sided target(placed_as(keys_and_values(given.layers, given.heads), given.target));
  PlanOptions options;
  options.selection = SourceSelection::kBalanced;
  BalanceReport report;
  const auto plan = good_plan(source, target, options, &report);
  // A token of one head of one layer has 256 bytes in each of two components.
  const uint64_t total =
      given.layers * given.heads * 2 * 256 * kWeighedTokens * given.target.dp * given.target_replicas;
  ASSERT_EQ(total % given.busy_sources, 0u);
  EXPECT_EQ(report.bound_bytes, total / given.busy_sources);
  EXPECT_EQ(report.balanced_bytes, report.bound_bytes);
  EXPECT_GE(report.deterministic_bytes, report.balanced_bytes);
  const std::map<std::string, uint64_t> loads = loads_of(*plan, kWeighedTokens);
  EXPECT_EQ(loads.size(), given.busy_sources);
  for (const auto& [name, bytes] : loads) EXPECT_EQ(bytes, total / given.busy_sources) << name;
}

INSTANTIATE_TEST_SUITE_P(KnownBounds, Balance,
                         ::testing::Values(
                             // The reference reads 8 of 16 sources, and one of four data-parallel ranks.
                             BalanceCase{"ReplicatedHeads", 80, 8, {.tp = 16}, {.tp = 8}, 16},
                             BalanceCase{"DataParallelRanks", 80, 8, {.dp = 4}, {.dp = 1}, 4},
                             BalanceCase{"BothAtOnce", 80, 8, {.dp = 2, .tp = 16}, {.tp = 8}, 32},
                             BalanceCase{"LatentOnEveryRank", 60, 1, {.tp = 8}, {.tp = 1}, 8},
                             BalanceCase{"FewTargetsManyReplicas", 64, 1, {.tp = 16}, {.tp = 2}, 16, 2},
                             BalanceCase{"NoChoice", 61, 8, {.tp = 8}, {.tp = 4}, 8},
                             BalanceCase{
                                 "MoreTargetRanksThanSources", 12, 4, {.dp = 3, .tp = 4}, {.dp = 6, .tp = 2}, 12}),
                         [](const auto& each) { return each.param.name; });

TEST(Balance, OddLayersAreOffByOneLayerOfAHeadAtMost) {
  // 61 layers x 2 components over 4 ranks: 30.5 layers each.
  const Sided source(placed_as(keys_and_values(61, 1), {.dp = 4}));
  const Sided target(placed_as(keys_and_values(61, 1), {}));
  PlanOptions options;
  options.selection = SourceSelection::kBalanced;
  BalanceReport report;
  good_plan(source, target, options, &report);
  EXPECT_EQ(report.bound_bytes, 31u * 256 * kWeighedTokens);
  EXPECT_EQ(report.balanced_bytes, report.bound_bytes);
  EXPECT_EQ(report.deterministic_bytes, 122u * 256 * kWeighedTokens);
}

TEST(Balance, SharedInterfacesCarryTheirParticipantsTogether) {
  // Three of four replicas sit behind one interface: it gets half, not three quarters.
  const Sided source(placed_as(keys_and_values(80, 1), {.tp = 4}));
  const Sided target(placed_as(keys_and_values(80, 1), {}));
  const auto name = [&](size_t i) { return PlanEnd(std::string(source.side.owners()[i].end)); };
  PlanOptions options;
  options.selection = SourceSelection::kBalanced;
  options.nics = {NicGroup{"shared", {name(0), name(1), name(2)}}};
  BalanceReport report;
  const auto plan = good_plan(source, target, options, &report);
  EXPECT_EQ(report.bound_bytes, 80u * 256 * kWeighedTokens);
  EXPECT_EQ(report.balanced_bytes, report.bound_bytes);
  EXPECT_EQ(loads_of(*plan, kWeighedTokens)[name(3).text()], 80u * 256 * kWeighedTokens);
}

TEST(MakePlan, SameInputsGiveTheSameBytes) {
  const auto text = [] {
    const Sided source(placed_as(keys_and_values(61, 8), {.dp = 2, .tp = 16}));
    const Sided target(placed_as(keys_and_values(61, 8), {.pp = 3, .tp = 4}));
    PlanOptions options;
    options.selection = SourceSelection::kBalanced;
    return plan_to_json(good_plan(source, target, options));
  };
  EXPECT_EQ(text(), text());
}

TEST(MakePlan, UploadsHaveOneWriterForEachElement) {
  const Sided source(placed_as(keys_and_values(4, 2), {.dp = 2, .tp = 4}));
  Diagnostics diagnostics("layout");
  const auto layout = layout_of(source.placement, 1, ObjectOrder::kHpld, 16, "store", diagnostics);
  ASSERT_TRUE(layout.has_value()) << diagnostic_lines(diagnostics);
  EXPECT_EQ((*layout)->parts.size(), 2u);  // a part for each head, not for each replica
  const PlanSide store(*layout, digest(*layout));
  PlanOptions options;
  options.source_dp = 1;
  const auto plan = make_plan(source.side, store, options, PlanLimits(), diagnostics);
  ASSERT_TRUE(plan.has_value()) << diagnostic_lines(diagnostics);
  verify_plan(*plan, source.side, store, VerifyLimits(), diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostic_lines(diagnostics);
  EXPECT_EQ((*plan)->kind, PlanKind::kUpload);
  EXPECT_EQ((*plan)->sources.size(), 2u);
  EXPECT_FALSE(make_plan(store, store, options, PlanLimits(), diagnostics).has_value());
  EXPECT_TRUE(diagnostics.has(Rule::kPlanIdentity));
  EXPECT_FALSE(layout_of(source.placement, 9, ObjectOrder::kHpld, 16, "store", diagnostics).has_value());
  EXPECT_TRUE(diagnostics.has(Rule::kPlanParticipant));
}

}  // namespace
}  // namespace crossdock::testing
