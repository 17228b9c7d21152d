#include "model/hf/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/hf/families.h"

namespace crossdock {
namespace {

// Classes with constants of their own.
constexpr HeadDefaults kMistral = {.kv_heads = 8, .head_dim_by_division = true};  // MistralConfig, MixtralConfig
constexpr HeadDefaults kMinistral3 = {.query_heads = 32, .kv_heads = 8, .head_dim = 128};  // Ministral3Config
constexpr HeadDefaults kSmolLm3 = {.query_heads = 16, .kv_heads = 4, .head_dim_by_division = true};
constexpr HeadDefaults kSeedOss = {.head_dim = 128};

constexpr uint64_t kMistralWindow = 4096;  // MistralConfig, when the field is absent; null means no window

std::optional<uint64_t> read_head_dim(const ConfigFields& text, const HeadDefaults& defaults, uint64_t query_heads) {
  if (text.has("head_dim") || !defaults.head_dim_by_division) return text.count("head_dim", defaults.head_dim);
  const std::optional<uint64_t> hidden_size = text.count("hidden_size");
  if (!hidden_size) return std::nullopt;
  if (*hidden_size % query_heads == 0) return *hidden_size / query_heads;
  text.refuse("head_dim", fmt::format("is missing, and hidden_size {} is not a multiple of num_attention_heads {}",
                                      *hidden_size, query_heads));
  return std::nullopt;
}

// Every layer in the window. A layer_types that says otherwise contradicts it: engines and their versions differ in
// which of the two counts.
std::optional<ModelShape> all_slide(const ConfigInput& input, const HeadDefaults& defaults, uint64_t window) {
  const std::optional<LiveTokens> live = pool_window(input, "sliding_window", window, false);
  if (!live) return std::nullopt;
  std::optional<ModelShape> shape = uniform_shape(input, defaults, *live);
  if (!shape || !input.text.has("layer_types")) return shape;
  const std::array words = {LayerWord{"sliding_attention", 0}, LayerWord{"full_attention", 1}};
  const std::vector<uint32_t> stated = read_layer_list(input.text, "layer_types", shape->layers.size(), words);
  if (std::find(stated.begin(), stated.end(), 1) != stated.end())
    input.text.refuse("layer_types", fmt::format("has full layers, and sliding_window {} is of all of them", window));
  if (input.text.failed()) return std::nullopt;
  return shape;
}

// All layers slide when sliding_window is there (vLLM: the model's window, which every layer without one of its own
// takes; model_executor/layers/attention/attention.py).
std::optional<ModelShape> read_one_window(const ConfigInput& input, const HeadDefaults& defaults,
                                          std::optional<uint64_t> window_when_absent) {
  const std::optional<uint64_t> window = read_window(input.text, window_when_absent);
  return window ? all_slide(input, defaults, *window) : uniform_shape(input, defaults);
}

}  // namespace

std::optional<uint64_t> read_window(const ConfigFields& text, std::optional<uint64_t> when_absent) {
  return text.is_absent("sliding_window") ? when_absent : text.find_number("sliding_window");
}

std::optional<KvHeads> read_kv_heads(const ConfigFields& text, const HeadDefaults& defaults) {
  const std::optional<uint64_t> query_heads = text.count("num_attention_heads", defaults.query_heads);
  if (!query_heads) return std::nullopt;
  const bool as_query = defaults.kv_heads_are_query_heads || text.is_null("num_key_value_heads");
  const std::optional<uint64_t> kv_heads =
      text.count("num_key_value_heads", as_query ? query_heads : defaults.kv_heads);
  const std::optional<uint64_t> head_dim = read_head_dim(text, defaults, *query_heads);
  if (!kv_heads || !head_dim) return std::nullopt;
  if (*query_heads % *kv_heads == 0) return KvHeads{*kv_heads, *head_dim, *head_dim};
  text.refuse("num_key_value_heads", fmt::format("{} does not divide num_attention_heads {}", *kv_heads, *query_heads));
  return std::nullopt;
}

LayerClass key_value_class(const ConfigInput& input, const KvType& type, const KvHeads& heads, const LiveTokens& live) {
  LayerClass made;
  for (const auto& [name, dim] : {std::pair("key", heads.key_dim), std::pair("value", heads.value_dim)}) {
    std::vector<Component> rows = stored_rows(input, "head_dim", name, type, heads.count, dim);
    if (rows.empty()) return {};
    for (Component& component : rows) made.push_back({std::move(component), live});
  }
  if (!input.options.kv_scales) return made;
  if (!type.is_fp8()) {
    refuse_option(
        input, "kv_scales",
        fmt::format("needs an fp8 cache, not {}", input.options.kv_dtype ? *input.options.kv_dtype : type.item.dtype));
    return {};
  }
  const ItemType scale = {"float32", 4};
  made.push_back({token_rows("key_scale", scale, heads.count, 1), live});
  made.push_back({token_rows("value_scale", scale, heads.count, 1), live});
  return made;
}

std::optional<ModelShape> uniform_shape(const ConfigInput& input, const HeadDefaults& defaults, const LiveTokens& live,
                                        std::string_view dtype_fallback) {
  const std::optional<uint64_t> layer_count = read_layer_count(input.text);
  const std::optional<KvHeads> heads = read_kv_heads(input.text, defaults);
  const std::optional<KvType> type = read_kv_type(input, {.fallback = dtype_fallback});
  if (!layer_count || !heads || !type) return std::nullopt;
  ModelShape shape;
  const uint32_t attention = shape.add(key_value_class(input, *type, *heads, live));
  shape.layers.assign(*layer_count, attention);
  shape.draft_step = {attention};
  return shape;
}

std::optional<LiveTokens> pool_window(const ConfigInput& input, std::string_view name, uint64_t window,
                                      bool sglang_frees) {
  if (window == 0) {
    input.text.refuse(name, "0: vLLM takes it for no window, SGLang for one of no token; null says that there is none");
    return std::nullopt;
  }
  if (!input.is_vllm() && !sglang_frees) return LiveTokens::all();
  return sliding(input.text, name, window);
}

std::optional<ModelShape> read_llama(const ConfigInput& input) { return uniform_shape(input, kMultiHead); }

std::optional<ModelShape> read_mistral(const ConfigInput& input) {
  return read_one_window(input, kMistral, kMistralWindow);
}

std::optional<ModelShape> read_ministral3(const ConfigInput& input) {
  return read_one_window(input, kMinistral3, std::nullopt);
}

std::optional<ModelShape> read_mixtral(const ConfigInput& input) {
  return read_one_window(input, kMistral, std::nullopt);
}

// Phi3Config: multi-head unless stated. The published windows are as long as the context or shorter.
std::optional<ModelShape> read_phi3(const ConfigInput& input) {
  return read_one_window(input, kMultiHead, std::nullopt);
}

// A window is there only when use_sliding_window says so; the field sliding_window alone means nothing. vLLM serves a
// window in all layers (max_window_layers 0) and refuses one in some (models/qwen2.py).
std::optional<ModelShape> read_qwen2(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const HeadDefaults& defaults = text.architecture().starts_with("Qwen2") ? kDividedHeads : kStatedHeads;
  for (const std::string_view name : {"sliding_window", "max_window_layers"}) text.has(name);
  if (!text.find_flag("use_sliding_window").value_or(false)) {
    return uniform_shape(input, defaults);
  }
  const std::optional<uint64_t> window = text.count("sliding_window");
  const std::optional<uint64_t> full_below = text.find_number("max_window_layers");
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  if (!full_below) text.refuse_missing("max_window_layers");
  if (!window || !full_below || !layer_count) return std::nullopt;
  if (*full_below >= *layer_count) return uniform_shape(input, defaults);
  if (*full_below > 0) {
    text.refuse("max_window_layers", fmt::format("{} of {} layers have no window: vLLM does not serve such a model",
                                                 *full_below, *layer_count));
    return std::nullopt;
  }
  return all_slide(input, defaults, *window);
}

// For GLM-4.5 to 4.7 engines divide without head_dim and drop the rest, which fits no published model.
std::optional<ModelShape> read_stated_heads(const ConfigInput& input) { return uniform_shape(input, kStatedHeads); }

std::optional<ModelShape> read_divided_heads(const ConfigInput& input) { return uniform_shape(input, kDividedHeads); }

// Ernie4_5Config: 128, and not the quotient, when the field is absent; null means the quotient.
std::optional<ModelShape> read_ernie4_5(const ConfigInput& input) {
  HeadDefaults defaults = {.head_dim = 128};
  if (input.text.is_null("head_dim")) defaults = kDividedHeads;
  return uniform_shape(input, defaults);
}

// BailingMoeV2Config has a window of 81,920, which counts when use_sliding_window is true; no publisher sets it.
std::optional<ModelShape> read_bailing(const ConfigInput& input) {
  for (const std::string_view name : {"sliding_window", "max_window_layers"}) input.text.has(name);
  if (input.text.find_flag("use_sliding_window").value_or(false)) {
    input.text.refuse("use_sliding_window", "true: no engine serves this family with a window");
    return std::nullopt;
  }
  return uniform_shape(input, kDividedHeads);
}

std::optional<ModelShape> read_seed_oss(const ConfigInput& input) { return uniform_shape(input, kSeedOss); }

// Its publishers' configs name no dtype: 16 bits, as either engine serves a checkpoint whose dtype it takes for 32-bit.
std::optional<ModelShape> read_minimax_m2(const ConfigInput& input) {
  std::optional<ModelShape> shape = uniform_shape(input, kStatedHeads, {}, input.is_vllm() ? "bfloat16" : "float16");
  // num_mtp_modules is there, and neither engine serves those layers (vllm/models/minimax_m2.py skips their weights).
  if (shape) shape->draft_step.clear();
  return shape;
}

// SmolLM3Config: the layers without rotary positions slide, when use_sliding_window says so. No publisher does.
std::optional<ModelShape> read_smollm3(const ConfigInput& input) {
  if (input.text.find_flag("use_sliding_window").value_or(false)) {
    input.text.refuse("use_sliding_window", "true: which of SmolLM3's layers then slide differs between engines");
    return std::nullopt;
  }
  return uniform_shape(input, kSmolLm3);
}

// Dots1Config has a window of 4,096 when the field is absent, which vLLM applies to all layers and SGLang to none.
std::optional<ModelShape> read_dots1(const ConfigInput& input) {
  if (!input.text.is_null("sliding_window")) {
    input.text.refuse("sliding_window",
                      "has to be null: engines differ in what they make of the class's default window");
    return std::nullopt;
  }
  return uniform_shape(input, kMultiHead);
}

// HunYuanConfig: head_dim or attention_head_dim. Layers that take another's keys and values (use_cla) differ by engine.
std::optional<ModelShape> read_hunyuan(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  if (text.find_flag("use_cla").value_or(false) && text.find_number("cla_share_factor").value_or(1) > 1) {
    text.refuse("use_cla", "layers that share keys and values are not served alike by the engines");
    return std::nullopt;
  }
  const std::optional<uint64_t> stated = text.find_count("head_dim");
  const std::optional<uint64_t> attention = text.find_count("attention_head_dim");
  if (stated && attention && *stated != *attention)
    text.refuse("attention_head_dim", fmt::format("{} contradicts head_dim {}", *attention, *stated));
  HeadDefaults defaults = kMultiHead;
  if (attention) defaults = {.head_dim = attention, .kv_heads_are_query_heads = true};
  return uniform_shape(input, defaults);
}

// Llama-Nemotron: block_configs says for each layer whether it attends, and with how many query heads for each key head
// (vllm/models/nemotron_nas.py).
std::optional<ModelShape> read_nemotron_nas(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<uint64_t> query_heads = text.count("num_attention_heads");
  const std::optional<uint64_t> head_dim = query_heads ? read_head_dim(text, kMultiHead, *query_heads) : std::nullopt;
  const std::optional<KvType> type = read_kv_type(input);
  text.has("num_key_value_heads");  // null, or of no layer
  if (!layer_count || !head_dim || !type) return std::nullopt;
  ModelShape shape;
  const uint32_t nothing = shape.add({});
  std::vector<std::pair<uint64_t, uint32_t>> known;  // heads -> class
  if (!text.has("block_configs")) text.refuse_missing("block_configs");
  text.visit("block_configs", [&](const JsonCursor& blocks) {
    if (!blocks.require(JsonKind::kArray)) return;
    if (blocks.value.size() != *layer_count)
      return blocks.refuse(Rule::kConfigField,
                           fmt::format("has {} entries for num_hidden_layers {}", blocks.value.size(), *layer_count));
    blocks.for_each([&](const JsonCursor& block) {
      if (!block.require(JsonKind::kObject)) return;
      AskedFields asked;
      const ConfigFields fields(block, text.architecture(), asked);
      if (!fields.has("attention")) return fields.refuse_missing("attention");
      fields.visit_object("attention", [&](const ConfigFields& attention) {
        for (const std::string_view name : {"replace_with_linear", "sparsify", "unshifted_sink", "mamba", "llama4"})
          if (attention.has(name) && attention.find_flag(name) != false)
            attention.refuse(name, "is a kind of attention that engines do not serve here");
        for (const std::string_view name : {"window_length", "num_sink_tokens"})
          if (attention.has(name)) attention.refuse(name, "is a kind of attention that engines do not serve here");
        if (attention.find_flag("no_op").value_or(false)) return shape.layers.push_back(nothing);
        const std::optional<uint64_t> group = attention.count("n_heads_in_group");
        if (!group) return;
        if (*query_heads % *group != 0)
          return attention.refuse("n_heads_in_group",
                                  fmt::format("{} does not divide num_attention_heads {}", *group, *query_heads));
        const uint64_t heads = *query_heads / *group;
        auto found = std::find_if(known.begin(), known.end(), [&](const auto& entry) { return entry.first == heads; });
        if (found == known.end())
          found = known.insert(known.end(),
                               {heads, shape.add(key_value_class(input, *type, {heads, *head_dim, *head_dim}))});
        shape.layers.push_back(found->second);
      });
    });
  });
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

}  // namespace crossdock
