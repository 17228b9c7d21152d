// Shrinking: removes what a failure does not need, a piece at a time.
#include <algorithm>
#include <utility>

#include "sim/run/campaign.h"

namespace crossdock {
namespace {

// Changes a scenario into a simpler one; false when there is nothing to change.
using Change = std::function<bool(Scenario&)>;

// A change that changes nothing is not played, and counts for nothing.
void add_side_changes(std::vector<Change>& changes, size_t work, std::optional<SideSpec> WorkSpec::*side) {
  const auto with = [&](auto change) {
    changes.push_back([=](Scenario& scenario) {
      std::optional<SideSpec>& spec = scenario.works[work].*side;
      if (!spec) return false;
      const SideSpec before = *spec;
      change(*spec);
      return before.parallel != spec->parallel || before.page_tokens != spec->page_tokens ||
             before.shuffle != spec->shuffle || before.spare_pages != spec->spare_pages ||
             before.order != spec->order || before.region_per_layer != spec->region_per_layer;
    });
  };
  with([](SideSpec& spec) { spec.parallel = ParallelSpec(); });
  with([](SideSpec& spec) { spec.parallel.dp = 1; });
  with([](SideSpec& spec) { spec.parallel.cp = 1; });
  with([](SideSpec& spec) { spec.parallel.pp = 1; });
  with([](SideSpec& spec) { spec.parallel.tp = std::max<uint64_t>(1, spec.parallel.tp / 2); });
  with([](SideSpec& spec) { spec.shuffle = 0; });
  with([](SideSpec& spec) { spec.spare_pages = 0; });
  with([](SideSpec& spec) { spec.order = AxisOrder::kNhd; });
  with([](SideSpec& spec) { spec.region_per_layer = false; });
}

void add_work_changes(std::vector<Change>& changes, size_t work) {
  changes.push_back([work](Scenario& scenario) {
    const std::string name = scenario.works[work].name;
    for (const WorkSpec& each : scenario.works)
      // A work that another one comes after cannot go before that one.
      if (each.after == name) return false;
    scenario.works.erase(scenario.works.begin() + static_cast<ptrdiff_t>(work));
    scenario.expected.erase(name);
    return !scenario.works.empty();
  });
  changes.push_back([work](Scenario& scenario) {
    const uint64_t tokens = scenario.works[work].tokens;
    if (tokens < 4) return false;
    for (WorkSpec& each : scenario.works)
      // All works with this number together, since a restore has to have as many tokens as its upload; and even, for
      // rows of two tokens.
      if (each.tokens == tokens) each.tokens = tokens / 4 * 2;
    return true;
  });
  changes.push_back([work](Scenario& scenario) {
    WorkSpec& spec = scenario.works[work];
    return std::exchange(spec.window_operations, 1) != 1;
  });
  changes.push_back([work](Scenario& scenario) { return std::exchange(scenario.works[work].checksum, false); });
  add_side_changes(changes, work, &WorkSpec::source);
  add_side_changes(changes, work, &WorkSpec::target);
}

void add_fault_changes(std::vector<Change>& changes, size_t fault) {
  changes.push_back([fault](Scenario& scenario) {
    scenario.faults.erase(scenario.faults.begin() + static_cast<ptrdiff_t>(fault));
    return true;
  });
  changes.push_back([fault](Scenario& scenario) { return std::exchange(scenario.faults[fault].count, 1) != 1; });
  changes.push_back(
      [fault](Scenario& scenario) { return std::exchange(scenario.faults[fault].after, Duration()) != Duration(); });
  changes.push_back(
      [fault](Scenario& scenario) { return std::exchange(scenario.faults[fault].lasts, Duration()) != Duration(); });
}

std::vector<Change> changes_of(const Scenario& scenario) {
  std::vector<Change> changes;
  // What removes most comes first. A scenario that is simpler but breaks a rule is not played (shrink()).
  for (size_t i = scenario.faults.size(); i-- > 0;) add_fault_changes(changes, i);
  for (size_t i = scenario.works.size(); i-- > 0;) add_work_changes(changes, i);
  for (size_t i = scenario.cache_schema.groups.size(); i-- > 0;)
    changes.push_back([i](Scenario& simpler) {
      if (simpler.cache_schema.groups.size() == 1 || i >= simpler.cache_schema.groups.size()) return false;
      simpler.cache_schema.groups.erase(simpler.cache_schema.groups.begin() + static_cast<ptrdiff_t>(i));
      return true;
    });
  changes.push_back([](Scenario& simpler) { return std::exchange(simpler.origin, Duration()) != Duration(); });
  return changes;
}

}  // namespace

// Greedy: the first change that keeps the failure is kept, and all are tried again. Ends when none keeps it, so the
// result cannot lose any single piece; it need not be the smallest.
Scenario shrink(Scenario scenario, const std::string& kind, uint64_t run_count_max,
                const std::function<RunSummary(const Scenario&)>& play) {
  uint64_t runs = 0;
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    std::vector<Change> changes = changes_of(scenario);
    for (size_t i = 0; i < changes.size() && runs < run_count_max; ++i) {
      Scenario simpler = scenario;
      if (!changes[i](simpler)) continue;
      Diagnostics diagnostics;
      check_scenario(simpler, diagnostics);
      if (!diagnostics.empty()) continue;
      ++runs;
      const RunSummary summary = play(simpler);
      if (failure_kind(summary) != kind) continue;
      scenario = std::move(simpler);
      has_changed = true;
      break;  // numbers of works and faults may have moved
    }
  }
  return scenario;
}

}  // namespace crossdock
