// The `crossdock` program. Each command is one file; this one only puts them together.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace {

constexpr const char* kVersion = CROSSDOCK_VERSION;

constexpr const char* kFooter =
    R"(Exit status: 0 done, 1 the operation failed (a file that was there is as it was), 2 bad input or usage.

Examples:
  crossdock placement --config examples/models/llama-3.1-70b/config.json --tp 8 --pp 2 -o prefill.json
  crossdock validate prefill.json
  crossdock inspect prefill.json
  crossdock plan --source prefill.json --target decode.json
`crossdock COMMAND --help` has examples for each command.)";

// How many single letters have to be inserted, removed or replaced.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::string message = "unknown command '" + word + "'";
  for (const CLI::App* command : app.get_subcommands({}))
    if (edit_distance(word, command->get_name()) <= 2) return message + "; did you mean '" + command->get_name() + "'?";
  return message + "; 'crossdock --help' lists the commands";
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (app.get_subcommands().empty()) {
    int first = 1;
    for (const std::string_view flag : {"-v", "--verbose"})
      if (first < argc && argv[first] == flag) ++first;
    if (first < argc && argv[first][0] != '-') return unknown_command(app, argv[first]);
  }
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::string help = "crossdock";
  for (const CLI::App* command : app.get_subcommands()) help += " " + command->get_name();
  return message + " ('" + help + " --help' shows how it is used)";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace crossdock::cli;
  CLI::App app("Describes LLM inference state (KV cache), and plans how it moves between parallel layouts and stores.",
               "crossdock");
  Outcome outcome;
  size_t verbosity = 0;
  app.set_version_flag("--version", std::string("crossdock ") + kVersion);
  app.add_flag(
      "-v,--verbose", [&verbosity](int64_t count) { verbosity = static_cast<size_t>(count); },
      "Say on standard error what is done and how long it takes; twice: each operation too");
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  app.parse_complete_callback([&] { set_verbosity(verbosity); });
  add_schema_command(app, outcome);
  add_placement_command(app, outcome);
  add_validate_command(app, outcome);
  add_inspect_command(app, outcome);
  add_digest_command(app, outcome);
  add_convert_command(app, outcome);
  add_snapshot_command(app, outcome);
  add_bind_command(app, outcome);
  add_plan_command(app, outcome);
  add_verify_plan_command(app, outcome);
  add_replay_command(app, outcome);
  add_reshard_command(app, outcome);
  add_store_command(app, outcome);
  add_simulate_command(app, outcome);
  add_check_command(app, outcome);
  add_completion_command(app, outcome);
  for (CLI::App* command : app.get_subcommands({})) command->fallthrough();

  int exit_code = kDone;
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      std::fputs(app.help().c_str(), stderr);
      return kBadInput;
    }
    exit_code = outcome.exit_code;
  } catch (const std::bad_alloc&) {
    return fail(kFailed, "out of memory");
  } catch (const CLI::CallForHelp& call) {
    app.exit(call);
  } catch (const CLI::CallForVersion& call) {
    app.exit(call);
  } catch (const CLI::ParseError& error) {
    return fail(kBadInput, usage_error(app, error, argc, argv));
  }
  const crossdock::Status flushed = flush_output();
  if (!flushed.ok()) return fail(kFailed, flushed.message());
  return exit_code;
}
