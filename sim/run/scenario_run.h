// Runs one scenario, in this process; there can be one run in each process (sim/world/engine.h).
#pragma once

#include <cstdint>

#include "sim/report/run_report.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

struct ScenarioOptions {
  uint64_t seed = 1;
  bool keeps_trace = false;
  bool reuses_epochs = false;  // the framework breaks its promise: for tests of the checkers
};

// Plays it with its faults, waits until everything has settled, and checks I1 to I8 on the way and at the end. The
// report has the findings; it fails with kInvalidArgument when the scenario's documents do not fit together.
Result<RunReport> run_scenario(const Scenario& scenario, const ScenarioOptions& options);

}  // namespace crossdock
