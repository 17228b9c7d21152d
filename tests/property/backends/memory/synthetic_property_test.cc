// Synthetic content of random bindings: each item is written, and any wrong byte is found and named.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "backends/memory/synthetic.h"
#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "tests/support/example_documents.h"
#include "tests/support/random_documents.h"
#include "tests/support/synthetic_world.h"

namespace crossdock::testing {
namespace {

// ---- the definition

uint64_t total_item_bytes(const SyntheticItems& items) {
  uint64_t bytes = 0;
  for (const auto& [key, region] : items)
    for (const auto& [offset, item] : region) bytes += item.bytes.size();
  return bytes;
}

// ---- any binding

struct RandomWorld {
  Valid<PlacementManifest> placement;
  Valid<SnapshotDescriptor> snapshot;
  SyntheticWorld world;
};

RandomWorld random_world(const Draw& draw, uint64_t seed) {
  Choices schema_choices(draw, Section::kSchema);
  Choices token_choices(draw, Section::kTokens);
  Choices placement_choices(draw, Section::kSource);
  Choices binding_choices(draw, Section::kSourceBinding);
  const Valid<CacheSchema> schema = random_schema(schema_choices);
  const Range tokens = random_tokens(token_choices);
  const Valid<PlacementManifest> placement = random_placement(schema, tokens, "p", placement_choices);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, tokens);
  SyntheticBindings bindings = random_bindings(placement, snapshot, BindingStyle::kAny, binding_choices);
  return RandomWorld{placement, snapshot, SyntheticWorld(std::move(bindings), schema, seed)};
}

bool any_view(const SyntheticBindings& bindings, bool (*has)(const View&)) {
  return std::ranges::any_of(bindings, [has](const auto& binding) { return std::ranges::any_of(binding->views, has); });
}

RC_GTEST_PROP(Synthetic, WritesEachItemOfAnyBindingsAndNothingElse, (const Draw& draw, uint64_t seed)) {
  const RandomWorld drawn = random_world(draw, seed);
  const SyntheticWorld& world = drawn.world;
  std::set<InstanceId> instances;
  for (const Valid<RuntimeBinding>& binding : world.bindings) instances.insert(binding->instance);
  RC_CLASSIFY(instances.size() < world.bindings.size(), "several participants in an instance");
  RC_CLASSIFY(any_view(world.bindings, [](const View& view) { return view.cycle.has_value(); }), "cycles");
  RC_CLASSIFY(any_view(world.bindings, [](const View& view) { return view.pages.has_value(); }), "pages");
  RC_CLASSIFY(any_view(world.bindings, [](const View& view) { return view.dims.begin() > 0; }), "split dims");
  RC_ASSERT(world.write() == total_item_bytes(world.items));
  RC_ASSERT(wrong_region(world) == "");
  RC_ASSERT(world.take() == "all right");
  RC_ASSERT(world.check() == "all right");
}

RC_GTEST_PROP(Synthetic, AnyWrongByteIsFoundAndNamed, (const Draw& draw, uint64_t seed)) {
  const RandomWorld drawn = random_world(draw, seed);
  const SyntheticWorld& world = drawn.world;
  RC_PRE(world.memory.total_bytes() > 0);
  Rng rng(seed);
  for (int times = 0; times < 4; ++times) {
    auto region = world.memory.regions().begin();
    std::advance(region, static_cast<ptrdiff_t>(rng.below(world.memory.regions().size())));
    const uint64_t byte = rng.below(world.memory.find(region->first).size());
    const std::byte bits{static_cast<uint8_t>(uint64_t{1} << rng.below(8))};
    RC_ASSERT(words_about(world, region->first, byte, bits) == words_expected(world, region->first, byte, bits));
  }
}

}  // namespace
}  // namespace crossdock::testing
