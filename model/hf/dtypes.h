// In which types a model's cache and states are kept: the checkpoint's own, an engine's choice, or an option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hf/shape.h"

namespace crossdock {

// A dtype and its item size.
struct ItemType {
  std::string dtype;
  uint64_t item_bytes = 0;
};

// How attention rows are stored.
struct KvType {
  enum class Form {
    kPlain,  // items of `item`
    kNvfp4,  // 4-bit items, two in a byte, and an fp8 scale for 16 of them: inline (vLLM) or beside them (SGLang)
    kFp4,    // 4-bit items, two in a byte, without scales
    kDsMla,  // vLLM's "fp8_ds_mla"
  };
  Form form = Form::kPlain;
  ItemType item;  // of kPlain
  bool is_fp8() const { return form == Form::kPlain && item.dtype.starts_with("float8_"); }
};

// The model's own type, as the engine serves it: 32-bit checkpoints are served in 16 bits. torch_dtype or, as newer
// files have it, dtype; vLLM looks at the root first, SGLang at the language model's fields. `fallback` is for a model
// whose config names none.
std::optional<ItemType> read_model_type(const ConfigInput& input, std::string_view fallback = {});

// What attention rows are stored in: the option kv_dtype, what the engine takes for a checkpoint with a cache scheme,
// or the model's own type. Latent attention: `is_latent`; with an indexer that picks tokens: `is_sparse`.
struct KvTypeRequest {
  std::string_view fallback = {};
  bool is_latent = false;
  bool is_sparse = false;
};
std::optional<KvType> read_kv_type(const ConfigInput& input, const KvTypeRequest& request = {});

// Types of a convolution's and of a recurrent state.
struct StateTypes {
  ItemType conv;
  ItemType ssm;
};
struct StateTypeRequest {
  std::string_view ssm_field = {};     // that vLLM reads for this family; empty: none
  bool vllm_ssm_is_float32 = false;    // vLLM without that field: float32; else the type of the convolution
  bool ssm_is_always_float32 = false;  // in both engines
};
std::optional<StateTypes> read_state_types(const ConfigInput& input, const StateTypeRequest& request);

// Plain components: one row per token, and one row in all.
Component token_rows(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim);
Component state_rows(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim);

// Rows of `head_count` heads of `items` items: one component, or two where scales lie beside it. Empty, with a
// diagnostic at `field`, when the items do not fill whole bytes or scales.
std::vector<Component> stored_rows(const ConfigInput& input, std::string_view field, std::string_view name,
                                   const KvType& type, uint64_t head_count, uint64_t items);

}  // namespace crossdock
