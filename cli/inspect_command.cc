#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/inspect.h"
#include "cli/output.h"

namespace crossdock::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool json = false;
  uint64_t row_count_max = 64;
};

// Goes on after a file that cannot be read, and exits with its code: one bad file does not hide the others.
int run(const Options& options) {
  int exit_code = kDone;
  std::string text;
  for (const std::string& path : options.paths) {
    const std::optional<AnyDocument> document = load_any_or_fail(path);
    if (!document)
      exit_code = kBadInput;
    else if (options.json)
      text += inspect_json(*document) + "\n";
    else
      text += (text.empty() ? "" : "\n") + inspect_text(*document, options.row_count_max);
  }
  print(text);
  return exit_code;
}

}  // namespace

void add_inspect_command(Command& app) {
  Command command = app.subcommand("inspect", "Show the contents of documents: ownership, layout and sizes in bytes");
  const auto options = std::make_shared<Options>();
  command.texts("files", options->paths, "FILE", "Documents; '-' is standard input").required();
  command.flag("--json", options->json, "Print one JSON object per file, with all rows");
  command.number("--rows", options->row_count_max, 1, UINT64_MAX, "Maximum rows of each table");
  command.explain(
      "Bytes per token count a row of several tokens by its share of one token; states are counted separately.",
      {"crossdock inspect prefill.json", "crossdock inspect prefill.json --json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
