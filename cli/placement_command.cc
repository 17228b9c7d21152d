#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/model_source.h"
#include "model/partition.h"

namespace crossdock::cli {
namespace {

struct Options {
  ModelSource source;
  PartitionRequest request;
  std::string name;
  std::string resource = "kv:cache";
  std::string revision = "1";
  std::string axis_order = "nhd";
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
  const std::optional<Model> model = load_model(options.source);
  if (!model) return kBadInput;
  PartitionRequest& request = options.request;
  const std::string stem = options.output == "-" ? "" : stem_of(options.output);
  request.name = !options.name.empty() ? options.name : !stem.empty() ? stem : "placement";
  request.resource = ResourceId(options.resource);
  request.revision = RevisionId(options.revision);
  request.layer_count = model->layer_count;
  if (options.page_tokens != 0) request.paging = Paging{options.page_tokens, options.axis_order};
  Faults faults;
  const std::optional<Valid<PlacementManifest>> placement = partition(model->cache_schema, request, faults);
  if (!placement) {
    for (const Fault& fault : faults.kept()) fail(kBadInput, fault.to_line());
    return kBadInput;
  }
  return write_output(options.output, to_json(*placement),
                      fmt::format("placement '{}', {} participants", request.name, (*placement)->parts.size()));
}

}  // namespace

void add_placement_command(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("placement", "Make a placement: who owns what when a model is split as engines split it");
  const auto options = std::make_shared<Options>();
  PartitionRequest& request = options->request;
  add_model_options(*command, options->source);
  const CLI::Validator size = CLI::Range(uint64_t{1}, uint64_t{kParticipantsMax}).description("");
  command->add_option("--tp", request.tp, "Tensor-parallel size")->check(size)->capture_default_str();
  command->add_option("--pp", request.pp, "Pipeline-parallel size")->check(size)->capture_default_str();
  command->add_option("--dp", request.dp, "Data-parallel size: so many complete replicas")
      ->check(size)
      ->capture_default_str();
  command->add_option("--cp", request.cp, "Context-parallel size: tokens are dealt out in turn")
      ->check(size)
      ->capture_default_str();
  command->add_option("--cp-block", request.cp_block_tokens, "Tokens that a context-parallel rank gets in one turn")
      ->capture_default_str();
  command
      ->add_option("--pp-layers", request.layers_per_stage,
                   "Layers of each pipeline stage, instead of the engine's rule")
      ->delimiter(',')
      ->type_name("N,N,...");
  command->add_option("--heads", request.heads_per_rank, "Heads of each tensor-parallel rank, instead of equal shares")
      ->delimiter(',')
      ->type_name("N,N,...");
  command->add_option("--engine", request.engine, "Whose rule splits layers that do not divide by --pp: vllm or sglang")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Engine>{{"vllm", Engine::kVllm}, {"sglang", Engine::kSglang}}))
      ->type_name("ENGINE")
      ->default_str("vllm");
  command->add_option("--page-size", options->page_tokens, "State the runtime's page size")->type_name("TOKENS");
  command->add_option("--axis-order", options->axis_order, "With --page-size: the order of axes in a page")
      ->capture_default_str();
  command->add_option("--name", options->name, "Name of the placement (default: that of the output file)");
  command->add_option("--resource", options->resource, "What is placed")->capture_default_str();
  command->add_option("--revision", options->revision, "Revision of the resource")->capture_default_str();
  command->add_option("-o,--output", options->output, "Write the document here instead of to standard output")
      ->type_name("FILE");
  command->footer(R"(Examples:
  crossdock placement --config examples/models/llama-3.1-70b/config.json --tp 8 --pp 2 --pp-layers 41,39 -o prefill.json
  crossdock placement --config examples/models/qwen3-235b-a22b/config.json --tp 16 --dp 2 -o decode.json
  crossdock placement --schema schema.json --tp 4 --heads 2,2,1,1 -o uneven.json)");
  command->callback([options, &outcome] { outcome.exit_code = run(*options); });
}

}  // namespace crossdock::cli
