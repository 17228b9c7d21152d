#include "model/hf/cache_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace crossdock {
namespace {

using Harmless = CacheField::Harmless;

// From vLLM (config/model.py, transformers_utils/model_arch_config_convertor.py and models/) and SGLang
// (configs/model_config.py and models/).
constexpr std::array kCacheFields = {
    CacheField{"attention_chunk_size"},
    CacheField{"attention_k_eq_v", Harmless::kFalse},
    CacheField{"attention_other_setting"},
    CacheField{"attn_layer_offset"},
    CacheField{"attn_layer_period"},
    CacheField{"attn_type_list", Harmless::kAllOne},
    CacheField{"block_configs"},
    CacheField{"compress_rates"},
    CacheField{"compress_ratios"},
    CacheField{"conv_L_cache"},
    CacheField{"dual_chunk_attention_config"},
    CacheField{"full_attention_interval"},
    CacheField{"full_attn_idxs"},
    CacheField{"global_head_dim"},
    CacheField{"hybrid_layer_pattern"},
    CacheField{"hybrid_override_pattern"},
    CacheField{"index_topk"},
    CacheField{"index_topk_freq", Harmless::kOne},
    CacheField{"index_topk_pattern"},
    CacheField{"indexer_types"},
    CacheField{"interleaved_sliding_window"},
    CacheField{"is_causal", Harmless::kTrue},
    CacheField{"is_encoder_decoder", Harmless::kFalse},
    CacheField{"is_heterogeneous", Harmless::kFalse},
    CacheField{"kv_lora_rank"},
    CacheField{"layer_group_size", Harmless::kOne},
    CacheField{"layer_types", Harmless::kAllFull},
    CacheField{"layers_block_type"},
    CacheField{"linear_attn_config"},
    CacheField{"linear_num_key_heads"},
    CacheField{"linear_num_value_heads"},
    CacheField{"mamba_d_ssm"},
    CacheField{"mamba_n_heads"},
    CacheField{"mamba_num_heads"},
    CacheField{"multi_latent_attention", Harmless::kFalse},
    CacheField{"multi_query", Harmless::kFalse},
    CacheField{"multi_query_group_num"},
    CacheField{"n_head_kv"},
    CacheField{"num_attention_groups"},
    CacheField{"num_global_key_value_heads"},
    CacheField{"num_key_value_heads_per_layer"},
    CacheField{"num_kv_heads"},
    CacheField{"num_kv_shared_layers", Harmless::kZero},
    CacheField{"per_layer_config"},
    CacheField{"sliding_window", Harmless::kZero},
    CacheField{"sliding_window_pattern"},
    CacheField{"sliding_window_size", Harmless::kZero},
    CacheField{"sparse_attention_config"},
    CacheField{"ssm_state_size"},
    CacheField{"swa_head_dim"},
    CacheField{"swa_num_key_value_heads"},
    CacheField{"swa_v_head_dim"},
    CacheField{"use_bidirectional_attention", Harmless::kFalse},
    CacheField{"use_cla", Harmless::kFalse},
    CacheField{"use_mla", Harmless::kFalse},
    CacheField{"use_sliding_window", Harmless::kFalse},
};
static_assert(std::is_sorted(kCacheFields.begin(), kCacheFields.end(),
                             [](const CacheField& a, const CacheField& b) { return a.name < b.name; }));

bool is_harmless(const JsonCursor& field, Harmless harmless) {
  const JsonValue& value = field.value;
  const auto all = [&](auto is_good) {
    if (value.kind() != JsonKind::kArray) return false;
    for (std::optional<JsonValue> item = value.first(); item; item = item->next())
      if (!is_good(*item)) return false;
    return true;
  };
  const auto is_number = [](const JsonValue& of, uint64_t max) {
    return of.kind() == JsonKind::kUnsigned && of.as_unsigned() <= max;
  };
  switch (harmless) {
    case Harmless::kNone: return false;
    case Harmless::kFalse:
      return value.kind() == JsonKind::kBool ? !value.as_bool()
                                             : value.kind() == JsonKind::kString && value.text() == "vision";
    case Harmless::kTrue: return value.kind() == JsonKind::kBool && value.as_bool();
    case Harmless::kZero: return is_number(value, 0);
    case Harmless::kOne: return is_number(value, 1);
    case Harmless::kAllFull:
      return all(
          [](const JsonValue& item) { return item.kind() == JsonKind::kString && item.text() == "full_attention"; });
    case Harmless::kAllOne:
      return all([](const JsonValue& item) { return item.kind() == JsonKind::kUnsigned && item.as_unsigned() == 1; });
  }
  return false;
}

}  // namespace

std::span<const CacheField> cache_fields() { return kCacheFields; }

void refuse_unread_cache_fields(const ConfigFields& fields) {
  const AskedFields asked = fields.asked();
  for (const CacheField& field : kCacheFields) {
    if (asked.find(field.name) != asked.end()) continue;
    bool harmful = false;
    fields.visit(field.name, [&](const JsonCursor& cursor) { harmful = !is_harmless(cursor, field.harmless); });
    if (harmful)
      fields.refuse(field.name, fmt::format("decides what other models keep, and is not read for {}; --schema gives a "
                                            "cache schema for a model like this",
                                            fields.architecture()));
  }
}

}  // namespace crossdock
