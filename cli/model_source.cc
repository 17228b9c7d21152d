#include "cli/model_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

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

Engine engine_of(const ModelSource& source) { return source.engine == "sglang" ? Engine::kSglang : Engine::kVllm; }

std::optional<Model> from_schema(const ModelSource& source) {
  if (!source.kv_dtype.empty() || !source.conv_dtype.empty() || !source.ssm_dtype.empty() || source.kv_scales)
    return refuse(
        "--kv-dtype, --mamba-cache-dtype, --mamba-ssm-cache-dtype and --kv-scales need --config: a cache "
        "schema states its dtypes");
  if (source.draft_layers && source.layer_count == 0)
    return refuse("--draft-layers with --schema needs --layer-count: layers from that number on are draft layers");
  std::optional<Valid<CacheSchema>> schema = load_or_fail<CacheSchema>(source.schema_path);
  if (!schema) return std::nullopt;
  const uint64_t end = (*schema)->layers().hull().end();
  const uint64_t layer_count = source.layer_count != 0 ? source.layer_count : end;
  if (end > layer_count && !source.draft_layers)
    return refuse(
        fmt::format("{}: has layers up to {}, and --layer-count is {}; --draft-layers says that those from {} "
                    "on are draft layers",
                    source.schema_path, end - 1, layer_count, layer_count));
  return Model{std::move(*schema), layer_count, engine_of(source)};
}

// The file, or config.json in the folder; and what lies beside it in hf_quant_config.json, for a folder.
struct ConfigFiles {
  std::string config_path;
  std::string config;
  std::optional<std::string> quantization;
};

std::optional<ConfigFiles> read_config(const std::string& path, const JsonLimits& limits) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  ConfigFiles files;
  files.config_path = is_folder ? (fs::path(path) / "config.json").string() : path;
  Result<std::string> text = read_file(files.config_path, limits.bytes_max);
  if (!text.ok()) {
    fail(kBadInput, text.status().message());
    return std::nullopt;
  }
  files.config = std::move(text).value();
  const std::string beside = (fs::path(files.config_path).parent_path() / "hf_quant_config.json").string();
  // A link to nowhere is there, and cannot be read.
  if (fs::symlink_status(beside, error).type() == fs::file_type::not_found) return files;
  if (!is_folder) {
    tell(
        fmt::format("note: {} lies beside the config and may decide the cache's dtype; it is read when --config names "
                    "the folder",
                    beside));
    return files;
  }
  Result<std::string> quantization = read_file(beside, limits.bytes_max);
  if (!quantization.ok()) {
    fail(kBadInput, quantization.status().message());
    return std::nullopt;
  }
  files.quantization = std::move(quantization).value();
  return files;
}

std::optional<Model> from_config(const ModelSource& source) {
  if (source.layer_count != 0) return refuse("--layer-count needs --schema: a config states its layer count");
  const JsonLimits limits;
  std::optional<ConfigFiles> files = read_config(source.config_path, limits);
  if (!files) return std::nullopt;
  HfOptions options;
  options.engine = engine_of(source);
  if (!source.kv_dtype.empty()) options.kv_dtype = source.kv_dtype;
  if (!source.conv_dtype.empty()) options.conv_dtype = source.conv_dtype;
  if (!source.ssm_dtype.empty()) options.ssm_dtype = source.ssm_dtype;
  options.kv_scales = source.kv_scales;
  options.draft_layers = source.draft_layers;
  options.quant_config = std::move(files->quantization);
  Diagnostics diagnostics("config");
  std::optional<HfModel> model = read_hf_config(files->config, options, limits, diagnostics);
  if (!model) {
    fail(files->config_path, diagnostics);
    return std::nullopt;
  }
  log_info(fmt::format("architecture {}, model_type {}", model->architecture, model->model_type));
  for (const std::string& note : model->notes) tell(fmt::format("note: {}: {}", files->config_path, note));
  return Model{std::move(model->cache_schema), model->layer_count, options.engine};
}

}  // namespace

void add_model_options(Command& command, ModelSource& source) {
  command.text("--config", source.config_path, "PATH",
               "The model: a Hugging Face config.json, or the folder with it (and hf_quant_config.json)");
  command.text("--schema", source.schema_path, "FILE",
               "Or a cache schema document, for models that --config does not support");
  command.number(
      "--layer-count", source.layer_count, 1, UINT64_MAX,
      "With --schema: layers of the model, with those that keep nothing, which the pipeline splits (default: "
      "up to the last one of the schema)");
  command
      .text("--engine", source.engine, "ENGINE",
            "Whose rules decide where a config alone does not, and which stages get the layers that do not divide: "
            "vllm (those before the last) or sglang (the last)")
      .one_of({"vllm", "sglang"});
  command.text("--kv-dtype", source.kv_dtype, "DTYPE",
               "With --config: dtype of the cache, as the engine names it: auto (default), fp8_e4m3, nvfp4, ...");
  command.text("--mamba-cache-dtype", source.conv_dtype, "DTYPE",
               "With --config: dtype of convolution states (default: the engine's)");
  command.text("--mamba-ssm-cache-dtype", source.ssm_dtype, "DTYPE",
               "With --config: dtype of recurrent states (default: the engine's)");
  command.flag("--kv-scales", source.kv_scales, "With an fp8 --kv-dtype: one float32 scale per token and head");
  command.flag("--draft-layers", source.draft_layers,
               "Include the draft (multi-token prediction) layers; with --schema: those from --layer-count on");
}

std::optional<Model> load_model(const ModelSource& source) {
  if (source.config_path.empty() == source.schema_path.empty())
    return refuse("give either --config FILE or --schema FILE as the model");
  return source.schema_path.empty() ? from_config(source) : from_schema(source);
}

}  // namespace crossdock::cli
