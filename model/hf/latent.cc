#include "model/hf/latent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "model/hf/families.h"

namespace crossdock {
namespace {

// A latent row is one head: all query heads share it. Packed rows mix items of different types with scales, which a
// component cannot describe item by item; so they are bytes under an encoding of their own, and two sides fit only when
// both have that encoding (no conversion).

const ItemType kBytes = {"uint8", 1};
const ItemType kFloat32 = {"float32", 4};
constexpr uint64_t kScaleBytes = 4;             // float32
constexpr uint64_t kLatentItemsPerScale = 128;  // in both packings below

// vLLM's "fp8_ds_mla" (FlashMLA): the latent in fp8, its float32 scales, then the rotary part in 16 bits; 656 bytes for
// 512 + 64 items.
constexpr std::string_view kPackedLatent = "fp8_ds_mla";
constexpr uint64_t kRotaryItemBytes = 2;

// The indexer's key in fp8 with its float32 scales: vLLM, SGLang and DeepGEMM keep 132 bytes for 128 items.
constexpr std::string_view kPackedIndexerKey = "fp8_e4m3+float32_scale_per_128";

// Bytes of `items` fp8 items with their scales; a diagnostic at `name` when the scales do not come out even.
std::optional<uint64_t> scaled_fp8_bytes(const ConfigFields& text, std::string_view name, uint64_t items) {
  if (items % kLatentItemsPerScale != 0) {
    text.refuse(name, fmt::format("{} is not a multiple of {}, which one scale covers", items, kLatentItemsPerScale));
    return std::nullopt;
  }
  const std::optional<uint64_t> bytes = (Checked(items / kLatentItemsPerScale) * kScaleBytes + items).value();
  if (!bytes) text.refuse(name, Rule::kSizeOverflow, fmt::format("{} fp8 items with scales do not fit", items));
  return bytes;
}

Component packed(std::string_view name, std::string_view encoding, uint64_t bytes) {
  Component component = token_rows(name, kBytes, 1, bytes);
  component.encoding = encoding;
  return component;
}

std::optional<uint64_t> row_items(const ConfigFields& text, std::string_view name, Checked value) {
  if (!value.value()) text.refuse(name, Rule::kSizeOverflow, "a latent row does not fit in 64 bits");
  return value.value();
}

std::optional<Component> packed_latent(const ConfigFields& text, uint64_t rank, uint64_t rotary) {
  const std::optional<uint64_t> latent_bytes = scaled_fp8_bytes(text, "kv_lora_rank", rank);
  if (!latent_bytes) return std::nullopt;
  const auto bytes = row_items(text, "qk_rope_head_dim", Checked(rotary) * kRotaryItemBytes + *latent_bytes);
  return bytes ? std::optional(packed("latent", kPackedLatent, *bytes)) : std::nullopt;
}

std::optional<Component> read_indexer_key(const ConfigFields& text) {
  const std::optional<uint64_t> items = text.count("index_head_dim");
  if (!items) return std::nullopt;
  const std::optional<uint64_t> bytes = scaled_fp8_bytes(text, "index_head_dim", *items);
  return bytes ? std::optional(packed("indexer_key", kPackedIndexerKey, *bytes)) : std::nullopt;
}

// Which layers have an indexer of their own; the others use the choice of the one before (vllm/models/deepseek_v32,
// attention.py). SGLang keeps rows for each layer all the same (mem_cache/memory_pool.py).
std::vector<bool> read_indexer_layers(const ConfigInput& input, uint64_t layer_count) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> frequency = text.count("index_topk_freq", 1);
  const uint64_t offset = text.find_number("index_skip_topk_offset").value_or(2);
  const std::optional<std::string> pattern = text.find_text("index_topk_pattern");
  std::vector<bool> own(layer_count, true);
  if (!frequency) return own;
  for (uint64_t layer = 0; layer < layer_count; ++layer) {
    if (pattern)
      own[layer] = layer >= pattern->size() || (*pattern)[layer] != 'S';
    else if (layer + 1 > offset)
      own[layer] = (layer + 1 - offset) % *frequency == 0;
  }
  if (text.has("indexer_types")) {
    const std::array words = {LayerWord{"shared", 0}, LayerWord{"full", 1}};
    const std::vector<uint32_t> stated = read_layer_list(text, "indexer_types", layer_count, words);
    for (size_t layer = 0; layer < stated.size(); ++layer)
      if ((stated[layer] == 1) != own[layer]) {
        text.refuse("indexer_types",
                    fmt::format("layer {} contradicts index_topk_freq {}, by which engines decide", layer, *frequency));
        break;
      }
  } else if (*frequency != 1 && !pattern) {
    text.refuse("index_topk_freq", "without indexer_types some versions of the transformers library drop it");
  }
  if (!input.is_vllm()) own.assign(layer_count, true);
  return own;
}

std::optional<ModelShape> latent_shape(const ConfigInput& input, bool is_sparse) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  LayerClass latent = read_latent(input, is_sparse);
  if (!layer_count || latent.empty()) return std::nullopt;
  ModelShape shape;
  const uint32_t plain = shape.add(latent);
  shape.layers.assign(*layer_count, plain);
  shape.draft_step = {plain};
  if (!is_sparse) return shape;
  const std::optional<Component> indexer_key = read_indexer_key(text);
  if (!indexer_key) return std::nullopt;
  latent.push_back({*indexer_key, {}});
  const uint32_t indexed = shape.add(std::move(latent));
  const std::vector<bool> own = read_indexer_layers(input, *layer_count);
  for (size_t layer = 0; layer < own.size(); ++layer)
    if (own[layer]) shape.layers[layer] = indexed;
  shape.draft_step = {indexed};
  if (text.failed()) return std::nullopt;
  return shape;
}

// ---- DeepSeek-V4

constexpr uint64_t kV4NopeItems = 448;  // fp8, of the 512 items of a row; the rotary 64 are in 16 bits
constexpr uint64_t kV4ScaleBytes = 8;   // 7 scales of 64 items, and one byte of padding
constexpr uint64_t kV4RowItems = 512;
constexpr uint64_t kV4IndexMax = 65536;                 // far above the 128 that are served; products of it fit
constexpr std::string_view kV4Packed = "fp8_dsv4_mla";  // vLLM calls it fp8_ds_mla as well

Component v4_row(std::string_view name, bool is_packed, const ItemType& plain, uint64_t tokens_per_row) {
  Component row = is_packed ? packed(name, kV4Packed, kV4NopeItems + 64 * kRotaryItemBytes + kV4ScaleBytes)
                            : token_rows(name, plain, 1, kV4RowItems);
  row.tokens_per_row = tokens_per_row;
  return row;
}

// The compressor's running sums, kept for each token until its group is compressed: keys and scores in float32. A ratio
// of 4 overlaps groups, so it keeps twice the width and looks back twice as far
// (vllm/models/deepseek_v4/compressor.py).
ClassComponent v4_state(std::string_view name, uint64_t items, uint64_t ratio, uint64_t overlap) {
  return {token_rows(name, kFloat32, 1, 2 * overlap * items), LiveTokens::window(overlap * ratio - 1)};
}

}  // namespace

LayerClass read_latent(const ConfigInput& input, bool is_sparse) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> rank = text.count("kv_lora_rank");
  const std::optional<uint64_t> rotary = text.count("qk_rope_head_dim");
  if (text.find_flag("use_mla") == false)
    text.refuse("use_mla", "false: the model attends with heads of its own, and its config gives no rule for them");
  if (input.options.kv_scales)
    refuse_option(input, "kv_scales",
                  fmt::format("latent attention has no scale per head; kv_dtype {} packs its scales", kPackedLatent));
  if (!rank || !rotary) return {};
  const std::optional<KvType> type = read_kv_type(input, {.is_latent = true, .is_sparse = is_sparse});
  const std::optional<uint64_t> items = row_items(text, "kv_lora_rank", Checked(*rank) + *rotary);
  if (!type || !items) return {};
  if (type->form == KvType::Form::kDsMla) {
    const std::optional<Component> row = packed_latent(text, *rank, *rotary);
    return row ? LayerClass{{*row, {}}} : LayerClass();
  }
  if (type->form == KvType::Form::kNvfp4 && input.is_vllm()) {
    refuse_option(input, "kv_dtype", "'nvfp4': vLLM has no such cache for latent attention");
    return {};
  }
  LayerClass latent;
  for (Component& component : stored_rows(input, "kv_lora_rank", "latent", *type, 1, *items))
    latent.push_back({std::move(component), {}});
  return latent;
}

std::optional<ModelShape> read_deepseek(const ConfigInput& input) {
  // Both engines take a config of this class with index_topk for a sparse model.
  return latent_shape(input, input.text.has("index_topk"));
}

// DeepseekV32Config has index_topk also when the field is absent.
std::optional<ModelShape> read_deepseek_sparse(const ConfigInput& input) {
  input.text.has("index_topk");
  return latent_shape(input, true);
}

// Latent attention without an indexer: GLM-4.7-Flash, Mistral Small 4, and the language models of Kimi K2.5.
std::optional<ModelShape> read_dense_latent(const ConfigInput& input) { return latent_shape(input, false); }

// vllm/models/deepseek_v4: every layer keeps raw rows in a window; by compress_ratios, layers also keep a row for 4 or
// 128 tokens, those of 4 an indexer's key beside it, and the running sums of the compressors.
std::optional<ModelShape> read_deepseek_v4(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<uint64_t> head_dim = text.count("head_dim");
  const std::optional<uint64_t> rotary = text.count("qk_rope_head_dim");
  const std::optional<uint64_t> index_dim = text.count("index_head_dim");
  text.has("index_topk");
  const std::optional<uint64_t> window = text.count("sliding_window");
  const uint64_t draft_count = std::min(text.find_number("num_nextn_predict_layers").value_or(0), kHfLayersMax);
  if (head_dim && *head_dim != kV4RowItems)
    text.refuse("head_dim", fmt::format("{}: engines serve {}", *head_dim, kV4RowItems));
  if (rotary && *rotary != kV4RowItems - kV4NopeItems)
    text.refuse("qk_rope_head_dim", fmt::format("{}: engines serve {}", *rotary, kV4RowItems - kV4NopeItems));
  if (index_dim && *index_dim > kV4IndexMax)
    text.refuse("index_head_dim", fmt::format("{} is more than {}", *index_dim, kV4IndexMax));
  if (input.options.kv_scales) refuse_option(input, "kv_scales", "latent attention has no scale per head");
  if (!layer_count || !head_dim || !rotary || !index_dim || !window || text.failed()) return std::nullopt;
  // Engines take fp8 for 'auto', and pack it. bfloat16 is served by one kernel of vLLM.
  const bool is_auto = !input.options.kv_dtype || *input.options.kv_dtype == "auto";
  const std::optional<KvType> type =
      is_auto ? KvType{KvType::Form::kDsMla, {}} : read_kv_type(input, {.is_latent = true, .is_sparse = true});
  if (!type) return std::nullopt;
  const bool is_packed = type->form == KvType::Form::kDsMla;
  if (!is_packed && (type->item.dtype != "bfloat16" || !input.is_vllm())) {
    refuse_option(input, "kv_dtype",
                  fmt::format("'{}': {} serves DeepSeek-V4 with an fp8 cache{}", *input.options.kv_dtype,
                              engine_title(input.options.engine), input.is_vllm() ? ", or a bfloat16 one" : ""));
    return std::nullopt;
  }
  const std::optional<LiveTokens> live = sliding(text, "sliding_window", *window);
  const std::optional<uint64_t> index_bytes = scaled_fp8_bytes(text, "index_head_dim", *index_dim);
  const std::vector<uint64_t> ratios = read_number_list(text, "compress_ratios", *layer_count, draft_count);
  if (!live || !index_bytes || ratios.empty()) return std::nullopt;
  ModelShape shape;
  const LayerClass raw = {{v4_row("latent", is_packed, type->item, 1), *live}};
  LayerClass by_4 = raw;
  by_4.push_back({v4_row("latent_compressed", is_packed, type->item, 4), {}});
  Component index = packed("indexer_key", kPackedIndexerKey, *index_bytes);
  index.tokens_per_row = 4;
  by_4.push_back({std::move(index), {}});
  by_4.push_back(v4_state("compressor_state", kV4RowItems, 4, 2));
  by_4.push_back(v4_state("indexer_compressor_state", *index_dim, 4, 2));
  LayerClass by_128 = raw;
  by_128.push_back({v4_row("latent_compressed", is_packed, type->item, 128), {}});
  by_128.push_back(v4_state("compressor_state", kV4RowItems, 128, 1));
  const uint32_t raw_class = shape.add(raw);
  const uint32_t class_4 = shape.add(std::move(by_4));
  const uint32_t class_128 = shape.add(std::move(by_128));
  for (size_t layer = 0; layer < ratios.size(); ++layer) {
    const uint64_t ratio = ratios[layer];
    if (ratio > 1 && ratio != 4 && ratio != 128)
      text.refuse("compress_ratios", fmt::format("{} is none of 0, 1, 4 and 128", ratio));
    else if (layer >= *layer_count && ratio > 1)
      text.refuse("compress_ratios",
                  fmt::format("draft layer {} compresses by {}; engines keep raw rows there", layer, ratio));
    else if (layer < *layer_count)
      shape.layers.push_back(ratio == 4 ? class_4 : ratio == 128 ? class_128 : raw_class);
  }
  if (text.has("layer_types")) {
    const std::array words = {LayerWord{"sliding_attention", raw_class},
                              LayerWord{"compressed_sparse_attention", class_4},
                              LayerWord{"heavily_compressed_attention", class_128}};
    const std::vector<uint32_t> stated = read_layer_list(text, "layer_types", *layer_count, words);
    if (!stated.empty() && stated != shape.layers)
      text.refuse("layer_types", "contradicts compress_ratios, by which engines decide");
  }
  shape.draft_step = {raw_class};
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

}  // namespace crossdock
