#include "cli/model_source.h"

#include "base/file.h"
#include "cli/command_line.h"
#include "cli/documents.h"
#include "cli/log.h"
#include "cli/output.h"
#include "model/hf/config.h"

namespace crossdock::cli {
namespace {

std::optional<Model> refuse(std::string_view message) {
  fail(kBadInput, message);
  return std::nullopt;
}

std::optional<Model> from_schema(const ModelSource& source) {
  // Refused and not ignored: options that have no effect would make a cache of another size than asked for.
  if (!source.kv_dtype.empty() || source.kv_scales || source.draft_layers)
    return refuse(
        "--kv-dtype, --kv-scales and --draft-layers need --config: a cache schema states its dtypes and layers");
  std::optional<Valid<CacheSchema>> schema = load_or_fail<CacheSchema>(source.schema_path);
  if (!schema) return std::nullopt;
  const uint64_t end = (*schema)->layers().hull().end();
  return Model{std::move(*schema), source.layer_count != 0 ? source.layer_count : end};
}

std::optional<Model> from_config(const ModelSource& source) {
  if (source.layer_count != 0) return refuse("--layer-count needs --schema: a config states its layer count");
  const JsonLimits limits;
  const Result<std::string> text = read_file(source.config_path, limits.bytes_max);
  if (!text.ok()) return refuse(text.status().message());
  HfOptions options;
  if (!source.kv_dtype.empty()) options.kv_dtype = source.kv_dtype;
  options.kv_scales = source.kv_scales;
  options.draft_layers = source.draft_layers;
  Diagnostics diagnostics("config");
  std::optional<HfModel> model = read_hf_config(text.value(), options, limits, diagnostics);
  if (!model) {
    fail(source.config_path, diagnostics);
    return std::nullopt;
  }
  log_info("architecture " + model->architecture);
  return Model{std::move(model->cache_schema), model->layer_count};
}

}  // namespace

void add_model_options(Command& command, ModelSource& source) {
  command.text("--config", source.config_path, "FILE", "The model: a Hugging Face config.json");
  command.text("--schema", source.schema_path, "FILE",
               "Or a cache schema document, for models that --config does not support");
  command.text("--kv-dtype", source.kv_dtype, "DTYPE",
               "With --config: dtype of the cache, for example float8_e4m3fn (default: the model's)");
  command.flag("--kv-scales", source.kv_scales, "With an fp8 --kv-dtype: one float32 scale per token and head");
  command.flag("--draft-layers", source.draft_layers,
               "With --config: include the draft (multi-token prediction) layers");
}

std::optional<Model> load_model(const ModelSource& source) {
  if (source.config_path.empty() == source.schema_path.empty())
    return refuse("give either --config FILE or --schema FILE as the model");
  return source.schema_path.empty() ? from_config(source) : from_schema(source);
}

}  // namespace crossdock::cli
