// Keys and values: the heads of standard attention and what is kept of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/hf/dtypes.h"
#include "model/hf/shape.h"

namespace crossdock {

// What the architecture's configuration class takes when the config does not say; empty: the config has to.
struct HeadDefaults {
  std::optional<uint64_t> query_heads = std::nullopt;
  std::optional<uint64_t> kv_heads = std::nullopt;  // when absent; null means as many as query heads, in every class
  std::optional<uint64_t> head_dim = std::nullopt;
  bool kv_heads_are_query_heads = false;  // multi-head attention unless the config says otherwise
  bool head_dim_by_division = false;      // hidden_size / num_attention_heads unless the config says otherwise
};

// Classes that have no default, that divide only, and that divide and are multi-head unless the config says otherwise.
inline constexpr HeadDefaults kStatedHeads = {};
inline constexpr HeadDefaults kDividedHeads = {.head_dim_by_division = true};
inline constexpr HeadDefaults kMultiHead = {.kv_heads_are_query_heads = true, .head_dim_by_division = true};

struct KvHeads {
  uint64_t count = 0;
  uint64_t key_dim = 0;
  uint64_t value_dim = 0;
};

std::optional<KvHeads> read_kv_heads(const ConfigFields& text, const HeadDefaults& defaults);

// "key" and "value", and with the option kv_scales their scales; empty when refused.
LayerClass key_value_class(const ConfigInput& input, const KvType& type, const KvHeads& heads,
                           const LiveTokens& live = {});

// Every hidden layer, and a draft layer where there are any, is of the one class. Empty when refused.
std::optional<ModelShape> uniform_shape(const ConfigInput& input, const HeadDefaults& defaults,
                                        const LiveTokens& live = {}, std::string_view dtype_fallback = {});

// sliding_window, or `when_absent`; empty for null.
std::optional<uint64_t> read_window(const ConfigFields& text, std::optional<uint64_t> when_absent);

// The window of a layer that slides: in SGLang the pool of most families keeps all tokens although attention does not
// look at them (configs/model_config.py is_hybrid_swa_model lists those that free them). Empty when refused.
std::optional<LiveTokens> pool_window(const ConfigInput& input, std::string_view name, uint64_t window,
                                      bool sglang_frees);

}  // namespace crossdock
