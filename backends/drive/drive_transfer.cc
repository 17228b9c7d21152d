#include "backends/drive/drive_transfer.h"

#include "base/steady_clock.h"
#include "executor/target.h"
#include "executor/writer.h"

namespace crossdock {
namespace {

std::unique_ptr<ParticipantProtocol> make_protocol(const DrivenParticipant& participant) {
  if (participant.role == Role::kSource) return std::make_unique<Writer>(participant.options);
  return std::make_unique<Target>(participant.options);
}

}  // namespace

// Only the coordinator is asked to abort. Participants that aborted by themselves could disagree with a decision that
// is on its way; so an interrupt goes the way of every abort, through the decision (I5).
TransferReport drive_transfer(const DrivenTransfer& transfer, const DriveHooks& hooks,
                              const std::function<uint64_t()>& done_bytes) {
  std::vector<std::unique_ptr<ParticipantProtocol>> participants;
  std::vector<DrivenProtocol> protocols;
  for (const DrivenParticipant& each : transfer.participants) {
    // On the heap, since the list grows while pointers into it are taken.
    participants.push_back(make_protocol(each));
    protocols.push_back({each.name, participants.back().get(), each.ports, {}, {}, {}});
  }
  std::optional<Coordinator> coordinator;
  if (transfer.coordinator) {
    coordinator.emplace(transfer.coordinator->options);
    protocols.push_back({kCoordinatorName,
                         &*coordinator,
                         transfer.coordinator->ports,
                         [&](const std::string& reason) { coordinator->request_abort(reason); },
                         transfer.coordinator->wake,
                         {}});
  }
  const TimePoint begin = steady_now();
  drive_protocols(protocols, hooks, done_bytes);

  TransferReport report;
  report.total = steady_now() - begin;
  if (coordinator) {
    report.outcome = coordinator->outcome();
    report.job = coordinator->job();
  }
  for (size_t i = 0; i < participants.size(); ++i) {
    const bool is_source = transfer.participants[i].role == Role::kSource;
    (is_source ? report.sources : report.targets).push_back(participants[i]->outcome());
    report.operation_count += participants[i]->outcome().operations;
  }
  return report;
}

}  // namespace crossdock
