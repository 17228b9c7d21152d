// Makers of small KV cache documents, so that a test states only what its case is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/kv/placement.h"
#include "model/kv/store.h"
#include "model/valid.h"

namespace crossdock::testing {

struct ItemType {
  const char* dtype;
  uint64_t bytes;
};

// Rows of bfloat16 items.
Component rows(const std::string& name, uint64_t head_count, uint64_t head_dim = 8, uint64_t tokens_per_row = 1);
// Rows of other items, one row for each token.
Component rows(const std::string& name, uint64_t head_count, uint64_t head_dim, ItemType items);
// A state of float32 items: one value for the whole sequence.
Component state(const std::string& name, uint64_t head_count, uint64_t head_dim = 8);

// The last `window_tokens`, or all; and back, for rules of these two kinds.
LiveTokens life_of(std::optional<uint64_t> window_tokens);
std::optional<uint64_t> window_of(const LiveTokens& live);
std::optional<uint64_t> window_of(const LayerGroup& group);

LayerGroup group(IntervalSet layers, std::vector<Component> components,
                 std::optional<uint64_t> window_tokens = std::nullopt);
LayerGroup group(Range layers, std::vector<Component> components, std::optional<uint64_t> window_tokens = std::nullopt);
// Layers [0,layer_count) of rows "key" and "value". Without `value_dim` a value is as long as a key.
LayerGroup attention_group(uint64_t layer_count, uint64_t head_count, uint64_t head_dim = 8,
                           std::optional<uint64_t> value_dim = std::nullopt);

Valid<CacheSchema> schema_of(std::vector<LayerGroup> groups);
Valid<CacheSchema> attention(uint64_t layer_count, uint64_t head_count, uint64_t head_dim = 8,
                             std::optional<uint64_t> value_dim = std::nullopt);

Ownership owns(IntervalSet layers, const std::vector<std::string>& components, IntervalSet heads,
               TokenOwnership tokens = AllTokens());
// Tensor-parallel participants "a", "b", ... (26 at most), each with what `owns` lists for it. Not checked.
PlacementManifest placement_of(std::vector<LayerGroup> groups, const std::vector<std::vector<Ownership>>& owns);

StorePart part(const std::string& key, IntervalSet layers, const std::vector<std::string>& components,
               IntervalSet heads);
StorePart part(const std::string& key, Range layers, const std::vector<std::string>& components, Range heads);
Valid<StoreLayout> layout_with(const std::string& name, const Valid<CacheSchema>& schema, uint64_t page_tokens,
                               std::vector<StorePart> parts, ObjectOrder order = ObjectOrder::kPlhd);

}  // namespace crossdock::testing
