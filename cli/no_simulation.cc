// A program without the simulator (builds with sanitizers) has none of its commands.
#include "cli/command_line.h"
#include "cli/commands.h"

namespace crossdock::cli {

void add_simulate_command(Command&) {}
void add_check_command(Command&) {}

}  // namespace crossdock::cli
