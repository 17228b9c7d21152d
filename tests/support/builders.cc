#include "tests/support/builders.h"

#include <utility>

#include "base/check.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

std::vector<ComponentName> names_of(const std::vector<std::string>& components) {
  std::vector<ComponentName> names;
  for (const std::string& name : components) names.push_back(ComponentName(name));
  return names;
}

}  // namespace

Component rows(const std::string& name, uint64_t head_count, uint64_t head_dim, uint64_t tokens_per_row) {
  return Component{ComponentName(name), "bfloat16", "plain", 2, head_count, head_dim, tokens_per_row};
}

Component rows(const std::string& name, uint64_t head_count, uint64_t head_dim, ItemType items) {
  return Component{ComponentName(name), items.dtype, "plain", items.bytes, head_count, head_dim, 1};
}

Component state(const std::string& name, uint64_t head_count, uint64_t head_dim) {
  return Component{ComponentName(name), "float32", "plain", 4, head_count, head_dim, std::nullopt};
}

LiveTokens life_of(std::optional<uint64_t> window_tokens) {
  return window_tokens ? LiveTokens::window(*window_tokens) : LiveTokens::all();
}

std::optional<uint64_t> window_of(const LiveTokens& live) {
  return live.kind == LiveTokens::Kind::kWindow ? std::optional(live.tokens) : std::nullopt;
}

std::optional<uint64_t> window_of(const LayerGroup& group) { return window_of(group.live); }

LayerGroup group(IntervalSet layers, std::vector<Component> components, std::optional<uint64_t> window_tokens) {
  return LayerGroup{std::move(layers), life_of(window_tokens), std::move(components)};
}

LayerGroup group(Range layers, std::vector<Component> components, std::optional<uint64_t> window_tokens) {
  return group(IntervalSet{layers}, std::move(components), window_tokens);
}

LayerGroup attention_group(uint64_t layer_count, uint64_t head_count, uint64_t head_dim,
                           std::optional<uint64_t> value_dim) {
  return group(Range(0, layer_count),
               {rows("key", head_count, head_dim), rows("value", head_count, value_dim.value_or(head_dim))});
}

Valid<CacheSchema> schema_of(std::vector<LayerGroup> groups) { return valid_or_die(CacheSchema{std::move(groups)}); }

Valid<CacheSchema> attention(uint64_t layer_count, uint64_t head_count, uint64_t head_dim,
                             std::optional<uint64_t> value_dim) {
  return schema_of({attention_group(layer_count, head_count, head_dim, value_dim)});
}

Ownership owns(IntervalSet layers, const std::vector<std::string>& components, IntervalSet heads,
               TokenOwnership tokens) {
  return Ownership{std::move(layers), names_of(components), std::move(heads), std::move(tokens), {}};
}

PlacementManifest placement_of(std::vector<LayerGroup> groups, const std::vector<std::vector<Ownership>>& owns) {
  CHECK(owns.size() <= 26);
  PlacementManifest placement;
  placement.name = "p";
  placement.resource = ResourceId("r");
  placement.revision = RevisionId("1");
  placement.cache_schema.groups = std::move(groups);
  placement.topology.sizes = ParallelAxes{.dp = 1, .pp = 1, .tp = owns.size(), .cp = 1, .ep = 1};
  for (size_t rank = 0; rank < owns.size(); ++rank) {
    const ParticipantId id(std::string(1, static_cast<char>('a' + rank)));
    placement.topology.participants.push_back(
        Participant{id, ParallelAxes{.dp = 0, .pp = 0, .tp = rank, .cp = 0, .ep = 0}});
    placement.parts.push_back(Part{id, owns[rank]});
  }
  return placement;
}

StorePart part(const std::string& key, IntervalSet layers, const std::vector<std::string>& components,
               IntervalSet heads) {
  return StorePart{ObjectKey(key), std::move(layers), names_of(components), std::move(heads)};
}

StorePart part(const std::string& key, Range layers, const std::vector<std::string>& components, Range heads) {
  return part(key, IntervalSet{layers}, components, IntervalSet{heads});
}

Valid<StoreLayout> layout_with(const std::string& name, const Valid<CacheSchema>& schema, uint64_t page_tokens,
                               std::vector<StorePart> parts, ObjectOrder order) {
  return valid_or_die(StoreLayout{name, *schema, order, page_tokens, std::move(parts)});
}

}  // namespace crossdock::testing
