#include <fmt/format.h>

#include <memory>

#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/documents.h"
#include "cli/file_names.h"
#include "cli/output.h"
#include "model/wire/json_writer.h"

namespace crossdock::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool json = false;
};

// Goes on after a file that cannot be read. Lines look like those of sha256sum, but the digest is of the canonical form
// and not of the file.
int run(const Options& options) {
  int exit_code = kDone;
  JsonWriter out;
  out.begin_array();
  std::string lines;
  for (const std::string& path : options.paths) {
    const std::optional<AnyDocument> document = load_any_or_fail(path);
    if (!document) {
      exit_code = kBadInput;
      continue;
    }
    const std::string hex = digest(*document).hex();
    lines += fmt::format("sha256:{}  {}\n", hex, printable(path));
    out.begin_object();
    out.key("digest").string(hex);
    out.key("path").string(json_path(path));
    out.key("schema").string(schema_name(*document));
    out.end_object();
  }
  out.end_array();
  print(options.json ? out.take() + "\n" : lines);
  return exit_code;
}

}  // namespace

void add_digest_command(Command& app) {
  Command command = app.subcommand("digest", "Print the SHA-256 digest of each document's canonical form");
  const auto options = std::make_shared<Options>();
  command.texts("files", options->paths, "FILE", "Documents; '-' is standard input").required();
  command.flag("--json", options->json, "Print the result as JSON");
  command.explain("Documents with equal content have equal digests, independent of field order and white space.",
                  {"crossdock digest prefill.json decode.json"});
  command.action([options] { return run(*options); });
}

}  // namespace crossdock::cli
