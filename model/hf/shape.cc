#include "model/hf/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace crossdock {
namespace {

struct NamedLayerKind {
  std::string_view name;
  LayerKind kind;
};

// Names of the transformers library.
constexpr std::array kLayerKinds = {NamedLayerKind{"full_attention", LayerKind::kFull},
                                    NamedLayerKind{"sliding_attention", LayerKind::kSliding},
                                    NamedLayerKind{"linear_attention", LayerKind::kLinear}};

std::string known_kind_names(std::initializer_list<LayerKind> known) {
  std::string names;
  for (const NamedLayerKind& named : kLayerKinds)
    if (std::find(known.begin(), known.end(), named.kind) != known.end())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", named.name);
  return names;
}

std::optional<LayerKind> read_layer_kind(const ConfigFields& text, const JsonCursor& item,
                                         std::initializer_list<LayerKind> known) {
  if (!item.require(JsonKind::kString)) return std::nullopt;
  const std::string_view name = item.value.text();
  for (const NamedLayerKind& named : kLayerKinds)
    if (named.name == name && std::find(known.begin(), known.end(), named.kind) != known.end()) return named.kind;
  item.refuse(Rule::kConfigField, fmt::format("'{}' is not a layer type of {}; known: {}", shown_text(name),
                                              text.architecture(), known_kind_names(known)));
  return std::nullopt;
}

Component plain(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim) {
  Component component;
  component.name = ComponentName(std::string(name));
  component.dtype = type.dtype;
  component.encoding = "plain";
  component.item_bytes = type.item_bytes;
  component.head_count = head_count;
  component.head_dim = head_dim;
  return component;
}

}  // namespace

std::optional<uint64_t> read_layer_count(const ConfigFields& text) {
  const std::optional<uint64_t> layer_count = text.count("num_hidden_layers");
  if (!layer_count || *layer_count <= kHfLayersMax) return layer_count;
  text.refuse("num_hidden_layers", fmt::format("{} layers, more than the limit of {}", *layer_count, kHfLayersMax));
  return std::nullopt;
}

std::vector<LayerKind> read_layer_types(const ConfigFields& text, uint64_t layer_count,
                                        std::initializer_list<LayerKind> known) {
  std::vector<LayerKind> kinds;
  text.visit("layer_types", [&](const JsonCursor& types) {
    if (!types.require(JsonKind::kArray)) return;
    if (types.value.size() != layer_count) {
      types.refuse(Rule::kConfigField,
                   fmt::format("has {} entries for num_hidden_layers {}", types.value.size(), layer_count));
      return;
    }
    const uint64_t diagnostics_before = types.diagnostics.total();
    types.for_each([&](const JsonCursor& item) {
      if (const std::optional<LayerKind> kind = read_layer_kind(text, item, known)) kinds.push_back(*kind);
    });
    // All or none, so that kinds[i] is layer i.
    if (types.diagnostics.total() != diagnostics_before) kinds.clear();
  });
  return kinds;
}

std::vector<LayerKind> periodic_layers(uint64_t layer_count, uint64_t period, LayerKind other) {
  std::vector<LayerKind> kinds;
  kinds.reserve(layer_count);
  for (uint64_t layer = 0; layer < layer_count; ++layer)
    // Layers count from 1 in this rule: with a period of 4 layers 3, 7, ... are full.
    kinds.push_back((layer + 1) % period == 0 ? LayerKind::kFull : other);
  return kinds;
}

std::optional<ItemType> read_item_type(const ConfigFields& fields, std::string_view name) {
  const std::optional<std::string> dtype = fields.find_text(name);
  if (!dtype) return std::nullopt;
  if (const std::optional<uint64_t> item_bytes = known_item_bytes(*dtype)) return ItemType{*dtype, *item_bytes};
  fields.refuse(name, fmt::format("'{}' is not a dtype with a known item size", shown_text(*dtype)));
  return std::nullopt;
}

std::optional<ItemType> read_model_type(const ConfigInput& input, std::string_view fallback) {
  // The language model's own fields first: in a config of several models the root may speak of another one.
  for (const ConfigFields* fields : {&input.text, &input.root}) {
    const std::optional<std::string> older = fields->find_text("torch_dtype");
    const std::optional<std::string> newer = fields->find_text("dtype");
    // Neither is preferred: a wrong item size would only show up as damaged content.
    if (older && newer && *older != *newer) {
      fields->refuse("dtype", fmt::format("'{}' contradicts torch_dtype '{}'", shown_text(*newer), shown_text(*older)));
      return std::nullopt;
    }
    if (fields->has("torch_dtype")) return read_item_type(*fields, "torch_dtype");
    if (fields->has("dtype")) return read_item_type(*fields, "dtype");
  }
  const std::string dtype(fallback);
  if (const std::optional<uint64_t> item_bytes = known_item_bytes(dtype)) return ItemType{dtype, *item_bytes};
  input.root.refuse_missing("torch_dtype");
  return std::nullopt;
}

std::optional<ItemType> read_kv_type(const ConfigInput& input, std::string_view fallback) {
  if (!input.options.kv_dtype) return read_model_type(input, fallback);
  const std::string& dtype = *input.options.kv_dtype;
  if (const std::optional<uint64_t> item_bytes = known_item_bytes(dtype)) return ItemType{dtype, *item_bytes};
  refuse_option(input, "kv_dtype", fmt::format("'{}' is not a dtype with a known item size", shown_text(dtype)));
  return std::nullopt;
}

Component token_rows(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim) {
  return plain(name, type, head_count, head_dim);
}

Component state_rows(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim) {
  Component component = plain(name, type, head_count, head_dim);
  component.tokens_per_row = std::nullopt;
  return component;
}

void refuse_option(const ConfigInput& input, std::string_view option, std::string message) {
  input.root.cursor().diagnostics.add(Rule::kConfigField, fmt::format("option {}", option), std::move(message));
}

}  // namespace crossdock
