// Field cases of pages: windows, scales, states, pipeline splits and last pages.
// Failures that users of cache transfer reported, as small inputs with their right values: each is planned, proved,
// bound, lowered and run byte by byte, see tests/support/field_world.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/rng.h"
#include "model/kv/binding_rules.h"
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

// Layer 0 keeps all tokens, layer 1 the last 128. Pages of 64: of 300 tokens, layer 1 has pages 2 to 4.
struct HybridPools {
  FieldPool full;
  FieldPool window;

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

// Case U23: a window of 128 tokens in pages of 64: pages that are no longer live were mapped, and stale rows moved.
TEST(FieldCases, U23OnlyTheLivePagesOfAWindowAreMappedAndOnlyLiveTokensMove) {
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 1), {rows("key", 2, 16), rows("value", 2, 16)}),
                                               group(Range(1, 2), {rows("key", 2, 16), rows("value", 2, 16)}, 128)});
  const Range tokens(0, 300);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {}, "prefill"), snapshot);
  FieldRuntime target("target", placed(schema, {.tp = 2}, "decode"), snapshot);
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

  const FieldMove move = move_live(source, target);
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

  // The other rows of the first live page are there too, and do not move.
  for (View& view : source.bindings[0].views)
    if (view.region.text() == "window") view.tokens = Range(128, 300);
  Diagnostics diagnostics;
  EXPECT_TRUE(FieldBound(source, diagnostics).ok());
  // Rows that are not of the snapshot are refused before anything moves.
  for (View& view : source.bindings[0].views)
    if (view.region.text() == "window") view.tokens = Range(128, 301);
  EXPECT_FALSE(FieldBound(source, diagnostics).ok());
  EXPECT_TRUE(diagnostics.has(Rule::kViewNotOwned));
}

// Case U26: an fp8 cache has one scale for each token and head; the scales had a wrong stride or did not move at all.
TEST(FieldCases, U26ScalesOfEachTokenAndHeadArriveWithTheirKeysAndValues) {
  constexpr uint64_t kDim = 128;
  std::vector<Component> components;
  for (const char* name : {"key", "value"}) components.push_back(rows(name, 4, kDim, {"float8_e4m3fn", 1}));
  for (const char* name : {"key_scale", "value_scale"}) components.push_back(rows(name, 4, 1, {"float32", 4}));
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 2), components)});
  const Range tokens(0, 50);  // pages of 32
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {.tp = 2}, "prefill"), snapshot);
  FieldRuntime target("target", placed(schema, {.tp = 4}, "decode"), snapshot);

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
  const FieldMove move = move_live(source, target);
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

// Case U27: states of 4,000 bytes lie 4,096 bytes apart; the padding was taken for content.
TEST(FieldCases, U27ThePaddingOfAStateIsNeitherReadNorWritten) {
  Component state = rows("state", 4, 1000, {"float32", 4});
  state.tokens_per_row = std::nullopt;
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 3), {state})});
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, Range(0, 77));
  FieldRuntime source("source", placed(schema, {.tp = 2}, "prefill"), snapshot);
  FieldRuntime target("target", placed(schema, {.tp = 4}, "decode"), snapshot);
  for (uint64_t rank = 0; rank < 2; ++rank) PaddedState{Range(2 * rank, 2 * rank + 2)}.bind(source.bindings[rank]);
  for (uint64_t rank = 0; rank < 4; ++rank) PaddedState{Range(rank, rank + 1)}.bind(target.bindings[rank]);
  World memory = world_of(source.bindings);  // run_steps() refuses to read the padding, which is never written
  for (uint64_t rank = 0; rank < 2; ++rank)
    PaddedState{Range(2 * rank, 2 * rank + 2)}.fill(memory.at(region_of(source.bindings[rank], "state")));
  World expected = world_of(target.bindings);
  for (uint64_t rank = 0; rank < 4; ++rank)
    PaddedState{Range(rank, rank + 1)}.fill(expected.at(region_of(target.bindings[rank], "state")));
  ASSERT_EQ(expected.at("target:p0-t3/state").written_bytes(Range(0, 3 * 4096)), 3u * 4000);
  const FieldMove move = move_live(source, target);
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

// Case U28: stages of 21 and 23 layers; the offset "stage x layers of the stage" gave layer 23 to a stage that begins
// at 21.
TEST(FieldCases, U28StagesOf21And23LayersReachStagesOf11And11And22WithEveryLayerOnce) {
  const Valid<CacheSchema> schema = attention(44, 2, 8);
  const Range tokens(0, 20);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {.pp = 2, .layers_per_stage = {21, 23}}, "prefill"), snapshot);
  FieldRuntime target("target", placed(schema, {.pp = 3, .layers_per_stage = {11, 11, 22}}, "decode"), snapshot);
  // Each stage numbers its own layers from 0: [layer - first layer of the stage][key, value]...
  const auto pool_of = [](Range layers, std::vector<uint64_t> slots) {
    return FieldPool{layers, Range(0, 2), 8, 16, 3, std::move(slots)};
  };
  const World memory = bind_and_fill(source, {pool_of(Range(0, 21), {2, 0}), pool_of(Range(21, 44), {1, 2})}, tokens);
  const World expected = bind_and_fill(
      target, {pool_of(Range(0, 11), {0, 1}), pool_of(Range(11, 22), {2, 1}), pool_of(Range(22, 44), {1, 0})}, tokens);

  const FieldMove move = move_live(source, target);
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
  static FieldPool pool(std::vector<uint64_t> slots) {
    return FieldPool{Range(0, 1), Range(0, 2), 32, 64, 6, std::move(slots), {"key"}};
  }
  static constexpr uint64_t kRowBytes = 2 * 32 * 2;
  static constexpr uint64_t kPageBytes = 64 * kRowBytes;

  Range tokens;
  Valid<CacheSchema> schema = schema_of({group(Range(0, 1), {rows("key", 2, 32)})});
  Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source{"source", placed(schema, {}, "prefill"), snapshot};
  FieldRuntime target{"target", placed(schema, {}, "decode"), snapshot};
  World memory;
  World expected;
};

// Case U31: a prompt of exactly two pages; the target reserves a third one for the next token, which nothing may write.
TEST(FieldCases, U31APageThatTheTargetReservedForLaterStaysUnwritten) {
  const OnePool world(Range(0, 128), {3, 5}, {4, 1, 2});
  const FieldMove move = move_live(world.source, world.target);
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

// Case U33: the last page of a prompt is partly filled and was not sent.
TEST(FieldCases, U33PartialLastPageCarriesExactlyItsTokens) {
  const OnePool world(Range(0, 100), {3, 5}, {4, 1});
  const FieldMove move = move_live(world.source, world.target);
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

}  // namespace
}  // namespace crossdock::testing
