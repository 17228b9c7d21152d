// A runtime for memory of this process: the pages that bindings describe exist already, and are registered when they
// are pinned or reserved. A serving framework has a runtime of its own; this one is for the command line, tests and
// embedders without pages.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/local/local_queue.h"
#include "backends/local/thread_pool.h"
#include "backends/memory/memory_registry.h"
#include "backends/memory/region_memory.h"
#include "executor/ports.h"

namespace crossdock {

// Thread-safe.
class LocalRuntime {
 public:
  enum class State { kIdle, kHeld, kActive, kReleased };

  explicit LocalRuntime(MemoryRegistry& registry) : registry_(registry) {}

  // The memory, which outlives the runtime, has the binding's regions.
  void add(Role role, AnyBinding binding, const RegionMemory& memory);
  // Called for a target after everything has arrived and before it is activated, by a thread of a pool. What it throws
  // is a refusal. Empty: every target is valid.
  void set_validate(std::function<Status(const ParticipantId&)> validate) { validate_ = std::move(validate); }

  // Pins or reserves: registers the binding's regions. OK again for a hold that is held; a source is pinned by any
  // number of holds, a target reserved by one at a time. kNotFound for an unknown participant; kConflict when the hold
  // was activated or released before, or another one has the target.
  Result<AnyBinding> hold(Role role, const HoldId& hold);
  // kConflict when the target is not reserved by the hold, as in activate().
  Status validate(const HoldId& hold);
  // The target's memory is in use from now on.
  Status activate(const HoldId& hold);
  // Gives the pages of the hold back; one that is not known is never held afterwards. kConflict when it is active.
  Status release(Role role, const HoldId& hold);

  // Of the participant: held or active when any hold of it is, else released when any was.
  State state(Role role, const ParticipantId& participant) const;
  // Participants in this state.
  size_t count(State state) const;

 private:
  struct Member {
    AnyBinding binding;
    const RegionMemory* memory;
    std::map<HoldId, State> holds;
  };

  Result<Member*> find(Role role, const ParticipantId& participant);
  Status take(Member& member);
  void let_go(Member& member);
  static State state_of(const Member& member);

  MemoryRegistry& registry_;
  std::function<Status(const ParticipantId&)> validate_;
  mutable std::mutex mutex_;
  std::map<std::pair<Role, ParticipantId>, Member> members_;
  std::map<RegionKey, size_t> users_;  // of a registered region: holds, and participants of one instance that share it
};

// The port of one participant, or of several of one role.
class LocalRuntimePort : public Runtime {
 public:
  // The pool ends before the queue does.
  LocalRuntimePort(LocalRuntime& runtime, Role role, ThreadPool& pool, LocalQueue& queue)
      : runtime_(runtime), role_(role), pool_(pool), queue_(queue) {}

  Status post_pin(OpId op, const HoldId& hold) override;
  Status post_reserve(OpId op, const HoldId& hold) override;
  Status post_validate(OpId op, const HoldId& hold) override;
  Status post_activate(OpId op, const HoldId& hold) override;
  Status post_release(OpId op, const HoldId& hold) override;

 private:
  Status done(OpId op, Completion completion);

  LocalRuntime& runtime_;
  Role role_;
  ThreadPool& pool_;
  LocalQueue& queue_;
};

}  // namespace crossdock
