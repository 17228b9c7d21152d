#include "cli/model_source.h"

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "model/hf/config.h"

namespace crossdock::cli {

void add_model_options(CLI::App& command, ModelSource& source) {
  CLI::Option_group* from = command.add_option_group("model", "Where the cache schema comes from");
  from->add_option("--config", source.config_path, "A Hugging Face config.json")->type_name("FILE");
  from->add_option("--schema", source.schema_path, "A cache schema document, for a model that --config does not know")
      ->type_name("FILE");
  from->require_option(1);
  command.add_option("--kv-dtype", source.kv_dtype, "dtype of the cache, if not the model's own (float8_e4m3fn, ...)")
      ->type_name("DTYPE")
      ->excludes("--schema");
  command.add_flag("--kv-scales", source.kv_scales, "With an fp8 --kv-dtype: one float32 scale per token and head")
      ->excludes("--schema");
  command.add_flag("--draft-layers", source.draft_layers, "Include the draft (multi-token prediction) layers")
      ->excludes("--schema");
}

std::optional<Model> load_model(const ModelSource& source) {
  if (!source.schema_path.empty()) {
    std::optional<Valid<CacheSchema>> schema = load_or_fail<CacheSchema>(source.schema_path);
    if (!schema) return std::nullopt;
    const uint64_t layer_count = (*schema)->layers().hull().end();
    return Model{std::move(*schema), layer_count};
  }
  const JsonLimits limits;
  const Result<std::string> text = read_file(source.config_path, limits.bytes_max);
  if (!text.ok()) {
    fail(kBadInput, text.status().message());
    return std::nullopt;
  }
  HfOptions options;
  if (!source.kv_dtype.empty()) options.kv_dtype = source.kv_dtype;
  options.kv_scales = source.kv_scales;
  options.draft_layers = source.draft_layers;
  Faults faults("config");
  std::optional<HfModel> model = read_hf_config(text.value(), options, limits, faults);
  if (!model) {
    fail(source.config_path, faults);
    return std::nullopt;
  }
  log_info("architecture " + model->architecture);
  return Model{std::move(model->cache_schema), model->layer_count};
}

}  // namespace crossdock::cli
