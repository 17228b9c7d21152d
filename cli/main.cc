// The `crossdock` program. Each command is one file; this one only puts them together.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command.h"

namespace {

constexpr const char* kVersion = CROSSDOCK_VERSION;

constexpr const char* kFooter = R"(Exit status: 0 done, 1 the operation failed (nothing is lost), 2 bad input or usage.

Examples:
  crossdock placement --config examples/models/llama-3.1-70b/config.json --tp 8 --pp 2 -o prefill.json
  crossdock validate prefill.json
  crossdock inspect prefill.json
`crossdock COMMAND --help` has examples for each command.)";

}  // namespace

int main(int argc, char** argv) {
  using namespace crossdock::cli;
  CLI::App app("Moves LLM inference state between parallel layouts by manifest.", "crossdock");
  Outcome outcome;
  bool verbose = false;
  app.set_version_flag("--version", std::string("crossdock ") + kVersion);
  app.add_flag("-v,--verbose", verbose, "Say on standard error what is done and how long it takes");
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  app.parse_complete_callback([&] { set_verbose(verbose); });
  add_schema_command(app, outcome);
  add_placement_command(app, outcome);
  add_validate_command(app, outcome);
  add_inspect_command(app, outcome);
  add_digest_command(app, outcome);
  add_convert_command(app, outcome);
  add_completion_command(app, outcome);
  for (CLI::App* command : app.get_subcommands({})) command->fallthrough();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadInput;
  }
  if (app.get_subcommands().empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kBadInput;
  }
  const crossdock::Status flushed = flush_output();
  if (!flushed.ok()) return fail(kFailed, flushed.message());
  return outcome.exit_code;
}
