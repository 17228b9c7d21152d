// Failures that users of cache transfer and cache stores reported, as small inputs with their right values. Each is
// planned, proved, bound, lowered and run byte by byte; what the target must then hold is written out by row-major
// formulas of this file. A target byte that the case does not fill must stay as it was, and no byte is written twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"
#include "planner/copy/gather.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"
#include "planner/kv/store_geometry.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/builders.h"
#include "tests/support/byte_world.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

using Lines = std::vector<std::string>;

// ---- Documents ----

// Ends the test with what was refused.
void stop_on(const Diagnostics& diagnostics) {
  if (!diagnostics.empty()) throw std::runtime_error(diagnostic_lines(diagnostics));
}

// Without the documents' names and places.
Lines lines_of(const Diagnostics& diagnostics) {
  Lines lines;
  for (const Diagnostic& diagnostic : diagnostics.kept())
    lines.push_back(fmt::format("{} [{}]", diagnostic.message, rule_name(diagnostic.rule)));
  return lines;
}

// ---- Runtimes ----

// A placement, and the draft of a binding for each of its participants, which runs in an instance of its own.
struct Runtime {
  Runtime(const char* name, Valid<PlacementManifest> of_placement, const Valid<SnapshotDescriptor>& of_snapshot)
      : placement(std::move(of_placement)), snapshot(of_snapshot) {
    for (const Part& each : placement->parts) {
      RuntimeBinding binding;
      binding.operation = OperationId("move");
      binding.resource = placement->resource;
      binding.revision = placement->revision;
      binding.participant = each.participant;
      binding.instance = InstanceId(fmt::format("{}:{}", name, each.participant.text()));
      binding.placement_digest = digest(placement);
      binding.snapshot_digest = digest(snapshot);
      binding.tokens = snapshot->tokens;
      binding.devices = {Device{DeviceId("d"), "host", UINT64_MAX}};
      bindings.push_back(std::move(binding));
    }
  }

  PlanSide side() const { return PlanSide(placement, digest(placement)); }

  Valid<PlacementManifest> placement;
  Valid<SnapshotDescriptor> snapshot;
  std::vector<RuntimeBinding> bindings;
};

std::string region_of(const RuntimeBinding& binding, const std::string& region) {
  return binding.instance.text() + "/" + region;
}

void add_region(RuntimeBinding& binding, const char* id, uint64_t bytes) {
  binding.regions.push_back(Region{RegionId(id), 1, bytes, DeviceId("d"), {}, {}});
}

// Without pages.
View& add_view(RuntimeBinding& binding, const char* component, Range layers, Range tokens, Range heads, Range dims,
               const char* region, uint64_t offset_bytes, ByteStrides strides) {
  View view;
  view.component = ComponentName(component);
  view.layers = layers;
  view.tokens = tokens;
  view.heads = heads;
  view.dims = dims;
  view.region = RegionId(region);
  view.offset_bytes = offset_bytes;
  view.strides = strides;
  binding.views.push_back(std::move(view));
  return binding.views.back();
}

template <class Visit>  // visit(const Item&)
void for_each_item(const char* component, Range layers, Range heads, Range tokens, uint64_t head_dim, Visit visit) {
  for (uint64_t layer = layers.begin(); layer < layers.end(); ++layer)
    for (uint64_t head = heads.begin(); head < heads.end(); ++head)
      for (uint64_t token = tokens.begin(); token < tokens.end(); ++token)
        for (uint64_t dim = 0; dim < head_dim; ++dim) visit(Item{component, layer, head, token, dim});
}

// A region with pages of components of one shape: [layer][component][slot][token][head][dim] ("NHD"), or with
// head_major [layer][component][slot][head][token][dim] ("HND").
struct Pool {
  Range layers;
  Range heads;
  uint64_t head_dim;
  uint64_t page_tokens;
  uint64_t slot_count;
  std::vector<uint64_t> slots;  // of the pages from token_begin on
  std::vector<const char*> components = {"key", "value"};
  uint64_t item_bytes = 2;
  const char* region = "pool";
  bool head_major = false;
  uint64_t token_begin = 0;
  // Of each cp_count blocks, the pool has the one of its rank; its tokens lie packed.
  uint64_t cp_count = 1;
  uint64_t cp_rank = 0;
  uint64_t cp_block = 1;

  uint64_t bytes() const {
    return layers.size() * components.size() * slot_count * page_tokens * heads.size() * head_dim * item_bytes;
  }

  // The formula.
  uint64_t offset(uint64_t component, const Item& item) const {
    const uint64_t local = item.token / (cp_block * cp_count) * cp_block + item.token % cp_block - token_begin;
    const uint64_t row = local % page_tokens;
    const uint64_t head = item.head - heads.begin();
    uint64_t index = (item.layer - layers.begin()) * components.size() + component;
    index = index * slot_count + slots.at(local / page_tokens);
    index = head_major ? (index * heads.size() + head) * page_tokens + row
                       : (index * page_tokens + row) * heads.size() + head;
    return (index * head_dim + item.dim) * item_bytes;
  }

  void fill(Memory& memory, Range tokens) const {
    for (uint64_t component = 0; component < components.size(); ++component)
      for_each_item(components[component], layers, heads, tokens, head_dim, [&](const Item& item) {
        if (item.token / cp_block % cp_count == cp_rank) memory.put(offset(component, item), item_bytes, item);
      });
  }
  void fill(World& world, const RuntimeBinding& binding, Range tokens) const {
    fill(world.at(region_of(binding, region)), tokens);
  }

  // The same as views.
  void bind(RuntimeBinding& binding, Range tokens) const {
    add_region(binding, region, bytes());
    binding.page_tables.push_back(PageTable{PageTableId(region), page_tokens, token_begin, slots});
    const uint64_t row_bytes = head_dim * item_bytes;
    const uint64_t page_bytes = page_tokens * heads.size() * row_bytes;
    ByteStrides strides{.layer = components.size() * slot_count * page_bytes,
                        .row = heads.size() * row_bytes,
                        .head = row_bytes,
                        .dim = item_bytes};
    if (head_major)
      strides = {.layer = strides.layer, .row = row_bytes, .head = page_tokens * row_bytes, .dim = item_bytes};
    for (uint64_t component = 0; component < components.size(); ++component) {
      View& view = add_view(binding, components[component], layers, tokens, heads, Range(0, head_dim), region,
                            component * slot_count * page_bytes, strides);
      view.pages = ViewPages{PageTableId(region), page_bytes};
      if (cp_count > 1) view.cycle = CyclicTokens{cp_block, cp_count, IntervalSet{Range(cp_rank, cp_rank + 1)}};
    }
  }
};

// Gives each rank its pool, and returns the memory of all of them with the tokens in it.
World bind_and_fill(Runtime& runtime, const std::vector<Pool>& pools, Range tokens) {
  for (size_t rank = 0; rank < pools.size(); ++rank) pools[rank].bind(runtime.bindings[rank], tokens);
  World world = world_of(runtime.bindings);
  for (size_t rank = 0; rank < pools.size(); ++rank) pools[rank].fill(world, runtime.bindings[rank], tokens);
  return world;
}

// ---- Plans and moves ----

struct Move {
  Valid<TransferPlan> plan;
  LoweredPlan lowered;
};

class Bound {
 public:
  Bound(const Runtime& runtime, Diagnostics& diagnostics) : context_(runtime.placement, &runtime.snapshot) {
    for (const RuntimeBinding& binding : runtime.bindings) bindings_.push_back(valid_or_die(binding));
    std::vector<const Valid<RuntimeBinding>*> pointers;
    for (const Valid<RuntimeBinding>& binding : bindings_) pointers.push_back(&binding);
    side_ = BoundSide::bind(context_, pointers, diagnostics);
  }
  Bound(const Bound&) = delete;  // the side refers to the bindings
  Bound& operator=(const Bound&) = delete;

  bool ok() const { return side_.has_value(); }
  const BoundSide& side() const { return side_.value(); }

 private:
  BindingContext context_;
  std::vector<Valid<RuntimeBinding>> bindings_;
  std::optional<BoundSide> side_;
};

Lines bind_diagnostics(const Runtime& runtime) {
  Diagnostics diagnostics;
  const Bound bound(runtime, diagnostics);
  EXPECT_EQ(bound.ok(), diagnostics.empty());
  return lines_of(diagnostics);
}

Valid<TransferPlan> proven_plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options) {
  Diagnostics diagnostics;
  std::optional<Valid<TransferPlan>> plan = make_plan(source, target, options, PlanLimits{}, diagnostics);
  stop_on(diagnostics);
  EXPECT_TRUE(verify_plan(*plan, source, target, VerifyLimits{}, diagnostics).complete);
  stop_on(diagnostics);
  return std::move(*plan);
}

Move lowered_move(Valid<TransferPlan> plan, const BoundSide& source, const BoundSide& target,
                  const LowerOptions& options = {}) {
  Diagnostics diagnostics;
  std::optional<LoweredPlan> lowered = lower(*plan, source, target, options, LowerLimits{}, diagnostics);
  stop_on(diagnostics);
  return Move{std::move(plan), std::move(*lowered)};
}

Move move_live(const Runtime& source, const Runtime& target, PlanOptions options = {}) {
  options.snapshot_tokens = source.snapshot->tokens;
  Diagnostics diagnostics;
  const Bound from(source, diagnostics);
  const Bound to(target, diagnostics);
  stop_on(diagnostics);
  return lowered_move(proven_plan(source.side(), target.side(), options), from.side(), to.side());
}

// The diagnostics of lowering a plan for all with the bindings that there are.
Lines lower_diagnostics(const Valid<TransferPlan>& plan, const Runtime& source, const Runtime& target) {
  Diagnostics diagnostics;
  const Bound from(source, diagnostics);
  const Bound to(target, diagnostics);
  stop_on(diagnostics);
  EXPECT_FALSE(lower(*plan, from.side(), to.side(), LowerOptions{}, LowerLimits{}, diagnostics).has_value());
  return lines_of(diagnostics);
}

SnapshotObjects objects_of(const Valid<StoreLayout>& layout, Range tokens) {
  Diagnostics diagnostics;
  std::optional<SnapshotObjects> objects = snapshot_objects(layout, digest(layout), tokens, diagnostics);
  stop_on(diagnostics);
  return std::move(*objects);
}

Move move_to_store(const Runtime& source, const Valid<StoreLayout>& layout, const SnapshotObjects& objects) {
  PlanOptions options;
  options.snapshot_tokens = source.snapshot->tokens;
  Diagnostics diagnostics;
  const Bound from(source, diagnostics);
  stop_on(diagnostics);
  return lowered_move(proven_plan(source.side(), PlanSide(layout, digest(layout)), options), from.side(),
                      BoundSide(objects));
}

// What an upload of `source` leaves in the store.
World stored_by(const Runtime& source, const World& memory, const Valid<StoreLayout>& layout) {
  const SnapshotObjects objects = objects_of(layout, source.snapshot->tokens);
  World stored = world_of(objects.objects);
  const Status status = run_steps(move_to_store(source, layout, objects).lowered, memory, stored);
  EXPECT_TRUE(status.ok()) << status.message();
  return stored;
}

// Of the objects that are there.
StoreManifest manifest_of(const Valid<SnapshotDescriptor>& snapshot, const Valid<StoreLayout>& layout,
                          const World& stored) {
  StoreManifest manifest;
  manifest.snapshot = *snapshot;
  manifest.cache_schema = layout->cache_schema;
  const SnapshotObjects objects = objects_of(layout, snapshot->tokens);
  for (const ObjectShape& object : objects.objects) {
    const auto found = stored.find(object.id.text());
    if (found == stored.end()) continue;
    const std::vector<uint8_t>& bytes = found->second.bytes();
    manifest.objects.push_back(
        StoredObject{object.id, bytes.size(), bytes.size(), {crc32c(std::as_bytes(std::span(bytes)))}});
  }
  for (const View& view : objects.views)
    if (stored.contains(view.region.text())) manifest.views.push_back(view);
  return manifest;
}

Move move_from_store(const Valid<StoreManifest>& manifest, const Runtime& target) {
  PlanOptions options;
  options.snapshot_tokens = target.snapshot->tokens;
  Diagnostics diagnostics;
  const Bound to(target, diagnostics);
  stop_on(diagnostics);
  const Sha256Digest identity = digest(manifest);
  return lowered_move(proven_plan(PlanSide(manifest, identity), target.side(), options), BoundSide(manifest, identity),
                      to.side());
}

// Runs all steps into fresh memory of the target, which must then be `expected`.
void expect_bytes(const LoweredPlan& lowered, const World& source, const Runtime& target, const World& expected) {
  World memory = world_of(target.bindings);
  const Status status = run_steps(lowered, source, memory);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(difference(memory, expected), "");
}

std::vector<std::string> texts(const std::vector<PlanEnd>& ends) {
  std::vector<std::string> list;
  for (const PlanEnd& end : ends) list.push_back(end.text());
  return list;
}

// "source -> target", for each pair of a lowering.
std::set<std::string> pair_names(const Move& move) {
  std::set<std::string> names;
  for (const LoweredPair& pair : move.lowered.pairs())
    names.insert(move.plan->sources[pair.source].text() + " -> " + move.plan->targets[pair.target].text());
  return names;
}

uint64_t planned_bytes(const TransferPlan& plan) {
  uint64_t bytes = 0;
  for (const Edge& edge : plan.edges) bytes += edge_bytes(plan, edge);
  return bytes;
}

// ---- A. Heterogeneous TP, GQA, replicas, layouts ----

TEST(FieldCases, U01ReplicasOfTwoHeadsMergeIntoOneTargetWhoseEveryByteIsWrittenOnce) {
  const Valid<CacheSchema> schema = attention(2, 2, 128);
  const Range tokens(0, 128);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {.tp = 4}, "prefill"), snapshot);
  Runtime target("target", placed(schema, {}, "decode"), snapshot);
  const std::vector<Pool> pools = {{Range(0, 2), Range(0, 1), 128, 64, 6, {5, 1}},
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
  const Pool whole{Range(0, 2), Range(0, 2), 128, 64, 2, {1, 0}};
  const World expected = bind_and_fill(target, {whole}, tokens);
  ASSERT_EQ(expected.at("target:p0-t0/pool").written_bytes(Range(0, whole.bytes())), whole.bytes());

  const Move move = move_live(source, target);
  EXPECT_EQ(planned_bytes(*move.plan), 2u * 2 * 2 * 128 * 128 * 2);  // layers, K and V, heads, tokens, D, bf16
  EXPECT_EQ(move.lowered.counts().bytes, whole.bytes());
  EXPECT_EQ(pair_names(move), (std::set<std::string>{"p0-t0 -> p0-t0", "p0-t2 -> p0-t0"}));
  expect_bytes(move.lowered, memory, target, expected);
}

TEST(FieldCases, U01AnyReplicaMayServeItsHead) {
  const Valid<CacheSchema> schema = attention(1, 2, 8);
  const Range tokens(0, 70);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime target("target", placed(schema, {}, "decode"), snapshot);
  const World expected = bind_and_fill(target, {{Range(0, 1), Range(0, 2), 8, 64, 3, {2, 0}}}, tokens);
  for (const uint64_t first : {0u, 1u})
    for (const uint64_t second : {2u, 3u}) {
      SCOPED_TRACE(fmt::format("ranks {} and {}", first, second));
      // The other two have no binding.
      Runtime source("source", placed(schema, {.tp = 4}, "prefill"), snapshot);
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
  Runtime source{"source", placed(schema, {.tp = 4}, "prefill"), snapshot};
  Runtime target{"target", placed(schema, {}, "decode"), snapshot};
  Pool whole{Range(0, 2), Range(0, 4), 16, 64, 5, {1, 3, 0}};
  World memory = bind_and_fill(source,
                               {{Range(0, 2), Range(0, 1), 16, 64, 5, {0, 4, 3}},
                                {Range(0, 2), Range(1, 2), 16, 64, 5, {1, 4, 3}},
                                {Range(0, 2), Range(2, 3), 16, 64, 5, {2, 4, 3}},
                                {Range(0, 2), Range(3, 4), 16, 64, 5, {3, 4, 2}}},
                               tokens);
  World expected = bind_and_fill(target, {whole}, tokens);
};

TEST(FieldCases, U04TheWritersOfATargetAreNamedByIdAndNotByTheirPipelineRank) {
  const FourWriters world;
  for (const Participant& participant : world.source.placement->topology.participants)
    EXPECT_EQ(participant.rank.pp, 0u);
  const Move move = move_live(world.source, world.target);
  EXPECT_EQ(texts(move.plan->sources), (Lines{"p0-t0", "p0-t1", "p0-t2", "p0-t3"}));
  EXPECT_EQ(texts(move.plan->targets), Lines{"p0-t0"});
  EXPECT_EQ(move.lowered.pairs().size(), 4u);
  EXPECT_EQ(pair_names(move),
            (std::set<std::string>{"p0-t0 -> p0-t0", "p0-t1 -> p0-t0", "p0-t2 -> p0-t0", "p0-t3 -> p0-t0"}));
  expect_bytes(move.lowered, world.memory, world.target, world.expected);
}

TEST(FieldCases, U04AWriterThatWritesTwiceDoesNotStandInForOneThatNeverWrites) {
  const FourWriters world;
  const Move move = move_live(world.source, world.target);
  // Each writer lowers its own part of the plan; writer 2 runs twice, writer 3 never.
  World memory = world_of(world.target.bindings);
  Diagnostics diagnostics;
  const Bound from(world.source, diagnostics);
  const Bound to(world.target, diagnostics);
  stop_on(diagnostics);
  for (const char* writer : {"p0-t0", "p0-t1", "p0-t2", "p0-t2"}) {
    const Move own = lowered_move(move.plan, from.side(), to.side(), LowerOptions{PlanEnd(writer), std::nullopt});
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

TEST(FieldCases, U06TokenMajorPagesReachHeadMajorPagesAsAnExactPermutation) {
  const Valid<CacheSchema> schema = attention(1, 16, 64);  // two heads on each of the eight ranks
  const Range tokens(0, 300);                              // pages of 128, 128 and 44 tokens
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime target("target", placed(schema, {.tp = 8}, "decode"), snapshot);
  std::vector<Pool> pools;
  for (uint64_t rank = 0; rank < 8; ++rank) {
    pools.push_back(
        {Range(0, 1), Range(2 * rank, 2 * rank + 2), 64, 128, 4, {rank % 4, (rank + 1) % 4, (rank + 3) % 4}});
    pools.back().head_major = true;
  }
  const World expected = bind_and_fill(target, pools, tokens);

  for (const uint64_t dp : {0u, 1u}) {
    SCOPED_TRACE(fmt::format("data-parallel rank {}", dp));
    // The request was computed on one of the two ranks; the other holds nothing of it and has no binding.
    Runtime source("source", placed(schema, {.dp = 2}, "prefill"), snapshot);
    source.bindings = {source.bindings[dp]};
    const World memory = bind_and_fill(source, {{Range(0, 1), Range(0, 16), 64, 128, 7, {6, 0, 3}}}, tokens);
    PlanOptions options;
    options.source_dp = dp;
    const Move move = move_live(source, target, options);
    EXPECT_EQ(texts(move.plan->sources), Lines{fmt::format("d{}-p0-t0", dp)});
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
  Runtime source("source", placed(schema, {.tp = source_ranks}, "prefill", resource), snapshot);
  Runtime target("target", placed(schema, {.tp = 1}, "decode", resource), snapshot);
  Rng rng(request);
  const auto pool_of = [&](Range heads) {
    std::vector<uint64_t> slots(9);
    std::iota(slots.begin(), slots.end(), uint64_t{0});
    rng.shuffle(slots);
    slots.resize(div_round_up(tokens.end(), 8));
    return Pool{Range(0, 2), heads, 8, 8, 9, slots};
  };
  std::vector<Pool> pools;
  const uint64_t heads = 4 / source_ranks;
  for (uint64_t rank = 0; rank < source_ranks; ++rank)
    pools.push_back(pool_of(Range(rank * heads, (rank + 1) * heads)));
  const World memory = bind_and_fill(source, pools, tokens);
  const World expected = bind_and_fill(target, {pool_of(Range(0, 4))}, tokens);

  const Move move = move_live(source, target);
  MergeAnswer answer{source.side().digest(), *move.plan, {}, ""};
  for (const LoweredPair& pair : move.lowered.pairs())
    for (const CopyStep& step : move.lowered.steps(pair)) answer.steps.push_back(step);
  World result = world_of(target.bindings);
  const Status status = run_steps(move.lowered, memory, result);
  answer.wrong = status.ok() ? difference(result, expected) : status.message();
  if (move.plan->sources.size() != source_ranks) answer.wrong += " not all sources are in the plan";
  return answer;
}

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
  const Bound from(world.source, diagnostics);
  const Bound to(world.target, diagnostics);
  stop_on(diagnostics);
  PlanOptions options;
  options.snapshot_tokens = world.tokens;
  const auto all_steps = [&] {
    const Move move = lowered_move(proven_plan(source_side, target_side, options), from.side(), to.side());
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
  Runtime source{"source", placed(schema, {.tp = 2}, "prefill"), snapshot};
  Runtime target{"target", placed(schema, {}, "decode"), snapshot};
  World memory = bind_and_fill(
      source, {{Range(0, 1), Range(0, 1), 8, 64, 3, {0, 2}}, {Range(0, 1), Range(1, 2), 8, 64, 3, {1, 2}}}, tokens);
  World expected = bind_and_fill(target, {{Range(0, 1), Range(0, 2), 8, 64, 3, {2, 0}}}, tokens);
};

TEST(FieldCases, U11EachRankIsReadFromItsOwnInstance) {
  const TwoRanks ranks;
  const Move move = move_live(ranks.source, ranks.target);
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
  const Move move = move_live(ranks.source, ranks.target);
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
  static Pool share(uint64_t rank, std::vector<uint64_t> slots) {
    Pool pool{Range(0, 2), Range(0, 2), 8, 64, 6, std::move(slots)};
    pool.cp_count = 2;
    pool.cp_rank = rank;
    pool.cp_block = 64;
    return pool;
  }

  Valid<CacheSchema> schema = attention(2, 2, 8);
  Range tokens = Range(0, 276);
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source{"source", placed(schema, {.cp = 2, .cp_block_tokens = 64}, "prefill"), snapshot};
  Runtime target{"target", placed(schema, {}, "decode"), snapshot};
  World memory = bind_and_fill(source, {share(0, {4, 1, 3}), share(1, {0, 2})}, tokens);
  World expected = bind_and_fill(target, {{Range(0, 2), Range(0, 2), 8, 64, 6, {3, 4, 0, 5, 1}}}, tokens);
};

TEST(FieldCases, U13TwoContextParallelRanksTogetherBringAllTokens) {
  const TwoContextRanks ranks;
  const Move move = move_live(ranks.source, ranks.target);
  EXPECT_EQ(texts(move.plan->sources), (Lines{"p0-t0-c0", "p0-t0-c1"}));
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
  const Move upload = move_to_store(ranks.source, layout, objects);
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

// Keys and values side by side in the last dim: [layer][slot][head][16 tokens][key 64 | value 64] in bf16.
struct PackedPool {
  static constexpr uint64_t kSlots = 4;
  static constexpr uint64_t kBytes = 2 * kSlots * 4 * 16 * 128 * 2;
  std::vector<uint64_t> slots;

  uint64_t offset(uint64_t component, const Item& item) const {
    const uint64_t slot = slots.at(item.token / 16);
    const uint64_t row = ((item.layer * kSlots + slot) * 4 + item.head) * 16 + item.token % 16;
    return (row * 128 + component * 64 + item.dim) * 2;
  }
  void fill(Memory& memory, Range tokens) const {
    for (const uint64_t component : {0u, 1u})
      for_each_item(component == 0 ? "key" : "value", Range(0, 2), Range(0, 4), tokens, 64,
                    [&](const Item& item) { memory.put(offset(component, item), 2, item); });
  }
  void bind(RuntimeBinding& binding, Range tokens) const {
    add_region(binding, "pool", kBytes);
    binding.page_tables = {PageTable{PageTableId("pages"), 16, 0, slots}};
    const ByteStrides strides{.layer = 65536, .row = 256, .head = 4096, .dim = 2};
    for (const uint64_t component : {0u, 1u})
      add_view(binding, component == 0 ? "key" : "value", Range(0, 2), tokens, Range(0, 4), Range(0, 64), "pool",
               component * 128, strides)
          .pages = ViewPages{PageTableId("pages"), 16384};
  }
};

TEST(FieldCases, U15KeysAndValuesPackedInTheLastDimSurviveTheStore) {
  const Valid<CacheSchema> schema = attention(2, 4, 64);
  const Range tokens(0, 40);  // pages of 16, 16 and 8 tokens
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {}, "prefill"), snapshot);
  Runtime target("target", placed(schema, {}, "decode"), snapshot);
  const PackedPool from{{2, 0, 3}};
  const PackedPool to{{0, 3, 1}};
  from.bind(source.bindings[0], tokens);
  to.bind(target.bindings[0], tokens);
  World memory = world_of(source.bindings);
  from.fill(memory.at("source:p0-t0/pool"), tokens);
  World expected = world_of(target.bindings);
  to.fill(expected.at("target:p0-t0/pool"), tokens);
  expect_bytes(move_live(source, target).lowered, memory, target, expected);

  const Valid<StoreLayout> layout = layout_with("by-head-pair", schema, 16,
                                                {part("h0-1", Range(0, 2), {"key", "value"}, Range(0, 2)),
                                                 part("h2-3", Range(0, 2), {"key", "value"}, Range(2, 4))},
                                                ObjectOrder::kHpld);
  const World stored = stored_by(source, memory, layout);
  // An object: [key, value][2 heads][16 tokens][2 layers][64].
  World objects;
  for (const uint64_t pair : {0u, 1u})
    for (const uint64_t page : {0u, 1u, 2u}) {
      Memory object(2 * 2 * 16 * 2 * 64 * 2);
      for (const uint64_t component : {0u, 1u})
        for_each_item(component == 0 ? "key" : "value", Range(0, 2), Range(2 * pair, 2 * pair + 2),
                      Range(16 * page, std::min<uint64_t>(16 * page + 16, 40)), 64, [&](const Item& item) {
                        const uint64_t row = ((component * 2 + item.head % 2) * 16 + item.token % 16) * 2 + item.layer;
                        object.put((row * 64 + item.dim) * 2, 2, item);
                      });
      objects.emplace(fmt::format("h{}-{}/{}", 2 * pair, 2 * pair + 1, page), std::move(object));
    }
  EXPECT_EQ(difference(stored, objects), "");

  const Valid<StoreManifest> manifest = valid_or_die(manifest_of(snapshot, layout, stored));
  expect_bytes(move_from_store(manifest, target).lowered, stored, target, expected);
}

// A latent of 576 items of 2 bytes and an indexer key of 132 bytes for each token.
Valid<CacheSchema> latent_with_indexer(uint64_t layer_count) {
  return schema_of({group(Range(0, layer_count), {rows("indexer", 1, 132, {"uint8", 1}), rows("latent", 1, 576)})});
}

Pool latent_pool(uint64_t layer_count, uint64_t page_tokens, uint64_t slot_count, std::vector<uint64_t> slots) {
  return Pool{Range(0, layer_count), Range(0, 1), 576, page_tokens, slot_count,
              std::move(slots),      {"latent"},  2,   "latent"};
}

Pool indexer_pool(uint64_t layer_count, uint64_t page_tokens, uint64_t slot_count, std::vector<uint64_t> slots) {
  return Pool{Range(0, layer_count), Range(0, 1), 132, page_tokens, slot_count,
              std::move(slots),      {"indexer"}, 1,   "indexer"};
}

TEST(FieldCases, U17WhatOneRankSavedIsRestoredToTwoAndFourByteForByte) {
  const Valid<CacheSchema> schema = latent_with_indexer(3);
  const Range tokens(0, 150);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {}, "prefill"), snapshot);
  const Pool latent = latent_pool(3, 64, 4, {3, 1, 0});
  const Pool indexer = indexer_pool(3, 64, 4, {0, 2, 3});
  World memory;
  for (const Pool* pool : {&latent, &indexer}) pool->bind(source.bindings[0], tokens);
  memory = world_of(source.bindings);
  for (const Pool* pool : {&latent, &indexer}) pool->fill(memory, source.bindings[0], tokens);

  const Valid<StoreLayout> layout =
      layout_with("tp1", schema, 64, {part("all", Range(0, 3), {"indexer", "latent"}, Range(0, 1))});
  const World stored = stored_by(source, memory, layout);
  // An object: [64 tokens][3 layers][132 bytes], then [64 tokens][3 layers][576 items of 2 bytes].
  World objects;
  for (const uint64_t page : {0u, 1u, 2u}) {
    Memory object(64 * 3 * (132 + 1152));
    const Range of_page(64 * page, std::min<uint64_t>(64 * page + 64, 150));
    for_each_item("indexer", Range(0, 3), Range(0, 1), of_page, 132,
                  [&](const Item& item) { object.put((item.token % 64 * 3 + item.layer) * 132 + item.dim, 1, item); });
    for_each_item("latent", Range(0, 3), Range(0, 1), of_page, 576, [&](const Item& item) {
      object.put(64 * 3 * 132 + (item.token % 64 * 3 + item.layer) * 1152 + item.dim * 2, 2, item);
    });
    objects.emplace(fmt::format("all/{}", page), std::move(object));
  }
  EXPECT_EQ(difference(stored, objects), "");

  const Valid<StoreManifest> manifest = valid_or_die(manifest_of(snapshot, layout, stored));
  for (const uint64_t tp : {1u, 2u, 4u}) {
    SCOPED_TRACE(fmt::format("TP{}", tp));
    Runtime target("target", placed(schema, {.tp = tp}, "decode"), snapshot);
    std::vector<std::pair<Pool, Pool>> pools;
    for (uint64_t rank = 0; rank < tp; ++rank) {  // pages of 16 tokens, in other slots on each rank
      std::vector<uint64_t> slots;
      for (uint64_t i = 0; i < 10; ++i) slots.push_back((i * 3 + rank) % 11);
      pools.emplace_back(latent_pool(3, 16, 11, slots), indexer_pool(3, 16, 11, slots));
      pools.back().first.bind(target.bindings[rank], tokens);
      pools.back().second.bind(target.bindings[rank], tokens);
    }
    World expected = world_of(target.bindings);
    for (uint64_t rank = 0; rank < tp; ++rank) {
      pools[rank].first.fill(expected, target.bindings[rank], tokens);
      pools[rank].second.fill(expected, target.bindings[rank], tokens);
    }
    const Move move = move_from_store(manifest, target);
    EXPECT_EQ(planned_bytes(*move.plan), tp * 3 * 150 * (1152 + 132));
    expect_bytes(move.lowered, stored, target, expected);
  }
}

TEST(FieldCases, U18HeadMajorAndTokenMajorObjectsOfEqualSizesAreNeverTakenForEachOther) {
  const Valid<CacheSchema> schema = attention(2, 4, 16);
  const Range tokens(0, 100);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {.tp = 2}, "prefill"), snapshot);
  const World memory = bind_and_fill(
      source, {{Range(0, 2), Range(0, 2), 16, 64, 2, {1, 0}}, {Range(0, 2), Range(2, 4), 16, 64, 2, {0, 1}}}, tokens);
  const auto layout_in = [&](ObjectOrder order) {
    return layout_with("pages", schema, 64, {part("all", Range(0, 2), {"key", "value"}, Range(0, 4))}, order);
  };
  const Valid<StoreLayout> head_first = layout_in(ObjectOrder::kHpld);
  const Valid<StoreLayout> token_first = layout_in(ObjectOrder::kPlhd);

  // Names and sizes are the same; identities and bytes are not.
  const SnapshotObjects head_objects = objects_of(head_first, tokens);
  const SnapshotObjects token_objects = objects_of(token_first, tokens);
  ASSERT_EQ(head_objects.objects.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(head_objects.objects[i].id, token_objects.objects[i].id);
    EXPECT_EQ(head_objects.objects[i].bytes, 2u * 64 * 2 * 4 * 16 * 2);
    EXPECT_EQ(token_objects.objects[i].bytes, 2u * 64 * 2 * 4 * 16 * 2);
  }
  EXPECT_NE(digest(head_first), digest(token_first));
  const World head_stored = stored_by(source, memory, head_first);
  const World token_stored = stored_by(source, memory, token_first);
  for (const char* page : {"all/0", "all/1"}) EXPECT_NE(head_stored.at(page).bytes(), token_stored.at(page).bytes());

  // Each is read in the order in which it was written.
  Runtime target("target", placed(schema, {}, "decode"), snapshot);
  const World expected = bind_and_fill(target, {{Range(0, 2), Range(0, 4), 16, 64, 3, {0, 2}}}, tokens);
  for (const auto& [layout, stored] : {std::pair(head_first, head_stored), std::pair(token_first, token_stored)}) {
    const Valid<StoreManifest> manifest = valid_or_die(manifest_of(snapshot, layout, stored));
    expect_bytes(move_from_store(manifest, target).lowered, stored, target, expected);
  }

  // A plan for one is refused with the objects of the other.
  PlanOptions options;
  options.snapshot_tokens = tokens;
  const Valid<TransferPlan> plan = proven_plan(PlanSide(token_first, digest(token_first)), target.side(), options);
  Diagnostics diagnostics;
  const Bound to(target, diagnostics);
  EXPECT_FALSE(
      lower(*plan, BoundSide(head_objects), to.side(), LowerOptions{}, LowerLimits{}, diagnostics).has_value());
  EXPECT_EQ(lines_of(diagnostics), Lines{fmt::format("the source's bytes are of {}, the plan is of {} [plan-identity]",
                                                     digest(head_first).hex(), digest(token_first).hex())});
  expect_bytes(lowered_move(plan, BoundSide(token_objects), to.side()).lowered, token_stored, target, expected);
}

// ---- B. MLA, hybrid models, sidecars, fp8 KV scales ----

TEST(FieldCases, U20ALatentIsPlannedOncePerLayerAndToken) {
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 27), {rows("latent", 1, 576)})});
  const Range tokens(0, 100);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {.tp = 2}, "prefill"), snapshot);
  Runtime target("target", placed(schema, {}, "decode"), snapshot);
  const Pool from = latent_pool(27, 64, 3, {2, 0});
  const World memory = bind_and_fill(source, {from, from}, tokens);
  const World expected = bind_and_fill(target, {latent_pool(27, 64, 2, {0, 1})}, tokens);

  const Move move = move_live(source, target);
  EXPECT_EQ(planned_bytes(*move.plan), 27u * 100 * 576 * 2);
  EXPECT_EQ(move.lowered.counts().bytes, 27u * 100 * 576 * 2);
  EXPECT_EQ(move.lowered.counts().head_rows, 27u * 100);
  EXPECT_EQ(move.lowered.counts().steps_planned, 2u);  // one for each page
  expect_bytes(move.lowered, memory, target, expected);
}

// Objects "<part>/<page>" of a world, found by the keys of the pages.
class WorldInventory : public PageInventory {
 public:
  WorldInventory(const World& stored, const std::vector<PageKey>& keys) : stored_(stored), keys_(keys) {}

  bool has(const PageKey& page, const Sha256Digest&, const ObjectKey& part, PageObject) const override {
    const auto number = std::find(keys_.begin(), keys_.end(), page) - keys_.begin();
    return stored_.contains(fmt::format("{}/{}", part.text(), number));
  }

 private:
  const World& stored_;
  const std::vector<PageKey>& keys_;
};

// What engines keep of an indexer: [layer][slot][64 x 128 bytes of values | 64 x 4 bytes of scales].
struct SplitIndexer {
  static constexpr uint64_t kSlots = 6;
  std::vector<uint64_t> slots;

  void fill(Memory& memory, Range tokens) const {
    for_each_item("indexer", Range(0, 2), Range(0, 1), tokens, 132, [&](const Item& item) {
      const uint64_t page = (item.layer * kSlots + slots.at(item.token / 64)) * 64 * 132;
      const uint64_t row = item.token % 64;
      memory.put(page + (item.dim < 128 ? row * 128 + item.dim : 64 * 128 + row * 4 + (item.dim - 128)), 1, item);
    });
  }
  void bind(RuntimeBinding& binding, Range tokens) const {
    add_region(binding, "indexer", 2 * kSlots * 64 * 132);
    binding.page_tables.push_back(PageTable{PageTableId("indexer"), 64, 0, slots});
    for (const bool scales : {false, true})
      add_view(binding, "indexer", Range(0, 2), tokens, Range(0, 1), scales ? Range(128, 132) : Range(0, 128),
               "indexer", scales ? 64 * 128 : 0,
               {.layer = kSlots * 64 * 132, .row = scales ? 4u : 128u, .head = 0, .dim = 1})
          .pages = ViewPages{PageTableId("indexer"), 64 * 132};
  }
};

TEST(FieldCases, U21AHitStopsWhereTheIndexerIsMissingAndRestoresBothComponentsBeforeIt) {
  const Valid<CacheSchema> schema = latent_with_indexer(2);
  const Range tokens(0, 320);  // five pages
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {}, "prefill"), snapshot);
  const Pool latent = latent_pool(2, 64, 6, {5, 0, 2, 1, 4});
  const SplitIndexer indexer{{0, 3, 1, 5, 2}};
  latent.bind(source.bindings[0], tokens);
  indexer.bind(source.bindings[0], tokens);
  World memory = world_of(source.bindings);
  latent.fill(memory, source.bindings[0], tokens);
  indexer.fill(memory.at("source:p0-t0/indexer"), tokens);
  const Valid<StoreLayout> layout = layout_with(
      "by-component", schema, 64,
      {part("indexer", Range(0, 2), {"indexer"}, Range(0, 1)), part("latent", Range(0, 2), {"latent"}, Range(0, 1))},
      ObjectOrder::kLphd);
  World stored = stored_by(source, memory, layout);
  ASSERT_EQ(stored.size(), 10u);
  EXPECT_EQ(stored.at("latent/3").size(), 2u * 64 * 1152);
  EXPECT_EQ(stored.at("indexer/3").size(), 2u * 64 * 132);

  ASSERT_EQ(stored.erase("indexer/3"), 1u);
  const PageDomain domain = make_page_domain(snapshot, 64).value();
  std::vector<uint32_t> ids(320);
  std::iota(ids.begin(), ids.end(), uint32_t{7});
  const std::vector<PageKey> keys = page_keys(domain, ids);
  const LayoutCatalog catalog = LayoutCatalog(domain).with_layout(layout, 0).value();
  const PrefixMatch match = match_prefix(catalog, keys, WorldInventory(stored, keys)).value();
  EXPECT_EQ(match.page_count, 3u);
  EXPECT_EQ(match.stop->to_text(), "page 3: layout 'by-component': part 'indexer' is missing");

  // The hit of 192 tokens is restored: both components, for the same tokens. Of the five pages that the target
  // reserved, two stay as they are.
  const Range hit(0, match.token_count);
  const Valid<SnapshotDescriptor> prefix = snapshot_of(schema, hit);
  Runtime target("target", placed(schema, {.tp = 2}, "decode"), prefix);
  const Pool to_latent = latent_pool(2, 64, 6, {1, 2, 5, 0, 3});
  const SplitIndexer to_indexer{{4, 2, 0, 5, 3}};
  for (RuntimeBinding& binding : target.bindings) {
    to_latent.bind(binding, hit);
    to_indexer.bind(binding, hit);
  }
  World expected = world_of(target.bindings);
  for (const RuntimeBinding& binding : target.bindings) {
    to_latent.fill(expected, binding, hit);
    to_indexer.fill(expected.at(region_of(binding, "indexer")), hit);
  }
  const Valid<StoreManifest> manifest = valid_or_die(manifest_of(prefix, layout, stored));
  EXPECT_EQ(manifest->objects.size(), 6u);
  const Move move = move_from_store(manifest, target);
  for (const PlanTensor& tensor : move.plan->tensors) EXPECT_EQ(tensor.tokens, hit);
  expect_bytes(move.lowered, stored, target, expected);

  // All five pages together are no snapshot, nor are those of which one indexer is shorter than its keys.
  Diagnostics diagnostics;
  EXPECT_FALSE(Valid<StoreManifest>::make(manifest_of(snapshot, layout, stored), diagnostics).has_value());
  EXPECT_EQ(lines_of(diagnostics),
            Lines{"component indexer layers 0-1 heads [0,1) dims [0,132) tokens [192,256): owned, but in no view "
                  "[coverage-gap]"});
  StoreManifest shorter = *manifest;
  for (StoredObject& object : shorter.objects)
    if (object.id.text() == "indexer/1") object.bytes -= 132;
  Diagnostics shorter_diagnostics;
  EXPECT_FALSE(Valid<StoreManifest>::make(shorter, shorter_diagnostics).has_value());
  EXPECT_TRUE(shorter_diagnostics.has(Rule::kViewBounds));
}

// Layer 0 keeps all tokens, layer 1 the last 128. Pages of 64: of 300 tokens, layer 1 has pages 2 to 4.
struct HybridPools {
  Pool full;
  Pool window;

  void bind(RuntimeBinding& binding) const {
    full.bind(binding, Range(0, 300));
    window.bind(binding, Range(172, 300));
  }
  void fill(World& world, const RuntimeBinding& binding) const {
    full.fill(world, binding, Range(0, 300));
    window.fill(world, binding, Range(172, 300));
  }
};

HybridPools hybrid_pools(Range heads, std::vector<uint64_t> full_slots, std::vector<uint64_t> window_slots) {
  HybridPools pools{{Range(0, 1), heads, 16, 64, 6, std::move(full_slots)},
                    {Range(1, 2), heads, 16, 64, 4, std::move(window_slots)}};
  pools.full.region = "full";
  pools.window.region = "window";
  pools.window.token_begin = 128;
  return pools;
}

TEST(FieldCases, U23OnlyTheLivePagesOfAWindowAreMappedAndOnlyLiveTokensMove) {
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 1), {rows("key", 2, 16), rows("value", 2, 16)}),
                                               group(Range(1, 2), {rows("key", 2, 16), rows("value", 2, 16)}, 128)});
  const Range tokens(0, 300);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {}, "prefill"), snapshot);
  Runtime target("target", placed(schema, {.tp = 2}, "decode"), snapshot);
  const HybridPools from = hybrid_pools(Range(0, 2), {5, 1, 0, 4, 2}, {3, 0, 1});
  const std::vector<HybridPools> to = {hybrid_pools(Range(0, 1), {0, 1, 2, 3, 5}, {2, 1, 3}),
                                       hybrid_pools(Range(1, 2), {4, 3, 0, 2, 1}, {0, 3, 2})};
  from.bind(source.bindings[0]);
  for (size_t rank = 0; rank < 2; ++rank) to[rank].bind(target.bindings[rank]);
  // The source never writes tokens 128-171 of the window's first page; to read them would be a diagnostic.
  World memory = world_of(source.bindings);
  from.fill(memory, source.bindings[0]);
  World expected = world_of(target.bindings);
  for (size_t rank = 0; rank < 2; ++rank) to[rank].fill(expected, target.bindings[rank]);

  const Move move = move_live(source, target);
  uint64_t tensors = 0;
  for (const PlanTensor& tensor : move.plan->tensors) {
    const bool has_window = tensor.layers == IntervalSet{Range(1, 2)};
    EXPECT_EQ(tensor.tokens, has_window ? Range(172, 300) : Range(0, 300));
    tensors += has_window ? 1 : 0;
  }
  EXPECT_EQ(tensors, 2u);
  EXPECT_EQ(planned_bytes(*move.plan), 2u * 2 * (300 + 128) * 16 * 2);  // K and V, heads, tokens, D, bf16
  expect_bytes(move.lowered, memory, target, expected);

  // Nor do stored pages without a live token exist.
  const Valid<StoreLayout> layout = layout_with("by-layer", schema, 64,
                                                {part("full", Range(0, 1), {"key", "value"}, Range(0, 2)),
                                                 part("window", Range(1, 2), {"key", "value"}, Range(0, 2))});
  const World stored = stored_by(source, memory, layout);
  std::set<std::string> names;
  for (const auto& [name, object] : stored) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"full/0", "full/1", "full/2", "full/3", "full/4", "window/2", "window/3",
                                          "window/4"}));
  // [key, value][64 tokens][2 heads][16]: of page 2, tokens 172-191 are rows 44-63.
  Memory page(2 * 64 * 2 * 16 * 2);
  for (const uint64_t component : {0u, 1u})
    for_each_item(component == 0 ? "key" : "value", Range(1, 2), Range(0, 2), Range(172, 192), 16,
                  [&](const Item& item) {
                    page.put((((component * 64 + item.token - 128) * 2 + item.head) * 16 + item.dim) * 2, 2, item);
                  });
  EXPECT_EQ(difference({{"window/2", stored.at("window/2")}}, {{"window/2", page}}), "");
  const Valid<StoreManifest> manifest = valid_or_die(manifest_of(snapshot, layout, stored));
  expect_bytes(move_from_store(manifest, target).lowered, stored, target, expected);

  // A view that maps stale tokens is refused before anything moves.
  for (View& view : source.bindings[0].views)
    if (view.region.text() == "window") view.tokens = Range(128, 300);
  Diagnostics diagnostics;
  EXPECT_FALSE(Bound(source, diagnostics).ok());
  EXPECT_TRUE(diagnostics.has(Rule::kViewNotOwned));
}

TEST(FieldCases, U26ScalesOfEachTokenAndHeadArriveWithTheirKeysAndValues) {
  constexpr uint64_t kDim = 128;
  std::vector<Component> components;
  for (const char* name : {"key", "value"}) components.push_back(rows(name, 4, kDim, {"float8_e4m3fn", 1}));
  for (const char* name : {"key_scale", "value_scale"}) components.push_back(rows(name, 4, 1, {"float32", 4}));
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 2), components)});
  const Range tokens(0, 50);  // pages of 32
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {.tp = 2}, "prefill"), snapshot);
  Runtime target("target", placed(schema, {.tp = 4}, "decode"), snapshot);

  // Source, two heads on each rank: [layer][slot][key, value][token][head][128 bytes, then 4 bytes of scale].
  const auto source_offset = [](uint64_t kind, const Item& item, uint64_t slot) {
    const uint64_t row = (((item.layer * 3 + slot) * 2 + kind) * 32 + item.token % 32) * 2 + item.head % 2;
    return row * 132;
  };
  const std::vector<std::vector<uint64_t>> source_slots = {{2, 0}, {1, 2}};
  for (uint64_t rank = 0; rank < 2; ++rank) {
    RuntimeBinding& binding = source.bindings[rank];
    add_region(binding, "pool", 2 * 3 * 2 * 32 * 2 * 132);
    binding.page_tables = {PageTable{PageTableId("pages"), 32, 0, source_slots[rank]}};
    for (const uint64_t kind : {0u, 1u})
      for (const bool is_scale : {false, true}) {
        const char* name = kind == 0 ? (is_scale ? "key_scale" : "key") : (is_scale ? "value_scale" : "value");
        add_view(binding, name, Range(0, 2), tokens, Range(2 * rank, 2 * rank + 2), Range(0, is_scale ? 1 : kDim),
                 "pool", kind * 8448 + (is_scale ? 128 : 0),
                 {.layer = 50688, .row = 264, .head = 132, .dim = is_scale ? 4u : 1u})
            .pages = ViewPages{PageTableId("pages"), 16896};
      }
  }
  // Target, one head on each rank: data [layer][key, value][slot][token][128], scales [key, value][layer][slot][token].
  const std::vector<std::vector<uint64_t>> target_slots = {{0, 1}, {1, 0}, {3, 2}, {2, 0}};
  for (uint64_t rank = 0; rank < 4; ++rank) {
    RuntimeBinding& binding = target.bindings[rank];
    add_region(binding, "data", 2 * 2 * 4 * 32 * kDim);
    add_region(binding, "scales", 2 * 2 * 4 * 32 * 4);
    binding.page_tables = {PageTable{PageTableId("pages"), 32, 0, target_slots[rank]}};
    for (const uint64_t kind : {0u, 1u}) {
      add_view(binding, kind == 0 ? "key" : "value", Range(0, 2), tokens, Range(rank, rank + 1), Range(0, kDim), "data",
               kind * 16384, {.layer = 32768, .row = 128, .head = 0, .dim = 1})
          .pages = ViewPages{PageTableId("pages"), 4096};
      add_view(binding, kind == 0 ? "key_scale" : "value_scale", Range(0, 2), tokens, Range(rank, rank + 1),
               Range(0, 1), "scales", kind * 1024, {.layer = 512, .row = 4, .head = 0, .dim = 4})
          .pages = ViewPages{PageTableId("pages"), 128};
    }
  }

  World memory = world_of(source.bindings);
  World expected = world_of(target.bindings);
  for (const uint64_t kind : {0u, 1u}) {
    for_each_item(kind == 0 ? "key" : "value", Range(0, 2), Range(0, 4), tokens, kDim, [&](const Item& item) {
      const uint64_t from = item.head / 2;
      memory.at(fmt::format("source:p0-t{}/pool", from))
          .put(source_offset(kind, item, source_slots[from][item.token / 32]) + item.dim, 1, item);
      const uint64_t row =
          ((item.layer * 2 + kind) * 4 + target_slots[item.head][item.token / 32]) * 32 + item.token % 32;
      expected.at(fmt::format("target:p0-t{}/data", item.head)).put(row * kDim + item.dim, 1, item);
    });
    for_each_item(kind == 0 ? "key_scale" : "value_scale", Range(0, 2), Range(0, 4), tokens, 1, [&](const Item& item) {
      const uint64_t from = item.head / 2;
      memory.at(fmt::format("source:p0-t{}/pool", from))
          .put(source_offset(kind, item, source_slots[from][item.token / 32]) + kDim, 4, item);
      const uint64_t row =
          ((kind * 2 + item.layer) * 4 + target_slots[item.head][item.token / 32]) * 32 + item.token % 32;
      expected.at(fmt::format("target:p0-t{}/scales", item.head)).put(row * 4, 4, item);
    });
  }
  const Move move = move_live(source, target);
  EXPECT_EQ(planned_bytes(*move.plan), 2u * 50 * 4 * 2 * (kDim + 4));
  EXPECT_EQ(pair_names(move),
            (std::set<std::string>{"p0-t0 -> p0-t0", "p0-t0 -> p0-t1", "p0-t1 -> p0-t2", "p0-t1 -> p0-t3"}));
  expect_bytes(move.lowered, memory, target, expected);
}

// Rows of 4,000 bytes in a stride of 4,096: [layer][head] of a recurrent state.
struct PaddedState {
  Range heads;

  uint64_t bytes() const { return 3 * heads.size() * 4096; }
  void fill(Memory& memory) const {
    for_each_item("state", Range(0, 3), heads, Range(0, 1), 1000, [&](const Item& item) {
      memory.put((item.layer * heads.size() + item.head - heads.begin()) * 4096 + item.dim * 4, 4, item);
    });
  }
  void bind(RuntimeBinding& binding) const {
    add_region(binding, "state", bytes());
    add_view(binding, "state", Range(0, 3), Range(0, 1), heads, Range(0, 1000), "state", 0,
             {.layer = heads.size() * 4096, .row = 0, .head = 4096, .dim = 4});
  }
};

TEST(FieldCases, U27ThePaddingOfAStateIsNeitherReadNorWritten) {
  Component state = rows("state", 4, 1000, {"float32", 4});
  state.tokens_per_row = std::nullopt;
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 3), {state})});
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, Range(0, 77));
  Runtime source("source", placed(schema, {.tp = 2}, "prefill"), snapshot);
  Runtime target("target", placed(schema, {.tp = 4}, "decode"), snapshot);
  for (uint64_t rank = 0; rank < 2; ++rank) PaddedState{Range(2 * rank, 2 * rank + 2)}.bind(source.bindings[rank]);
  for (uint64_t rank = 0; rank < 4; ++rank) PaddedState{Range(rank, rank + 1)}.bind(target.bindings[rank]);
  World memory = world_of(source.bindings);  // run_steps() refuses to read the padding, which nobody writes
  for (uint64_t rank = 0; rank < 2; ++rank)
    PaddedState{Range(2 * rank, 2 * rank + 2)}.fill(memory.at(region_of(source.bindings[rank], "state")));
  World expected = world_of(target.bindings);
  for (uint64_t rank = 0; rank < 4; ++rank)
    PaddedState{Range(rank, rank + 1)}.fill(expected.at(region_of(target.bindings[rank], "state")));
  ASSERT_EQ(expected.at("target:p0-t3/state").written_bytes(Range(0, 3 * 4096)), 3u * 4000);
  const Move move = move_live(source, target);
  EXPECT_EQ(move.lowered.counts().bytes, 3u * 4 * 4000);
  EXPECT_EQ(move.lowered.counts().ranges, 3u * 4);
  expect_bytes(move.lowered, memory, target, expected);

  // The store keeps rows without padding: [layer][head][1000].
  const Valid<StoreLayout> layout =
      layout_with("states", schema, 64, {part("all", Range(0, 3), {"state"}, Range(0, 4))});
  const World stored = stored_by(source, memory, layout);
  Memory object(3 * 4 * 4000);
  for_each_item("state", Range(0, 3), Range(0, 4), Range(0, 1), 1000,
                [&](const Item& item) { object.put(((item.layer * 4 + item.head) * 1000 + item.dim) * 4, 4, item); });
  EXPECT_EQ(difference(stored, {{"all/state", object}}), "");
  const Valid<StoreManifest> manifest = valid_or_die(manifest_of(snapshot, layout, stored));
  expect_bytes(move_from_store(manifest, target).lowered, stored, target, expected);
}

// ---- C. Pipeline splits, pages, last blocks ----

TEST(FieldCases, U28StagesOf21And23LayersReachStagesOf11And11And22WithEveryLayerOnce) {
  const Valid<CacheSchema> schema = attention(44, 2, 8);
  const Range tokens(0, 20);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source("source", placed(schema, {.pp = 2, .layers_per_stage = {21, 23}}, "prefill"), snapshot);
  Runtime target("target", placed(schema, {.pp = 3, .layers_per_stage = {11, 11, 22}}, "decode"), snapshot);
  // Each stage numbers its own layers from 0: [layer - first layer of the stage][key, value]...
  const auto pool_of = [](Range layers, std::vector<uint64_t> slots) {
    return Pool{layers, Range(0, 2), 8, 16, 3, std::move(slots)};
  };
  const World memory = bind_and_fill(source, {pool_of(Range(0, 21), {2, 0}), pool_of(Range(21, 44), {1, 2})}, tokens);
  const World expected = bind_and_fill(
      target, {pool_of(Range(0, 11), {0, 1}), pool_of(Range(11, 22), {2, 1}), pool_of(Range(22, 44), {1, 0})}, tokens);

  const Move move = move_live(source, target);
  std::vector<std::vector<std::string>> carried(44);  // of each layer: who brings its keys to whom
  for (const Edge& edge : move.plan->edges) {
    if (move.plan->tensors[edge.tensor].component.name.text() != "key") continue;
    for (uint64_t layer = 0; layer < 44; ++layer)
      if (move.plan->layer_sets[edge.layer_set].contains(layer))
        carried[layer].push_back(move.plan->sources[edge.source].text() + " -> " +
                                 move.plan->targets[edge.target].text());
  }
  for (uint64_t layer = 0; layer < 44; ++layer)
    EXPECT_EQ(carried[layer], Lines{layer < 11   ? "p0-t0 -> p0-t0"
                                    : layer < 21 ? "p0-t0 -> p1-t0"
                                    : layer < 22 ? "p1-t0 -> p1-t0"
                                                 : "p1-t0 -> p2-t0"})
        << "layer " << layer;
  expect_bytes(move.lowered, memory, target, expected);

  // Parts of the store that follow the source's stages have keys of their own, and bring the same.
  Diagnostics diagnostics;
  const auto layout = layout_of(source.placement, std::nullopt, ObjectOrder::kLphd, 16, "by-stage", diagnostics);
  stop_on(diagnostics);
  std::set<std::string> keys;
  for (const StorePart& each : (*layout)->parts) keys.insert(each.key.text());
  EXPECT_EQ(keys, (std::set<std::string>{"l00-20_h0-1", "l21-43_h0-1"}));
  const World stored = stored_by(source, memory, *layout);
  EXPECT_EQ(stored.size(), 4u);
  const Valid<StoreManifest> manifest = valid_or_die(manifest_of(snapshot, *layout, stored));
  expect_bytes(move_from_store(manifest, target).lowered, stored, target, expected);
}

// One rank on each side, pages of 64 tokens.
struct OnePool {
  OnePool(Range of_tokens, std::vector<uint64_t> source_slots, std::vector<uint64_t> target_slots)
      : tokens(of_tokens),
        memory(bind_and_fill(source, {pool(std::move(source_slots))}, tokens)),
        expected(bind_and_fill(target, {pool(std::move(target_slots))}, tokens)) {}
  static Pool pool(std::vector<uint64_t> slots) {
    return Pool{Range(0, 1), Range(0, 2), 32, 64, 6, std::move(slots), {"key"}};
  }
  static constexpr uint64_t kRowBytes = 2 * 32 * 2;
  static constexpr uint64_t kPageBytes = 64 * kRowBytes;

  Range tokens;
  Valid<CacheSchema> schema = schema_of({group(Range(0, 1), {rows("key", 2, 32)})});
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source{"source", placed(schema, {}, "prefill"), snapshot};
  Runtime target{"target", placed(schema, {}, "decode"), snapshot};
  World memory;
  World expected;
};

TEST(FieldCases, U31APageThatTheTargetReservedForLaterStaysUnwritten) {
  const OnePool world(Range(0, 128), {3, 5}, {4, 1, 2});
  const Move move = move_live(world.source, world.target);
  EXPECT_EQ(move.lowered.counts().bytes, 2 * OnePool::kPageBytes);
  World memory = world_of(world.target.bindings);
  ASSERT_TRUE(run_steps(move.lowered, world.memory, memory).ok());
  EXPECT_EQ(difference(memory, world.expected), "");
  const Memory& pool = memory.at("target:p0-t0/pool");
  for (const auto& [slot, written] : {std::pair(4, true), {1, true}, {2, false}}) {
    const uint64_t begin = static_cast<uint64_t>(slot) * OnePool::kPageBytes;
    EXPECT_EQ(pool.written_bytes(Range(begin, begin + OnePool::kPageBytes)), written ? OnePool::kPageBytes : 0);
  }
}

TEST(FieldCases, U33PartialLastPageCarriesExactlyItsTokens) {
  const OnePool world(Range(0, 100), {3, 5}, {4, 1});
  const Move move = move_live(world.source, world.target);
  EXPECT_EQ(move.lowered.counts().bytes, 100 * OnePool::kRowBytes);
  World memory = world_of(world.target.bindings);
  ASSERT_TRUE(run_steps(move.lowered, world.memory, memory).ok());
  EXPECT_EQ(difference(memory, world.expected), "");
  const Memory& pool = memory.at("target:p0-t0/pool");
  EXPECT_EQ(pool.written_bytes(Range(OnePool::kPageBytes, 2 * OnePool::kPageBytes)), 36 * OnePool::kRowBytes);
  EXPECT_EQ(pool.written_bytes(Range(OnePool::kPageBytes, OnePool::kPageBytes + 36 * OnePool::kRowBytes)),
            36 * OnePool::kRowBytes);

  // A stored page has its whole length, and of the last one only what its tokens need.
  const Valid<StoreLayout> layout =
      layout_with("whole", world.schema, 64, {part("all", Range(0, 1), {"key"}, Range(0, 2))});
  const World stored = stored_by(world.source, world.memory, layout);
  ASSERT_EQ(stored.at("all/1").size(), OnePool::kPageBytes);
  EXPECT_EQ(stored.at("all/0").written_bytes(Range(0, OnePool::kPageBytes)), OnePool::kPageBytes);
  EXPECT_EQ(stored.at("all/1").written_bytes(Range(0, 36 * OnePool::kRowBytes)), 36 * OnePool::kRowBytes);
  EXPECT_EQ(stored.at("all/1").written_bytes(Range(0, OnePool::kPageBytes)), 36 * OnePool::kRowBytes);
  const Valid<StoreManifest> manifest = valid_or_die(manifest_of(world.snapshot, layout, stored));
  expect_bytes(move_from_store(manifest, world.target).lowered, stored, world.target, world.expected);
}

// ---- G. Descriptors ----

// 101 layers of fp8 latents of 576 bytes, and 1,000 pages of 64 tokens: 3.7 GB, which no test allocates.
struct ManyPages {
  static constexpr uint64_t kLayers = 101;
  static constexpr uint64_t kPages = 1000;
  static constexpr uint64_t kPageBytes = 64 * 576;  // of one layer

  Valid<CacheSchema> schema = schema_of({group(Range(0, kLayers), {rows("latent", 1, 576, {"float8_e4m3fn", 1})})});
  Range tokens = Range(0, kPages * 64);
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  Runtime source{"source", placed(schema, {}, "prefill"), snapshot};
  Runtime target{"target", placed(schema, {}, "decode"), snapshot};

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
  void bind_layers(Runtime& runtime, uint64_t together, const std::vector<uint64_t>& of_slots) const {
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
  void bind_pool(Runtime& runtime, bool token_major, const std::vector<uint64_t>& of_slots) const {
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

TEST(FieldCases, U71AThousandScatteredPagesOf101RegionsAreOneStepEach) {
  ManyPages pages;
  const std::vector<uint64_t> from = ManyPages::slots(1, 1);
  const std::vector<uint64_t> to = ManyPages::slots(1, 2);
  pages.bind_layers(pages.source, 1, from);
  pages.bind_layers(pages.target, 1, to);
  const Move move = move_live(pages.source, pages.target);
  EXPECT_EQ(move.plan->edges.size(), 1u);
  EXPECT_EQ(move.lowered.counts(), (StepCounts{.bytes = 101 * 1000 * ManyPages::kPageBytes,
                                               .head_rows = 101 * 64000,
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
  const Move move = move_live(pages.source, pages.target);
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
    const Move move = move_live(pages.source, pages.target);
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
  const Move move = move_live(pages.source, pages.target);
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

  void bind(Runtime& runtime, uint64_t base, uint64_t page_stride, std::vector<uint64_t> slots,
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
  Runtime source{"source", placed(schema, {}, "prefill"), snapshot};
  Runtime target{"target", placed(schema, {}, "decode"), snapshot};
};

TEST(FieldCases, U73BlocksTimesStridesPast32BitsAndBasesPast2To40AreExact) {
  FarPages pages(5);
  const uint64_t base = uint64_t{1} << 40;
  pages.bind(pages.source, base, 1'039'680, {2'065, 2'066, 4'131, 4'132, 1'048'576}, uint64_t{1} << 42);
  pages.bind(pages.target, 3 * base, 1'002'240, {2'142, 2'143, 4'285, 4'286, 2'097'152}, uint64_t{1} << 43);
  const Move move = move_live(pages.source, pages.target);
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
  const Move move = move_live(pages.source, pages.target);
  EXPECT_EQ(sorted_ranges(move.lowered), (std::vector<ByteMove>{{"pool", "pool", last * 1'039'680, 0, 958'464}}));

  for (const uint64_t slot : {last + 1, last + 2, uint64_t{1} << 45, uint64_t{1} << 63, UINT64_MAX}) {
    pages.source.bindings[0].page_tables[0].slots = {slot};
    Diagnostics diagnostics;
    EXPECT_FALSE(Bound(pages.source, diagnostics).ok()) << slot;
    EXPECT_TRUE(diagnostics.has(Rule::kSizeOverflow) || diagnostics.has(Rule::kViewBounds)) << slot;
  }
  // A base that pushes the same page past the end.
  pages.source.bindings[0].page_tables[0].slots = {last};
  pages.source.bindings[0].views[0].offset_bytes = 1'039'680;
  Diagnostics diagnostics;
  EXPECT_FALSE(Bound(pages.source, diagnostics).ok());
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
