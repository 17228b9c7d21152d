// Where a command gets a cache schema from: a Hugging Face config.json, or a cache schema document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/kv/cache_schema.h"
#include "model/valid.h"

namespace crossdock::cli {

class Command;

struct ModelSource {
  std::string config_path;
  std::string schema_path;
  uint64_t layer_count = 0;  // with a schema: that a pipeline splits; 0: all
  std::string kv_dtype;
  bool kv_scales = false;
  bool draft_layers = false;
};

struct Model {
  Valid<CacheSchema> cache_schema;
  uint64_t layer_count;  // that a pipeline splits; draft layers not counted
};

// Adds --config, --schema and what goes with them; one of the first two is needed.
void add_model_options(Command& command, ModelSource& source);

// Prints what is wrong and is empty when there is no model; the exit code is then kBadInput.
std::optional<Model> load_model(const ModelSource& source);

}  // namespace crossdock::cli
