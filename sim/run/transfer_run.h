// A live transfer of a scenario: writers, targets and a coordinator, a process each.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "sim/run/work_run.h"

namespace crossdock {

// Verdicts: activated, partly, aborted, quarantined.
class TransferRun : public WorkRun {
 public:
  using WorkRun::WorkRun;

  void request_abort() override;
  void restart(const std::string& peer_pattern) override;
  void check_end() override;
  void traffic(std::vector<TrafficCell>& cells) const override;

 private:
  // One life of a participant. Earlier lives stay in the list, for the checks at the end.
  struct Process {
    Role role;
    size_t number;  // of the participant
    uint64_t generation = 1;
    std::unique_ptr<ParticipantProtocol> protocol;
    SimNode* node;
    SimMember* member;
  };

  std::optional<bool> copies_once() const override { return failed_copies() == 0; }
  void took(const SimNode& node, const Message& message) override;
  void entered_state(const SimNode& node) override;
  Status prepare() override;
  void conclude() override;
  ParticipantOptions participant_options(const ParticipantId& participant);
  void launch_participant(Role role, size_t number, uint64_t generation, SimMember& member);
  uint64_t failed_copies() const;
  // Whether any life of the target was activated, and whether one has died.
  bool was_active(size_t target) const;
  bool has_died(size_t target) const;

  std::vector<Process> processes_;
  std::unique_ptr<Coordinator> coordinator_;
  SimNode* coordinator_node_ = nullptr;
  std::set<PeerIdentity> exported_;  // lives whose exports the coordinator has taken
  uint64_t seed_ = 0;
};

}  // namespace crossdock
