// In the program without SimGrid: finds crossdock-sim, and leaves its commands to it.
#include "cli/simulator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace crossdock::cli {

// For the list of commands and for suggestions; neither is ever run here.
void add_simulate_command(Command& app) { app.subcommand("simulate", kSimulateHelp); }
void add_check_command(Command& app) { app.subcommand("check", kCheckHelp); }

std::optional<int> go_on_in_simulator(int argc, char** argv) {
  std::string_view command;
  for (int i = 1; i < argc && command.empty(); ++i)
    if (argv[i][0] != '-') command = argv[i];
  if (command != "simulate" && command != "check" && command != "completion") return std::nullopt;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail(kFailed, fmt::format("cannot tell where this program is: {}", error.message()));
  const std::filesystem::path folder = self.parent_path();
  // In the build tree, and where it is installed.
  const std::array<std::filesystem::path, 2> places = {folder / "crossdock-sim",
                                                       folder.parent_path() / "libexec/crossdock/crossdock-sim"};
  for (const std::filesystem::path& place : places) {
    // Not this program under that name: it would run itself for ever.
    if (!std::filesystem::is_regular_file(place, error) || std::filesystem::equivalent(place, self, error) ||
        ::access(place.c_str(), X_OK) != 0)
      continue;
    ::execv(place.c_str(), argv);
    return fail(kFailed, fmt::format("cannot run '{}': {}", place.string(), std::strerror(errno)));
  }
  return fail(kFailed, fmt::format("the command '{}' needs crossdock-sim, which can be run neither as '{}' nor as '{}'",
                                   command, places[0].string(), places[1].string()));
}

}  // namespace crossdock::cli
