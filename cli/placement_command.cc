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
  // From the second byte on, so that a hidden file keeps its name.
  return file.substr(0, file.find('.', 1));
}

int run(Options& options) {
  if (!options.axis_order.empty() && options.page_tokens == 0) return fail(kBadInput, "--axis-order needs --page-size");
  const std::optional<Model> model = load_model(options.source);
  if (!model) return kBadInput;
  PartitionRequest& request = options.request;
  const std::string stem = options.output == "-" ? "" : stem_of(options.output);
  request.name = !options.name.empty() ? options.name : !stem.empty() ? stem : "placement";
  request.resource = ResourceId(options.resource);
  request.revision = RevisionId(options.revision);
  request.engine = model->engine;
  request.layer_count = model->layer_count;
  if (options.page_tokens != 0)
    request.paging = Paging{options.page_tokens, parse_axis_order(options.axis_order).value_or(AxisOrder::kNhd)};
  Diagnostics diagnostics;
  const std::optional<Valid<PlacementManifest>> placement = partition(model->cache_schema, request, diagnostics);
  if (!placement) return fail(diagnostics);
  return write_document(options.output, to_json(*placement),
                        fmt::format("placement '{}', {} participants", request.name, (*placement)->parts.size()));
}

}  // namespace

void add_placement_command(Command& app) {
  Command command = app.subcommand("placement", "Make a placement: which rank owns which layers, heads and tokens");
  const auto options = std::make_shared<Options>();
  PartitionRequest& request = options->request;
  add_model_options(command, options->source);
  command.number("--tp", request.tp, 1, kParticipantsMax, "Tensor-parallel size");
  command.number("--pp", request.pp, 1, kParticipantsMax, "Pipeline-parallel size");
  command.number("--dp", request.dp, 1, kParticipantsMax, "Data-parallel size: number of complete replicas");
  command.number("--cp", request.cp, 1, kParticipantsMax, "Context-parallel size: ranks take blocks of tokens in turn");
  command.number("--cp-block", request.cp_block_tokens, 1, uint64_t{1} << 32, "Tokens of a context-parallel block");
  command.numbers("--pp-layers", request.layers_per_stage,
                  "Layers of each pipeline stage, instead of the engine's rule");
  command.numbers("--heads", request.heads_per_rank,
                  "Heads of each tensor-parallel rank, instead of equal shares; behind a ':' those of components of "
                  "another head count, as 3,5:1,3");
  command.number("--page-size", options->page_tokens, 1, uint64_t{1} << 32, "Page size of the runtime, in tokens");
  command.text("--axis-order", options->axis_order, "ORDER", "With --page-size: axes of a page, nhd (default) or hnd")
      .one_of({"nhd", "hnd"});
  command.text("--name", options->name, "NAME", "Name of the placement (default: name of the output file)");
  command.text("--resource", options->resource, "NAME", "Resource that is placed");
  command.text("--revision", options->revision, "NAME", "Revision of the resource");
  command.text("-o,--output", options->output, "FILE", "Write the document here instead of to standard output");
  command.explain(
      "",
      {"crossdock placement --config examples/models/llama-3.1-70b/config.json --tp 8 --pp 2 --pp-layers 41,39 -o "
       "prefill.json",
       "crossdock placement --config examples/models/qwen3-235b-a22b/config.json --tp 16 --dp 2 -o decode.json",
       "crossdock placement --config examples/models/llama-3.1-70b/config.json --tp 4 --heads 3,2,2,1 -o uneven.json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
