#include "sim/run/scenario_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "sim/run/link_use.h"

namespace crossdock {
namespace {

constexpr size_t kWorksTold = 6;  // one by one; of more, how many ended in each way

using Works = std::vector<std::unique_ptr<WorkRun>>;

// What is expected and what came: "expected move activated", or "expected 32 activated".
class Verdicts {
 public:
  Verdicts(const Scenario& scenario, const Works& works) : scenario_(scenario), is_short_(works.size() <= kWorksTold) {
    for (const auto& each : works) add(*each);
  }

  std::string expected() const { return text(expected_); }
  std::string actual() const { return text(actual_); }
  bool as_expected() const { return as_expected_; }

 private:
  using Counts = std::map<std::string, uint64_t>;

  void add(const WorkRun& work) {
    const std::string& name = work.spec().name;
    const std::string before = is_short_ ? name + " " : "";
    ++actual_[before + work.result().verdict];
    // A work without an expectation may end in any way.
    const auto wanted = scenario_.expected.find(name);
    if (wanted == scenario_.expected.end()) return;
    ++expected_[before + fmt::format("{}", fmt::join(wanted->second, " or "))];
    as_expected_ &= wanted->second.contains(work.result().verdict);
  }
  std::string text(const Counts& counts) const {
    std::vector<std::string> texts;
    for (const auto& [what, count] : counts) texts.push_back(is_short_ ? what : fmt::format("{} {}", count, what));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  const Scenario& scenario_;
  bool is_short_;
  bool as_expected_ = true;
  Counts expected_;
  Counts actual_;
};

void add_works(const Scenario& scenario, const Works& works, RunReport& report) {
  TimePoint last = report.origin;
  for (const auto& each : works) {
    report.works.push_back(each->result());
    last = std::max(last, each->result().end);
    each->traffic(report.traffic);
  }
  report.duration = last - report.origin;
  const Verdicts verdicts(scenario, works);
  report.expected = verdicts.expected();
  report.actual = verdicts.actual();
  report.as_expected = verdicts.as_expected();
  if (scenario.ends_within == Duration()) return;
  report.expected += fmt::format(" within {} ms", scenario.ends_within.ns() / 1'000'000);
  report.actual += fmt::format(" within {} ms", (report.duration.ns() + 999'999) / 1'000'000);
  report.as_expected &= report.duration <= scenario.ends_within;
}

void add_checks(const Scenario& scenario, const Checks& checks, RunReport& report) {
  report.invariants = checks.results();
  report.violations = checks.violations();
  std::set<std::string> violated;
  for (const InvariantResult& each : report.invariants)
    if (each.violation_count > 0) violated.insert(each.invariant);
  // Both ways: an expected violation that does not come shows that a checker does not find it any more.
  report.as_expected &= violated == scenario.expected_violations;
  for (const std::string& each : violated) report.actual += fmt::format(", {} violated", each);
  for (const std::string& each : scenario.expected_violations) report.expected += fmt::format(", {} violated", each);
}

}  // namespace

RunReport report_of(const Scenario& scenario, uint64_t seed, const Works& works, SimWorld& world) {
  check_links(world.engine().carried_bytes(), world.links(), world.now() - world.options().origin, world.now(),
              world.checks());
  RunReport report;
  report.scenario = scenario.name;
  report.shows = scenario.shows;
  report.cluster = scenario.cluster.name;
  report.seed = seed;
  report.origin = world.options().origin;
  add_works(scenario, works, report);
  // Before rows of interfaces are added, which exist only where a trace is kept.
  report.digest = world.trace().digest();
  add_checks(scenario, world.checks(), report);
  report.unmet = world.desk().unmet();
  report.links = link_counters(world.links(), world.flows(), report.origin, report.origin + report.duration);
  report.trace = world.trace().trace();
  add_interface_rows(world.links(), world.flows(), report.trace);
  return report;
}

}  // namespace crossdock
