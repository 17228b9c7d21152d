#include "model/hf/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/hf/families.h"

namespace crossdock {
namespace {

// How many heads are kept and which layers slide, for architectures with keys and values per head. What is read and
// what it falls back to follows each architecture's configuration class, because published configs leave out what
// equals the class's default. A default that a class does not have is not invented here: the config is refused and the
// field named.

// Classes that compute the head dimension; others have a constant of their own there, or no default at all.
constexpr HeadDefaults kDivided = {.head_dim_by_division = true};
constexpr HeadDefaults kLlama = {.kv_heads_are_query_heads = true, .head_dim_by_division = true};
// Gemma2Config and Gemma3TextConfig. The published config of gemma-3-4b relies on all three.
constexpr HeadDefaults kGemma = {.query_heads = 8, .kv_heads = 4, .head_dim = 256};
constexpr HeadDefaults kStated = {};

constexpr uint64_t kMistralWindow = 4096;              // MistralConfig, when the field is absent; null means no window
constexpr uint64_t kAlternating = 2;                   // Gemma2Config, GptOssConfig: sliding, full, sliding, full, ...
constexpr uint64_t kGemma3Pattern = 6;                 // Gemma3TextConfig: five sliding layers, then a full one
constexpr std::string_view kGptOssDtype = "bfloat16";  // of its attention weights; the published configs name none

std::optional<uint64_t> read_head_dim(const ConfigFields& text, const HeadDefaults& defaults, uint64_t query_heads) {
  if (text.has("head_dim") || !defaults.head_dim_by_division) return text.count("head_dim", defaults.head_dim);
  const std::optional<uint64_t> hidden_size = text.count("hidden_size");
  if (!hidden_size) return std::nullopt;
  // Not rounded: a head dimension that is off by one would make every offset wrong.
  if (*hidden_size % query_heads == 0) return *hidden_size / query_heads;
  text.refuse("head_dim", fmt::format("is missing, and hidden_size {} is not a multiple of num_attention_heads {}",
                                      *hidden_size, query_heads));
  return std::nullopt;
}

// How the layers stand when the config has no layer_types, and the window they need.
struct LayerRule {
  std::optional<uint64_t> window_tokens;
  uint64_t full_below = 0;  // layers below are full; from there on `period` says
  uint64_t period = 1;      // every period-th layer is full; 0: none is
};

std::vector<LayerKind> layers_by_rule(const LayerRule& rule, uint64_t layer_count) {
  std::vector<LayerKind> kinds = rule.period == 0 ? std::vector<LayerKind>(layer_count, LayerKind::kSliding)
                                                  : periodic_layers(layer_count, rule.period, LayerKind::kSliding);
  const uint64_t full = std::min(rule.full_below, layer_count);
  std::fill_n(kinds.begin(), full, LayerKind::kFull);
  return kinds;
}

std::optional<ModelShape> read_attention(const ConfigInput& input, const HeadDefaults& defaults, const LayerRule& rule,
                                         std::string_view dtype_fallback = {}) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, defaults);
  if (!layer_count || !heads) return std::nullopt;
  ModelShape shape;
  shape.layers = text.has("layer_types") ? read_layer_types(text, *layer_count, {LayerKind::kFull, LayerKind::kSliding})
                                         : layers_by_rule(rule, *layer_count);
  shape.attention = key_value_components(input, *heads, dtype_fallback);
  shape.window_tokens = rule.window_tokens;
  const bool slides = std::find(shape.layers.begin(), shape.layers.end(), LayerKind::kSliding) != shape.layers.end();
  // Without its window a sliding layer would count as full, and a transfer would move tokens that the model does not
  // keep.
  if (slides && !shape.window_tokens)
    text.refuse("sliding_window", "gives no window (or use_sliding_window is not true), but layers are sliding");
  // One question for all fields that were read above; each has added its own diagnostic.
  if (input.root.failed()) return std::nullopt;
  return shape;
}

// A window is there only when use_sliding_window says so; the field sliding_window alone means nothing.
std::optional<ModelShape> read_qwen(const ConfigInput& input, const HeadDefaults& defaults) {
  const ConfigFields& text = input.text;
  if (!text.find_flag("use_sliding_window").value_or(false)) return read_attention(input, defaults, {});
  LayerRule rule;
  rule.window_tokens = text.count("sliding_window");
  rule.period = 0;
  if (!text.has("layer_types")) {
    if (!text.has("max_window_layers")) text.refuse_missing("max_window_layers");
    rule.full_below = text.find_number("max_window_layers").value_or(0);
  }
  return read_attention(input, defaults, rule);
}

LayerRule periodic_rule(const ConfigFields& text, uint64_t period) {
  LayerRule rule;
  rule.window_tokens = text.find_count("sliding_window");
  rule.period = period;
  return rule;
}

}  // namespace

std::optional<KvHeads> read_kv_heads(const ConfigFields& text, const HeadDefaults& defaults) {
  const std::optional<uint64_t> query_heads = text.count("num_attention_heads", defaults.query_heads);
  if (!query_heads) return std::nullopt;
  const std::optional<uint64_t> kv_heads =
      text.count("num_key_value_heads", defaults.kv_heads_are_query_heads ? query_heads : defaults.kv_heads);
  const std::optional<uint64_t> head_dim = read_head_dim(text, defaults, *query_heads);
  if (!kv_heads || !head_dim) return std::nullopt;
  // Cannot divide by zero: a count is at least 1.
  if (*query_heads % *kv_heads == 0) return KvHeads{*kv_heads, *head_dim};
  text.refuse("num_key_value_heads", fmt::format("{} does not divide num_attention_heads {}", *kv_heads, *query_heads));
  return std::nullopt;
}

std::vector<Component> key_value_components(const ConfigInput& input, const KvHeads& heads,
                                            std::string_view dtype_fallback) {
  const std::optional<ItemType> type = read_kv_type(input, dtype_fallback);
  if (!type) return {};
  std::vector<Component> components = {token_rows("key", *type, heads.count, heads.dim),
                                       token_rows("value", *type, heads.count, heads.dim)};
  if (!input.options.kv_scales) return components;
  if (!input.options.kv_dtype || type->item_bytes != 1 || !type->dtype.starts_with("float8_")) {
    refuse_option(input, "kv_scales", fmt::format("needs an fp8 kv_dtype, not {}", type->dtype));
    return {};
  }
  const ItemType scale = {"float32", 4};
  components.push_back(token_rows("key_scale", scale, heads.count, 1));
  components.push_back(token_rows("value_scale", scale, heads.count, 1));
  return components;
}

std::optional<ModelShape> read_llama(const ConfigInput& input) { return read_attention(input, kLlama, {}); }

std::optional<ModelShape> read_mistral(const ConfigInput& input) {
  LayerRule rule;
  rule.window_tokens = input.text.find_count("sliding_window");
  if (!input.text.has("sliding_window") && !input.text.is_null("sliding_window")) rule.window_tokens = kMistralWindow;
  // All layers slide, or none does.
  rule.period = rule.window_tokens ? 0 : 1;
  return read_attention(input, kDivided, rule);
}

std::optional<ModelShape> read_mixtral(const ConfigInput& input) {
  LayerRule rule;
  rule.window_tokens = input.text.find_count("sliding_window");
  rule.period = rule.window_tokens ? 0 : 1;
  return read_attention(input, kDivided, rule);
}

std::optional<ModelShape> read_qwen2(const ConfigInput& input) { return read_qwen(input, kDivided); }

std::optional<ModelShape> read_qwen3(const ConfigInput& input) { return read_qwen(input, kStated); }

std::optional<ModelShape> read_gemma2(const ConfigInput& input) {
  return read_attention(input, kGemma, periodic_rule(input.text, kAlternating));
}

std::optional<ModelShape> read_gemma3(const ConfigInput& input) {
  const std::optional<uint64_t> pattern = input.text.count("sliding_window_pattern", kGemma3Pattern);
  return read_attention(input, kGemma, periodic_rule(input.text, pattern.value_or(kGemma3Pattern)));
}

std::optional<ModelShape> read_gpt_oss(const ConfigInput& input) {
  return read_attention(input, kStated, periodic_rule(input.text, kAlternating), kGptOssDtype);
}

}  // namespace crossdock
