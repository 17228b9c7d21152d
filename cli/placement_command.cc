#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "model/kv/partition.h"

namespace crossdock::cli {
namespace {

struct Options {
  ModelSource source;
  PartitionRequest request;
  std::string name;
  std::string engine = "vllm";
  std::string resource = "kv:cache";
  std::string revision = "1";
  std::string axis_order;
  uint64_t page_tokens = 0;
  std::string output;
};

// "dir/prefill.json" -> "prefill"
std::string stem_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  return file.substr(0, file.find('.', 1));
}

int run(Options& options) {
  if (!options.axis_order.empty() && options.page_tokens == 0)
    return fail(kBadInput, "--axis-order says how a page is laid out: it needs --page-size");
  const std::optional<Model> model = load_model(options.source);
  if (!model) return kBadInput;
  PartitionRequest& request = options.request;
  const std::string stem = options.output == "-" ? "" : stem_of(options.output);
  request.name = !options.name.empty() ? options.name : !stem.empty() ? stem : "placement";
  request.resource = ResourceId(options.resource);
  request.revision = RevisionId(options.revision);
  request.engine = options.engine == "vllm" ? Engine::kVllm : Engine::kSglang;
  request.layer_count = model->layer_count;
  if (options.page_tokens != 0)
    request.paging = Paging{options.page_tokens, options.axis_order.empty() ? "nhd" : options.axis_order};
  Diagnostics diagnostics;
  const std::optional<Valid<PlacementManifest>> placement = partition(model->cache_schema, request, diagnostics);
  if (!placement) return fail(diagnostics);
  return write_document(options.output, to_json(*placement),
                        fmt::format("placement '{}', {} participants", request.name, (*placement)->parts.size()));
}

}  // namespace

void add_placement_command(Command& app) {
  Command command =
      app.subcommand("placement", "Make a placement: who owns what when a model is split as engines split it");
  const auto options = std::make_shared<Options>();
  PartitionRequest& request = options->request;
  add_model_options(command, options->source);
  command.number("--layer-count", options->source.layer_count, 1, UINT64_MAX,
                 "With --schema: how many layers the pipeline splits; the rest (draft layers) go to the last stage "
                 "(default: all)");
  command.number("--tp", request.tp, 1, kParticipantsMax, "Tensor-parallel size");
  command.number("--pp", request.pp, 1, kParticipantsMax, "Pipeline-parallel size");
  command.number("--dp", request.dp, 1, kParticipantsMax, "Data-parallel size: so many complete replicas");
  command.number("--cp", request.cp, 1, kParticipantsMax, "Context-parallel size: tokens are dealt out in turn");
  command.number("--cp-block", request.cp_block_tokens, 1, uint64_t{1} << 32,
                 "Tokens that a context-parallel rank gets in one turn");
  command.numbers("--pp-layers", request.layers_per_stage, "Layers of each stage, instead of the engine's rule");
  command.numbers("--heads", request.heads_per_rank, "Heads of each tensor-parallel rank, instead of equal shares");
  command
      .text("--engine", options->engine, "ENGINE",
            "Whose rule gives out layers that do not divide by --pp: vllm (stages before the last) or sglang (last "
            "stages)")
      .one_of({"vllm", "sglang"});
  command.number("--page-size", options->page_tokens, 1, uint64_t{1} << 32, "State the runtime's page size, in tokens");
  command.text("--axis-order", options->axis_order, "ORDER", "With --page-size: nhd (the default) or hnd")
      .one_of({"nhd", "hnd"});
  command.text("--name", options->name, "NAME", "Name of the placement (default: that of the output file)");
  command.text("--resource", options->resource, "NAME", "What is placed");
  command.text("--revision", options->revision, "NAME", "Revision of the resource");
  command.text("-o,--output", options->output, "FILE", "Write the document here instead of to standard output");
  command.footer(R"(Examples:
  crossdock placement --config examples/models/llama-3.1-70b/config.json --tp 8 --pp 2 --pp-layers 41,39 -o prefill.json
  crossdock placement --config examples/models/qwen3-235b-a22b/config.json --tp 16 --dp 2 -o decode.json
  crossdock placement --config examples/models/llama-3.1-70b/config.json --tp 4 --heads 3,2,2,1 -o uneven.json)");
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
