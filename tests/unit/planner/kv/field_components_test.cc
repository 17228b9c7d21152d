// Field cases of components: packed keys and values, latents with an indexer, and layouts of one size.
// Failures that users of cache stores reported, as small inputs with their right values: each is planned, proved,
// bound, lowered and run byte by byte, see tests/support/field_world.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
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

// Case U15: keys and values lie packed in the last dim (2 x D items); a stride of half that size let slots overlap.
TEST(FieldCases, U15KeysAndValuesPackedInTheLastDimSurviveTheStore) {
  const Valid<CacheSchema> schema = attention(2, 4, 64);
  const Range tokens(0, 40);  // pages of 16, 16 and 8 tokens
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {}, "prefill"), snapshot);
  FieldRuntime target("target", placed(schema, {}, "decode"), snapshot);
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

FieldPool latent_pool(uint64_t layer_count, uint64_t page_tokens, uint64_t slot_count, std::vector<uint64_t> slots) {
  return FieldPool{Range(0, layer_count), Range(0, 1), 576, page_tokens, slot_count,
                   std::move(slots),      {"latent"},  2,   "latent"};
}

FieldPool indexer_pool(uint64_t layer_count, uint64_t page_tokens, uint64_t slot_count, std::vector<uint64_t> slots) {
  return FieldPool{Range(0, layer_count), Range(0, 1), 132, page_tokens, slot_count,
                   std::move(slots),      {"indexer"}, 1,   "indexer"};
}

// Case U17: the size of a stored latent row depended on the tensor-parallel degree, so that a cache saved by one rank
// was never found by two.
TEST(FieldCases, U17WhatOneRankSavedIsRestoredToTwoAndFourByteForByte) {
  const Valid<CacheSchema> schema = latent_with_indexer(3);
  const Range tokens(0, 150);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {}, "prefill"), snapshot);
  const FieldPool latent = latent_pool(3, 64, 4, {3, 1, 0});
  const FieldPool indexer = indexer_pool(3, 64, 4, {0, 2, 3});
  World memory;
  for (const FieldPool* pool : {&latent, &indexer}) pool->bind(source.bindings[0], tokens);
  memory = world_of(source.bindings);
  for (const FieldPool* pool : {&latent, &indexer}) pool->fill(memory, source.bindings[0], tokens);

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
    FieldRuntime target("target", placed(schema, {.tp = tp}, "decode"), snapshot);
    std::vector<std::pair<FieldPool, FieldPool>> pools;
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
    const FieldMove move = move_from_store(manifest, target);
    EXPECT_EQ(planned_bytes(*move.plan), tp * 3 * 150 * (1152 + 132));
    expect_bytes(move.lowered, stored, target, expected);
  }
}

// Case U18: objects of a persistent cache did not carry their layout, so that a reader took head-major bytes of the
// right size for token-major ones.
TEST(FieldCases, U18HeadMajorAndTokenMajorObjectsOfEqualSizesAreNeverTakenForEachOther) {
  const Valid<CacheSchema> schema = attention(2, 4, 16);
  const Range tokens(0, 100);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {.tp = 2}, "prefill"), snapshot);
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
  FieldRuntime target("target", placed(schema, {}, "decode"), snapshot);
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
  const FieldBound to(target, diagnostics);
  EXPECT_FALSE(
      lower(*plan, BoundSide(head_objects), to.side(), LowerOptions{}, LowerLimits{}, diagnostics).has_value());
  EXPECT_EQ(lines_of(diagnostics), Lines{fmt::format("the source's bytes are of {}, the plan is of {} [plan-identity]",
                                                     digest(head_first).hex(), digest(token_first).hex())});
  expect_bytes(lowered_move(plan, BoundSide(token_objects), to.side()).lowered, token_stored, target, expected);
}

// Case U20: a latent, which all layers keep in one shape, was taken for a tensor across layers: 27 layers had 27 times
// the bytes.
TEST(FieldCases, U20ALatentIsPlannedOncePerLayerAndToken) {
  const Valid<CacheSchema> schema = schema_of({group(Range(0, 27), {rows("latent", 1, 576)})});
  const Range tokens(0, 100);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {.tp = 2}, "prefill"), snapshot);
  FieldRuntime target("target", placed(schema, {}, "decode"), snapshot);
  const FieldPool from = latent_pool(27, 64, 3, {2, 0});
  const World memory = bind_and_fill(source, {from, from}, tokens);
  const World expected = bind_and_fill(target, {latent_pool(27, 64, 2, {0, 1})}, tokens);

  const FieldMove move = move_live(source, target);
  EXPECT_EQ(planned_bytes(*move.plan), 27u * 100 * 576 * 2);
  EXPECT_EQ(move.lowered.counts().bytes, 27u * 100 * 576 * 2);
  EXPECT_EQ(move.lowered.counts().row_pieces, 27u * 100);
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

// Case U21: the keys of a sparse-attention indexer were missing or fewer than the rows of the cache, and the page was
// used all the same.
TEST(FieldCases, U21AHitStopsWhereTheIndexerIsMissingAndRestoresBothComponentsBeforeIt) {
  const Valid<CacheSchema> schema = latent_with_indexer(2);
  const Range tokens(0, 320);  // five pages
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  FieldRuntime source("source", placed(schema, {}, "prefill"), snapshot);
  const FieldPool latent = latent_pool(2, 64, 6, {5, 0, 2, 1, 4});
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
  FieldRuntime target("target", placed(schema, {.tp = 2}, "decode"), prefix);
  const FieldPool to_latent = latent_pool(2, 64, 6, {1, 2, 5, 0, 3});
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
  const FieldMove move = move_from_store(manifest, target);
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

}  // namespace
}  // namespace crossdock::testing
