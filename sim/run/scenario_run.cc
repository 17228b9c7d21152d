#include "sim/run/scenario_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "sim/run/link_use.h"
#include "sim/run/store_run.h"
#include "sim/run/traffic_run.h"
#include "sim/run/transfer_run.h"
#include "sim/scenario/name_pattern.h"
#include "sim/world/sim_store.h"
#include "sim/world/sim_world.h"

namespace crossdock {
namespace {

// After the last work: time for late writes, and for what was sent to arrive.
constexpr Duration kSettle = Duration::from_ms(100);
constexpr uint64_t kSettlesMax = 10'000;
constexpr size_t kWorksTold = 6;  // one by one

class ScenarioRun {
 public:
  ScenarioRun(const Scenario& scenario, const ScenarioOptions& options)
      : scenario_(scenario),
        options_(options),
        world_(scenario.cluster, scenario.faults,
               SimWorldOptions{scenario.bytes_scale, scenario.carries_bytes, options.keeps_trace, options.reuses_epochs,
                               options.seed, TimePoint::from_ns(0) + scenario.origin}) {
    world_.set_killer([this](SimNode& node) { kill(node, Fate::kLost, Duration()); });
    world_.set_fault_action([this](const FaultSpec& fault) { happen(fault); });
  }

  Result<RunReport> run();

 private:
  Status make_works();
  void start_work(size_t number);
  void work_ended(size_t number);
  bool all_over() const;
  void keep();  // the actor that sees to the end
  void tell_verdicts(RunReport& report) const;
  void heal();
  void check_stores();
  void happen(const FaultSpec& fault);
  void machine_off(const std::string& name, const FaultSpec& fault);
  void set_links(const std::vector<uint32_t>& links, bool on);
  std::vector<uint32_t> nics_of(const std::string& machine) const;
  void crash_peers(const std::string& pattern, const FaultSpec& fault);
  void kill(SimNode& node, Fate fate, Duration delay);
  WorkRun* work(const std::string& name);
  const StoreSpec& spec_of(const std::string& store) const;
  RunReport report(const std::vector<std::string>& stuck);

  template <class Action>
  void undo_later(const FaultSpec& fault, Action action) {
    if (fault.lasts > Duration()) world_.engine().after(fault.lasts, action);
  }

  const Scenario& scenario_;
  const ScenarioOptions options_;
  SimWorld world_;
  std::shared_ptr<const Valid<CacheSchema>> schema_;
  uint64_t next_epoch_ = 1;
  std::vector<std::unique_ptr<WorkRun>> works_;
  Gate ended_;
  std::set<std::string> slowed_;
  Status broken_;  // the documents of a work do not fit
};

WorkRun* ScenarioRun::work(const std::string& name) {
  for (const auto& each : works_)
    if (each->spec().name == name) return each.get();
  return nullptr;
}

const StoreSpec& ScenarioRun::spec_of(const std::string& store) const {
  for (const StoreSpec& spec : scenario_.stores)
    if (spec.name == store) return spec;
  check_failed("a store of the scenario", __FILE__, __LINE__);
}

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

// ---- faults

void ScenarioRun::set_links(const std::vector<uint32_t>& links, bool on) {
  for (const uint32_t link : links) world_.engine().set_link_on(link, on);
}

std::vector<uint32_t> ScenarioRun::nics_of(const std::string& name) const {
  std::vector<uint32_t> links;
  for (size_t i = 0; i < scenario_.cluster.machine.nics.size(); ++i)
    for (const uint32_t link : world_.links().named(fmt::format("{}/nic{}", name, i))) links.push_back(link);
  return links.empty() ? world_.links().named(name) : links;  // a leaf
}

void ScenarioRun::kill(SimNode& node, Fate fate, Duration delay) {
  if (node.is_dead()) return;
  world_.kill(node, fate, delay);
  for (const auto& each : works_) each->process_died(node);
}

void ScenarioRun::crash_peers(const std::string& pattern, const FaultSpec& fault) {
  const Fate fate = fault.mode == "done" ? Fate::kDone : fault.mode == "late" ? Fate::kLate : Fate::kLost;
  std::vector<SimNode*> nodes;
  for (const auto& [peer, node] : world_.nodes())
    if (matches_pattern(pattern, peer.text())) nodes.push_back(node.get());
  for (SimNode* node : nodes) kill(*node, fate, fault.delay);
}

void ScenarioRun::machine_off(const std::string& name, const FaultSpec& fault) {
  const std::vector<uint32_t> links = world_.links().named(name);
  const std::optional<uint32_t> number = world_.links().machine(name);
  set_links(links, false);
  std::vector<SimNode*> nodes;
  for (const auto& [peer, node] : world_.nodes())
    if (node->place().machine == number) nodes.push_back(node.get());
  for (SimNode* node : nodes) kill(*node, Fate::kLost, Duration());
  std::vector<SimStore*> stores;
  for (const auto& [store_name, store] : world_.stores())
    if (store->place().machine == number) stores.push_back(store.get());
  for (SimStore* store : stores) store->crash(true);
  undo_later(fault, [this, links, stores] {
    set_links(links, true);
    for (SimStore* store : stores) store->reopen();
  });
}

void ScenarioRun::happen(const FaultSpec& fault) {
  const double factor = static_cast<double>(std::max<uint64_t>(fault.percent, 1)) / 100;
  if (fault.kind == FaultKind::kMessageStorm) return world_.storm(fault.count);
  for (const std::string& target : comma_separated(fault.target)) {
    switch (fault.kind) {
      case FaultKind::kLinkOff:
      case FaultKind::kPartition: {
        const std::vector<uint32_t> links =
            fault.kind == FaultKind::kPartition ? nics_of(target) : world_.links().named(target);
        set_links(links, false);
        undo_later(fault, [this, links] { set_links(links, true); });
        break;
      }
      case FaultKind::kLinkSlow:
      case FaultKind::kStraggler: {
        const std::vector<uint32_t> links = world_.links().named(target);
        slowed_.insert(target);
        const auto set = [this, links, target, is_straggler = fault.kind == FaultKind::kStraggler](double to) {
          for (const uint32_t link : links) world_.engine().set_link_factor(link, to);
          if (!is_straggler) return;
          for (const auto& [peer, node] : world_.nodes())
            if (world_.links().machine(target) == node->place().machine) node->set_slowness(1 / to);
        };
        set(factor);
        undo_later(fault, [set] { set(1); });
        break;
      }
      case FaultKind::kMachineOff: machine_off(target, fault); break;
      case FaultKind::kPeerCrash: crash_peers(target, fault); break;
      case FaultKind::kPeerRestart:
        for (const auto& each : works_)
          if (each->is_started() && !each->is_over()) each->restart(target);
        break;
      case FaultKind::kStoreCrash: {
        SimStore* const store = world_.find_store(target);
        const bool loses = fault.mode != "keep";
        const Duration down = fault.lasts > Duration() ? fault.lasts : Duration::from_ms(10);
        const auto& points = kCrashPoints;
        if (std::find(points.begin(), points.end(), fault.mode) != points.end()) {
          store->arm(fault.mode, true, down);
          break;
        }
        store->crash(loses);
        world_.engine().after(down, [store] { store->reopen(); });
        break;
      }
      case FaultKind::kCorruptChunk: world_.find_store(target)->disk().corrupt_chunk(fault.count - 1); break;
      case FaultKind::kDiskFull: {
        SimDisk& disk = world_.find_store(target)->disk();
        disk.set_capacity(disk.used_bytes());
        undo_later(fault, [&disk, capacity = spec_of(target).capacity_bytes] { disk.set_capacity(capacity); });
        break;
      }
      case FaultKind::kPagesEvicted:
        for (const auto& each : works_)
          for (SimMember* member : each->members())
            if (member->is_held && member->role == Role::kSource && matches_pattern(target, member->name))
              world_.interrupt_reads(*member, [this, member] { world_.memory().overwrite(*member); });
        break;
      case FaultKind::kAbortRequest:
        if (WorkRun* const run = work(target); run != nullptr && run->is_started()) run->request_abort();
        break;
      case FaultKind::kQueueDepth:
        for (const auto& [peer, node] : world_.nodes())
          if (matches_pattern(target, peer.text())) node->set_queue_depth(fault.count);
        break;
      default: break;
    }
  }
}

// ---- the end

void ScenarioRun::heal() {
  for (uint32_t link = 0; link < world_.links().links().size(); ++link) {
    if (!world_.engine().is_link_on(link)) world_.engine().set_link_on(link, true);
    if (!slowed_.empty()) world_.engine().set_link_factor(link, 1);
  }
  for (const auto& [name, store] : world_.stores()) {
    store->disarm();
    store->reopen();
  }
}

// Nothing may be left of transactions and leases once these have run out, nor of bytes once everything is removed.
void ScenarioRun::check_stores() {
  for (const auto& [name, store] : world_.stores()) store->disarm();  // a fault may have come after heal()
  for (const auto& each : works_)
    if (auto* upload = dynamic_cast<UploadRun*>(each.get())) upload->check_published();
  for (const auto& [name, store] : world_.stores()) {
    StoreCore* const core = store->core();
    if (core == nullptr) continue;
    const auto expect = [&](std::string wrong) {
      world_.checks().check(Invariant::kI4, world_.now(),
                            wrong.empty() ? "" : fmt::format("store '{}': {}", store->name(), wrong));
    };
    if (const auto collected = core->gc(); !collected.ok()) expect(collected.status().message());
    const auto stats = core->stats();
    if (!stats.ok()) {
      expect(stats.status().message());
      continue;
    }
    expect(stats.value().open_transactions == 0
               ? ""
               : fmt::format("{} transactions are open", stats.value().open_transactions));
    expect(stats.value().leases == 0 ? "" : fmt::format("{} leases are held", stats.value().leases));
    const auto list = core->list();
    if (list.ok())
      for (const PublicationInfo& each : list.value()) expect(core->remove_publication(each.sequence).message());
    if (const auto collected = core->gc(); !collected.ok()) expect(collected.status().message());
    expect(store->disk().used_bytes() == 0
               ? ""
               : fmt::format("{} bytes are in use although nothing is published", store->disk().used_bytes()));
  }
}

void ScenarioRun::keep() {
  Duration limit;
  for (const auto& each : works_) limit = limit + each->spec().at + each->bound();
  for (const FaultSpec& fault : scenario_.faults) limit = limit + fault.delay + fault.lasts;
  const TimePoint deadline = world_.now() + limit;
  while (!all_over())
    if (!world_.engine().wait(ended_, deadline)) break;
  for (const auto& each : works_)
    world_.checks().check(Invariant::kI6, world_.now(),
                          each->is_over() ? "" : fmt::format("'{}' does not end", each->spec().name));
  heal();
  Gate never;
  for (uint64_t i = 0; world_.engine().flow_count() > 0 && i < kSettlesMax; ++i)
    (void)world_.engine().wait(never, world_.now() + kSettle);
  Duration leases;
  for (const auto& each : works_) leases = std::max(leases, each->spec().lease + each->spec().timeout);
  Duration late;
  for (const FaultSpec& fault : scenario_.faults) late = std::max(late, fault.delay);
  (void)world_.engine().wait(never, world_.now() + kSettle + leases + late + scenario_.linger);
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
  check_stores();
  for (const auto& [peer, node] : world_.nodes()) kill(*node, Fate::kDone, Duration());  // those that do not end
}

// Of each work; of many, how many ended in each way.
void ScenarioRun::tell_verdicts(RunReport& report) const {
  std::map<std::string, uint64_t> actual;
  std::map<std::string, uint64_t> expected;
  for (const auto& each : works_) {
    const bool is_short = works_.size() <= kWorksTold;
    const std::string before = is_short ? each->spec().name + " " : "";
    ++actual[before + each->result().verdict];
    const auto wanted = scenario_.expected.find(each->spec().name);
    if (wanted != scenario_.expected.end()) ++expected[before + fmt::format("{}", fmt::join(wanted->second, " or "))];
  }
  const auto text = [&](const std::map<std::string, uint64_t>& counts) {
    std::vector<std::string> texts;
    for (const auto& [what, count] : counts)
      texts.push_back(works_.size() <= kWorksTold ? what : fmt::format("{} {}", count, what));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  report.actual = text(actual);
  report.expected = text(expected);
}

RunReport ScenarioRun::report(const std::vector<std::string>& stuck) {
  for (const std::string& name : stuck)
    world_.checks().check(Invariant::kI6, world_.now(), fmt::format("'{}' waits for ever", name));
  check_links(world_.engine().carried_bytes(), world_.links(), world_.now() - world_.options().origin, world_.now(),
              world_.checks());
  RunReport report;
  report.scenario = scenario_.name;
  report.shows = scenario_.shows;
  report.cluster = scenario_.cluster.name;
  report.seed = options_.seed;
  report.origin = world_.options().origin;
  TimePoint last = report.origin;
  for (const auto& each : works_) {
    report.works.push_back(each->result());
    last = std::max(last, each->result().end);
    each->traffic(report.traffic);
    const auto expected = scenario_.expected.find(each->spec().name);
    if (expected != scenario_.expected.end()) report.as_expected &= expected->second.contains(each->result().verdict);
  }
  tell_verdicts(report);
  report.duration = last - report.origin;
  if (scenario_.ends_within > Duration()) {
    report.expected += fmt::format(" within {} ms", scenario_.ends_within.ns() / 1'000'000);
    report.actual += fmt::format(" within {} ms", (report.duration.ns() + 999'999) / 1'000'000);
    report.as_expected &= report.duration <= scenario_.ends_within;
  }
  report.digest = world_.trace().digest();
  report.invariants = world_.checks().results();
  report.violations = world_.checks().violations();
  std::set<std::string> violated;
  for (const InvariantResult& each : report.invariants)
    if (each.violation_count > 0) violated.insert(each.invariant);
  report.as_expected &= violated == scenario_.expected_violations;
  for (const std::string& each : violated) report.actual += fmt::format(", {} violated", each);
  for (const std::string& each : scenario_.expected_violations) report.expected += fmt::format(", {} violated", each);
  report.unmet = world_.desk().unmet();
  report.links = link_counters(world_.links(), world_.flows(), report.origin, last);
  report.trace = world_.trace().trace();
  add_interface_rows(world_.links(), world_.flows(), report.trace);
  return report;
}

Result<RunReport> ScenarioRun::run() {
  TRY_STATUS(make_works());
  for (size_t i = 0; i < works_.size(); ++i)
    if (works_[i]->spec().after.empty())
      world_.engine().at(world_.now() + works_[i]->spec().at, [this, i] { start_work(i); });
  for (const FaultSpec& fault : scenario_.faults)
    if (!is_operation_fault(fault.kind) && fault.at)
      world_.engine().at(world_.now() + *fault.at, [this, &fault] { world_.trigger(fault); });
  world_.engine().spawn("keeper", [this] { keep(); });
  const std::vector<std::string> stuck = world_.engine().run();
  if (!broken_.ok()) return broken_;
  return report(stuck);
}

}  // namespace

Result<RunReport> run_scenario(const Scenario& scenario, const ScenarioOptions& options) {
  return ScenarioRun(scenario, options).run();
}

}  // namespace crossdock
