#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/model_source.h"
#include "cli/output.h"

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

void add_schema_command(Command& app) {
  Command command = app.subcommand("schema", "Make the cache schema of a model: what it keeps per layer and token");
  const auto options = std::make_shared<Options>();
  add_model_options(command, options->source);
  command.text("-o,--output", options->output, "FILE", "Write the document here instead of to standard output");
  command.explain("",
                  {"crossdock schema --config examples/models/deepseek-v3/config.json --draft-layers -o schema.json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
