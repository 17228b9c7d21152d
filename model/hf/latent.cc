#include "model/hf/latent.h"

#include <fmt/format.h>

#include <string_view>

#include "base/checked.h"
#include "model/hf/families.h"

namespace crossdock {
namespace {

// A latent row is one head: all query heads share it. Packed rows mix items of different types with scales, which a
// component cannot describe item by item; so they are bytes under an encoding of their own, and two sides fit only when
// both have that encoding (no conversion).

const ItemType kBytes = {"uint8", 1};
constexpr uint64_t kScaleBytes = 4;       // float32
constexpr uint64_t kItemsPerScale = 128;  // in both packings below

// vLLM's "fp8_ds_mla" (FlashMLA): the latent in fp8, its float32 scales, then the rotary part in 16 bits; 656 bytes for
// 512 + 64 items.
constexpr std::string_view kPackedLatent = "fp8_ds_mla";
constexpr uint64_t kRotaryItemBytes = 2;

// The indexer's key in fp8 with its float32 scales: vLLM, SGLang and DeepGEMM keep 132 bytes for 128 items.
constexpr std::string_view kPackedIndexerKey = "fp8_e4m3+float32_scale_per_128";

// Bytes of `items` fp8 items with their scales; a diagnostic at `name` when the scales do not come out even.
std::optional<uint64_t> scaled_fp8_bytes(const ConfigFields& text, std::string_view name, uint64_t items) {
  if (items % kItemsPerScale != 0) {
    text.refuse(name, fmt::format("{} is not a multiple of {}, which one scale covers", items, kItemsPerScale));
    return std::nullopt;
  }
  const std::optional<uint64_t> bytes = (Checked(items / kItemsPerScale) * kScaleBytes + items).value();
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

}  // namespace

std::optional<Component> read_latent(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> rank = text.count("kv_lora_rank");
  const std::optional<uint64_t> rotary = text.count("qk_rope_head_dim");
  if (input.options.kv_scales)
    refuse_option(input, "kv_scales",
                  fmt::format("latent attention has no scale per head; kv_dtype {} packs its scales", kPackedLatent));
  if (!rank || !rotary) return std::nullopt;
  if (input.options.kv_dtype == kPackedLatent) return packed_latent(text, *rank, *rotary);
  const std::optional<ItemType> type = read_kv_type(input);
  const std::optional<uint64_t> items = row_items(text, "kv_lora_rank", Checked(*rank) + *rotary);
  if (!type || !items) return std::nullopt;
  return token_rows("latent", *type, 1, *items);
}

std::optional<ModelShape> read_deepseek(const ConfigInput& input) {
  const std::optional<uint64_t> layer_count = read_layer_count(input.text);
  const std::optional<Component> latent = read_latent(input);
  if (!layer_count || !latent) return std::nullopt;
  ModelShape shape;
  shape.layers.assign(*layer_count, LayerKind::kFull);
  shape.attention = {*latent};
  return shape;
}

std::optional<ModelShape> read_deepseek_sparse(const ConfigInput& input) {
  std::optional<ModelShape> shape = read_deepseek(input);
  const std::optional<Component> indexer_key = read_indexer_key(input.text);
  if (!shape || !indexer_key) return std::nullopt;
  shape->attention.push_back(*indexer_key);
  return shape;
}

}  // namespace crossdock
