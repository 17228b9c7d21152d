#include "backends/local/local_runtime.h"

#include <algorithm>

#include "executor/transfer_job.h"

namespace crossdock {

void LocalRuntime::add(Role role, AnyBinding binding, const RegionMemory& memory) {
  const std::lock_guard lock(mutex_);
  const ParticipantId participant = binding->participant;
  members_[{role, participant}] = Member{std::move(binding), &memory, State::kIdle};
}

Result<LocalRuntime::Member*> LocalRuntime::find(Role role, const ParticipantId& participant) {
  const auto found = members_.find({role, participant});
  if (found == members_.end())
    return Status(Code::kNotFound, "the runtime has no participant '" + participant.text() + "'");
  return &found->second;
}

// The states of a member, and the call that moves it:
//
//   idle --hold--> held --activate--> active       its grants end, the memory stays in use
//                  held --release---> released     its grants end
//
// Each call may be repeated (R4): in the state that it leads to, it is OK and does nothing. A member is held once for
// each runtime, since an epoch is used once.
Result<AnyBinding> LocalRuntime::hold(Role role, const ParticipantId& participant) {
  const std::lock_guard lock(mutex_);
  TRY(Member* const member, find(role, participant));
  if (member->state == State::kHeld) return member->binding;
  if (member->state != State::kIdle)
    return Status(Code::kConflict, "participant '" + participant.text() + "' was activated or released before");
  std::vector<RegionKey> added;
  for (const RegionKey& key : region_keys(*member->binding)) {
    if (users_[key]++ > 0) continue;
    const Status status = registry_.add(key, member->memory->find(key));
    if (status.ok()) {
      added.push_back(key);
      continue;
    }
    users_.erase(key);
    for (const RegionKey& each : added) {
      users_.erase(each);
      registry_.remove(each);
    }
    return status;
  }
  member->state = State::kHeld;
  return member->binding;
}

Status LocalRuntime::validate(const ParticipantId& participant) {
  return validate_ ? validate_(participant) : Status();
}

Status LocalRuntime::activate(const ParticipantId& participant) {
  const std::lock_guard lock(mutex_);
  TRY(Member* const member, find(Role::kTarget, participant));
  if (member->state == State::kActive) return Status();
  if (member->state != State::kHeld)
    return Status(Code::kConflict, "target '" + participant.text() + "' is not reserved");
  let_go(*member, State::kActive);
  return Status();
}

Status LocalRuntime::release(Role role, const ParticipantId& participant) {
  const std::lock_guard lock(mutex_);
  TRY(Member* const member, find(role, participant));
  if (member->state == State::kHeld) let_go(*member, State::kReleased);
  return Status();
}

// The target has revoked its keys before (the fence), so no access is under way when they are removed.
// Ends the operation's grants: an access that comes later finds no memory under its key (I3).
void LocalRuntime::let_go(Member& member, State state) {
  for (const RegionKey& key : region_keys(*member.binding))
    if (--users_[key] == 0) {
      users_.erase(key);
      registry_.remove(key);
    }
  member.state = state;
}

LocalRuntime::State LocalRuntime::state(Role role, const ParticipantId& participant) const {
  const std::lock_guard lock(mutex_);
  return members_.at({role, participant}).state;
}

size_t LocalRuntime::count(State state) const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::count_if(members_.begin(), members_.end(), [&](const auto& each) { return each.second.state == state; }));
}

// The calls are done when the post returns. That is allowed (R1): none of them waits, and the completion comes through
// the queue like every other.
Status LocalRuntimePort::done(OpId op, Completion completion) {
  completion.op = op;
  queue_.add(std::move(completion));
  return Status();
}

Status LocalRuntimePort::post_pin(OpId op, const ParticipantId& participant) {
  return done(op, completion_of(runtime_.hold(role_, participant)));
}

Status LocalRuntimePort::post_reserve(OpId op, const ParticipantId& participant) { return post_pin(op, participant); }

Status LocalRuntimePort::post_validate(OpId op, const ParticipantId& participant) {
  return done(op, completion_of(runtime_.validate(participant)));
}

Status LocalRuntimePort::post_activate(OpId op, const ParticipantId& participant) {
  return done(op, completion_of(runtime_.activate(participant)));
}

Status LocalRuntimePort::post_release(OpId op, const ParticipantId& participant) {
  return done(op, completion_of(runtime_.release(role_, participant)));
}

}  // namespace crossdock
