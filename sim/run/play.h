// Playing scenarios in child processes (sim/run/isolated.h), since there is one engine in each: what a child returns,
// and how its parent reads it.
#pragma once

#include <string>

#include "base/status.h"
#include "sim/run/run_summary.h"
#include "sim/run/scenario_run.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

// Plays it in this process. For run_isolated() and run_many_isolated().
std::string play(const Scenario& scenario, const ScenarioOptions& options);

// From what play() returned in a child. `error` is set when the child failed or the scenario could not be run.
RunSummary summary_of_play(const std::string& scenario, uint64_t seed, const Result<std::string>& said);

}  // namespace crossdock
