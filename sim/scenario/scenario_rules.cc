// What holds between the parts of a scenario. The run relies on it: it looks up machines, stores and works by name
// without asking again. What depends on a cache schema or on a layout is found by the run itself and ends as "refused".
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/kv/volume.h"
#include "sim/scenario/cluster_links.h"
#include "sim/scenario/name_pattern.h"
#include "sim/scenario/scenario.h"

namespace crossdock {
namespace {

// Far above what any scenario needs, and small enough to be played.
constexpr uint64_t kRoundsMax = 1'000'000;
constexpr uint64_t kStormMax = 100'000;
constexpr uint64_t kChunksMax = uint64_t{1} << 22;
constexpr uint64_t kBytesMax = uint64_t{1} << 60;

constexpr uint64_t kParticipantsMax = 1 << 15;  // of one side

constexpr std::array<std::string_view, 14> kVerdicts = {"activated", "aborted",  "partly", "quarantined", "committed",
                                                        "unknown",   "restored", "failed", "crashed",     "refused",
                                                        "done",      "skipped",  "lost",   "unconfirmed"};
constexpr std::array<std::string_view, 8> kInvariants = {"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8"};

class ScenarioRules {
 public:
  ScenarioRules(const Scenario& scenario, Diagnostics& diagnostics) : scenario_(scenario), faults_(diagnostics) {}

  void check() {
    if (scenario_.works.empty()) refuse("works", "there is no work");
    std::set<std::string> names;
    for (const StoreSpec& store : scenario_.stores) {
      if (!names.insert(store.name).second) refuse(fmt::format("store '{}'", store.name), "the name is used twice");
      check_machine(fmt::format("store '{}'", store.name), store.machine);
    }
    if (!scenario_.stores.empty() && !scenario_.carries_bytes)
      refuse("carries_bytes", "a store keeps bytes; without them there can be no store");
    std::set<std::string> works;
    for (const WorkSpec& work : scenario_.works) {
      // Works refer only to those before them, so `after` has no cycles.
      check_work(work, works);
      works.insert(work.name);
    }
    for (size_t i = 0; i < scenario_.faults.size(); ++i) check_fault(i, scenario_.faults[i], works);
    for (const auto& [work, verdicts] : scenario_.expected) {
      if (!works.contains(work)) refuse("expected", fmt::format("there is no work '{}'", work));
      for (const std::string& verdict : verdicts)
        if (std::find(kVerdicts.begin(), kVerdicts.end(), verdict) == kVerdicts.end())
          refuse("expected", fmt::format("'{}' is not one of {}", verdict, fmt::join(kVerdicts, ", ")));
    }
    for (const std::string& invariant : scenario_.expected_violations)
      if (std::find(kInvariants.begin(), kInvariants.end(), invariant) == kInvariants.end())
        refuse("expected_violations", fmt::format("'{}' is not one of {}", invariant, fmt::join(kInvariants, ", ")));
  }

 private:
  void refuse(const std::string& place, const std::string& message) { faults_.add(Rule::kFieldChoice, place, message); }
  void check_machine(const std::string& place, uint64_t machine) {
    if (machine >= scenario_.cluster.machine_count)
      refuse(place, fmt::format("machine {} of {}", machine, scenario_.cluster.machine_count));
  }
  void check_side(const std::string& place, const std::optional<SideSpec>& side, bool is_needed) {
    if (side.has_value() != is_needed) {
      refuse(place, is_needed ? "is missing" : "has no meaning for this kind of work");
      return;
    }
    if (!side) return;
    const ParallelSpec& spec = side->parallel;
    const uint64_t count = spec.participant_count();
    if (count > kParticipantsMax) {
      refuse(place, fmt::format("{} participants, at most {} can be simulated", count, kParticipantsMax));
      return;
    }
    const uint64_t gpu_count = scenario_.cluster.machine.gpu_count;
    if (gpu_count == 0) return refuse(place, "machines have no GPUs");
    if (side->gpu >= gpu_count) refuse(place, fmt::format("gpu {} of {}", side->gpu, gpu_count));
    // The machine of the last participant; those before it lie below. Without overflow, since all three numbers have 32
    // bits or fewer.
    check_machine(place, side->machine + (side->gpu + count - 1) / gpu_count);
  }
  void check_work(const WorkSpec& work, const std::set<std::string>& before) {
    const std::string place = fmt::format("work '{}'", work.name);
    if (work.name.empty()) refuse(place, "has no name");
    if (before.contains(work.name)) refuse(place, "the name is used twice");
    if (!work.after.empty() && !before.contains(work.after))
      refuse(place, fmt::format("comes after '{}', which is no work before it", work.after));
    check_machine(place, work.coordinator_machine);
    const bool with_source = work.kind != WorkKind::kRestore;
    const bool with_target =
        work.kind == WorkKind::kTransfer || work.kind == WorkKind::kRestore || work.kind == WorkKind::kTraffic;
    check_side(place + " source", work.source, with_source);
    check_side(place + " target", work.target, with_target);
    if (work.rounds > kRoundsMax) refuse(place, fmt::format("{} rounds, at most {}", work.rounds, kRoundsMax));
    if (work.kind == WorkKind::kTraffic) {
      if (work.bytes == 0) refuse(place, "traffic of 0 bytes");
      if (work.bytes > kBytesMax) refuse(place, fmt::format("{} bytes, at most {}", work.bytes, kBytesMax));
      return;
    }
    if (work.tokens == 0) refuse(place, "0 tokens");
    check_bytes(place, work);
    if (work.kind == WorkKind::kTransfer) return;
    if (!has_store(work.store)) refuse(place, fmt::format("there is no store '{}'", work.store));
  }
  // What a work moves, before anything is made of it: bytes on links are content times bytes_scale, and a store keeps a
  // record for each chunk.
  void check_bytes(const std::string& place, const WorkSpec& work) {
    const CacheVolume volume = volume_of(scenario_.cache_schema);
    const double content = volume.bytes_per_token * static_cast<double>(work.tokens) + volume.state_bytes;
    if (content * static_cast<double>(scenario_.bytes_scale) > static_cast<double>(kBytesMax))
      refuse(place, fmt::format("{} tokens and a bytes_scale of {} come to more than {} bytes", work.tokens,
                                scenario_.bytes_scale, kBytesMax));
    for (const StoreSpec& store : scenario_.stores)
      if (store.name == work.store &&
          content / static_cast<double>(store.chunk_bytes) > static_cast<double>(kChunksMax))
        refuse(place, fmt::format("in chunks of {} bytes {} tokens are more than {} chunks", store.chunk_bytes,
                                  work.tokens, kChunksMax));
  }
  void check_fault(size_t number, const FaultSpec& fault, const std::set<std::string>& works) {
    const FaultKindRow& row = fault_kind_row(fault.kind);
    const std::string place = fmt::format("faults[{}] {}", number, row.name);
    const bool is_of_operation = row.scope == FaultScope::kOperation;
    if (is_of_operation && !fault.when) refuse(place, "'when' says which operation; it is missing");
    if (!is_of_operation && fault.at.has_value() == fault.when.has_value())
      refuse(place, "either 'at_us' or 'when' says when");
    check_unused(place, fault, row);
    if (fault.kind == FaultKind::kMessageStorm && fault.count > kStormMax)
      refuse(place, fmt::format("{} messages, at most {}", fault.count, kStormMax));
    if (fault.percent > 10000) refuse(place, fmt::format("{} percent", fault.percent));
    if (row.target != FaultTarget::kNone && fault.target.empty()) refuse(place, "'target' is missing");
    for (const std::string& name : comma_separated(fault.target)) {
      if (!row.modes.empty() && std::find(row.modes.begin(), row.modes.end(), fault.mode) == row.modes.end())
        refuse(place, fmt::format("mode '{}' is not one of{}", fault.mode, fmt::join(row.modes, " ")));
      check_target(place, row.target, name, works);
    }
  }
  // A parameter that the kind does not look at is a mistake: it would change nothing without a word.
  void check_unused(const std::string& place, const FaultSpec& fault, const FaultKindRow& row) {
    const FaultSpec usual;
    const bool is_of_operation = row.scope == FaultScope::kOperation;
    const auto check = [&](std::string_view name, bool is_stated, bool is_taken) {
      if (is_stated && !is_taken) refuse(place, fmt::format("does not take '{}'", name));
    };
    const auto takes = [&](FaultParameter parameter) { return (row.parameters & parameter) != 0; };
    check("lasts_us", fault.lasts != usual.lasts, takes(kTakesLasts) || is_of_operation);
    check("percent", fault.percent != usual.percent, takes(kTakesPercent));
    check("delay_us", fault.delay != usual.delay, takes(kTakesDelay));
    check("count", fault.count != usual.count, takes(kTakesCount) || is_of_operation || fault.when.has_value());
    check("mode", !fault.mode.empty(), takes(kTakesMode));
  }
  void check_target(const std::string& place, FaultTarget target, const std::string& name,
                    const std::set<std::string>& works) {
    switch (target) {
      case FaultTarget::kLinks:
        if (links().named(name).empty()) refuse(place, fmt::format("the cluster has nothing called '{}'", name));
        break;
      case FaultTarget::kMachine:
        if (!links().machine(name)) refuse(place, fmt::format("the cluster has no machine called '{}'", name));
        break;
      case FaultTarget::kStore:
        if (!has_store(name)) refuse(place, fmt::format("there is no store '{}'", name));
        break;
      case FaultTarget::kWork:
        if (!works.contains(name)) refuse(place, fmt::format("there is no work '{}'", name));
        break;
      case FaultTarget::kPeers:  // a pattern, which may match none yet
      case FaultTarget::kNone: break;
    }
  }

  bool has_store(const std::string& name) const {
    return std::any_of(scenario_.stores.begin(), scenario_.stores.end(),
                       [&](const StoreSpec& store) { return store.name == name; });
  }
  // Made when a fault asks for it: for a large cluster it costs more than all other rules.
  const ClusterLinks& links() {
    if (!links_) links_.emplace(scenario_.cluster);
    return *links_;
  }

  const Scenario& scenario_;
  Diagnostics& faults_;
  std::optional<ClusterLinks> links_;
};

}  // namespace

void check_scenario(const Scenario& scenario, Diagnostics& diagnostics) {
  ScenarioRules(scenario, diagnostics).check();
}

}  // namespace crossdock
