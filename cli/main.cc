// The `crossdock` program. Each command is one file; this one only puts them together.
#include <new>
#include <string>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output.h"

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

}  // namespace

int main(int argc, char** argv) {
  using namespace crossdock::cli;
  CommandLine command_line(
      "crossdock",
      "Describes LLM inference state (KV cache), and plans how it moves between parallel layouts and stores.",
      kVersion);
  Command root = command_line.root();
  root.counted_flag("-v,--verbose", set_verbosity,
                    "Say on standard error what is done and how long it takes; twice: each operation too");
  root.footer(kFooter);
  add_commands(root);

  int exit_code = kDone;
  try {
    exit_code = command_line.run(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail(kFailed, "out of memory");
  }
  const crossdock::Status flushed = flush_output();
  if (!flushed.ok()) return fail(kFailed, flushed.message());
  return exit_code;
}
