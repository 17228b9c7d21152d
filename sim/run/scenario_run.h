// Runs one scenario, in this process; there can be one run in each process (sim/world/engine.h).
#pragma once

#include <cstdint>

#include "sim/report/run_report.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

struct ScenarioOptions {
  uint64_t seed = 1;
  bool keeps_trace = false;
  bool reuses_epochs = false;  // the framework breaks its word: for tests of the checkers
};

// Plays it, makes its faults come true, lets everything converge, and checks I1 to I8 on the way and at the end. What
// it found is in the report; it fails with kInvalidArgument when the scenario's documents do not fit together.
Result<RunReport> run_scenario(const Scenario& scenario, const ScenarioOptions& options);

}  // namespace crossdock
