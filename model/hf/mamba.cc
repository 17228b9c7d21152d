// Families with Mamba layers or short convolutions, beside attention or instead of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "model/hf/attention.h"
#include "model/hf/families.h"

namespace crossdock {
namespace {

constexpr HeadDefaults kEight = {.kv_heads = 8, .head_dim_by_division = true};  // JambaConfig, Lfm2Config
constexpr HeadDefaults kNemotronH = {.kv_heads = 8, .head_dim = 128};  // NemotronHConfig: a constant, no quotient

// A Mamba-2 layer: a state of head_dim x state_size for each head, and a short convolution over its input x and over
// what is shared by a group of heads, B and C (vllm/model_executor/layers/mamba/mamba_utils.py mamba2_state_shape).
struct Mamba2 {
  uint64_t heads = 0;
  uint64_t head_dim = 0;
  uint64_t groups = 0;
  uint64_t state_size = 0;
  uint64_t kernel = 0;  // tokens that the convolution sees; all but the present one are kept
};

// Channels are split by heads and by groups, which are what tensor parallelism divides. Empty when refused.
LayerClass mamba2_class(const ConfigFields& text, std::string_view kernel_name, const Mamba2& sizes,
                        const StateTypes& types) {
  if (sizes.kernel < 2) {
    text.refuse(kernel_name, fmt::format("{} leaves no convolution state; the least is 2", sizes.kernel));
    return {};
  }
  if (sizes.heads % sizes.groups != 0) {
    text.refuse(kernel_name, fmt::format("{} groups do not divide {} heads", sizes.groups, sizes.heads));
    return {};
  }
  const std::optional<uint64_t> state = checked_mul(sizes.head_dim, sizes.state_size);
  const std::optional<uint64_t> conv_x = checked_mul(sizes.head_dim, sizes.kernel - 1);
  const std::optional<uint64_t> conv_group = checked_mul(sizes.state_size, sizes.kernel - 1);
  if (!state || !conv_x || !conv_group) {
    text.refuse(kernel_name, Rule::kSizeOverflow, "a Mamba state does not fit in 64 bits");
    return {};
  }
  return {{state_rows("ssm_state", types.ssm, sizes.heads, *state)},
          {state_rows("conv_x", types.conv, sizes.heads, *conv_x)},
          {state_rows("conv_b", types.conv, sizes.groups, *conv_group)},
          {state_rows("conv_c", types.conv, sizes.groups, *conv_group)}};
}

// A number, or "auto" for `derived`.
std::optional<uint64_t> count_or_auto(const ConfigFields& text, std::string_view name, uint64_t derived) {
  bool is_auto = !text.has(name);
  text.visit(name, [&](const JsonCursor& field) {
    is_auto = field.value.kind() == JsonKind::kString && field.value.text() == "auto";
  });
  return is_auto ? std::optional(derived) : text.find_count(name);
}

// mamba_n_heads heads that share `width` channels.
std::optional<Mamba2> read_hybrid_mamba(const ConfigFields& text, uint64_t width) {
  const std::optional<uint64_t> heads = text.count("mamba_n_heads", 128);
  if (!heads) return std::nullopt;
  const std::optional<uint64_t> head_dim = count_or_auto(text, "mamba_d_head", width / *heads);
  const std::optional<uint64_t> groups = text.count("mamba_n_groups", 1);
  const std::optional<uint64_t> state_size = text.count("mamba_d_state", 256);
  const std::optional<uint64_t> kernel = text.count("mamba_d_conv", 4);
  if (!head_dim || !groups || !state_size || !kernel) return std::nullopt;
  if (checked_mul(*heads, *head_dim) == width) return Mamba2{*heads, *head_dim, *groups, *state_size, *kernel};
  text.refuse("mamba_n_heads",
              fmt::format("{} heads of {} are not the {} channels of a Mamba layer", *heads, *head_dim, width));
  return std::nullopt;
}

std::optional<uint64_t> expanded(const ConfigFields& text, uint64_t fallback) {
  const std::optional<uint64_t> hidden = text.count("hidden_size");
  const std::optional<uint64_t> expand = text.count("mamba_expand", fallback);
  if (!hidden || !expand) return std::nullopt;
  const std::optional<uint64_t> width = checked_mul(*hidden, *expand);
  if (!width) text.refuse("mamba_expand", Rule::kSizeOverflow, "does not fit in 64 bits");
  return width;
}

// The kinds of layers of a Nemotron-H model: of a text with one letter for each, or of a list of words.
struct NemotronKinds {
  uint32_t mamba;
  uint32_t attention;
  uint32_t nothing;
};

std::optional<std::vector<uint32_t>> letters(const ConfigFields& text, std::string_view name,
                                             const NemotronKinds& kinds) {
  const std::optional<std::string> pattern = text.find_text(name);
  if (!pattern) return std::nullopt;
  std::vector<uint32_t> layers;
  for (const char letter : *pattern) {
    if (letter != 'M' && letter != '*' && letter != '-' && letter != 'E') {
      text.refuse(name, fmt::format("'{}' is none of M (Mamba), * (attention), - and E (no cache)",
                                    shown_text(std::string(1, letter))));
      return std::nullopt;
    }
    layers.push_back(letter == 'M' ? kinds.mamba : letter == '*' ? kinds.attention : kinds.nothing);
  }
  return layers;
}

std::array<LayerWord, 6> nemotron_words(const NemotronKinds& kinds) {
  return {LayerWord{"linear_attention", kinds.mamba},
          LayerWord{"full_attention", kinds.attention},
          LayerWord{"mamba", kinds.mamba},
          LayerWord{"attention", kinds.attention},
          LayerWord{"mlp", kinds.nothing},
          LayerWord{"moe", kinds.nothing}};
}

}  // namespace

// vllm/models/nemotron_h.py; NemotronHConfig. The width of a Mamba layer is heads x head_dim, and not expand x hidden.
std::optional<ModelShape> read_nemotron_h(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kNemotronH);
  const std::optional<KvType> type = read_kv_type(input);
  const std::optional<StateTypes> states =
      read_state_types(input, {.ssm_field = "mamba_ssm_cache_dtype", .vllm_ssm_is_float32 = true});
  const std::optional<uint64_t> other_dim = text.find_count("attention_head_dim");
  const auto either = [&](std::string_view name, std::string_view alias) {
    const std::optional<uint64_t> first = text.find_count(name);
    const std::optional<uint64_t> second = text.find_count(alias);
    if (first && second && *first != *second)
      text.refuse(alias, fmt::format("{} contradicts {} {}", *second, name, *first));
    if (!first && !second) text.refuse_missing(name);
    return first ? first : second;
  };
  const std::optional<uint64_t> mamba_heads = text.count("mamba_num_heads");
  const std::optional<uint64_t> mamba_dim = text.count("mamba_head_dim");
  const std::optional<uint64_t> groups = either("n_groups", "mamba_n_groups");
  const std::optional<uint64_t> kernel = either("conv_kernel", "mamba_d_conv");
  const std::optional<uint64_t> state_size = text.count("ssm_state_size");
  std::optional<LiveTokens> live = LiveTokens::all();
  if (const std::optional<uint64_t> window = text.find_number("sliding_window"))
    live = pool_window(input, "sliding_window", *window, false);
  if (text.has("block_configs")) text.refuse("block_configs", "layers with sizes of their own are not read");
  if (!layer_count || !heads || !type || !states || !mamba_heads || !mamba_dim || !groups || !kernel || !state_size ||
      !live)
    return std::nullopt;
  if (other_dim && *other_dim != heads->key_dim)
    text.refuse("attention_head_dim", fmt::format("{} contradicts head_dim {}", *other_dim, heads->key_dim));
  ModelShape shape;
  NemotronKinds kinds{};
  kinds.nothing = shape.add({});
  kinds.attention = shape.add(key_value_class(input, *type, *heads, *live));
  kinds.mamba =
      shape.add(mamba2_class(text, "conv_kernel", {*mamba_heads, *mamba_dim, *groups, *state_size, *kernel}, *states));
  const auto by_letters = letters(text, "hybrid_override_pattern", kinds);
  const auto words = nemotron_words(kinds);
  for (const std::string_view name : {"layers_block_type", "layer_types"}) {
    if (!text.has(name)) continue;
    const std::vector<uint32_t> stated = read_layer_list(text, name, *layer_count, words);
    if (!stated.empty() && by_letters && stated != *by_letters)
      text.refuse(name, "contradicts hybrid_override_pattern");
    shape.layers = stated;
  }
  if (shape.layers.empty() && by_letters) {
    if (by_letters->size() != *layer_count)
      text.refuse("hybrid_override_pattern",
                  fmt::format("has {} layers, num_hidden_layers says {}", by_letters->size(), *layer_count));
    shape.layers = *by_letters;
  }
  if (shape.layers.empty() && !text.failed()) text.refuse_missing("hybrid_override_pattern");
  if (const auto steps = text.find_number("num_nextn_predict_layers"); steps && *steps > 1)
    text.refuse("num_nextn_predict_layers", fmt::format("{}: vLLM serves one draft step", *steps));
  shape.draft_step = {kinds.attention, kinds.nothing};
  const auto draft_letters = letters(text, "mtp_hybrid_override_pattern", kinds);
  if (draft_letters) shape.draft_step = *draft_letters;
  text.visit("mtp_layers_block_type", [&](const JsonCursor& list) {
    if (!list.require(JsonKind::kArray)) return;
    shape.draft_step = read_layer_list(text, "mtp_layers_block_type", list.value.size(), words);
    if (draft_letters && shape.draft_step != *draft_letters)
      text.refuse("mtp_layers_block_type", "contradicts mtp_hybrid_override_pattern");
  });
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

// vllm/models/falcon_h1.py: every layer attends and has a Mamba-2 state.
std::optional<ModelShape> read_falcon_h1(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kDividedHeads);
  const std::optional<KvType> type = read_kv_type(input);
  const std::optional<StateTypes> states = read_state_types(input, {});
  std::optional<uint64_t> width = text.find_count("mamba_d_ssm");
  if (text.is_null("mamba_d_ssm")) width = expanded(text, 2);
  if (text.is_absent("mamba_d_ssm")) width = 1024;  // FalconH1Config
  const std::optional<Mamba2> mamba = width ? read_hybrid_mamba(text, *width) : std::nullopt;
  if (!layer_count || !heads || !type || !states || !mamba) return std::nullopt;
  LayerClass both = key_value_class(input, *type, *heads);
  for (ClassComponent& state : mamba2_class(text, "mamba_d_conv", *mamba, *states)) both.push_back(std::move(state));
  ModelShape shape;
  shape.layers.assign(*layer_count, shape.add(std::move(both)));
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

// GraniteMoeHybridConfig: without layer_types all layers are Mamba.
std::optional<ModelShape> read_granite_hybrid(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kMultiHead);
  const std::optional<KvType> type = read_kv_type(input);
  const std::optional<StateTypes> states = read_state_types(input, {});
  const std::optional<uint64_t> width = expanded(text, 2);
  const std::optional<Mamba2> mamba = width ? read_hybrid_mamba(text, *width) : std::nullopt;
  if (!layer_count || !heads || !type || !states || !mamba) return std::nullopt;
  ModelShape shape;
  const uint32_t attention = shape.add(key_value_class(input, *type, *heads));
  const uint32_t recurrent = shape.add(mamba2_class(text, "mamba_d_conv", *mamba, *states));
  shape.layers.assign(*layer_count, recurrent);
  const std::array words = {LayerWord{"mamba", recurrent}, LayerWord{"attention", attention},
                            LayerWord{"linear_attention", recurrent}, LayerWord{"full_attention", attention}};
  const bool states_layers = text.has("layers_block_type");
  if (states_layers) shape.layers = read_layer_list(text, "layers_block_type", *layer_count, words);
  if (text.has("layer_types")) {
    const std::vector<uint32_t> stated = read_layer_list(text, "layer_types", *layer_count, words);
    if (states_layers && stated != shape.layers) text.refuse("layer_types", "contradicts layers_block_type");
    shape.layers = stated;
  }
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

// vllm/models/jamba.py: Mamba-1 layers, whose channels are what tensor parallelism divides.
std::optional<ModelShape> read_jamba(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  if (!input.is_vllm()) {
    refuse_option(input, "engine", "SGLang does not serve Jamba");
    return std::nullopt;
  }
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kEight);
  const std::optional<KvType> type = read_kv_type(input);
  const std::optional<StateTypes> states = read_state_types(input, {});
  const std::optional<uint64_t> period = text.count("attn_layer_period", 8);
  const uint64_t offset = text.find_number("attn_layer_offset").value_or(4);
  const std::optional<uint64_t> width = expanded(text, 2);
  const std::optional<uint64_t> state_size = text.count("mamba_d_state", 16);
  const std::optional<uint64_t> kernel = text.count("mamba_d_conv", 4);
  if (!layer_count || !heads || !type || !states || !period || !width || !state_size || !kernel) return std::nullopt;
  if (offset >= *period)
    text.refuse("attn_layer_offset", fmt::format("{} is not below attn_layer_period {}", offset, *period));
  if (*kernel < 2) text.refuse("mamba_d_conv", fmt::format("{} leaves no convolution state; the least is 2", *kernel));
  if (text.failed()) return std::nullopt;
  ModelShape shape;
  const uint32_t attention = shape.add(key_value_class(input, *type, *heads));
  const uint32_t recurrent = shape.add({{state_rows("ssm_state", states->ssm, *width, *state_size)},
                                        {state_rows("conv_state", states->conv, *width, *kernel - 1)}});
  for (uint64_t layer = 0; layer < *layer_count; ++layer)
    shape.layers.push_back(layer % *period == offset ? attention : recurrent);
  const std::array words = {LayerWord{"mamba", recurrent}, LayerWord{"attention", attention}};
  if (text.has("layers_block_type")) {
    const std::vector<uint32_t> stated = read_layer_list(text, "layers_block_type", *layer_count, words);
    if (!stated.empty() && stated != shape.layers)
      text.refuse("layers_block_type", "contradicts attn_layer_period and attn_layer_offset");
  }
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

// vllm/models/lfm2.py: layers of short convolutions keep the last conv_L_cache - 1 tokens of their input.
std::optional<ModelShape> read_lfm2(const ConfigInput& input) {
  const ConfigFields& text = input.text;
  const std::optional<uint64_t> layer_count = read_layer_count(text);
  const std::optional<KvHeads> heads = read_kv_heads(text, kEight);
  const std::optional<KvType> type = read_kv_type(input);
  const std::optional<StateTypes> states = read_state_types(input, {});
  const std::optional<uint64_t> hidden = text.count("hidden_size");
  const std::optional<uint64_t> kernel = text.count("conv_L_cache", 3);
  for (const std::string_view name : {"conv_dim", "conv_dim_out"})
    if (const std::optional<uint64_t> dim = text.find_count(name); dim && hidden && *dim != *hidden)
      text.refuse(name, fmt::format("{} is not hidden_size {}", *dim, *hidden));
  if (!layer_count || !heads || !type || !states || !hidden || !kernel) return std::nullopt;
  if (*kernel < 2) text.refuse("conv_L_cache", fmt::format("{} leaves no state; the least is 2", *kernel));
  if (text.failed()) return std::nullopt;
  ModelShape shape;
  const uint32_t attention = shape.add(key_value_class(input, *type, *heads));
  const uint32_t conv = shape.add({{state_rows("conv_state", states->conv, *hidden, *kernel - 1)}});
  const std::array words = {LayerWord{"full_attention", attention}, LayerWord{"conv", conv},
                            LayerWord{"short_conv", conv}};
  if (text.has("full_attn_idxs")) {
    shape.layers.assign(*layer_count, conv);
    text.visit("full_attn_idxs", [&](const JsonCursor& list) {
      list.for_each([&](const JsonCursor& item) {
        const uint64_t layer = item.unsigned_integer();
        if (layer < *layer_count)
          shape.layers[layer] = attention;
        else
          item.refuse(Rule::kConfigField, fmt::format("layer {} is not below {}", layer, *layer_count));
      });
    });
  }
  if (text.has("layer_types") || !text.has("full_attn_idxs")) {
    const std::vector<uint32_t> stated = read_layer_list(text, "layer_types", *layer_count, words);
    if (!stated.empty() && !shape.layers.empty() && stated != shape.layers)
      text.refuse("layer_types", "contradicts full_attn_idxs");
    shape.layers = stated;
  }
  if (text.failed() || input.root.failed()) return std::nullopt;
  return shape;
}

}  // namespace crossdock
