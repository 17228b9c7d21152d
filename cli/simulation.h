// Shared by `simulate` and `check`: reading scenarios, and showing runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/run_summary.h"
#include "sim/scenario/scenario.h"

namespace crossdock::cli {

// Reads a scenario. The clusters that it names are files of the folder "clusters", in the scenario's folder or beside
// it. Prints an error and returns nothing on failure; the exit code is then kBadInput.
std::optional<Scenario> load_scenario(const std::string& path);

// "1.204 ms"
std::string milliseconds(uint64_t ns);

// The command that reproduces the run and prints the events around the violation, or the whole report without one.
std::string replay_line(const std::string& path, uint64_t seed, const Violation* violation);

}  // namespace crossdock::cli
