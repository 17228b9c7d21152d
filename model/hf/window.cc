// Families whose layers are of several kinds of attention: full, in a window, in chunks, or with another layer's cache.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/hf/attention.h"
#include "model/hf/families.h"

namespace crossdock {
namespace {

// Gemma2Config, Gemma3TextConfig, Gemma3nTextConfig and Gemma4TextConfig. The published config of gemma-3-4b relies on
// all three.
constexpr HeadDefaults kGemma = {.query_heads = 8, .kv_heads = 4, .head_dim = 256};

constexpr uint64_t kGemmaWindow = 4096;     // Gemma2Config, Gemma3TextConfig; null means that no layer slides
constexpr uint64_t kAlternating = 2;        // Gemma2Config, GptOssConfig: sliding, full, sliding, full, ...
constexpr uint64_t kGemma3Pattern = 6;      // Gemma3TextConfig: five sliding layers, then a full one
constexpr uint64_t kGemma3nPattern = 5;     // Gemma3nTextConfig
constexpr uint64_t kGemma3nShared = 15;     // Gemma3nTextConfig: the last layers, which take another layer's cache
constexpr uint64_t kGemma4GlobalDim = 512;  // Gemma4TextConfig
constexpr uint64_t kOlmo3Window = 4096;
constexpr uint64_t kOlmo3Pattern = 4;
constexpr uint64_t kLlama4Chunk = 8192;  // Llama4TextConfig, when the field is absent; null means no chunks
constexpr uint64_t kLlama4NoRope = 4;    // every fourth layer has no rotary positions, and attends to all tokens
constexpr std::string_view kFull = "full_attention";
constexpr std::string_view kSliding = "sliding_attention";

// Full layers and layers that slide, of the same heads.
struct TwoKinds {
  ModelShape shape;
  uint64_t layer_count = 0;
  uint32_t full = 0;
  uint32_t slide = 0;  // the same as `full` where there is no window
};

struct WindowRule {
  std::optional<uint64_t> window;  // of the layers that slide; empty: there is none, and all are full
  bool sglang_frees = false;
};

std::optional<TwoKinds> read_two_kinds(const ConfigInput& input, const HeadDefaults& defaults, const WindowRule& rule,
                                       std::string_view dtype_fallback = {}) {
  const std::optional<uint64_t> layer_count = read_layer_count(input.text);
  const std::optional<KvHeads> heads = read_kv_heads(input.text, defaults);
  const std::optional<KvType> type = read_kv_type(input, {.fallback = dtype_fallback});
  std::optional<LiveTokens> live = LiveTokens::all();
  if (rule.window) live = pool_window(input, "sliding_window", *rule.window, rule.sglang_frees);
  if (!layer_count || !heads || !type || !live) return std::nullopt;
  TwoKinds kinds;
  kinds.layer_count = *layer_count;
  kinds.full = kinds.shape.add(key_value_class(input, *type, *heads));
  kinds.slide = kinds.shape.add(key_value_class(input, *type, *heads, *live));
  return kinds;
}

// layer_types, or the `period`: each last of them is full. Both at once have to agree unless `types_rule`.
void take_layers(const ConfigInput& input, uint64_t period, TwoKinds& kinds, bool types_rule = true) {
  const std::vector<uint32_t> by_period = periodic_layers(kinds.layer_count, period, kinds.slide, kinds.full);
  kinds.shape.layers = by_period;
  if (!input.text.has("layer_types")) return;
  const std::array words = {LayerWord{kFull, kinds.full}, LayerWord{kSliding, kinds.slide}};
  kinds.shape.layers = read_layer_list(input.text, "layer_types", kinds.layer_count, words);
  if (types_rule || kinds.shape.layers.empty() || kinds.shape.layers == by_period) return;
  input.text.refuse("layer_types", fmt::format("{} does not read it for this family and takes every {} layer for full",
                                               engine_title(input.options.engine),
                                               period == kAlternating ? "second" : fmt::format("{}th", period)));
}

std::optional<ModelShape> finish(const ConfigInput& input, TwoKinds kinds) {
  if (input.root.failed() || input.text.failed()) return std::nullopt;
  return std::move(kinds.shape);
}

// EmbeddingGemma and its kind attend to both sides and keep no cache.
void refuse_bidirectional(const ConfigFields& text) {
  bool refused = false;
  text.visit("use_bidirectional_attention", [&](const JsonCursor& field) {
    refused = field.value.kind() == JsonKind::kBool
                  ? field.value.as_bool()
                  : field.value.kind() != JsonKind::kString || field.value.text() != "vision";
  });
  if (refused) text.refuse("use_bidirectional_attention", "a model that attends to both sides keeps no cache");
}

// Layers from the first that shares on keep nothing, in vLLM; SGLang's pool has them all (no file of mem_cache/ reads
// num_kv_shared_layers).
void share_last_layers(const ConfigInput& input, uint64_t shared, ModelShape& shape) {
  const ConfigFields& text = input.text;
  if (shared == 0 || !input.is_vllm() || shape.layers.empty()) return;
  if (shared >= shape.layers.size())
    return text.refuse("num_kv_shared_layers",
                       fmt::format("{} of {} layers leave none that has a cache", shared, shape.layers.size()));
  const size_t first = shape.layers.size() - shared;
  for (size_t layer = first; layer < shape.layers.size(); ++layer) {
    const auto own_end = shape.layers.begin() + static_cast<ptrdiff_t>(first);
    if (std::find(shape.layers.begin(), own_end, shape.layers[layer]) == own_end)
      return text.refuse("num_kv_shared_layers",
                         fmt::format("layer {} has no earlier layer of its kind whose cache it could take", layer));
  }
  const uint32_t nothing = shape.add({});
  std::fill(shape.layers.begin() + static_cast<ptrdiff_t>(first), shape.layers.end(), nothing);
}

}  // namespace

std::optional<ModelShape> read_gemma2(const ConfigInput& input) {
  refuse_bidirectional(input.text);
  auto kinds = read_two_kinds(input, kGemma, {read_window(input.text, kGemmaWindow)});
  if (!kinds) return std::nullopt;
  take_layers(input, kAlternating, *kinds, input.is_vllm());
  return finish(input, std::move(*kinds));
}

std::optional<ModelShape> read_gemma3(const ConfigInput& input) {
  refuse_bidirectional(input.text);
  const std::optional<uint64_t> pattern = input.text.count("sliding_window_pattern", kGemma3Pattern);
  auto kinds = read_two_kinds(input, kGemma, {read_window(input.text, kGemmaWindow)});
  if (!kinds || !pattern) return std::nullopt;
  take_layers(input, *pattern, *kinds);
  return finish(input, std::move(*kinds));
}

// vllm/models/gemma3n.py: a layer that shares takes the last full, or the last sliding, layer before the first of them.
std::optional<ModelShape> read_gemma3n(const ConfigInput& input) {
  const uint64_t shared = input.text.find_number("num_kv_shared_layers").value_or(kGemma3nShared);
  constexpr HeadDefaults kGemma3n = {.query_heads = 8, .kv_heads = 2, .head_dim = 256};
  auto kinds = read_two_kinds(input, kGemma3n, {read_window(input.text, 512)});
  if (!kinds) return std::nullopt;
  take_layers(input, kGemma3nPattern, *kinds);
  share_last_layers(input, shared, kinds->shape);
  return finish(input, std::move(*kinds));
}

// vllm/models/gemma4.py: full layers have heads of their own; keys and values are both stored when they are computed
// from one projection (attention_k_eq_v). The last layer is full whatever the list says (Gemma4TextConfig).
std::optional<ModelShape> read_gemma4(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  refuse_bidirectional(text);
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kGemma);
  const std::optional<KvType> type = read_kv_type(input);
  const bool k_eq_v = text.find_flag("attention_k_eq_v").value_or(false);
  const std::optional<uint64_t> global_dim = text.count("global_head_dim", kGemma4GlobalDim);
  const std::optional<uint64_t> global_heads = text.find_count("num_global_key_value_heads");
  const uint64_t shared = text.find_number("num_kv_shared_layers").value_or(0);
  const bool is_unified = text.architecture().find("Unified") != std::string_view::npos;
  const std::optional<uint64_t> window = read_window(text, is_unified ? 1024 : 512);
  if (!window) text.refuse("sliding_window", "null: layers that slide need a window");
  if (!layer_count || !heads || !type || !global_dim || !window) return std::nullopt;
  if (global_heads && *global_heads != heads->count && !k_eq_v)
    text.refuse("num_global_key_value_heads", "counts in SGLang only, unless attention_k_eq_v is true");
  const std::optional<LiveTokens> live = pool_window(input, "sliding_window", *window, true);
  if (!live) return std::nullopt;
  ModelShape shape;
  const KvHeads full_heads = {global_heads.value_or(heads->count), *global_dim, *global_dim};
  const uint32_t full = shape.add(key_value_class(input, *type, full_heads));
  const uint32_t slide = shape.add(key_value_class(input, *type, *heads, *live));
  const std::array words = {LayerWord{kFull, full}, LayerWord{kSliding, slide}};
  shape.layers = text.has("layer_types") ? read_layer_list(text, "layer_types", *layer_count, words)
                                         : periodic_layers(*layer_count, kGemma3Pattern, slide, full);
  if (!shape.layers.empty()) shape.layers.back() = full;
  share_last_layers(input, shared, shape);
  if (input.root.failed() || text.failed()) return std::nullopt;
  return shape;
}

// vLLM counts layers and does not read layer_types (models/gpt_oss.py); SGLang reads it.
std::optional<ModelShape> read_gpt_oss(const ConfigInput& input) {
  auto kinds = read_two_kinds(input, kStatedHeads, {read_window(input.text, 128), true}, "bfloat16");
  if (!kinds) return std::nullopt;
  take_layers(input, kAlternating, *kinds, !input.is_vllm());
  return finish(input, std::move(*kinds));
}

std::optional<ModelShape> read_olmo2(const ConfigInput& input) { return uniform_shape(input, kMultiHead); }

std::optional<ModelShape> read_olmo3(const ConfigInput& input) {
  const std::optional<uint64_t> window = read_window(input.text, kOlmo3Window);
  if (!window) input.text.refuse("sliding_window", "null: layers that slide need a window");
  auto kinds = read_two_kinds(input, kMultiHead, {window});
  if (!kinds) return std::nullopt;
  take_layers(input, kOlmo3Pattern, *kinds);
  return finish(input, std::move(*kinds));
}

// Exaone4Config: layer_types; else sliding_window_pattern, a number (each last layer of them is full) or, as published
// configs have it, letters: L slides, G does not. Without a window all layers are full.
std::optional<ModelShape> read_exaone4(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> window = read_window(text, 4096);
  auto kinds = read_two_kinds(input, kStatedHeads, {window});
  if (!kinds) return std::nullopt;
  std::string letters;
  text.visit("sliding_window_pattern", [&](const JsonCursor& field) {
    if (field.value.kind() == JsonKind::kString) letters = std::string(field.value.text());
  });
  if (letters.empty()) {
    const std::optional<uint64_t> period = text.count("sliding_window_pattern", 4);
    if (!period) return std::nullopt;
    take_layers(input, *period, *kinds);
  } else if (letters.find_first_not_of("LG") != std::string::npos) {
    text.refuse("sliding_window_pattern", fmt::format("'{}' has other letters than L and G", shown_text(letters)));
  } else {
    std::vector<uint32_t>& layers = kinds->shape.layers;
    for (uint64_t layer = 0; layer < kinds->layer_count; ++layer)
      layers.push_back(letters[layer % letters.size()] == 'L' ? kinds->slide : kinds->full);
    if (text.has("layer_types")) {
      const std::array words = {LayerWord{kFull, kinds->full}, LayerWord{kSliding, kinds->slide}};
      const std::vector<uint32_t> stated = read_layer_list(text, "layer_types", kinds->layer_count, words, 1);
      if (!stated.empty()) layers.assign(stated.begin(), stated.begin() + static_cast<ptrdiff_t>(kinds->layer_count));
    } else if (window) {
      // Its documentation: the last layer is always global.
      layers.back() = kinds->full;
    }
  }
  return finish(input, std::move(*kinds));
}

// vllm/models/llama4.py: layers with rotary positions attend within chunks, those without to all tokens.
std::optional<ModelShape> read_llama4(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  constexpr HeadDefaults kLlama4 = {.query_heads = 40, .kv_heads = 8, .head_dim = 128};
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kLlama4);
  const std::optional<KvType> type = read_kv_type(input);
  std::optional<uint64_t> chunk = text.find_count("attention_chunk_size");
  if (text.is_absent("attention_chunk_size")) chunk = kLlama4Chunk;
  const std::optional<uint64_t> interval = text.count("no_rope_layer_interval", kLlama4NoRope);
  if (!layer_count || !heads || !type || !interval) return std::nullopt;
  ModelShape shape;
  const uint32_t full = shape.add(key_value_class(input, *type, *heads));
  const uint32_t chunked =
      shape.add(key_value_class(input, *type, *heads, chunk ? LiveTokens::chunk(*chunk) : LiveTokens::all()));
  shape.layers = periodic_layers(*layer_count, *interval, chunked, full);
  bool states_layers = false;
  text.visit("no_rope_layers", [&](const JsonCursor& list) {
    states_layers = list.value.kind() != JsonKind::kArray || list.value.size() > 0;  // [] is the default
  });
  if (states_layers) {
    shape.layers.clear();
    for (const uint64_t has_rope : read_number_list(text, "no_rope_layers", *layer_count))
      shape.layers.push_back(has_rope == 0 ? full : chunked);
  }
  if (text.has("layer_types")) {
    const std::array words = {LayerWord{kFull, full}, LayerWord{"chunked_attention", chunked}};
    const std::vector<uint32_t> stated = read_layer_list(text, "layer_types", *layer_count, words);
    if (!stated.empty() && !shape.layers.empty() && stated != shape.layers)
      text.refuse("layer_types", "contradicts no_rope_layers, by which engines decide");
  }
  if (!input.is_vllm() && shape.layers != periodic_layers(*layer_count, kLlama4NoRope, chunked, full))
    text.refuse("no_rope_layers", "SGLang takes every fourth layer for one without rotary positions");
  if (input.root.failed() || text.failed()) return std::nullopt;
  return shape;
}

// vllm/models/mimo_v2_flash.py: 1 in hybrid_layer_pattern slides, with heads of its own. Values are shorter than keys.
std::optional<ModelShape> read_mimo_v2(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kStatedHeads);
  const std::optional<uint64_t> value_dim = text.count("v_head_dim");
  const std::optional<uint64_t> swa_heads = text.count("swa_num_key_value_heads");
  const std::optional<uint64_t> swa_dim = text.count("swa_head_dim");
  const std::optional<uint64_t> swa_value_dim = text.count("swa_v_head_dim");
  const std::optional<KvType> type = read_kv_type(input);
  const std::optional<uint64_t> longer_name = text.find_count("sliding_window_size");
  const std::optional<uint64_t> window = longer_name ? longer_name : text.count("sliding_window");
  const std::optional<uint64_t> shorter_name = text.find_count("sliding_window");
  const std::optional<uint64_t> chunk = text.find_count("attention_chunk_size");
  if (window && shorter_name && *shorter_name != *window)
    text.refuse("sliding_window", fmt::format("{} contradicts sliding_window_size {}", *shorter_name, *window));
  if (window && chunk && *chunk != *window)
    text.refuse("attention_chunk_size", fmt::format("{} is not the window of {}", *chunk, *window));
  if (!layer_count || !heads || !value_dim || !swa_heads || !swa_dim || !swa_value_dim || !type || !window)
    return std::nullopt;
  const std::optional<LiveTokens> live = pool_window(input, "sliding_window", *window, true);
  if (!live) return std::nullopt;
  ModelShape shape;
  const uint32_t full = shape.add(key_value_class(input, *type, {heads->count, heads->key_dim, *value_dim}));
  const uint32_t slide = shape.add(key_value_class(input, *type, {*swa_heads, *swa_dim, *swa_value_dim}, *live));
  if (text.has("hybrid_layer_pattern") || !text.has("layer_types")) {
    for (const uint64_t slides : read_number_list(text, "hybrid_layer_pattern", *layer_count)) {
      if (slides > 1)
        text.refuse("hybrid_layer_pattern", fmt::format("{} is neither 0 (full) nor 1 (sliding)", slides));
      shape.layers.push_back(slides == 1 ? slide : full);
    }
  }
  if (text.has("layer_types")) {
    const std::array words = {LayerWord{kFull, full}, LayerWord{kSliding, slide}};
    const std::vector<uint32_t> stated = read_layer_list(text, "layer_types", *layer_count, words);
    if (shape.layers.empty()) shape.layers = stated;
    if (stated != shape.layers) text.refuse("layer_types", "contradicts hybrid_layer_pattern");
  }
  shape.draft_step = {slide};  // one, in both engines, whatever the checkpoint has
  if (input.root.failed() || text.failed()) return std::nullopt;
  return shape;
}

// vllm/models/step3_text.py: one key head for all query heads.
std::optional<ModelShape> read_step3(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  if (const std::optional<uint64_t> groups = text.find_number("num_attention_groups"); groups && *groups != 1)
    text.refuse("num_attention_groups", fmt::format("{}: engines serve one group", *groups));
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<uint64_t> head_dim = text.count("head_dim");
  const std::optional<KvType> type = read_kv_type(input);
  if (!layer_count || !head_dim || !type || text.failed()) return std::nullopt;
  ModelShape shape;
  shape.layers.assign(*layer_count, shape.add(key_value_class(input, *type, {1, *head_dim, *head_dim})));
  return shape;
}

// vllm/models/step3p5.py: key heads are num_attention_groups, or num_key_value_heads in cut configs; layers of one type
// may have heads of their own (attention_other_setting). layer_types may go on with those of the draft layers.
std::optional<ModelShape> read_step3p5(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<uint64_t> groups = text.find_count("num_attention_groups");
  const std::optional<uint64_t> kv_heads = groups ? groups : text.count("num_key_value_heads");
  const std::optional<uint64_t> other_name = text.find_count("num_key_value_heads");
  if (groups && other_name && *groups != *other_name)
    text.refuse("num_key_value_heads", fmt::format("{} contradicts num_attention_groups {}", *other_name, *groups));
  const std::optional<uint64_t> head_dim = text.count("head_dim");
  const std::optional<uint64_t> window = text.find_count("sliding_window");
  const std::optional<KvType> type = read_kv_type(input);
  const uint64_t draft_count = text.find_number("num_nextn_predict_layers").value_or(0);
  if (const auto impl = text.find_text("att_impl_type"); impl && *impl != "GQA")
    text.refuse("att_impl_type", fmt::format("'{}' is not GQA", shown_text(*impl)));
  if (!layer_count || !kv_heads || !head_dim || !type) return std::nullopt;
  std::optional<LiveTokens> live = LiveTokens::all();
  if (window) live = pool_window(input, "sliding_window", *window, true);
  if (!live) return std::nullopt;
  KvHeads full_heads = {*kv_heads, *head_dim, *head_dim};
  KvHeads slide_heads = full_heads;
  text.visit_object("attention_other_setting", [&](const ConfigFields& other) {
    const std::optional<std::string> kind = other.find_text("attention_type");
    const std::optional<uint64_t> own_heads = other.count("num_attention_groups");
    const std::optional<uint64_t> own_dim = other.count("head_dim");
    if (!kind) other.refuse_missing("attention_type");
    if (!kind || !own_heads || !own_dim) return;
    if (*kind != kFull && *kind != kSliding)
      return other.refuse("attention_type",
                          fmt::format("'{}' is neither {} nor {}", shown_text(*kind), kFull, kSliding));
    (*kind == kFull ? full_heads : slide_heads) = {*own_heads, *own_dim, *own_dim};
  });
  ModelShape shape;
  const uint32_t full = shape.add(key_value_class(input, *type, full_heads));
  const uint32_t slide = shape.add(key_value_class(input, *type, slide_heads, *live));
  const std::array words = {LayerWord{kFull, full}, LayerWord{kSliding, slide}};
  if (draft_count > kHfLayersMax)
    text.refuse("num_nextn_predict_layers", fmt::format("more than {} layers", kHfLayersMax));
  shape.layers = read_layer_list(text, "layer_types", *layer_count, words, std::min(draft_count, kHfLayersMax));
  if (shape.layers.size() > *layer_count && shape.layers.size() - *layer_count != draft_count)
    text.refuse("layer_types", fmt::format("has {} entries for {} layers and {} draft layers", shape.layers.size(),
                                           *layer_count, draft_count));
  if (shape.layers.size() > *layer_count) {
    shape.draft_layers.assign(shape.layers.begin() + static_cast<ptrdiff_t>(*layer_count), shape.layers.end());
    shape.layers.resize(*layer_count);
  }
  if (input.root.failed() || text.failed()) return std::nullopt;
  return shape;
}

// vllm/models/minimax_m3: layers with sparse attention keep a key for its index too, in bfloat16 whatever the cache's
// dtype is (SGLang: in the model's).
std::optional<ModelShape> read_minimax_m3(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kStatedHeads);
  const std::optional<KvType> type = read_kv_type(input);
  const std::optional<ItemType> model = input.is_vllm() ? ItemType{"bfloat16", 2} : read_model_type(input);
  if (!layer_count || !heads || !type || !model) return std::nullopt;
  ModelShape shape;
  const uint32_t full = shape.add(key_value_class(input, *type, *heads));
  if (!text.has("sparse_attention_config")) text.refuse_missing("sparse_attention_config");
  text.visit_object("sparse_attention_config", [&](const ConfigFields& sparse) {
    const std::optional<uint64_t> index_dim = sparse.count("sparse_index_dim");
    const std::vector<uint64_t> frequencies = read_number_list(sparse, "sparse_attention_freq", *layer_count);
    if (!index_dim || frequencies.empty()) return;
    LayerClass indexed = shape.classes[full];
    indexed.push_back({token_rows("index_key", *model, 1, *index_dim), {}});
    const uint32_t sparse_class = shape.add(std::move(indexed));
    for (const uint64_t frequency : frequencies) shape.layers.push_back(frequency == 0 ? full : sparse_class);
    if (sparse.has("sparse_disable_index_value")) {
      const std::vector<uint64_t> disabled = read_number_list(sparse, "sparse_disable_index_value", *layer_count);
      for (size_t layer = 0; layer < disabled.size(); ++layer)
        if (frequencies[layer] != 0 && disabled[layer] == 0) {
          sparse.refuse("sparse_disable_index_value",
                        fmt::format("layer {} keeps index values, which SGLang alone serves", layer));
          break;
        }
    }
    shape.draft_step = {sparse_class};
  });
  if (input.root.failed() || text.failed()) return std::nullopt;
  return shape;
}

}  // namespace crossdock
