// Drives a live transfer, or the part of it that runs in this process: its coordinator, and any of its writers and
// targets, each over the ports that the caller gives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backends/drive/drive_protocols.h"
#include "executor/coordinator.h"
#include "executor/participant.h"

namespace crossdock {

// The coordinator of every transfer is observed under this name.
inline constexpr const char* kCoordinatorName = "coordinator";

struct DrivenParticipant {
  Role role = Role::kSource;
  ParticipantOptions options;
  std::string name;  // for DriveHooks::observe
  Ports ports;       // queue, transport, messenger and runtime
};

struct DrivenCoordinator {
  CoordinatorOptions options;  // with all peers, those of other processes included
  Ports ports;                 // queue and messenger
  std::function<void()> wake;  // makes ports.queue->wait() return soon; called by another thread
};

struct DrivenTransfer {
  // Empty when another process has it. An interrupt reaches the participants through the coordinator's decision, so a
  // process without it ignores DriveHooks::interrupted.
  std::optional<DrivenCoordinator> coordinator;
  std::vector<DrivenParticipant> participants;
};

struct TransferReport {
  TransferOutcome outcome;                  // of the coordinator, if it ran here
  std::vector<ParticipantOutcome> sources;  // in the order of DrivenTransfer::participants
  std::vector<ParticipantOutcome> targets;
  std::shared_ptr<const TransferJob> job;  // null when none was made here
  Duration total;                          // from the first step to the end of the last protocol
  uint64_t operation_count = 0;            // copies posted by the sources here, repeated ones included
};

// Returns when all protocols of this process have finished.
TransferReport drive_transfer(const DrivenTransfer& transfer, const DriveHooks& hooks,
                              const std::function<uint64_t()>& done_bytes);

}  // namespace crossdock
