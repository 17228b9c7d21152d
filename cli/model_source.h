// The model of a command: a Hugging Face config.json or the folder that has it, or a cache schema document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/engine.h"
#include "model/kv/cache_schema.h"
#include "model/valid.h"

namespace crossdock::cli {

class Command;

struct ModelSource {
  std::string config_path;
  std::string schema_path;
  uint64_t layer_count = 0;  // with a schema: layers that the pipeline splits; 0: all
  std::string engine = "vllm";
  std::string kv_dtype;
  std::string conv_dtype;
  std::string ssm_dtype;
  bool kv_scales = false;
  bool draft_layers = false;
};

struct Model {
  Valid<CacheSchema> cache_schema;
  uint64_t layer_count;  // layers that the pipeline splits, without draft layers
  Engine engine;         // whose rules decide where engines differ
};

// Adds --config, --schema and their options; load_model() needs one of the two.
void add_model_options(Command& command, ModelSource& source);

// Prints an error and returns nothing when there is no model; the exit code is then kBadInput.
std::optional<Model> load_model(const ModelSource& source);

}  // namespace crossdock::cli
