// Builds without the simulator (sanitizer builds) do not have its commands.
#include "cli/command_line.h"
#include "cli/commands.h"

namespace crossdock::cli {

void add_simulate_command(Command&) {}
void add_check_command(Command&) {}

}  // namespace crossdock::cli
