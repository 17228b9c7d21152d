// Builds without the simulator (sanitizer builds) do not have its commands.
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/simulator.h"

namespace crossdock::cli {

void add_simulate_command(Command&) {}
void add_check_command(Command&) {}
std::optional<int> go_on_in_simulator(int, char**) { return std::nullopt; }

}  // namespace crossdock::cli
