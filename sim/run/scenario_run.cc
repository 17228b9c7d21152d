#include "sim/run/scenario_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/run/fault_actions.h"
#include "sim/run/scenario_report.h"
#include "sim/run/store_checks.h"
#include "sim/run/store_run.h"
#include "sim/run/traffic_run.h"
#include "sim/run/transfer_run.h"
#include "sim/world/sim_store.h"
#include "sim/world/sim_world.h"

namespace crossdock {
namespace {

// After the last work: time in which late writes land and messages arrive.
constexpr Duration kSettle = Duration::from_ms(100);
constexpr uint64_t kSettlesMax = 10'000;

class ScenarioRun {
 public:
  ScenarioRun(const Scenario& scenario, const ScenarioOptions& options)
      : scenario_(scenario),
        options_(options),
        world_(scenario.cluster, scenario.faults,
               SimWorldOptions{scenario.bytes_scale, scenario.carries_bytes, options.keeps_trace, options.reuses_epochs,
                               options.seed, TimePoint::from_ns(0) + scenario.origin}) {
    world_.set_killer([this](SimNode& node) { faults_.kill(node, Fate::kLost, Duration()); });
    world_.set_fault_action([this](const FaultSpec& fault) { faults_.happen(fault); });
  }

  Result<RunReport> run();

 private:
  Status make_works();
  void start_work(size_t number);
  void work_ended(size_t number);
  bool all_over() const;
  void keep();  // the actor that waits for the end
  void wait_for_works();
  void settle();
  void check_works();

  const Scenario& scenario_;
  const ScenarioOptions options_;
  SimWorld world_;
  std::shared_ptr<const Valid<CacheSchema>> schema_;
  uint64_t next_epoch_ = 1;
  std::vector<std::unique_ptr<WorkRun>> works_;
  FaultActions faults_{scenario_, world_, works_};
  Gate ended_;
  Status broken_;  // the documents of a work do not fit
};

Status ScenarioRun::make_works() {
  Diagnostics diagnostics("cache schema");
  std::optional<Valid<CacheSchema>> schema = Valid<CacheSchema>::make(scenario_.cache_schema, diagnostics);
  if (!schema) return diagnostics.to_status();
  schema_ = std::make_shared<const Valid<CacheSchema>>(std::move(*schema));
  for (const StoreSpec& spec : scenario_.stores) TRY_STATUS(world_.add_store(spec).open());
  for (const WorkSpec& spec : scenario_.works) {
    std::unique_ptr<WorkRun> made;
    switch (spec.kind) {
      case WorkKind::kTransfer:
        made = std::make_unique<TransferRun>(world_, scenario_, spec, schema_, next_epoch_);
        break;
      case WorkKind::kUpload: made = std::make_unique<UploadRun>(world_, scenario_, spec, schema_, next_epoch_); break;
      case WorkKind::kRestore:
        made = std::make_unique<RestoreRun>(world_, scenario_, spec, schema_, next_epoch_);
        break;
      case WorkKind::kTraffic:
        made = std::make_unique<TrafficRun>(world_, scenario_, spec, schema_, next_epoch_);
        break;
    }
    works_.push_back(std::move(made));
  }
  return Status();
}

void ScenarioRun::start_work(size_t number) {
  const Status started = works_[number]->start([this, number] { work_ended(number); });
  if (started.ok()) return;
  // The run goes on to its end, since actors are under way; the first error is its result.
  if (broken_.ok()) broken_ = started;
  works_[number]->skip("refused", started.message());
  work_ended(number);
}

void ScenarioRun::work_ended(size_t number) {
  const WorkRun& ended = *works_[number];
  world_.trace().instant(world_.trace().track("works", ended.spec().name), ended.result().verdict, "check",
                         world_.now(), {{"cause", ended.result().cause}});
  for (size_t i = 0; i < works_.size(); ++i) {
    const WorkSpec& spec = works_[i]->spec();
    if (spec.after != ended.spec().name || works_[i]->is_started()) continue;
    if (!spec.only_if.empty() && !spec.only_if.contains(ended.result().verdict)) {
      works_[i]->skip("skipped", fmt::format("'{}' ended {}", spec.after, ended.result().verdict));
      work_ended(i);
    } else {
      world_.engine().after(spec.at, [this, i] { start_work(i); });
    }
  }
  ended_.open();
}

bool ScenarioRun::all_over() const {
  return std::all_of(works_.begin(), works_.end(), [](const auto& each) { return each->is_over(); });
}

// The limit is generous: a work that takes longer than its own bound is found by check_works(), and this one only ends
// a run in which a work never ends.
void ScenarioRun::wait_for_works() {
  Duration limit;
  for (const auto& each : works_) limit = limit + each->spec().at + each->bound();
  for (const FaultSpec& fault : scenario_.faults) limit = limit + fault.delay + fault.lasts;
  const TimePoint deadline = world_.now() + limit;
  while (!all_over())
    if (!world_.engine().wait(ended_, deadline)) break;
  for (const auto& each : works_)
    world_.checks().check(Invariant::kI6, world_.now(),
                          each->is_over() ? "" : fmt::format("'{}' does not end", each->spec().name));
}

// Until flows have ended, leases have run out and late writes have landed.
void ScenarioRun::settle() {
  Gate never;
  for (uint64_t i = 0; world_.engine().flow_count() > 0 && i < kSettlesMax; ++i)
    (void)world_.engine().wait(never, world_.now() + kSettle);
  Duration leases;
  for (const auto& each : works_) leases = std::max(leases, each->spec().lease + each->spec().timeout);
  Duration late;
  for (const FaultSpec& fault : scenario_.faults) late = std::max(late, fault.delay);
  (void)world_.engine().wait(never, world_.now() + kSettle + leases + late + scenario_.linger);
}

void ScenarioRun::check_works() {
  for (const auto& each : works_) {
    if (!each->is_over() || !each->is_started() || each->result().verdict == "refused") continue;
    const Duration took = each->result().end - each->result().begin;
    world_.checks().check(Invariant::kI6, world_.now(),
                          took <= each->bound() || each->spec().kind == WorkKind::kTraffic
                              ? ""
                              : fmt::format("'{}' took {} ms, more than the {} ms of its deadline and drains",
                                            each->spec().name, took.ns() / 1'000'000, each->bound().ns() / 1'000'000));
    each->check_end();
  }
}

// The order matters. Faults are healed before leases run out, so that stores can collect. Works are checked before
// stores, whose checks remove everything that is published.
void ScenarioRun::keep() {
  wait_for_works();
  faults_.heal();
  settle();
  check_works();
  check_stores(world_, works_);
  // Processes that do not end by themselves.
  for (const auto& [peer, node] : world_.nodes()) faults_.kill(*node, Fate::kDone, Duration());
}

Result<RunReport> ScenarioRun::run() {
  TRY_STATUS(make_works());
  for (size_t i = 0; i < works_.size(); ++i)
    if (works_[i]->spec().after.empty())
      world_.engine().at(world_.now() + works_[i]->spec().at, [this, i] { start_work(i); });
  for (const FaultSpec& fault : scenario_.faults)
    if (!is_operation_fault(fault.kind) && fault.at)
      world_.engine().at(world_.now() + *fault.at, [this, &fault] { world_.trigger(fault); });
  // As an actor like the others: the engine runs as long as one of them does.
  world_.engine().spawn("keeper", [this] { keep(); });
  const std::vector<std::string> stuck = world_.engine().run();
  if (!broken_.ok()) return broken_;
  for (const std::string& name : stuck)
    world_.checks().check(Invariant::kI6, world_.now(), fmt::format("'{}' waits for ever", name));
  return report_of(scenario_, options_.seed, works_, world_);
}

}  // namespace

Result<RunReport> run_scenario(const Scenario& scenario, const ScenarioOptions& options) {
  return ScenarioRun(scenario, options).run();
}

}  // namespace crossdock
