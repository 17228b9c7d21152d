#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/checked.h"
#include "model/hf/attention.h"
#include "model/hf/families.h"
#include "model/hf/latent.h"

namespace crossdock {
namespace {

// A layer of linear attention keeps a state for each sequence and nothing for each token. Its components have no token
// axis, and a transfer moves them whole.

constexpr HeadDefaults kStated = {};
constexpr uint64_t kQwen3NextInterval = 4;  // Qwen3NextConfig: three linear layers, then a full one

// The state is kept in float32 unless the config says otherwise: SGLang's default for these models, and what vLLM's
// KDA always does. vLLM's default for Qwen3-Next is the model's own type; --mamba-ssm-cache-dtype float32 agrees with
// this one.
const ItemType kRecurrentType = {"float32", 4};

// A delta-rule layer: a state matrix for each value head, and a short convolution over queries, keys and values.
struct DeltaHeads {
  uint64_t key_count = 0;
  uint64_t value_count = 0;
  uint64_t key_dim = 0;
  uint64_t value_dim = 0;
  uint64_t kernel = 0;  // tokens that the convolution sees; all but the present one are kept
};

struct DeltaTypes {
  ItemType recurrent;
  ItemType convolution;
};

// The convolution's channels are split by heads, so that a component's heads are what tensor parallelism divides.
std::optional<std::vector<Component>> delta_states(const ConfigFields& fields, std::string_view kernel_name,
                                                   const DeltaHeads& heads, const DeltaTypes& types) {
  if (heads.kernel < 2) {
    fields.refuse(kernel_name, fmt::format("{} leaves no convolution state; the least is 2", heads.kernel));
    return std::nullopt;
  }
  const std::optional<uint64_t> recurrent = checked_mul(heads.key_dim, heads.value_dim);
  const std::optional<uint64_t> key_window = checked_mul(heads.key_dim, heads.kernel - 1);
  const std::optional<uint64_t> value_window = checked_mul(heads.value_dim, heads.kernel - 1);
  if (!recurrent || !key_window || !value_window) {
    fields.refuse(kernel_name, Rule::kSizeOverflow,
                  fmt::format("a state with key dim {}, value dim {} and kernel {} does not fit in 64 bits",
                              heads.key_dim, heads.value_dim, heads.kernel));
    return std::nullopt;
  }
  return std::vector<Component>{state_rows("recurrent_state", types.recurrent, heads.value_count, *recurrent),
                                state_rows("conv_query", types.convolution, heads.key_count, *key_window),
                                state_rows("conv_key", types.convolution, heads.key_count, *key_window),
                                state_rows("conv_value", types.convolution, heads.value_count, *value_window)};
}

std::optional<DeltaHeads> read_qwen3_next_heads(const ConfigFields& text) {
  const auto key_count = text.count("linear_num_key_heads");
  const auto value_count = text.count("linear_num_value_heads");
  const auto key_dim = text.count("linear_key_head_dim");
  const auto value_dim = text.count("linear_value_head_dim");
  const auto kernel = text.count("linear_conv_kernel_dim");
  if (!key_count || !value_count || !key_dim || !value_dim || !kernel) return std::nullopt;
  if (*value_count % *key_count == 0) return DeltaHeads{*key_count, *value_count, *key_dim, *value_dim, *kernel};
  text.refuse("linear_num_value_heads",
              fmt::format("{} is not a multiple of linear_num_key_heads {}", *value_count, *key_count));
  return std::nullopt;
}

std::optional<std::vector<Component>> read_qwen3_next_states(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<DeltaHeads> heads = read_qwen3_next_heads(text);
  const std::optional<ItemType> convolution = read_model_type(input);
  const std::optional<ItemType> stated = read_item_type(text, "mamba_ssm_dtype");
  // `stated` is empty when the field is absent, which is right, and when it is refused, which failed() finds.
  if (!heads || !convolution || input.root.failed()) return std::nullopt;
  return delta_states(text, "linear_conv_kernel_dim", *heads, {stated.value_or(kRecurrentType), *convolution});
}

// Both lists together have to name each layer once: a layer that is missing would silently keep nothing.
// Takes the layers of a list of layer numbers from 1, as Kimi-Linear's config counts them.
void take_layers(const ConfigFields& fields, std::string_view name, LayerKind kind,
                 std::vector<std::optional<LayerKind>>& layers) {
  if (!fields.has(name)) fields.refuse_missing(name);
  fields.visit(name, [&](const JsonCursor& list) {
    list.for_each([&](const JsonCursor& item) {
      const uint64_t diagnostics_before = item.diagnostics.total();
      const uint64_t number = item.unsigned_integer();
      if (item.diagnostics.total() != diagnostics_before) return;
      if (number < 1 || number > layers.size())
        item.refuse(Rule::kConfigField, fmt::format("layer {} is not within 1 to {}", number, layers.size()));
      else if (std::exchange(layers[number - 1], kind))
        item.refuse(Rule::kConfigField, fmt::format("layer {} is listed twice", number));
    });
  });
}

std::vector<LayerKind> read_kimi_layers(const ConfigFields& linear, uint64_t layer_count) {
  std::vector<std::optional<LayerKind>> layers(layer_count);
  take_layers(linear, "full_attn_layers", LayerKind::kFull, layers);
  take_layers(linear, "kda_layers", LayerKind::kLinear, layers);
  if (linear.failed()) return {};
  std::vector<LayerKind> kinds;
  for (const std::optional<LayerKind> layer : layers) {
    if (!layer) {
      linear.refuse("kda_layers", fmt::format("layer {} of {} is neither here nor in full_attn_layers",
                                              kinds.size() + 1, layer_count));
      return {};
    }
    kinds.push_back(*layer);
  }
  return kinds;
}

// Fills the layers and states from the object linear_attn_config.
// Leaves the shape incomplete where a field is refused; read_model() then drops it.
void read_kimi_states(const ConfigInput& input, const ConfigFields& linear, uint64_t layer_count, ModelShape& shape) {
  shape.layers = read_kimi_layers(linear, layer_count);
  const auto head_count = linear.count("num_heads");
  const auto head_dim = linear.count("head_dim");
  const auto kernel = linear.count("short_conv_kernel_size");
  const std::optional<ItemType> convolution = read_model_type(input);
  if (!head_count || !head_dim || !kernel || !convolution) return;
  const DeltaHeads heads = {*head_count, *head_count, *head_dim, *head_dim, *kernel};
  if (auto states = delta_states(linear, "short_conv_kernel_size", heads, {kRecurrentType, *convolution}))
    shape.states = std::move(*states);
}

}  // namespace

std::optional<ModelShape> read_qwen3_next(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kStated);
  const std::optional<uint64_t> interval = text.count("full_attention_interval", kQwen3NextInterval);
  std::optional<std::vector<Component>> states = read_qwen3_next_states(input);
  if (!layer_count || !heads || !interval || !states) return std::nullopt;
  ModelShape shape;
  shape.layers = text.has("layer_types") ? read_layer_types(text, *layer_count, {LayerKind::kFull, LayerKind::kLinear})
                                         : periodic_layers(*layer_count, *interval, LayerKind::kLinear);
  shape.attention = key_value_components(input, *heads);
  shape.states = std::move(*states);
  return shape;
}

std::optional<ModelShape> read_kimi_linear(const ConfigInput& input) {
  const std::optional<uint64_t> layer_count = read_layer_count(input.text);
  const std::optional<Component> latent = read_latent(input);
  if (!layer_count || !latent) return std::nullopt;
  ModelShape shape;
  shape.attention = {*latent};
  if (!input.text.has("linear_attn_config")) input.text.refuse_missing("linear_attn_config");
  input.text.visit("linear_attn_config", [&](const JsonCursor& cursor) {
    if (!cursor.require(JsonKind::kObject)) return;
    read_kimi_states(input, ConfigFields(cursor, input.text.architecture()), *layer_count, shape);
  });
  return shape;
}

}  // namespace crossdock
