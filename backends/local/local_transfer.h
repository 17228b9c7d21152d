// Transfers, uploads and restores within this process: a thread for each protocol (backends/drive/), ports of this
// backend, and one pool of threads that copies.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backends/drive/drive_transfer.h"
#include "backends/local/local_runtime.h"
#include "backends/store/blocking_store.h"
#include "executor/restore.h"
#include "executor/upload.h"

namespace crossdock {

struct LocalTransferRequest {
  CoordinatorOptions coordinator;  // without peers, which are filled in
  ParticipantOptions participant;  // of each: operation, attempt, participant and coordinator are filled in
  std::vector<AnyBinding> source_bindings;
  std::vector<AnyBinding> target_bindings;
  size_t thread_count = 0;  // that copy; 0: one for each processor
  // Returns the ports that the participant is driven with instead of its own, for example with faults
  // (backends/faults/); what they point to outlives the run. Empty: its own.
  std::function<Ports(Role role, const ParticipantId& participant, const Ports& own)> decorate;
};

struct LocalTransferReport : TransferReport {  // participants in the order of the bindings
  Duration copying;                            // from the first copy that began to the last that ended
  uint64_t copied_bytes = 0;
};

// Names and options of the participants of a local transfer; `number` counts sources, then targets, from 1 on.
PeerId local_peer(Role role, const ParticipantId& participant);
// With the peers of all participants and the coordinator's own address: what run_local_transfer() runs.
CoordinatorOptions local_coordinator_options(const LocalTransferRequest& request);
ParticipantOptions local_participant_options(const LocalTransferRequest& request, const ParticipantId& participant,
                                             uint64_t number);

// Runtime and registry know the participants and their memory.
LocalTransferReport run_local_transfer(const LocalTransferRequest& request, LocalRuntime& runtime,
                                       MemoryRegistry& registry, const DriveHooks& hooks);

// Run an upload or a restore to its end.
UploadOutcome run_local_upload(Upload& upload, BlockingStore& store, LocalRuntime& runtime, MemoryRegistry& registry,
                               size_t thread_count, const DriveHooks& hooks);
RestoreOutcome run_local_restore(Restore& restore, BlockingStore& store, LocalRuntime& runtime,
                                 MemoryRegistry& registry, size_t thread_count, const DriveHooks& hooks);

}  // namespace crossdock
