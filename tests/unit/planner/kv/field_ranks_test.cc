// Field cases of ranks: uneven tensor-parallel degrees, replicas of heads, merges, and parts of one context.
// Failures that users of cache transfer reported, as small inputs with their right values: each is planned, proved,
// bound, lowered and run byte by byte, see tests/support/field_world.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"
#include "planner/kv/store_geometry.h"
#include "tests/support/builders.h"
#include "tests/support/byte_world.h"
#include "tests/support/example_documents.h"
#include "tests/support/field_world.h"

namespace crossdock::testing {
namespace {

// ---- Plans and moves ----

Lines bind_diagnostics(const FieldRuntime& runtime) {
  Diagnostics diagnostics;
  const FieldBound bound(runtime, diagnostics);
  EXPECT_EQ(bound.ok(), diagnostics.empty());
  return lines_of(diagnostics);
}

// The diagnostics of lowering a plan for all with the bindings that there are.
Lines lower_diagnostics(const Valid<TransferPlan>& plan, const FieldRuntime& source, const FieldRuntime& target) {
  Diagnostics diagnostics;
  const FieldBound from(source, diagnostics);
  const FieldBound to(target, diagnostics);
  stop_on(diagnostics);
  EXPECT_FALSE(lower(*plan, from.side(), to.side(), LowerOptions{}, LowerLimits{}, diagnostics).has_value());
  return lines_of(diagnostics);
}

std::vector<std::string> end_texts(const std::vector<PlanEnd>& ends) {
  std::vector<std::string> list;
  for (const PlanEnd& end : ends) list.push_back(end.text());
  return list;
}

// Case U01: two KV heads on four source ranks, each head twice, merge into one rank; an engine that counted heads as
// "per rank x ranks" saw four of them and wrote to wrong offsets.
TEST(FieldCases, U01ReplicasOfTwoHeadsMergeIntoOneTargetWhoseEveryByteIsWrittenOnce) {
  const Valid<CacheSchema> schema = attention(2, 2, 128);
  const Range tokens(0, 128);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {.tp = 4}, "prefill"), snapshot);
  FieldRuntime target("target", placed(schema, {}, "decode"), snapshot);
  const std::vector<FieldPool> pools = {{Range(0, 2), Range(0, 1), 128, 64, 6, {5, 1}},
                                        {Range(0, 2), Range(0, 1), 128, 64, 6, {0, 3}},
                                        {Range(0, 2), Range(1, 2), 128, 64, 6, {2, 4}},
                                        {Range(0, 2), Range(1, 2), 128, 64, 6, {4, 5}}};
  for (size_t rank = 0; rank < 4; ++rank) {
    const std::vector<Ownership>& owns = source.placement->parts[rank].owns;
    ASSERT_EQ(owns.size(), 1u);
    EXPECT_EQ(owns[0].heads, IntervalSet{pools[rank].heads});
    EXPECT_EQ(owns[0].replica, (ReplicaOrdinal{rank % 2, 2}));
  }
  const World memory = bind_and_fill(source, pools, tokens);
  // The target's region has room for its two pages and for nothing else.
  const FieldPool whole{Range(0, 2), Range(0, 2), 128, 64, 2, {1, 0}};
  const World expected = bind_and_fill(target, {whole}, tokens);
  ASSERT_EQ(expected.at("target:p0-t0/pool").written_bytes(Range(0, whole.bytes())), whole.bytes());

  const FieldMove move = move_live(source, target);
  EXPECT_EQ(planned_bytes(*move.plan), 2u * 2 * 2 * 128 * 128 * 2);  // layers, K and V, heads, tokens, D, bf16
  EXPECT_EQ(move.lowered.counts().bytes, whole.bytes());
  EXPECT_EQ(pair_names(move), (std::set<std::string>{"p0-t0 -> p0-t0", "p0-t2 -> p0-t0"}));
  expect_bytes(move.lowered, memory, target, expected);
}

TEST(FieldCases, U01AnyReplicaMayServeItsHead) {
  const Valid<CacheSchema> schema = attention(1, 2, 8);
  const Range tokens(0, 70);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime target("target", placed(schema, {}, "decode"), snapshot);
  const World expected = bind_and_fill(target, {{Range(0, 1), Range(0, 2), 8, 64, 3, {2, 0}}}, tokens);
  for (const uint64_t first : {0u, 1u})
    for (const uint64_t second : {2u, 3u}) {
      SCOPED_TRACE(fmt::format("ranks {} and {}", first, second));
      // The other two have no binding.
      FieldRuntime source("source", placed(schema, {.tp = 4}, "prefill"), snapshot);
      source.bindings = {source.bindings[first], source.bindings[second]};
      const World memory = bind_and_fill(
          source, {{Range(0, 1), Range(0, 1), 8, 64, 3, {first, 2}}, {Range(0, 1), Range(1, 2), 8, 64, 3, {0, 1}}},
          tokens);
      PlanOptions options;
      for (const RuntimeBinding& binding : source.bindings)
        options.sources.push_back(PlanEnd(binding.participant.text()));
      expect_bytes(move_live(source, target, options).lowered, memory, target, expected);
    }
}

// Four tensor-parallel sources with one head each, and one target with all of them. Pages of 64 tokens, three in use.
struct FourWriters {
  Valid<CacheSchema> schema = attention(2, 4, 16);
  Range tokens = Range(0, 150);
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source{"source", placed(schema, {.tp = 4}, "prefill"), snapshot};
  FieldRuntime target{"target", placed(schema, {}, "decode"), snapshot};
  FieldPool whole{Range(0, 2), Range(0, 4), 16, 64, 5, {1, 3, 0}};
  World memory = bind_and_fill(source,
                               {{Range(0, 2), Range(0, 1), 16, 64, 5, {0, 4, 3}},
                                {Range(0, 2), Range(1, 2), 16, 64, 5, {1, 4, 3}},
                                {Range(0, 2), Range(2, 3), 16, 64, 5, {2, 4, 3}},
                                {Range(0, 2), Range(3, 4), 16, 64, 5, {3, 4, 2}}},
                               tokens);
  World expected = bind_and_fill(target, {whole}, tokens);
};

// Case U04: the ranks of one pipeline stage all reported their completion under the number of the stage, so that the
// count of four writers was never reached and the transfer hung.
TEST(FieldCases, U04TheWritersOfATargetAreNamedByIdAndNotByTheirPipelineRank) {
  const FourWriters world;
  for (const Participant& participant : world.source.placement->topology.participants)
    EXPECT_EQ(participant.rank.pp, 0u);
  const FieldMove move = move_live(world.source, world.target);
  EXPECT_EQ(end_texts(move.plan->sources), (Lines{"p0-t0", "p0-t1", "p0-t2", "p0-t3"}));
  EXPECT_EQ(end_texts(move.plan->targets), Lines{"p0-t0"});
  EXPECT_EQ(move.lowered.pairs().size(), 4u);
  EXPECT_EQ(pair_names(move),
            (std::set<std::string>{"p0-t0 -> p0-t0", "p0-t1 -> p0-t0", "p0-t2 -> p0-t0", "p0-t3 -> p0-t0"}));
  expect_bytes(move.lowered, world.memory, world.target, world.expected);
}

TEST(FieldCases, U04AWriterThatWritesTwiceDoesNotStandInForOneThatNeverWrites) {
  const FourWriters world;
  const FieldMove move = move_live(world.source, world.target);
  // Each writer lowers its own part of the plan; writer 2 runs twice, writer 3 never.
  World memory = world_of(world.target.bindings);
  Diagnostics diagnostics;
  const FieldBound from(world.source, diagnostics);
  const FieldBound to(world.target, diagnostics);
  stop_on(diagnostics);
  for (const char* writer : {"p0-t0", "p0-t1", "p0-t2", "p0-t2"}) {
    const FieldMove own = lowered_move(move.plan, from.side(), to.side(), LowerOptions{PlanEnd(writer), std::nullopt});
    EXPECT_EQ(pair_names(own), std::set<std::string>{std::string(writer) + " -> p0-t0"});
    EXPECT_TRUE(run_steps(own.lowered, world.memory, memory).ok());
  }
  World expected = world_of(world.target.bindings);
  Memory& pool = expected.at("target:p0-t0/pool");
  for (const uint64_t component : {0u, 1u})
    for (const uint64_t head : {0u, 1u, 2u, 2u})
      for_each_item(world.whole.components[component], Range(0, 2), Range(head, head + 1), world.tokens, 16,
                    [&](const Item& item) { pool.put(world.whole.offset(component, item), 2, item); });
  EXPECT_EQ(difference(memory, expected), "");
}

// Case U06: token-major pages went to a head-major cache as a plain copy, which permutes heads and tokens without an
// error.
TEST(FieldCases, U06TokenMajorPagesReachHeadMajorPagesAsAnExactPermutation) {
  const Valid<CacheSchema> schema = attention(1, 16, 64);  // two heads on each of the eight ranks
  const Range tokens(0, 300);                              // pages of 128, 128 and 44 tokens
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime target("target", placed(schema, {.tp = 8}, "decode"), snapshot);
  std::vector<FieldPool> pools;
  for (uint64_t rank = 0; rank < 8; ++rank) {
    pools.push_back(
        {Range(0, 1), Range(2 * rank, 2 * rank + 2), 64, 128, 4, {rank % 4, (rank + 1) % 4, (rank + 3) % 4}});
    pools.back().head_major = true;
  }
  const World expected = bind_and_fill(target, pools, tokens);

  for (const uint64_t dp : {0u, 1u}) {
    SCOPED_TRACE(fmt::format("data-parallel rank {}", dp));
    // The request was computed on one of the two ranks; the other holds nothing of it and has no binding.
    FieldRuntime source("source", placed(schema, {.dp = 2}, "prefill"), snapshot);
    source.bindings = {source.bindings[dp]};
    const World memory = bind_and_fill(source, {{Range(0, 1), Range(0, 16), 64, 128, 7, {6, 0, 3}}}, tokens);
    PlanOptions options;
    options.source_dp = dp;
    const FieldMove move = move_live(source, target, options);
    EXPECT_EQ(end_texts(move.plan->sources), Lines{fmt::format("d{}-p0-t0", dp)});
    // Heads and tokens change places, so no more than one head of one token is contiguous on both sides.
    EXPECT_EQ(move.lowered.counts().ranges, 2u * 16 * 300);
    expect_bytes(move.lowered, memory, target, expected);
  }
}

// One of many requests that merge their heads into one target, each with a resource, pages and documents of its own.
struct MergeAnswer {
  Sha256Digest source_digest;
  std::optional<TransferPlan> plan;
  std::vector<CopyStep> steps;
  std::string wrong;  // what the target's bytes have that they should not

  friend bool operator==(const MergeAnswer&, const MergeAnswer&) = default;
};

MergeAnswer merge(uint64_t source_ranks, uint64_t request) {
  const Valid<CacheSchema> schema = attention(2, 4, 8);
  const std::string resource = fmt::format("kv:request-{}", request);
  const Range tokens(0, 17 + request % 16);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens, resource);
  FieldRuntime source("source", placed(schema, {.tp = source_ranks}, "prefill", resource), snapshot);
  FieldRuntime target("target", placed(schema, {.tp = 1}, "decode", resource), snapshot);
  Rng rng(request);
  const auto pool_of = [&](Range heads) {
    std::vector<uint64_t> slots(9);
    std::iota(slots.begin(), slots.end(), uint64_t{0});
    rng.shuffle(slots);
    slots.resize(div_round_up(tokens.end(), 8));
    return FieldPool{Range(0, 2), heads, 8, 8, 9, slots};
  };
  std::vector<FieldPool> pools;
  const uint64_t heads = 4 / source_ranks;
  for (uint64_t rank = 0; rank < source_ranks; ++rank)
    pools.push_back(pool_of(Range(rank * heads, (rank + 1) * heads)));
  const World memory = bind_and_fill(source, pools, tokens);
  const World expected = bind_and_fill(target, {pool_of(Range(0, 4))}, tokens);

  const FieldMove move = move_live(source, target);
  MergeAnswer answer{source.side().digest(), *move.plan, {}, ""};
  for (const LoweredPair& pair : move.lowered.pairs())
    for (const CopyStep& step : move.lowered.steps(pair)) answer.steps.push_back(step);
  World result = world_of(target.bindings);
  const Status status = run_steps(move.lowered, memory, result);
  answer.wrong = status.ok() ? difference(result, expected) : status.message();
  if (move.plan->sources.size() != source_ranks) answer.wrong += " not all sources are in the plan";
  return answer;
}

// Case U09: merging four tensor-parallel ranks into one crashed when 128 requests did it at once.
TEST(FieldCases, U09AHundredAndTwentyEightMergesAtOnceAreThoseThatEachGivesAlone) {
  constexpr uint64_t kRequests = 128;
  constexpr uint64_t kThreads = 8;
  for (const uint64_t source_ranks : {4u, 2u}) {
    SCOPED_TRACE(fmt::format("TP{} to TP1", source_ranks));
    std::vector<MergeAnswer> alone;
    for (uint64_t request = 0; request < kRequests; ++request) alone.push_back(merge(source_ranks, request));
    std::vector<MergeAnswer> together(kRequests);
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&together, source_ranks, thread] {
        for (uint64_t request = thread; request < kRequests; request += kThreads)
          together[request] = merge(source_ranks, request);
      });
    for (std::thread& thread : threads) thread.join();
    std::set<Sha256Digest> resources;
    for (uint64_t request = 0; request < kRequests; ++request) {
      EXPECT_EQ(alone[request].wrong, "") << "request " << request;
      EXPECT_TRUE(alone[request] == together[request]) << "request " << request;
      resources.insert(alone[request].source_digest);
    }
    EXPECT_EQ(resources.size(), kRequests);
  }
}

TEST(FieldCases, U09ManyThreadsMayLowerFromTheSameTwoSides) {
  const FourWriters world;
  const PlanSide source_side = world.source.side();
  const PlanSide target_side = world.target.side();
  Diagnostics diagnostics;
  const FieldBound from(world.source, diagnostics);
  const FieldBound to(world.target, diagnostics);
  stop_on(diagnostics);
  PlanOptions options;
  options.snapshot_tokens = world.tokens;
  const auto all_steps = [&] {
    const FieldMove move = lowered_move(proven_plan(source_side, target_side, options), from.side(), to.side());
    std::vector<CopyStep> steps;
    for (const LoweredPair& pair : move.lowered.pairs())
      move.lowered.for_each_step(pair, [&](const CopyStep& step) { steps.push_back(step); });
    return steps;
  };
  const std::vector<CopyStep> alone = all_steps();
  std::vector<std::vector<CopyStep>> together(8);
  std::vector<std::thread> threads;
  for (std::vector<CopyStep>& result : together)
    threads.emplace_back([&result, &all_steps] {
      for (int repeat = 0; repeat < 16; ++repeat) result = all_steps();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<CopyStep>& result : together) EXPECT_TRUE(result == alone);
}

// Two source ranks, one head each, one endpoint each.
struct TwoRanks {
  TwoRanks() {
    for (uint64_t rank = 0; rank < 2; ++rank)
      source.bindings[rank].regions[0].endpoint = fmt::format("10.0.0.1:{}", 4711 + rank);
  }

  Valid<CacheSchema> schema = attention(1, 2, 8);
  Range tokens = Range(0, 80);
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source{"source", placed(schema, {.tp = 2}, "prefill"), snapshot};
  FieldRuntime target{"target", placed(schema, {}, "decode"), snapshot};
  World memory = bind_and_fill(
      source, {{Range(0, 1), Range(0, 1), 8, 64, 3, {0, 2}}, {Range(0, 1), Range(1, 2), 8, 64, 3, {1, 2}}}, tokens);
  World expected = bind_and_fill(target, {{Range(0, 1), Range(0, 2), 8, 64, 3, {2, 0}}}, tokens);
};

// Case U11: a look-up gave every reader the address of worker 0, so that rank 1 was restored with the bytes of rank 0.
TEST(FieldCases, U11EachRankIsReadFromItsOwnInstance) {
  const TwoRanks ranks;
  const FieldMove move = move_live(ranks.source, ranks.target);
  expect_bytes(move.lowered, ranks.memory, ranks.target, ranks.expected);
  for (const LoweredPair& pair : move.lowered.pairs())
    move.lowered.for_each_step(pair, [&](const CopyStep& step) {
      EXPECT_EQ(move.lowered.source_regions()[step.source_region].instance.text(),
                "source:" + move.plan->sources[pair.source].text());
    });
}

TEST(FieldCases, U11RanksOfOneProcessAreToldApartByTheAddressesOfTheirPools) {
  TwoRanks ranks;
  for (uint64_t rank = 0; rank < 2; ++rank) {
    ranks.source.bindings[rank].instance = InstanceId("process");
    ranks.source.bindings[rank].regions[0].endpoint = "10.0.0.1:4711";
    ranks.source.bindings[rank].regions[0].address = 0x100000 * (rank + 1);
  }
  const FieldMove move = move_live(ranks.source, ranks.target);
  ASSERT_EQ(move.lowered.pairs().size(), 2u);
  for (const LoweredPair& pair : move.lowered.pairs())
    move.lowered.for_each_step(pair, [&](const CopyStep& step) {
      EXPECT_EQ(move.lowered.source_regions()[step.source_region].address, 0x100000u * (pair.source + 1));
    });
}

TEST(FieldCases, U11TheSameRankTwiceIsCaught) {
  TwoRanks ranks;
  const Valid<TransferPlan> plan = move_live(ranks.source, ranks.target).plan;
  const RuntimeBinding rank_1 = ranks.source.bindings[1];

  // The resolver answers with rank 0's binding for both.
  ranks.source.bindings[1] = ranks.source.bindings[0];
  EXPECT_EQ(bind_diagnostics(ranks.source), Lines{"the participant is bound twice [binding-identity]"});

  // It calls that binding rank 1's: then head 0 stands where head 1 is owned.
  ranks.source.bindings[1].participant = ParticipantId("p0-t1");
  EXPECT_EQ(
      bind_diagnostics(ranks.source),
      (Lines{"component key layers 0 heads [0,1) dims [0,8) tokens [0,80): not owned or not live [view-not-owned]",
             "component key layers 0 heads [1,2) dims [0,8) tokens [0,80): owned, but in no view [coverage-gap]",
             "component value layers 0 heads [0,1) dims [0,8) tokens [0,80): not owned or not live [view-not-owned]",
             "component value layers 0 heads [1,2) dims [0,8) tokens [0,80): owned, but in no view [coverage-gap]"}));

  // It gives rank 1's views the place of rank 0: then two views have the same bytes.
  ranks.source.bindings[1] = rank_1;
  ranks.source.bindings[1].instance = ranks.source.bindings[0].instance;
  ranks.source.bindings[1].regions = ranks.source.bindings[0].regions;
  ranks.source.bindings[1].page_tables = ranks.source.bindings[0].page_tables;
  EXPECT_EQ(bind_diagnostics(ranks.source),
            Lines{"binding 'move' of 'p0-t0' view 0 and binding 'move' of 'p0-t1' view 0 "
                  "share bytes [views-overlap]"});

  // It gives rank 1's instance the endpoint of rank 0.
  ranks.source.bindings[1] = rank_1;
  ranks.source.bindings[1].regions[0].endpoint = "10.0.0.1:4711";
  EXPECT_EQ(bind_diagnostics(ranks.source),
            Lines{"endpoint '10.0.0.1:4711' belongs to instance 'source:p0-t1', in binding 'move' of 'p0-t0' to "
                  "'source:p0-t0' [instance-endpoint]"});

  // It leaves rank 1 out.
  ranks.source.bindings.pop_back();
  EXPECT_EQ(lower_diagnostics(plan, ranks.source, ranks.target),
            Lines{"source 'p0-t1' has no binding [plan-participant]"});
}

// 276 tokens, dealt in blocks of 64 to two context-parallel ranks: 0-63, 128-191 and 256-275 to the first.
struct TwoContextRanks {
  static FieldPool share(uint64_t rank, std::vector<uint64_t> slots) {
    FieldPool pool{Range(0, 2), Range(0, 2), 8, 64, 6, std::move(slots)};
    pool.cp_count = 2;
    pool.cp_rank = rank;
    pool.cp_block = 64;
    return pool;
  }

  Valid<CacheSchema> schema = attention(2, 2, 8);
  Range tokens = Range(0, 276);
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source{"source", placed(schema, {.cp = 2, .cp_block_tokens = 64}, "prefill"), snapshot};
  FieldRuntime target{"target", placed(schema, {}, "decode"), snapshot};
  World memory = bind_and_fill(source, {share(0, {4, 1, 3}), share(1, {0, 2})}, tokens);
  World expected = bind_and_fill(target, {{Range(0, 2), Range(0, 2), 8, 64, 6, {3, 4, 0, 5, 1}}}, tokens);
};

// Case U13: a look-up ignored context-parallel ranks and reported a hit although the part of one rank was absent.
TEST(FieldCases, U13TwoContextParallelRanksTogetherBringAllTokens) {
  const TwoContextRanks ranks;
  const FieldMove move = move_live(ranks.source, ranks.target);
  EXPECT_EQ(end_texts(move.plan->sources), (Lines{"p0-t0-c0", "p0-t0-c1"}));
  expect_bytes(move.lowered, ranks.memory, ranks.target, ranks.expected);
}

TEST(FieldCases, U13ASourceWithoutOneContextParallelRankIsRefused) {
  TwoContextRanks ranks;
  const Valid<TransferPlan> plan = move_live(ranks.source, ranks.target).plan;

  for (const char* only : {"p0-t0-c0", "p0-t0-c1"}) {
    PlanOptions options;
    options.snapshot_tokens = ranks.tokens;
    options.sources = {PlanEnd(only)};
    Diagnostics diagnostics;
    EXPECT_FALSE(make_plan(ranks.source.side(), ranks.target.side(), options, PlanLimits{}, diagnostics).has_value());
    EXPECT_TRUE(diagnostics.has(Rule::kPlanGap)) << only;
  }

  // A placement that does not have the rank does not own its tokens.
  PlacementManifest half = *ranks.source.placement;
  half.topology.participants.pop_back();
  half.parts.pop_back();
  Diagnostics half_diagnostics;
  EXPECT_FALSE(Valid<PlacementManifest>::make(half, half_diagnostics).has_value());
  EXPECT_TRUE(half_diagnostics.has(Rule::kCoverageGap));

  ranks.source.bindings.pop_back();
  EXPECT_EQ(lower_diagnostics(plan, ranks.source, ranks.target),
            Lines{"source 'p0-t0-c1' has no binding [plan-participant]"});
}

TEST(FieldCases, U13PagesThatOneContextParallelRankDidNotStoreRestoreNothing) {
  const TwoContextRanks ranks;
  const Valid<StoreLayout> layout =
      layout_with("whole", ranks.schema, 64, {part("all", Range(0, 2), {"key", "value"}, Range(0, 2))});
  const SnapshotObjects objects = objects_of(layout, ranks.tokens);
  const FieldMove upload = move_to_store(ranks.source, layout, objects);
  World stored = world_of(objects.objects);
  std::vector<std::set<std::string>> pages_of(2);  // that each rank writes
  for (const LoweredPair& pair : upload.lowered.pairs()) {
    EXPECT_TRUE(run_steps(upload.lowered, pair, ranks.memory, stored).ok());
    upload.lowered.for_each_step(pair, [&](const CopyStep& step) {
      pages_of[pair.source].insert(upload.lowered.target_regions()[step.target_region].id.text());
    });
  }
  EXPECT_EQ(pages_of[0], (std::set<std::string>{"all/0", "all/2", "all/4"}));
  EXPECT_EQ(pages_of[1], (std::set<std::string>{"all/1", "all/3"}));
  const Valid<StoreManifest> manifest = valid_or_die(manifest_of(ranks.snapshot, layout, stored));
  expect_bytes(move_from_store(manifest, ranks.target).lowered, stored, ranks.target, ranks.expected);

  for (const char* page : {"all/1", "all/3"}) stored.erase(page);
  Diagnostics diagnostics;
  EXPECT_FALSE(Valid<StoreManifest>::make(manifest_of(ranks.snapshot, layout, stored), diagnostics).has_value());
  EXPECT_TRUE(diagnostics.has(Rule::kCoverageGap));
}

}  // namespace
}  // namespace crossdock::testing
