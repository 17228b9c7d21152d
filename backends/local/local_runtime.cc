#include "backends/local/local_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "executor/transfer_job.h"

namespace crossdock {
namespace {

Status conflict(const HoldId& hold, const char* why) {
  return Status(Code::kConflict, fmt::format("participant {} {}", hold.to_text(), why));
}

}  // namespace

void LocalRuntime::add(Role role, AnyBinding binding, const RegionMemory& memory) {
  const std::lock_guard lock(mutex_);
  const ParticipantId participant = binding->participant;
  members_[{role, participant}] = Member{std::move(binding), &memory, {}};
}

Result<LocalRuntime::Member*> LocalRuntime::find(Role role, const ParticipantId& participant) {
  const auto found = members_.find({role, participant});
  if (found == members_.end())
    return Status(Code::kNotFound, "the runtime has no participant '" + participant.text() + "'");
  return &found->second;
}

// All regions or none: what was counted before one that cannot be registered is counted off again.
Status LocalRuntime::take(Member& member) {
  std::vector<RegionKey> taken;
  for (const RegionKey& key : region_keys(*member.binding)) {
    if (users_[key]++ == 0) {
      Status status = registry_.add(key, member.memory->find(key));
      if (!status.ok()) {
        users_.erase(key);
        for (const RegionKey& each : taken)
          if (--users_[each] == 0) {
            users_.erase(each);
            registry_.remove(each);
          }
        return status;
      }
    }
    taken.push_back(key);
  }
  return Status();
}

// The target has revoked its grant before (the fence), so no access of others is under way.
void LocalRuntime::let_go(Member& member) {
  for (const RegionKey& key : region_keys(*member.binding))
    if (--users_[key] == 0) {
      users_.erase(key);
      registry_.remove(key);
    }
}

// The states of a hold, and the call that moves it:
//
//   unknown --hold--> held --activate--> active       the memory stays in use
//                     held --release---> released
//   unknown --release-----------------> released      a hold that comes late is refused
//
// Each call may be repeated (R4): in the state that it leads to, it is OK and does nothing.
Result<AnyBinding> LocalRuntime::hold(Role role, const HoldId& hold) {
  const std::lock_guard lock(mutex_);
  TRY(Member* const member, find(role, hold.participant));
  if (const auto known = member->holds.find(hold); known != member->holds.end()) {
    if (known->second == State::kHeld) return member->binding;
    return conflict(hold, known->second == State::kActive ? "is active already" : "was released before");
  }
  if (role == Role::kTarget)
    for (const auto& [other, state] : member->holds)
      if (state == State::kHeld || state == State::kActive) return conflict(other, "has the pages that are asked for");
  TRY_STATUS(take(*member));
  member->holds[hold] = State::kHeld;
  return member->binding;
}

Status LocalRuntime::validate(const HoldId& hold) {
  {
    const std::lock_guard lock(mutex_);
    TRY(Member* const member, find(Role::kTarget, hold.participant));
    const auto known = member->holds.find(hold);
    if (known == member->holds.end() || known->second != State::kHeld) return conflict(hold, "is not reserved");
  }
  if (!validate_) return Status();
  try {
    return validate_(hold.participant);
  } catch (const std::exception& error) {
    return Status(Code::kInvalidArgument, fmt::format("validation threw: {}", error.what()));
  }
}

Status LocalRuntime::activate(const HoldId& hold) {
  const std::lock_guard lock(mutex_);
  TRY(Member* const member, find(Role::kTarget, hold.participant));
  const auto known = member->holds.find(hold);
  if (known != member->holds.end() && known->second == State::kActive) return Status();
  if (known == member->holds.end() || known->second != State::kHeld) return conflict(hold, "is not reserved");
  let_go(*member);
  known->second = State::kActive;
  return Status();
}

Status LocalRuntime::release(Role role, const HoldId& hold) {
  const std::lock_guard lock(mutex_);
  TRY(Member* const member, find(role, hold.participant));
  State& state = member->holds.try_emplace(hold, State::kReleased).first->second;
  if (state == State::kActive) return conflict(hold, "is active, and not released");
  if (std::exchange(state, State::kReleased) == State::kHeld) let_go(*member);
  return Status();
}

LocalRuntime::State LocalRuntime::state_of(const Member& member) {
  const auto any = [&](State state) {
    return std::any_of(member.holds.begin(), member.holds.end(),
                       [&](const auto& each) { return each.second == state; });
  };
  for (const State state : {State::kActive, State::kHeld, State::kReleased})
    if (any(state)) return state;
  return State::kIdle;
}

LocalRuntime::State LocalRuntime::state(Role role, const ParticipantId& participant) const {
  const std::lock_guard lock(mutex_);
  return state_of(members_.at({role, participant}));
}

size_t LocalRuntime::count(State state) const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(members_.begin(), members_.end(),
                                           [&](const auto& each) { return state_of(each.second) == state; }));
}

// All but validate are done when the post returns. That is allowed (R1): none of them waits, and the completion comes
// through the queue like every other.
Status LocalRuntimePort::done(OpId op, Completion completion) {
  completion.op = op;
  queue_.add(std::move(completion));
  return Status();
}

Status LocalRuntimePort::post_pin(OpId op, const HoldId& hold) {
  return done(op, completion_of(runtime_.hold(role_, hold)));
}

Status LocalRuntimePort::post_reserve(OpId op, const HoldId& hold) { return post_pin(op, hold); }

// By a thread of the pool: the embedder's look at the content may take its time.
Status LocalRuntimePort::post_validate(OpId op, const HoldId& hold) {
  const auto task = [&runtime = runtime_, &queue = queue_, op, hold] {
    Completion completion = completion_of(runtime.validate(hold));
    completion.op = op;
    queue.add(std::move(completion));
  };
  if (pool_.try_post(task)) return Status();
  return Status(Code::kResourceExhausted, "too many operations wait");
}

Status LocalRuntimePort::post_activate(OpId op, const HoldId& hold) {
  return done(op, completion_of(runtime_.activate(hold)));
}

Status LocalRuntimePort::post_release(OpId op, const HoldId& hold) {
  return done(op, completion_of(runtime_.release(role_, hold)));
}

}  // namespace crossdock
