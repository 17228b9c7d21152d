// Runs protocols on this process: a thread for each participant of a live transfer, or the caller's thread for an
// upload or a restore; one pool of threads copies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/local/local_runtime.h"
#include "backends/store/blocking_store.h"
#include "executor/coordinator.h"
#include "executor/restore.h"
#include "executor/target.h"
#include "executor/upload.h"
#include "executor/writer.h"

namespace crossdock {

// What a caller sees and says while something runs. All may be empty.
struct LocalHooks {
  // Called about ten times a second, by the caller's thread, with the bytes that were moved so far.
  std::function<void(uint64_t done_bytes)> tick;
  // Set by anybody, for example by a signal handler: what runs is aborted, drained and released.
  const std::atomic<bool>* interrupted = nullptr;
  // Gives an observer for a protocol before it starts ("coordinator", "source p0-t0", ...), or null.
  std::function<std::unique_ptr<ProtocolObserver>(const std::string& name)> observe;
};

struct LocalFault {
  enum class Kind {
    kNone,
    kCopyFails,     // the participant's copies fail for good after `after` of them
    kWriterSilent,  // it posts no more copies and says nothing
    kBitFlips,      // a bit of what its copy `after` has written is wrong
  } kind = Kind::kNone;
  ParticipantId participant;  // a source
  uint64_t after = 0;
};

struct LocalTransferRequest {
  CoordinatorOptions coordinator;  // without peers, which are filled in
  ParticipantOptions participant;  // of each: operation, participant and coordinator are filled in
  std::vector<BindingPointer> source_bindings;
  std::vector<BindingPointer> target_bindings;
  size_t thread_count = 0;  // that copy; 0: one for each processor
  LocalFault fault;
};

struct LocalTransferReport {
  TransferOutcome outcome;
  std::vector<ParticipantOutcome> sources;  // in the order of the bindings
  std::vector<ParticipantOutcome> targets;
  std::shared_ptr<const TransferJob> job;  // null when none could be made
  Duration total;                          // from the first pin to the last word
  Duration copying;                        // from the first copy that began to the last that ended
  uint64_t copied_bytes = 0;
  uint64_t operation_count = 0;
};

// How the participants of a local transfer are called and made; `number` counts sources, then targets, from 1 on.
PeerId local_peer(Role role, const ParticipantId& participant);
ParticipantOptions local_participant_options(const LocalTransferRequest& request, const ParticipantId& participant,
                                             uint64_t number);

// Runtime and registry know the participants and their memory.
LocalTransferReport run_local_transfer(const LocalTransferRequest& request, LocalRuntime& runtime,
                                       MemoryRegistry& registry, const LocalHooks& hooks);

// Run an upload or a restore to their end in the caller's thread.
UploadOutcome run_local_upload(Upload& upload, BlockingStore& store, LocalRuntime& runtime, MemoryRegistry& registry,
                               size_t thread_count, const LocalHooks& hooks);
RestoreOutcome run_local_restore(Restore& restore, BlockingStore& store, LocalRuntime& runtime,
                                 MemoryRegistry& registry, size_t thread_count, const LocalHooks& hooks);

}  // namespace crossdock
