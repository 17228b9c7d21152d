// The `crossdock` program. Each command is one file.
#include <signal.h>

#include <algorithm>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/simulator.h"

namespace {

constexpr const char* kVersion = CROSSDOCK_VERSION;

}  // namespace

int main(int argc, char** argv) {
  using namespace crossdock::cli;
  const std::span<char*> arguments(argv, static_cast<size_t>(argc));
  if (std::find(arguments.begin(), arguments.end(), std::string_view("--json")) != arguments.end()) {
    expect_json();
    tell_of_interrupts_as_json();
  }
  if (const std::optional<int> failed = go_on_in_simulator(argc, argv)) {
    print_json_failure(*failed);
    return *failed;
  }
  // A write past the file size limit (ulimit -f) is then an error with a path, and does not end the program.
  signal(SIGXFSZ, SIG_IGN);
  tell_of_interrupts();
  CommandLine command_line(
      "crossdock", "Describes LLM inference state (KV cache) and plans transfers between parallel layouts and stores.",
      kVersion);
  Command root = command_line.root();
  root.counted_flag("-v,--verbose", set_verbosity,
                    "Log steps, times and sizes to standard error; given twice: each operation too");
  root.explain(
      "'crossdock COMMAND --help' shows the options and examples of a command.\n"
      "Exit status: 0 done, 1 the operation failed (existing files are unchanged), 2 bad input or usage.",
      {"crossdock placement --config examples/models/llama-3.1-70b/config.json --tp 8 -o prefill.json",
       "crossdock validate prefill.json", "crossdock inspect prefill.json",
       "crossdock plan --source prefill.json --target decode.json"});
  add_commands(root);

  int exit_code = kDone;
  try {
    exit_code = command_line.run(argc, argv);
  } catch (const std::bad_alloc&) {
    // The one exception that is expected: sizes come from documents, and limits bound them only roughly.
    exit_code = fail(kFailed, "out of memory");
  }
  print_json_failure(exit_code);
  // A result that could not be written (a full disk, a closed pipe) is a failure, whatever the command returned.
  const crossdock::Status flushed = flush_output();
  if (!flushed.ok()) return fail(kFailed, flushed.message());
  return exit_code;
}
