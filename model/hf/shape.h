// What a family of architectures makes of a config, before it becomes a cache schema, and the pieces to make it from.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hf/config.h"
#include "model/hf/fields.h"
#include "model/kv/cache_schema.h"

namespace crossdock {

enum class LayerKind : uint8_t { kFull, kSliding, kLinear };

struct ModelShape {
  std::vector<LayerKind> layers;          // hidden layers; a draft layer is kFull
  std::optional<uint64_t> window_tokens;  // of kSliding layers
  std::vector<Component> attention;       // of kFull and kSliding layers
  std::vector<Component> states;          // of kLinear layers
};

struct ConfigInput {
  const ConfigFields& root;
  const ConfigFields& text;  // the language model's fields; the root itself unless the model is more than that
  const HfOptions& options;
};

// A dtype and its item size.
struct ItemType {
  std::string dtype;
  uint64_t item_bytes = 0;
};

// num_hidden_layers, within kHfLayersMax.
std::optional<uint64_t> read_layer_count(const ConfigFields& text);
// layer_types, one for each layer and none but `known`; empty when refused. The field has to be there.
std::vector<LayerKind> read_layer_types(const ConfigFields& text, uint64_t layer_count,
                                        std::initializer_list<LayerKind> known);
// Every `period`-th layer is kFull, the others are `other`. `period` must not be zero.
std::vector<LayerKind> periodic_layers(uint64_t layer_count, uint64_t period, LayerKind other);

// The type that `fields` names in `name`; it must be one with a known item size.
std::optional<ItemType> read_item_type(const ConfigFields& fields, std::string_view name);
// The model's own: torch_dtype or, as newer files have it, dtype; beside the language model's fields or at the root.
// `fallback` stands in for a model whose config names none.
std::optional<ItemType> read_model_type(const ConfigInput& input, std::string_view fallback = {});
// What attention rows are stored in: the option kv_dtype or the model's own type.
std::optional<ItemType> read_kv_type(const ConfigInput& input, std::string_view fallback = {});

// Plain components: one row per token, and one row in all.
Component token_rows(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim);
Component state_rows(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim);

// Rule "config-field" for what an option asks and this model cannot give.
void refuse_option(const ConfigInput& input, std::string_view option, std::string message);

}  // namespace crossdock
