// What `simulate` and `check` share: how scenarios are found and read, and how a run is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/run_summary.h"
#include "sim/scenario/scenario.h"

namespace crossdock::cli {

// Reads a scenario; clusters that it names are files of the folder "clusters" beside it or
// beside its folder. Prints what is wrong and is
// empty when there is none; the exit code is then kBadInput.
std::optional<Scenario> load_scenario(const std::string& path);

// "1.204 ms"
std::string milliseconds(uint64_t ns);

// The command that shows what led to the violation, or the whole run again.
std::string replay_line(const std::string& path, uint64_t seed, const Violation* violation);

}  // namespace crossdock::cli
