// Keys and values: the heads of standard attention and what is kept of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/hf/shape.h"

namespace crossdock {

// What the architecture's configuration class takes when the config does not say; empty: the config has to.
struct HeadDefaults {
  std::optional<uint64_t> query_heads = std::nullopt;
  std::optional<uint64_t> kv_heads = std::nullopt;
  std::optional<uint64_t> head_dim = std::nullopt;
  bool kv_heads_are_query_heads = false;  // multi-head attention unless the config says otherwise
  bool head_dim_by_division = false;      // hidden_size / num_attention_heads unless the config says otherwise
};

struct KvHeads {
  uint64_t count = 0;
  uint64_t dim = 0;
};

std::optional<KvHeads> read_kv_heads(const ConfigFields& text, const HeadDefaults& defaults);

// "key" and "value", and with the option kv_scales their scales; empty when refused.
std::vector<Component> key_value_components(const ConfigInput& input, const KvHeads& heads,
                                            std::string_view dtype_fallback = {});

}  // namespace crossdock
