#include "tests/support/field_world.h"

#include <gtest/gtest.h>

#include <span>
#include <stdexcept>

#include "base/crc32c.h"
#include "planner/kv/verify_plan.h"

namespace crossdock::testing {

void stop_on(const Diagnostics& diagnostics) {
  if (!diagnostics.empty()) throw std::runtime_error(diagnostic_lines(diagnostics));
}

Lines lines_of(const Diagnostics& diagnostics) {
  Lines lines;
  for (const Diagnostic& diagnostic : diagnostics.kept())
    lines.push_back(fmt::format("{} [{}]", diagnostic.message, rule_name(diagnostic.rule)));
  return lines;
}

std::string region_of(const RuntimeBinding& binding, const std::string& region) {
  return binding.instance.text() + "/" + region;
}

void add_region(RuntimeBinding& binding, const char* id, uint64_t bytes) {
  binding.regions.push_back(Region{RegionId(id), 1, bytes, DeviceId("d"), {}, {}});
}

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

World bind_and_fill(FieldRuntime& runtime, const std::vector<FieldPool>& pools, Range tokens) {
  for (size_t rank = 0; rank < pools.size(); ++rank) pools[rank].bind(runtime.bindings[rank], tokens);
  World world = world_of(runtime.bindings);
  for (size_t rank = 0; rank < pools.size(); ++rank) pools[rank].fill(world, runtime.bindings[rank], tokens);
  return world;
}

Valid<TransferPlan> proven_plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options) {
  Diagnostics diagnostics;
  std::optional<Valid<TransferPlan>> plan = make_plan(source, target, options, PlanLimits{}, diagnostics);
  stop_on(diagnostics);
  EXPECT_TRUE(verify_plan(*plan, source, target, VerifyLimits{}, diagnostics).complete);
  stop_on(diagnostics);
  return std::move(*plan);
}

FieldMove lowered_move(Valid<TransferPlan> plan, const BoundSide& source, const BoundSide& target,
                       const LowerOptions& options) {
  Diagnostics diagnostics;
  std::optional<LoweredPlan> lowered = lower(*plan, source, target, options, LowerLimits{}, diagnostics);
  stop_on(diagnostics);
  return FieldMove{std::move(plan), std::move(*lowered)};
}

FieldMove move_live(const FieldRuntime& source, const FieldRuntime& target, PlanOptions options) {
  options.snapshot_tokens = source.snapshot->tokens;
  Diagnostics diagnostics;
  const FieldBound from(source, diagnostics);
  const FieldBound to(target, diagnostics);
  stop_on(diagnostics);
  return lowered_move(proven_plan(source.side(), target.side(), options), from.side(), to.side());
}

SnapshotObjects objects_of(const Valid<StoreLayout>& layout, Range tokens) {
  Diagnostics diagnostics;
  std::optional<SnapshotObjects> objects = snapshot_objects(layout, digest(layout), tokens, diagnostics);
  stop_on(diagnostics);
  return std::move(*objects);
}

FieldMove move_to_store(const FieldRuntime& source, const Valid<StoreLayout>& layout, const SnapshotObjects& objects) {
  PlanOptions options;
  options.snapshot_tokens = source.snapshot->tokens;
  Diagnostics diagnostics;
  const FieldBound from(source, diagnostics);
  stop_on(diagnostics);
  return lowered_move(proven_plan(source.side(), PlanSide(layout, digest(layout)), options), from.side(),
                      BoundSide(objects));
}

World stored_by(const FieldRuntime& source, const World& memory, const Valid<StoreLayout>& layout) {
  const SnapshotObjects objects = objects_of(layout, source.snapshot->tokens);
  World stored = world_of(objects.objects);
  const Status status = run_steps(move_to_store(source, layout, objects).lowered, memory, stored);
  EXPECT_TRUE(status.ok()) << status.message();
  return stored;
}

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

FieldMove move_from_store(const Valid<StoreManifest>& manifest, const FieldRuntime& target) {
  PlanOptions options;
  options.snapshot_tokens = target.snapshot->tokens;
  Diagnostics diagnostics;
  const FieldBound to(target, diagnostics);
  stop_on(diagnostics);
  const Sha256Digest identity = digest(manifest);
  return lowered_move(proven_plan(PlanSide(manifest, identity), target.side(), options), BoundSide(manifest, identity),
                      to.side());
}

void expect_bytes(const LoweredPlan& lowered, const World& source, const FieldRuntime& target, const World& expected) {
  World memory = world_of(target.bindings);
  const Status status = run_steps(lowered, source, memory);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(difference(memory, expected), "");
}

std::set<std::string> pair_names(const FieldMove& move) {
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

}  // namespace crossdock::testing
