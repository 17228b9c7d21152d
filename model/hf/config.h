// A cache schema from the config.json of a Hugging Face model: what the model keeps for each token and each sequence.
// Facts about the fields: the configuration classes of the transformers library. Facts about what is kept: vLLM and
// SGLang, named where they are used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/engine.h"
#include "model/kv/cache_schema.h"
#include "model/valid.h"
#include "model/wire/json.h"

namespace crossdock {

// What an engine chooses at its start and the config does not say.
struct HfOptions {
  Engine engine = Engine::kVllm;  // whose rules decide where the two differ
  // Of the attention cache: a name of kv_dtype_names(engine). Empty or "auto": what the engine takes for this
  // checkpoint. States and indexer keys keep their own types.
  std::optional<std::string> kv_dtype = std::nullopt;
  // Of the states of linear attention and Mamba layers; empty: what the engine takes. Names of PyTorch dtypes.
  std::optional<std::string> conv_dtype = std::nullopt;
  std::optional<std::string> ssm_dtype = std::nullopt;
  // With an fp8 kv_dtype: adds components "key_scale" and "value_scale", one float32 per token and head.
  bool kv_scales = false;
  // Adds the draft (multi-token prediction) layers of the checkpoint; their ids follow the last hidden layer's.
  bool draft_layers = false;
  // Text of the file hf_quant_config.json that lies beside the config, if there is one.
  std::optional<std::string> quant_config = std::nullopt;
};

struct HfModel {
  std::string architecture;        // for example "LlamaForCausalLM"
  std::string model_type;          // for example "llama"; of the language model where it is a part
  uint64_t layer_count = 0;        // hidden layers, with those that keep nothing; without draft layers
  uint64_t draft_layer_count = 0;  // draft layers in the schema
  Valid<CacheSchema> cache_schema;
  // What the config alone does not decide, and how it was taken. For people.
  std::vector<std::string> notes;
  // Names of the fields that decided, at the root and of the language model ("text_config.head_dim"). Sorted.
  std::vector<std::string> fields;
};

// Layers of one model, hidden and draft together; more is refused before anything is made of the number.
inline constexpr uint64_t kHfLayersMax = 100'000;

// The pair of architecture and model_type decides, at the root and of the language model where that is a part; any
// other is refused. Fields that no engine reads for the cache are ignored, and null counts as absent: the format
// belongs to another project. A field that engines read for the cache of other families is refused where this family
// does not have it, unless its value changes nothing (cache_fields.h).
//
// Components: "key" and "value"; or "latent" (multi-head latent attention) with one head, and "indexer_key" or
// "index_key" beside it. Linear attention layers hold states: "recurrent_state", per value head a matrix with the value
// dimension outer and the key dimension inner, and "conv_query", "conv_key", "conv_value", per head the last tokens of
// the short convolution's input, oldest first, with the head's dimension inner. Mamba layers hold "ssm_state" and
// "conv_x", "conv_b", "conv_c", or "conv_state" where the channels are not split.
// A sliding window of W tokens counts the present one, so the last W - 1 tokens live before the next one (vLLM frees
// the rest: v1/core/single_type_kv_cache_manager.py; SGLang keeps more).
std::optional<HfModel> read_hf_config(std::string_view json, const HfOptions& options, const JsonLimits& limits,
                                      Diagnostics& diagnostics);

// A row of the table of families.
struct HfFamily {
  std::string_view architecture;
  std::string_view model_type;       // at the root
  std::string_view text_model_type;  // of the language model; empty: its fields are at the root
};

// All rows, sorted.
std::vector<HfFamily> known_hf_families();

// What --kv-dtype and HfOptions::kv_dtype take: the engine's own names and PyTorch's.
std::vector<std::string_view> kv_dtype_names(Engine engine);

}  // namespace crossdock
