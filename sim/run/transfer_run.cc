#include "sim/run/transfer_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/kv/kv_transfer.h"
#include "sim/scenario/name_pattern.h"

namespace crossdock {

ParticipantOptions TransferRun::participant_options(const ParticipantId& participant) {
  ParticipantOptions options;
  options.operation = OperationId(spec_.name);
  options.attempt = attempt();
  options.participant = participant;
  options.coordinator = PeerId(spec_.name + " coordinator");
  options.timeout = spec_.timeout;
  options.drain = spec_.drain;
  options.decision_wait = spec_.wait;
  options.linger = spec_.wait;
  options.window = WindowLimits{spec_.window_operations, spec_.window_bytes};
  options.batch = BatchLimits{spec_.batch_steps, spec_.batch_bytes};
  options.split.bytes_max = spec_.batch_bytes;
  // Each participant has a seed of its own, and another one after a restart.
  options.seed = ++seed_;
  return options;
}

void TransferRun::launch_participant(Role role, size_t number, uint64_t generation, SimMember& member) {
  const ParticipantId& participant = (*member.binding)->participant;
  Process process;
  process.role = role;
  process.number = number;
  process.generation = generation;
  const ParticipantOptions options = participant_options(participant);
  if (role == Role::kSource)
    process.protocol = std::make_unique<Writer>(options);
  else
    process.protocol = std::make_unique<Target>(options);
  process.member = &member;
  process.node = &launch(scenario_peer(spec_, role, participant), member.place, *process.protocol, {&member}, nullptr);
  processes_.push_back(std::move(process));
}

Status TransferRun::prepare() {
  result_.kind = "transfer";
  seed_ = world_.options().seed * 1000;
  TRY_STATUS(make_side(Role::kSource, source_));
  TRY_STATUS(make_side(Role::kTarget, target_));
  CoordinatorOptions options;
  options.operation = OperationId(spec_.name);
  options.attempt = attempt();
  options.instance = InstanceId(spec_.name + " coordinator, life 1");
  options.reply_to = PeerId(spec_.name + " coordinator");
  KvTransfer transfer;
  transfer.documents = TransferDocuments{source_->placement, target_->placement, snapshot_};
  options.planner = std::make_shared<const KvTransferPlanner>(std::move(transfer));
  options.checksum = spec_.checksum;
  options.timeout = spec_.timeout;
  options.report_wait = spec_.wait;
  options.done_wait = spec_.drain + spec_.drain + spec_.wait;  // as the library's defaults are to each other
  options.seed = world_.options().seed;
  const auto add = [&](Role role, ScenarioSide& side, std::vector<PeerAddress>& addresses) {
    for (size_t i = 0; i < side.members.size(); ++i) {
      const ParticipantId& participant = (*side.members[i]->binding)->participant;
      addresses.push_back({participant, scenario_peer(spec_, role, participant)});
    }
  };
  add(Role::kSource, *source_, options.sources);
  add(Role::kTarget, *target_, options.targets);
  coordinator_ = std::make_unique<Coordinator>(options);
  // Processes start in the order in which they are launched, so equal seeds give equal runs (I7).
  coordinator_node_ = &launch(PeerId(spec_.name + " coordinator"), coordinator_place(), *coordinator_, {}, nullptr);
  for (size_t i = 0; i < source_->members.size(); ++i) launch_participant(Role::kSource, i, 1, *source_->members[i]);
  for (size_t i = 0; i < target_->members.size(); ++i) launch_participant(Role::kTarget, i, 1, *target_->members[i]);
  return Status();
}

void TransferRun::request_abort() {
  if (coordinator_node_->is_dead() || is_over()) return;
  coordinator_->request_abort("asked to");
  coordinator_node_->wake();
}

// The process dies, and another life of it begins at once, with memory and epochs of its own.
void TransferRun::restart(const std::string& peer_pattern) {
  for (size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (process.node->is_dead() || process.protocol->finished() || is_over()) continue;
    const PeerId peer = process.node->peer();
    if (!matches_pattern(peer_pattern, peer.text())) continue;
    ScenarioSide& side = process.role == Role::kSource ? *source_ : *target_;
    Diagnostics diagnostics;
    std::unique_ptr<SimMember> again =
        make_scenario_member(side_request(process.role), side, process.number, process.generation + 1, diagnostics);
    if (again == nullptr || !world_.memory().add(*again, scenario_.carries_bytes).ok()) continue;
    SimNode& node = *process.node;
    const Role role = process.role;
    const size_t number = process.number;
    const uint64_t generation = process.generation + 1;
    // The name is free before the new life joins, and the old one dies last: messages to the name reach the new life
    // from now on. What is needed of `process` was copied, since launch_participant() grows the list that it is in.
    world_.retire(peer);
    std::swap(side.members[number], again);
    earlier_members_.push_back(std::move(again));
    launch_participant(role, number, generation, *side.members[number]);
    world_.kill(node, Fate::kLost, Duration());
    process_died(node);
    return;  // processes_ has grown
  }
}

// Which lives the coordinator may count on: those whose exports it took.
void TransferRun::took(const SimNode& node, const Message& message) {
  if (&node == coordinator_node_ && std::holds_alternative<ExportBody>(message.body))
    exported_.insert(message.identity);
}

// At the moment of the decision every target has to be ready, in the last life that the coordinator knows (I5).
void TransferRun::entered_state(const SimNode& node) {
  if (&node != coordinator_node_ || coordinator_->coordinator_state() != CoordinatorState::kTelling ||
      !coordinator_->outcome().activate)
    return;
  for (const Process& process : processes_) {
    if (process.role != Role::kTarget || process.node->is_dead()) continue;
    // A life that the coordinator has not heard of cannot be part of its decision.
    if (!exported_.contains(identity_of(**process.member->binding))) continue;
    const TransferState its = process.protocol->transfer_state();
    world_.checks().check(Invariant::kI5, world_.now(),
                          its == TransferState::kReporting
                              ? ""
                              : fmt::format("the decision is to activate although '{}' is {}", process.member->name,
                                            transfer_state_name(its)));
  }
}

void TransferRun::conclude() {
  size_t active = 0;
  for (size_t i = 0; i < target_->members.size(); ++i)
    if (was_active(i)) ++active;
  bool is_quarantined = false;
  for (const Process& process : processes_)
    if (!process.node->is_dead()) is_quarantined |= process.protocol->outcome().quarantined.has_value();
  // By what the runtime made active in any life of a target, and not by the coordinator's word.
  result_.verdict = active == target_->members.size() ? "activated"
                    : active > 0                      ? "partly"
                    : is_quarantined                  ? "quarantined"
                                                      : "aborted";
  if (!coordinator_node_->is_dead()) result_.cause = coordinator_->outcome().status().message();
  for (const Process& process : processes_)
    if (result_.cause.empty() && !process.node->is_dead()) result_.cause = process.protocol->outcome().cause.message();
  // Names of this work's members lie together.
  const auto& landed = world_.memory().landed();
  for (auto each = landed.lower_bound({spec_.name + "/", ""});
       each != landed.end() && each->first.first.starts_with(spec_.name + "/"); ++each)
    result_.bytes += each->second;
}

bool TransferRun::was_active(size_t target) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const Process& process) {
    return process.role == Role::kTarget && process.number == target && process.member->is_active;
  });
}

bool TransferRun::has_died(size_t target) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const Process& process) {
    return process.role == Role::kTarget && process.number == target && process.node->is_dead();
  });
}

// A copy that failed may be repeated, so its cells are written more than once: "exactly once" is checked only without
// (copies_once).
uint64_t TransferRun::failed_copies() const {
  uint64_t count = 0;
  for (const Process& process : processes_) count += process.node->transport().failed_copy_count();
  return count;
}

void TransferRun::check_end() {
  Checks& checks = world_.checks();
  const TimePoint now = world_.now();
  for (const Process& process : processes_) {
    if (process.node->is_dead()) continue;
    const ParticipantOutcome& outcome = process.protocol->outcome();
    check_node(*process.node, outcome.lost);
    check_pages(*process.member,
                outcome.quarantined ? std::vector<Remains>{*outcome.quarantined} : std::vector<Remains>());
    const bool is_target = process.role == Role::kTarget;
    checks.check(
        Invariant::kI5, now,
        is_target && !(outcome.quarantined && outcome.quarantined->may_be_active) &&
                outcome.activated != process.member->is_active
            ? fmt::format("'{}' says that it is {}active", process.member->name, outcome.activated ? "" : "not ")
            : "");
    checks.check(Invariant::kI5, now,
                 is_target && !outcome.activated && outcome.cause.ok()
                     ? fmt::format("'{}' was not activated and says no cause", process.member->name)
                     : "");
  }
  // Without a coordinator there is no decision to compare with; what participants left is checked above.
  if (coordinator_node_->is_dead()) return;
  check_node(*coordinator_node_, {});
  const TransferOutcome& outcome = coordinator_->outcome();
  for (size_t i = 0; i < target_->members.size(); ++i) {
    const std::string& name = target_->members[i]->name;
    checks.check(Invariant::kI5, now,
                 !outcome.activate && was_active(i)
                     ? fmt::format("'{}' is active although the decision was to abort", name)
                     : "");
    checks.check(Invariant::kI5, now,
                 outcome.status().ok() && !was_active(i)
                     ? fmt::format("the transfer succeeded although '{}' is not active", name)
                     : "");
    // A target that lives on, and heard the decision, is active.
    checks.check(Invariant::kI5, now,
                 outcome.activate && !was_active(i) && !has_died(i) && scenario_.faults.empty()
                     ? fmt::format("'{}' is not active although the decision was to activate", name)
                     : "");
  }
  checks.check(Invariant::kI5, now,
               !outcome.activate && outcome.cause.message().empty() ? "the transfer failed without a cause" : "");
  // I8 in bytes, only where each copy ran once.
  if (!outcome.status().ok() || failed_copies() > 0 || coordinator_->job() == nullptr) return;
  std::vector<TrafficCell> cells;
  traffic(cells);
  for (const TrafficCell& cell : cells)
    checks.check(Invariant::kI8, now,
                 cell.landed_bytes == cell.planned_bytes
                     ? ""
                     : fmt::format("{} bytes landed from '{}' in '{}', {} were planned", cell.landed_bytes, cell.from,
                                   cell.to, cell.planned_bytes));
}

void TransferRun::traffic(std::vector<TrafficCell>& cells) const {
  if (coordinator_ == nullptr || coordinator_->job() == nullptr) return;
  const CopyPlan& plan = *coordinator_->job()->copies;
  for (const CopyPair& pair : plan.pairs()) {
    TrafficCell cell;
    cell.from = scenario_peer(spec_, Role::kSource, ParticipantId(plan.sources()[pair.source].text())).text();
    cell.to = scenario_peer(spec_, Role::kTarget, ParticipantId(plan.targets()[pair.target].text())).text();
    cell.planned_bytes = pair.counts.bytes;
    cell.landed_bytes = world_.memory().landed_bytes(cell.from, cell.to);
    cells.push_back(std::move(cell));
  }
}

}  // namespace crossdock
