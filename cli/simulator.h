// The commands that simulate are in a program of their own, crossdock-sim: loading SimGrid takes some 50 ms, which is
// longer than most other commands run.
#pragma once

#include <optional>

namespace crossdock::cli {

inline constexpr const char* kSimulateHelp = "Run scenarios on a simulated cluster and check every invariant";
inline constexpr const char* kCheckHelp = "Run random scenarios with random faults and check every invariant";

// Goes on in crossdock-sim, in place of this program, where the first word of the arguments is a command that only it
// has (or 'completion', which describes all of them). Returns nothing where the command is one of this program, and an
// exit status, after an error, where crossdock-sim cannot be run.
std::optional<int> go_on_in_simulator(int argc, char** argv);

}  // namespace crossdock::cli
