#include "sim/run/campaign.h"

#include <fmt/format.h>

#include "base/rng.h"
#include "sim/run/fault_draw.h"
#include "sim/run/scenario_draw.h"

namespace crossdock {

// A function of seed and number alone, so one trial can be played again without those before it.
uint64_t trial_seed(const CampaignOptions& options, uint64_t number) {
  uint64_t state = options.seed;
  state = splitmix64(state) ^ number;
  return splitmix64(state);
}

Scenario draw_scenario(const CampaignOptions& options, uint64_t number) {
  Rng rng(trial_seed(options, number));
  Scenario scenario;
  scenario.name = fmt::format("trial-{}-{}", options.seed, number);
  scenario.shows = "A random scenario.";
  // Works first: which faults make sense depends on them.
  draw_works(options.works, rng, scenario);
  draw_faults(options.faults, rng, scenario);
  return scenario;
}

std::set<FaultKind> fault_kinds_named(std::string_view name) {
  std::set<FaultKind> kinds;
  for (const FaultKindRow& row : kFaultKinds)
    if (row.name == name || (row.group != FaultGroup::kNone && fault_group_name(row.group) == name))
      kinds.insert(row.kind);
  return kinds;
}

std::optional<WorkKind> work_kind_named(std::string_view name) {
  if (name == "transfer") return WorkKind::kTransfer;
  if (name == "upload") return WorkKind::kUpload;
  if (name == "restore") return WorkKind::kRestore;
  if (name == "traffic") return WorkKind::kTraffic;
  return std::nullopt;
}

// Verdicts do not count: a random scenario may end in any way, as long as the invariants hold.
bool is_failure(const RunSummary& summary) { return !summary.error.empty() || !summary.violations.empty(); }

std::string failure_kind(const RunSummary& summary) {
  if (!summary.error.empty()) return "no run";
  return summary.violations.empty() ? "" : summary.violations.front().invariant;
}

}  // namespace crossdock
