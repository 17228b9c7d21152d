// A cache schema from the config.json of a Hugging Face model: what the model keeps for each token and each sequence.
// Facts about the fields: the configuration classes of the transformers library. Facts about what is kept: vLLM and
// SGLang, named where they are used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/kv/cache_schema.h"
#include "model/valid.h"
#include "model/wire/json.h"

namespace crossdock {

// What an engine chooses at its start and the config does not say.
struct HfOptions {
  // dtype of the attention cache when it is not the model's own: "float8_e4m3fn", ... or, for multi-head latent
  // attention only, vLLM's packing "fp8_ds_mla". States and indexer keys keep theirs.
  std::optional<std::string> kv_dtype = std::nullopt;
  // With an fp8 kv_dtype: adds components "key_scale" and "value_scale", one float32 per token and head.
  bool kv_scales = false;
  // Adds the draft (multi-token prediction) layers of the checkpoint; their ids follow the last hidden layer's.
  bool draft_layers = false;
};

struct HfModel {
  std::string architecture;        // for example "LlamaForCausalLM"
  uint64_t layer_count = 0;        // hidden layers, without draft layers
  uint64_t draft_layer_count = 0;  // draft layers in the schema
  Valid<CacheSchema> cache_schema;
};

// Layers of one model, hidden and draft together; more is refused before anything is made of the number.
inline constexpr uint64_t kHfLayersMax = 100'000;

// Fields that no rule here asks for are ignored, and null counts as absent: the format belongs to another project.
//
// Components: "key" and "value"; or "latent" (multi-head latent attention) with one head, and "indexer_key" beside it.
// Linear attention layers hold states: "recurrent_state", per value head a matrix with the key dimension outer and the
// value dimension inner, and "conv_query", "conv_key", "conv_value", per head the last tokens of the short
// convolution's input, oldest first, with the head's dimension inner.
std::optional<HfModel> read_hf_config(std::string_view json, const HfOptions& options, const JsonLimits& limits,
                                      Diagnostics& diagnostics);

// The architectures that read_hf_config knows, sorted.
std::vector<std::string_view> known_hf_architectures();

}  // namespace crossdock
