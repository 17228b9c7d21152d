#include "model/hf/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/hf/families.h"

namespace crossdock {
namespace {

struct Architecture {
  std::string_view name;
  std::optional<ModelShape> (*read)(const ConfigInput&);
  std::string_view draft_field = {};  // how many draft layers the checkpoint has; empty: such models have none
  std::string_view text_field = {};   // where the language model's fields stand; empty: at the root
};

constexpr std::string_view kNextN = "num_nextn_predict_layers";
constexpr std::string_view kMtp = "mtp_num_hidden_layers";
constexpr std::string_view kText = "text_config";

// Sorted by name. Kimi-K2 names DeepseekV3ForCausalLM; Qwen3.5 keeps what Qwen3-Next keeps.
constexpr std::array kArchitectures = {
    Architecture{"DeepseekV2ForCausalLM", read_deepseek},
    Architecture{"DeepseekV32ForCausalLM", read_deepseek_sparse, kNextN},
    Architecture{"DeepseekV3ForCausalLM", read_deepseek, kNextN},
    Architecture{"Gemma2ForCausalLM", read_gemma2},
    Architecture{"Gemma3ForCausalLM", read_gemma3},
    Architecture{"Gemma3ForConditionalGeneration", read_gemma3, {}, kText},
    Architecture{"GptOssForCausalLM", read_gpt_oss},
    Architecture{"KimiLinearForCausalLM", read_kimi_linear, kNextN},
    Architecture{"LlamaForCausalLM", read_llama},
    Architecture{"Mistral3ForConditionalGeneration", read_mistral, {}, kText},
    Architecture{"MistralForCausalLM", read_mistral},
    Architecture{"MixtralForCausalLM", read_mixtral},
    Architecture{"Qwen2ForCausalLM", read_qwen2},
    Architecture{"Qwen2MoeForCausalLM", read_qwen2},
    Architecture{"Qwen3ForCausalLM", read_qwen3},
    Architecture{"Qwen3MoeForCausalLM", read_qwen3},
    Architecture{"Qwen3NextForCausalLM", read_qwen3_next, kNextN},
    Architecture{"Qwen3_5ForConditionalGeneration", read_qwen3_next, kMtp, kText},
    Architecture{"Qwen3_5MoeForConditionalGeneration", read_qwen3_next, kMtp, kText}};
static_assert(std::is_sorted(kArchitectures.begin(), kArchitectures.end(),
                             [](const Architecture& a, const Architecture& b) { return a.name < b.name; }));

void refuse_architecture(const ConfigFields& root, const std::string& what) {
  std::string known;
  for (const std::string_view name : known_hf_architectures())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  root.refuse("architectures", Rule::kConfigArchitecture,
              fmt::format("{}; known: {}; --schema gives a cache schema for any other", what, known));
}

const Architecture* find_architecture(std::string_view name) {
  const auto found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                  [name](const Architecture& architecture) { return architecture.name == name; });
  return found == kArchitectures.end() ? nullptr : &*found;
}

// The first name in the list is the class that the checkpoint was saved from.
const Architecture* read_architecture(const ConfigFields& root) {
  const Architecture* architecture = nullptr;
  if (!root.has("architectures")) refuse_architecture(root, "is missing");
  root.visit("architectures", [&](const JsonCursor& list) {
    if (!list.require(JsonKind::kArray)) return;
    const std::optional<JsonValue> first = list.value.first();
    if (!first) return refuse_architecture(root, "is empty");
    const JsonPath path = list.path.element(0);
    if (!JsonCursor{*first, path, list.diagnostics}.require(JsonKind::kString)) return;
    architecture = find_architecture(first->text());
    if (architecture == nullptr) refuse_architecture(root, fmt::format("'{}' is not known", shown_text(first->text())));
  });
  return architecture;
}

// Empty when the option asks for draft layers that the model does not have, or has too many of.
std::optional<uint64_t> read_draft_layer_count(const ConfigInput& input, const Architecture& architecture,
                                               uint64_t layer_count) {
  if (!input.options.draft_layers) return 0;
  if (architecture.draft_field.empty()) {
    refuse_option(input, "draft_layers", fmt::format("draft layers of {} are not known", architecture.name));
    return std::nullopt;
  }
  const uint64_t draft_layer_count = input.text.find_number(architecture.draft_field).value_or(0);
  if (draft_layer_count == 0)
    refuse_option(input, "draft_layers", fmt::format("the config has none (field {})", architecture.draft_field));
  // Cannot wrap: read_layer_count() has bounded layer_count.
  else if (draft_layer_count > kHfLayersMax - layer_count)
    input.text.refuse(architecture.draft_field, fmt::format("{} and {} hidden layers are more than the limit of {}",
                                                            draft_layer_count, layer_count, kHfLayersMax));
  if (input.root.failed()) return std::nullopt;
  return draft_layer_count;
}

IntervalSet layers_of_kind(const std::vector<LayerKind>& layers, LayerKind kind) {
  std::vector<Range> ranges;
  for (uint64_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer] != kind) continue;
    if (!ranges.empty() && ranges.back().end() == layer)
      ranges.back() = Range(ranges.back().begin(), layer + 1);
    else
      ranges.emplace_back(layer, layer + 1);
  }
  return IntervalSet::from_ranges(std::move(ranges));
}

// Layers of one kind are one group, wherever they lie in the model.
CacheSchema to_schema(const ModelShape& shape) {
  CacheSchema schema;
  for (const LayerKind kind : {LayerKind::kFull, LayerKind::kSliding, LayerKind::kLinear}) {
    LayerGroup group;
    group.layers = layers_of_kind(shape.layers, kind);
    if (group.layers.empty()) continue;
    if (kind == LayerKind::kSliding) group.window_tokens = shape.window_tokens;
    group.components = kind == LayerKind::kLinear ? shape.states : shape.attention;
    schema.groups.push_back(std::move(group));
  }
  return schema;
}

std::optional<HfModel> read_model(const ConfigInput& input, const Architecture& architecture) {
  std::optional<ModelShape> shape = architecture.read(input);
  if (!shape || input.root.failed()) return std::nullopt;
  const uint64_t layer_count = shape->layers.size();
  const std::optional<uint64_t> draft_layer_count = read_draft_layer_count(input, architecture, layer_count);
  if (!draft_layer_count) return std::nullopt;
  // Draft layers attend as full layers do, and keep what these keep.
  shape->layers.insert(shape->layers.end(), *draft_layer_count, LayerKind::kFull);
  Diagnostics& diagnostics = input.root.cursor().diagnostics;
  const std::string document = diagnostics.document();
  std::optional<Valid<CacheSchema>> schema = Valid<CacheSchema>::make(to_schema(*shape), diagnostics);
  diagnostics.set_document(document);  // validation names the schema, which no user wrote
  if (!schema) return std::nullopt;
  return HfModel{std::string(architecture.name), layer_count, *draft_layer_count, std::move(*schema)};
}

}  // namespace

std::optional<HfModel> read_hf_config(std::string_view json, const HfOptions& options, const JsonLimits& limits,
                                      Diagnostics& diagnostics) {
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, diagnostics);
  if (!tree) return std::nullopt;
  diagnostics.set_document("model config");
  const JsonPath root_path;
  const JsonCursor root_cursor = {tree->root(), root_path, diagnostics};
  if (!root_cursor.require(JsonKind::kObject)) return std::nullopt;
  // The architecture decides what every other field means, so it is read before them.
  const Architecture* architecture = read_architecture(ConfigFields(root_cursor, {}));
  if (architecture == nullptr) return std::nullopt;
  diagnostics.set_document(fmt::format("model config '{}'", architecture->name));
  const ConfigFields root(root_cursor, architecture->name);
  if (architecture->text_field.empty()) return read_model({root, root, options}, *architecture);
  if (!root.has(architecture->text_field)) root.refuse_missing(architecture->text_field);
  std::optional<HfModel> model;
  root.visit(architecture->text_field, [&](const JsonCursor& text_cursor) {
    if (!text_cursor.require(JsonKind::kObject)) return;
    const ConfigFields text(text_cursor, architecture->name);
    model = read_model({root, text, options}, *architecture);
  });
  return model;
}

std::vector<std::string_view> known_hf_architectures() {
  std::vector<std::string_view> names;
  names.reserve(kArchitectures.size());
  for (const Architecture& architecture : kArchitectures) names.push_back(architecture.name);
  return names;
}

}  // namespace crossdock
