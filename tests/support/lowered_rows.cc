#include "tests/support/lowered_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "model/wire/documents.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {

Valid<CacheSchema> bytes_of(uint64_t layer_count, uint64_t head_count, uint64_t head_dim) {
  return schema_of({group(Range(0, layer_count), {rows("kv", head_count, head_dim, {"float8_e4m3fn", 1})})});
}

Valid<RuntimeBinding> bound_rows(const RowMemory& memory, const std::string& instance,
                                 const Valid<PlacementManifest>& placement, const Valid<SnapshotDescriptor>& snapshot) {
  const Component& component = placement->cache_schema.groups[0].components[0];
  const uint64_t layer_count = placement->cache_schema.layers().count();
  RuntimeBinding binding;
  binding.operation = OperationId("move");
  binding.resource = snapshot->resource;
  binding.revision = RevisionId("1");
  binding.participant = ParticipantId(memory.participant);
  binding.instance = InstanceId(instance);
  binding.generation = 1;
  binding.placement_digest = digest(placement);
  binding.snapshot_digest = digest(snapshot);
  binding.tokens = snapshot->tokens;
  binding.devices = {Device{DeviceId("gpu"), "cuda", uint64_t{1} << 60}};
  if (!memory.slots.empty())
    binding.page_tables = {PageTable{PageTableId("pages"), memory.page_tokens, 0, memory.slots}};
  for (uint64_t i = 0; i < (memory.region_per_layer ? layer_count : 1); ++i) {
    const Range layers = memory.region_per_layer ? Range(i, i + 1) : Range(0, layer_count);
    View view;
    view.component = component.name;
    view.layers = layers;
    view.tokens = snapshot->tokens;
    view.heads = memory.heads;
    view.dims = Range(0, component.head_dim);
    view.region = RegionId(fmt::format("region-{:03}", i));
    view.strides = memory.strides;
    if (memory.region_per_layer) view.strides.layer = 0;
    uint64_t bytes =
        (layers.size() - 1) * view.strides.layer + (memory.heads.size() - 1) * view.strides.head + component.head_dim;
    if (memory.slots.empty()) {
      bytes += (snapshot->tokens.size() - 1) * view.strides.row;
    } else {
      view.pages = ViewPages{PageTableId("pages"), memory.page_stride_bytes};
      bytes += *std::max_element(memory.slots.begin(), memory.slots.end()) * memory.page_stride_bytes +
               (memory.page_tokens - 1) * view.strides.row;
    }
    binding.regions.push_back(Region{view.region, 1, bytes, DeviceId("gpu"), {}, {}});
    binding.views.push_back(view);
  }
  return valid_or_die(binding);
}

LoweredPlan lower_between(const Valid<CacheSchema>& schema, uint64_t token_count, const RowMemory& source,
                          const std::vector<RowMemory>& targets) {
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, Range(0, token_count));
  const Valid<PlacementManifest> source_placement = placed(schema, {});
  const Valid<PlacementManifest> target_placement = placed(schema, {.tp = targets.size()});
  const Valid<RuntimeBinding> source_binding = bound_rows(source, "source", source_placement, snapshot);
  std::vector<Valid<RuntimeBinding>> target_bindings;
  for (const RowMemory& target : targets)
    target_bindings.push_back(bound_rows(target, "target-" + target.participant, target_placement, snapshot));
  const std::vector<const Valid<RuntimeBinding>*> from = {&source_binding};
  std::vector<const Valid<RuntimeBinding>*> to;
  for (const Valid<RuntimeBinding>& binding : target_bindings) to.push_back(&binding);

  Diagnostics diagnostics;
  const auto source_side = BoundSide::bind(BindingContext(source_placement, &snapshot), from, diagnostics);
  const auto target_side = BoundSide::bind(BindingContext(target_placement, &snapshot), to, diagnostics);
  const PlanSide plan_source(source_placement, digest(source_placement));
  const PlanSide plan_target(target_placement, digest(target_placement));
  PlanOptions options;
  options.snapshot_tokens = snapshot->tokens;
  const auto plan = make_plan(plan_source, plan_target, options, PlanLimits(), diagnostics);
  std::optional<LoweredPlan> lowered;
  if (plan && verify_plan(*plan, plan_source, plan_target, VerifyLimits(), diagnostics).complete && source_side &&
      target_side)
    lowered = lower(**plan, *source_side, *target_side, LowerOptions(), LowerLimits(), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.kept()) ADD_FAILURE() << diagnostic.to_line();
  return lowered.value();
}

GatherChoice choose_between(const LoweredPlan& lowered, const TransportLimits& limits) {
  EXPECT_EQ(lowered.pairs().size(), 1u);
  return choose_gather(lowered, lowered.pairs().front(), limits);
}

LoweredPlan contiguous(uint64_t row_count, uint64_t row_bytes) {
  const RowMemory memory{.strides = {.layer = 0, .row = row_bytes, .head = row_bytes, .dim = 1}};
  return lower_between(bytes_of(1, 1, row_bytes), row_count, memory, {memory});
}

LoweredPlan token_major_to_head_major() {
  const RowMemory source{.heads = Range(0, 4), .strides = {.layer = 4096, .row = 512, .head = 128, .dim = 1}};
  const RowMemory target{.heads = Range(0, 4), .strides = {.layer = 4096, .row = 128, .head = 1024, .dim = 1}};
  return lower_between(bytes_of(3, 4, 128), 8, source, {target});
}

LoweredPlan scattered_pages(uint64_t page_count) {
  RowMemory memory{.strides = {.layer = 0, .row = 100, .head = 100, .dim = 1}};
  for (uint64_t page = 0; page < page_count; ++page) memory.slots.push_back(2 * page);
  memory.page_tokens = 10;
  memory.page_stride_bytes = 1000;
  return lower_between(bytes_of(1, 1, 100), 10 * page_count, memory, {memory});
}

}  // namespace crossdock::testing
