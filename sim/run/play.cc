#include "sim/run/play.h"

#include <optional>
#include <utility>

namespace crossdock {

// An error is returned as a summary too, since text is all that a child can give its parent.
std::string play(const Scenario& scenario, const ScenarioOptions& options) {
  const Result<RunReport> report = run_scenario(scenario, options);
  if (report.ok()) return to_json(summary_of(report.value()));
  RunSummary broken;
  broken.scenario = scenario.name;
  broken.error = report.status().message();
  return to_json(broken);
}

RunSummary summary_of_play(const std::string& scenario, uint64_t seed, const Result<std::string>& said) {
  std::optional<RunSummary> summary;
  if (said.ok()) summary = read_summary(said.value());
  if (summary) return std::move(*summary);
  RunSummary failed;
  failed.scenario = scenario;
  failed.seed = seed;
  failed.error = said.ok() ? "the run said nothing that can be read" : said.status().message();
  return failed;
}

}  // namespace crossdock
