#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/model_source.h"
#include "cli/options.h"

namespace crossdock::cli {
namespace {

struct Options {
  ModelSource source;
  std::string output;
};

int run(const Options& options) {
  const std::optional<Model> model = load_model(options.source);
  if (!model) return kBadInput;
  return write_document(options.output, to_json(model->cache_schema), "cache schema");
}

}  // namespace

void add_schema_command(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("schema", "Make the cache schema of a model: what it keeps per layer and token");
  const auto options = std::make_shared<Options>();
  add_model_options(*command, options->source);
  add_text(*command, "-o,--output", options->output, "FILE", "Write the document here instead of to standard output");
  command->footer(R"(Example:
  crossdock schema --config examples/models/deepseek-v3/config.json --draft-layers -o schema.json)");
  command->callback([options, &outcome] { outcome.exit_code = run(*options); });
}

}  // namespace crossdock::cli
