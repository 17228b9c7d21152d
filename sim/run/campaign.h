// Campaign: random scenarios from seeds, and the shrinking of one that fails.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/run_summary.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

struct CampaignOptions {
  uint64_t seed = 1;
  std::set<WorkKind> works;    // that may occur; empty: all
  std::set<FaultKind> faults;  // that may occur; empty: all
};

// The scenario of one trial: a small cluster, schema, layouts, works, and faults of the kinds that this trial allows
// (swarm style: some kinds are off altogether in each). The same options and number give the same scenario.
Scenario draw_scenario(const CampaignOptions& options, uint64_t number);
// The seed with which it is played.
uint64_t trial_seed(const CampaignOptions& options, uint64_t number);

// Fault kinds by name, or by group: link, host, store, message, operation. Empty when the name is neither.
std::set<FaultKind> fault_kinds_named(std::string_view name);
std::optional<WorkKind> work_kind_named(std::string_view name);

// Whether a run counts as a failure of what is tested: an invariant was violated, or there was no end.
bool is_failure(const RunSummary& summary);
// "I3", or "no run": failures of one kind count as the same failure.
std::string failure_kind(const RunSummary& summary);

// A scenario with less in it that fails in the same way. `play` runs one; at most `run_count_max` are tried.
Scenario shrink(Scenario scenario, const std::string& kind, uint64_t run_count_max,
                const std::function<RunSummary(const Scenario&)>& play);

}  // namespace crossdock
