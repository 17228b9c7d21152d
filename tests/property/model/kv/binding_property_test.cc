// Random bindings, right and spoiled, against a map from addresses to elements that is filled one item at a time.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "model/kv/partition.h"
#include "model/wire/documents.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"

namespace crossdock::testing {
namespace {

struct Case {
  Valid<PlacementManifest> placement;
  Valid<SnapshotDescriptor> snapshot;
  RuntimeBinding binding;
};

// One group of two layers, one part that owns a run of heads and perhaps a share of the tokens.
Case draw_case(Rng& rng) {
  CacheSchema schema{{LayerGroup{IntervalSet{Range(0, 2)}, LiveTokens::all(), {}}}};
  for (const char* name : {"key", "value"})
    schema.groups[0].components.push_back(
        Component{ComponentName(name), "float16", "plain", 2, 4, 1 + rng.below(3), 1});
  if (rng.chance(1, 3)) schema.groups[0].live = LiveTokens::window(1 + rng.below(12));
  PartitionRequest request;
  request.name = "drawn";
  request.resource = ResourceId("r");
  request.revision = RevisionId("1");
  request.layer_count = 2;
  request.tp = uint64_t{1} << rng.below(3);
  request.cp = 1 + rng.below(2);
  request.cp_block_tokens = 1 + rng.below(3);
  Diagnostics diagnostics;
  const Valid<CacheSchema> valid_schema = valid_or_die(schema);
  const Valid<PlacementManifest> placement = *partition(valid_schema, request, diagnostics);

  SnapshotDescriptor snapshot = *example_snapshot();
  snapshot.resource = ResourceId("r");
  snapshot.adapter = std::nullopt;
  snapshot.cache_schema_digest = digest(valid_schema);
  const uint64_t token_begin = rng.below(6);
  snapshot.tokens = Range(token_begin, token_begin + 1 + rng.below(18));
  const Valid<SnapshotDescriptor> valid_snapshot = valid_or_die(snapshot);

  RuntimeBinding binding;
  binding.operation = OperationId("op");
  binding.resource = ResourceId("r");
  binding.revision = RevisionId("1");
  const Part& part = placement->parts[rng.below(placement->parts.size())];
  binding.participant = part.participant;
  binding.instance = InstanceId("i");
  binding.placement_digest = digest(placement);
  binding.snapshot_digest = digest(valid_snapshot);
  binding.tokens = snapshot.tokens;
  binding.devices = {Device{DeviceId("d"), "host", 1 << 20}};

  // A paged pool: [slot][layer][row or head-major][K|V packed or apart].
  const Ownership& own = part.owns[0];
  const LayerGroup& group = placement->cache_schema.groups[0];
  const Range live = live_tokens(group, group.components[0], snapshot.tokens);
  const auto* cyclic = std::get_if<CyclicTokens>(&own.tokens);
  const uint64_t heads = own.heads.count();
  const uint64_t page_tokens = 1 + rng.below(5);
  const auto selected_within = [&](uint64_t begin, uint64_t end) {
    return cyclic ? cyclic->count_below(end) - cyclic->count_below(begin) : end - begin;
  };
  // The table often begins before the live tokens: at a page boundary, at the first token of the request, ...
  const uint64_t table_begin = live.begin() - rng.below(std::min<uint64_t>(live.begin(), 5) + 1);
  const uint64_t selected = selected_within(table_begin, live.end());
  if (selected_within(live.begin(), live.end()) == 0)
    return Case{placement, valid_snapshot, binding};  // this rank has no token of so short a snapshot
  const uint64_t page_count = (selected + page_tokens - 1) / page_tokens;
  PageTable table{PageTableId("t"), page_tokens, table_begin, {}};
  for (uint64_t page = 0; page < page_count + 2; ++page) table.slots.push_back(page);
  rng.shuffle(table.slots);
  table.slots.resize(page_count);
  binding.page_tables = {table};
  const bool head_major = rng.chance(1, 2);
  const bool packed = rng.chance(1, 2);
  uint64_t head_bytes[2];
  for (int i = 0; i < 2; ++i) head_bytes[i] = group.components[static_cast<size_t>(i)].head_bytes();
  const uint64_t padding = 2 * rng.below(2);
  const uint64_t both = head_bytes[0] + head_bytes[1] + padding;
  uint64_t offset = 0;
  for (int i = 0; i < 2; ++i) {
    View view;
    view.component = group.components[static_cast<size_t>(i)].name;
    view.layers = Range(0, 2);
    view.tokens = live;
    if (cyclic) view.cycle = *cyclic;
    view.heads = own.heads.hull();
    view.dims = Range(0, group.components[static_cast<size_t>(i)].head_dim);
    view.region = RegionId("pool");
    view.strides.dim = 2;
    const uint64_t cell = packed ? both : head_bytes[i] + padding;  // of one head in one row
    view.strides.head = head_major ? cell * page_tokens : cell;
    view.strides.row = head_major ? cell : cell * heads;
    const uint64_t block = cell * heads * page_tokens;  // of one layer in one page
    view.strides.layer = packed ? block : both * 2 * heads * page_tokens;
    view.offset_bytes = packed ? (i == 0 ? 0 : head_bytes[0]) : offset;
    view.pages = ViewPages{PageTableId("t"), packed ? 2 * block : 2 * view.strides.layer};
    offset += block;
    // One view, or two that share the tokens between them.
    const uint64_t cut = live.begin() + rng.below(live.size());
    if (selected_within(live.begin(), cut) > 0 && selected_within(cut, live.end()) > 0) {
      View first = view;
      first.tokens = Range(live.begin(), cut);
      view.tokens = Range(cut, live.end());
      binding.views.push_back(first);
    }
    binding.views.push_back(view);
  }
  binding.regions = {Region{RegionId("pool"), 1, 1 << 20, DeviceId("d"), {}, {}}};
  return Case{placement, valid_snapshot, binding};
}

void spoil(RuntimeBinding& binding, Rng& rng) {
  if (binding.views.empty()) return;
  View& view = binding.views[rng.below(binding.views.size())];
  switch (rng.below(7)) {
    case 0: view.offset_bytes += 2; break;
    case 1: view.strides.row += 2; break;
    case 2: view.strides.head -= 2; break;
    case 3: view.tokens = Range(view.tokens.begin(), view.tokens.end() - 1); break;
    case 4: view.strides.layer -= 2; break;
    case 5: binding.views.push_back(view); break;
    default: view.pages->page_stride_bytes -= 2; break;
  }
}

// Whether the views hold exactly the owned live elements, and no byte twice: element by element.
bool naive_is_right(const Case& drawn) {
  const PlacementManifest& placement = *drawn.placement;
  const RuntimeBinding& binding = drawn.binding;
  std::map<uint64_t, int> bytes;
  for (const Component& component : placement.cache_schema.groups[0].components)
    for (uint64_t layer = 0; layer < 2; ++layer)
      for (uint64_t token = 0; token < 30; ++token)
        for (uint64_t head = 0; head < 4; ++head)
          for (uint64_t dim = 0; dim < component.head_dim; ++dim) {
            const auto owners = naive_owners(placement, 0, layer, component.name.text(), head, token);
            const std::optional<uint64_t> window = testing::window_of(placement.cache_schema.groups[0]);
            const bool is_live = binding.tokens.contains(token) && (!window || token + *window >= binding.tokens.end());
            const bool required = is_live && std::count(owners.begin(), owners.end(), binding.participant.text()) == 1;
            int times = 0;
            for (const View& view : binding.views) {
              if (view.component != component.name) continue;
              const auto address = naive_address(view, binding.page_tables, component, layer, token, head, dim);
              if (!address) continue;
              ++times;
              for (uint64_t byte = 0; byte < component.item_bytes; ++byte)
                if (++bytes[*address + byte] > 1) return false;
            }
            if (times != (required ? 1 : 0)) return false;
          }
  return true;
}

RC_GTEST_PROP(Binding, IsRightExactlyWhenEachOwnedElementHasItsOwnBytes, (uint64_t seed)) {
  Rng rng(seed);
  Case drawn = draw_case(rng);
  const uint64_t spoil_count = rng.below(2);
  for (uint64_t i = 0; i < spoil_count; ++i) spoil(drawn.binding, rng);
  Diagnostics diagnostics;
  const auto binding = Valid<RuntimeBinding>::make(drawn.binding, diagnostics);
  if (!binding) RC_DISCARD("a view became empty");
  check_binding(*binding, drawn.placement, drawn.snapshot, diagnostics);
  RC_CLASSIFY(diagnostics.empty(), "right");
  if (diagnostics.empty()) RC_ASSERT(naive_is_right(drawn));
  // Strides that are not nested are refused although their bytes may happen to differ; everything else is exact.
  if (!diagnostics.empty() && !diagnostics.has(Rule::kViewStrides)) RC_ASSERT(!naive_is_right(drawn));
  if (spoil_count == 0) RC_ASSERT(diagnostics.empty());
}

RC_GTEST_PROP(BindingWire, ReadingGivesBackWhatWasWritten, (uint64_t seed)) {
  Rng rng(seed);
  const Valid<RuntimeBinding> binding = valid_or_die(draw_case(rng).binding);
  Diagnostics diagnostics;
  const auto again = read_document<RuntimeBinding>(to_json(binding), JsonLimits(), diagnostics);
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == binding);
}

}  // namespace
}  // namespace crossdock::testing
