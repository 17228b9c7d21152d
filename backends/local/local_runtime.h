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
  // Called for a target after everything has arrived and before it is activated. Empty: every target is valid.
  void set_validate(std::function<Status(const ParticipantId&)> validate) { validate_ = std::move(validate); }

  // Pins or reserves: registers the binding's regions. OK again while it is held; kNotFound for an unknown participant;
  // kConflict when it was activated or released before, or its epoch was used.
  Result<AnyBinding> hold(Role role, const ParticipantId& participant);
  Status validate(const ParticipantId& participant);
  // Ends the target's grants; its memory is in use from now on. kConflict when it is not held.
  Status activate(const ParticipantId& participant);
  // Ends the grants of a participant that is held; OK and nothing in every other state.
  Status release(Role role, const ParticipantId& participant);

  State state(Role role, const ParticipantId& participant) const;
  // Participants in this state.
  size_t count(State state) const;

 private:
  struct Member {
    AnyBinding binding;
    const RegionMemory* memory;
    State state = State::kIdle;
  };

  Result<Member*> find(Role role, const ParticipantId& participant);
  void let_go(Member& member, State state);

  MemoryRegistry& registry_;
  std::function<Status(const ParticipantId&)> validate_;
  mutable std::mutex mutex_;
  std::map<std::pair<Role, ParticipantId>, Member> members_;
  std::map<RegionKey, size_t> users_;  // of a registered region: participants of one instance may share it
};

// The port of one participant, or of several of one role.
class LocalRuntimePort : public Runtime {
 public:
  LocalRuntimePort(LocalRuntime& runtime, Role role, LocalQueue& queue)
      : runtime_(runtime), role_(role), queue_(queue) {}

  Status post_pin(OpId op, const ParticipantId& participant) override;
  Status post_reserve(OpId op, const ParticipantId& participant) override;
  Status post_validate(OpId op, const ParticipantId& participant) override;
  Status post_activate(OpId op, const ParticipantId& participant) override;
  Status post_release(OpId op, const ParticipantId& participant) override;

 private:
  Status done(OpId op, Completion completion);

  LocalRuntime& runtime_;
  Role role_;
  LocalQueue& queue_;
};

}  // namespace crossdock
