#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "model/hf/attention.h"
#include "model/hf/dtypes.h"
#include "model/hf/families.h"
#include "model/hf/latent.h"

namespace crossdock {
namespace {

constexpr uint64_t kQwen3NextInterval = 4;  // Qwen3NextConfig: three linear layers, then a full one

// A delta-rule layer: a state matrix for each value head, and a short convolution over queries, keys and values.
struct DeltaHeads {
  uint64_t key_count = 0;
  uint64_t value_count = 0;
  uint64_t key_dim = 0;
  uint64_t value_dim = 0;
  uint64_t kernel = 0;  // tokens that the convolution sees; all but the present one are kept
};

// The convolution's channels are split by heads, so that a component's heads are what tensor parallelism divides.
LayerClass delta_states(const ConfigFields& fields, std::string_view kernel_name, const DeltaHeads& heads,
                        const StateTypes& types) {
  if (heads.kernel < 2) {
    fields.refuse(kernel_name, fmt::format("{} leaves no convolution state; the least is 2", heads.kernel));
    return {};
  }
  const std::optional<uint64_t> recurrent = checked_mul(heads.key_dim, heads.value_dim);
  const std::optional<uint64_t> key_window = checked_mul(heads.key_dim, heads.kernel - 1);
  const std::optional<uint64_t> value_window = checked_mul(heads.value_dim, heads.kernel - 1);
  if (!recurrent || !key_window || !value_window) {
    fields.refuse(kernel_name, Rule::kSizeOverflow,
                  fmt::format("a state with key dim {}, value dim {} and kernel {} does not fit in 64 bits",
                              heads.key_dim, heads.value_dim, heads.kernel));
    return {};
  }
  return {{state_rows("recurrent_state", types.ssm, heads.value_count, *recurrent)},
          {state_rows("conv_query", types.conv, heads.key_count, *key_window)},
          {state_rows("conv_key", types.conv, heads.key_count, *key_window)},
          {state_rows("conv_value", types.conv, heads.value_count, *value_window)}};
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

// Takes the layers of a list of layer numbers from 1, as Kimi-Linear's config counts them.
void take_layers(const ConfigFields& fields, std::string_view name, uint32_t layer_class,
                 std::vector<std::optional<uint32_t>>& layers) {
  if (!fields.has(name)) fields.refuse_missing(name);
  fields.visit(name, [&](const JsonCursor& list) {
    list.for_each([&](const JsonCursor& item) {
      const uint64_t diagnostics_before = item.diagnostics.total();
      const uint64_t number = item.unsigned_integer();
      if (item.diagnostics.total() != diagnostics_before) return;
      if (number < 1 || number > layers.size())
        item.refuse(Rule::kConfigField, fmt::format("layer {} is not within 1 to {}", number, layers.size()));
      else if (std::exchange(layers[number - 1], layer_class))
        item.refuse(Rule::kConfigField, fmt::format("layer {} is listed twice", number));
    });
  });
}

std::vector<uint32_t> read_kimi_layers(const ConfigFields& linear, uint64_t layer_count, uint32_t full,
                                       uint32_t recurrent) {
  std::vector<std::optional<uint32_t>> layers(layer_count);
  take_layers(linear, "full_attn_layers", full, layers);
  take_layers(linear, "kda_layers", recurrent, layers);
  if (linear.failed()) return {};
  std::vector<uint32_t> classes;
  for (const std::optional<uint32_t> layer : layers) {
    if (!layer) {
      linear.refuse("kda_layers", fmt::format("layer {} of {} is neither here nor in full_attn_layers",
                                              classes.size() + 1, layer_count));
      return {};
    }
    classes.push_back(*layer);
  }
  return classes;
}

// Layers of gated delta nets, and full ones. `ssm_field`: what vLLM reads for the state's type.
std::optional<ModelShape> delta_shape(const ConfigInput& input, std::string_view ssm_field) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kStatedHeads);
  const std::optional<KvType> type = read_kv_type(input);
  const std::optional<uint64_t> interval = text.count("full_attention_interval", kQwen3NextInterval);
  const std::optional<DeltaHeads> delta = read_qwen3_next_heads(text);
  const std::optional<StateTypes> states = read_state_types(input, {.ssm_field = ssm_field});
  if (!layer_count || !heads || !type || !interval || !delta || !states) return std::nullopt;
  ModelShape shape;
  const uint32_t full = shape.add(key_value_class(input, *type, *heads));
  const uint32_t recurrent = shape.add(delta_states(text, "linear_conv_kernel_dim", *delta, *states));
  shape.layers = periodic_layers(*layer_count, *interval, recurrent, full);
  if (text.has("layer_types")) {
    const std::array words = {LayerWord{"full_attention", full}, LayerWord{"linear_attention", recurrent}};
    const std::vector<uint32_t> stated = read_layer_list(text, "layer_types", *layer_count, words);
    if (!stated.empty() && text.has("full_attention_interval") && stated != shape.layers)
      text.refuse("layer_types", fmt::format("contradicts full_attention_interval {}", *interval));
    shape.layers = stated;
  }
  shape.draft_step = {full};
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

}  // namespace

// vLLM keeps the state in the model's own type for this class, whatever mamba_ssm_dtype says (models/config.py has no
// entry for it); SGLang in float32 unless that field says otherwise.
std::optional<ModelShape> read_qwen3_next(const ConfigInput& input) { return delta_shape(input, {}); }

std::optional<ModelShape> read_qwen3_5(const ConfigInput& input) { return delta_shape(input, "mamba_ssm_dtype"); }

// Layers of Kimi delta attention, whose state is float32 in both engines, and latent ones.
std::optional<ModelShape> read_kimi_linear(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  LayerClass latent = read_latent(input, false);
  const std::optional<StateTypes> types = read_state_types(input, {.ssm_is_always_float32 = true});
  if (text.find_flag("mla_use_nope") == false)
    text.refuse("mla_use_nope", "false: engines serve latent layers without rotary positions only");
  if (!layer_count || latent.empty() || !types) return std::nullopt;
  ModelShape shape;
  const uint32_t full = shape.add(std::move(latent));
  if (!text.has("linear_attn_config")) text.refuse_missing("linear_attn_config");
  text.visit_object("linear_attn_config", [&](const ConfigFields& linear) {
    const auto head_count = linear.count("num_heads");
    const auto head_dim = linear.count("head_dim");
    const auto kernel = linear.count("short_conv_kernel_size");
    if (!head_count || !head_dim || !kernel) return;
    const DeltaHeads heads = {*head_count, *head_count, *head_dim, *head_dim, *kernel};
    const uint32_t recurrent = shape.add(delta_states(linear, "short_conv_kernel_size", heads, *types));
    shape.layers = read_kimi_layers(linear, *layer_count, full, recurrent);
  });
  shape.draft_step = {full};
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

}  // namespace crossdock
