#include "executor/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "executor/canary.h"

// The decision is one variable of one process, made once (decide()), so participants cannot disagree about it. What can
// be lost is only the message, and that is repeated until it is answered. Messages may come late, twice or from an
// earlier life, so each handler compares the operation and the identity, and sets a flag that stays set; nothing is
// counted.
namespace crossdock {
Status TransferOutcome::status() const {
  if (!activate) return cause;
  if (unconfirmed_targets.empty()) return Status();
  return Status(Code::kOutcomeUnknown, fmt::format("activated, but not all have said that they are active: {}",
                                                   fmt::join(unconfirmed_targets, ", ")));
}

Coordinator::Coordinator(CoordinatorOptions options)
    : options_(std::move(options)), mail_(ops_, options_.resend, options_.seed) {
  for (const PeerAddress& each : options_.sources) members_[{Role::kSource, each.participant}].peer = each.peer;
  for (const PeerAddress& each : options_.targets) members_[{Role::kTarget, each.participant}].peer = each.peer;
}

std::string_view coordinator_state_name(CoordinatorState state) {
  constexpr std::array<std::string_view, 5> kNames = {"collecting exports", "collecting reports",
                                                      "telling the decision", "closing", "finished"};
  return kNames[static_cast<size_t>(state)];
}

Message Coordinator::message(MessageBody body) const {
  return Message{options_.operation, PeerIdentity(), std::move(body)};
}

// A message of an earlier generation speaks of memory that is gone: it must not make a target count as ready (I5).
bool Coordinator::is_current(const Member& member, const PeerIdentity& identity) const {
  if (is_broken(Canary::kIgnoreGeneration)) return member.binding != nullptr;
  return member.binding != nullptr && identity_of(*member.binding) == identity;
}

// An export is repeated until the job arrives, so equal ones are usual. A newer generation means that the participant
// restarted. Before the job that only replaces its binding. Afterwards the others work by keys of memory that is gone,
// so the transfer fails.
void Coordinator::take_export(Member& member, const MemberId& id, const ExportBody& body) {
  // The message's identity and the binding must name the same participant; the binding comes from outside.
  if (body.binding == nullptr || body.binding->participant != id.second) return;
  if (member.binding == nullptr) {
    member.binding = body.binding;
    return;
  }
  const InstanceBinding& known = *member.binding;
  const InstanceBinding& now = *body.binding;
  if (known == now || now.generation < known.generation || is_broken(Canary::kIgnoreGeneration))
    return;  // again, stale
  if (job_ == nullptr) {
    member.binding = body.binding;
  } else if (!failure_) {
    failure_ =
        Status(Code::kUnavailable, fmt::format("{} restarted: generation {} took the place of {}",
                                               member_text(id.first, id.second), now.generation, known.generation));
  }
}

// The first failure is kept, as the cause; later ones mostly follow from it.
void Coordinator::handle(const Message& message) {
  if (message.operation != options_.operation) return;
  const auto find = [&](Role role) -> Member* {
    const auto found = members_.find({role, message.identity.participant});
    return found == members_.end() ? nullptr : &found->second;
  };
  if (const auto* body = std::get_if<ExportBody>(&message.body)) {
    const MemberId id{body->role, message.identity.participant};
    if (Member* member = find(body->role)) take_export(*member, id, *body);
  } else if (const auto* failed = std::get_if<FailureBody>(&message.body)) {
    Member* member = find(failed->role);
    if (member == nullptr || (member->binding != nullptr && !is_current(*member, message.identity))) return;
    if (!failure_ && !failed->cause.ok()) failure_ = failed->cause;
  } else if (const auto* ready = std::get_if<ReadyBody>(&message.body)) {
    Member* member = find(Role::kTarget);
    if (member == nullptr || !is_current(*member, message.identity)) return;
    member->ready = true;
    member->bytes = ready->bytes;
  } else if (const auto* done = std::get_if<DoneBody>(&message.body)) {
    Member* member = find(done->role);
    // A participant that was told to abort before it exported has no binding, and its identity names none.
    if (member == nullptr || (member->binding != nullptr && !is_current(*member, message.identity))) return;
    member->done = true;
    member->activated = done->activated;
    mail_.stop(member->peer, "decision");
  }
}

// The first few members for which it does not hold, by name.
std::string Coordinator::missing(bool (*is_there)(const Member&), bool targets_only) const {
  std::vector<std::string> names;
  for (const auto& [id, member] : members_)
    if ((!targets_only || id.first == Role::kTarget) && !is_there(member))
      names.push_back(member_text(id.first, id.second));
  return first_few(names);
}

// Planned only when all bindings are there: a plan of some of them would have to be made again. members_ is sorted, so
// the job does not depend on the order in which exports came (I7).
void Coordinator::hand_out(TimePoint now) {
  std::vector<AnyBinding> sources;
  std::vector<AnyBinding> targets;
  for (const auto& [id, member] : members_) (id.first == Role::kSource ? sources : targets).push_back(member.binding);
  Result<std::shared_ptr<TransferJob>> made = options_.planner->make_job(
      fmt::format("transfer '{}'", options_.operation.text()), std::move(sources), std::move(targets));
  // Participants hold pins and reservations by now, so a failed plan is a decision too (I4).
  if (!made.ok()) return decide(false, made.status(), now);
  const std::shared_ptr<TransferJob> job = std::move(made).value();
  for (const PeerAddress& each : options_.sources) job->source_peers[each.participant] = each.peer;
  for (const PeerAddress& each : options_.targets) job->target_peers[each.participant] = each.peer;
  job->checksum = options_.checksum;
  job_ = job;
  for (const auto& [id, member] : members_) mail_.repeat(member.peer, "job", message(JobBody{job_}));
  state_ = CoordinatorState::kCollectingReports;
}

// What was repeated so far is of no use any more. After this, failures and reports change nothing.
void Coordinator::decide(bool activate, Status cause, TimePoint now) {
  outcome_.activate = activate;
  outcome_.cause = std::move(cause);
  mail_.stop_all();
  for (const auto& [id, member] : members_)
    mail_.repeat(member.peer, "decision", message(DecisionBody{activate, outcome_.cause.message()}));
  done_deadline_ = now + options_.done_wait;
  state_ = CoordinatorState::kTelling;
}

bool Coordinator::step(TimePoint now, std::vector<Post>& posts) {
  const auto exported = [](const Member& member) { return member.binding != nullptr; };
  const auto ready = [](const Member& member) { return member.ready; };
  const auto is_done = [](const Member& member) { return member.done; };
  switch (state_) {
    case CoordinatorState::kCollectingExports:
    case CoordinatorState::kCollectingReports: {
      // Before the reports are looked at: with a failure known, the decision is to abort, also when all targets are
      // ready.
      if (abort_request_ || failure_) {
        decide(false, failure_ ? *failure_ : Status(Code::kCancelled, *abort_request_), now);
        return true;
      }
      const bool exporting = state_ == CoordinatorState::kCollectingExports;
      const std::string names = exporting ? missing(exported, false) : missing(ready, true);
      if (names.empty()) {
        if (exporting)
          hand_out(now);
        else
          decide(true, Status(), now);
        return true;
      }
      // A participant knows better why it did not succeed: its own failure message is awaited a little longer.
      if (now < deadline_ + options_.report_wait) return false;
      decide(
          false,
          Status(Code::kDeadline, fmt::format("no {} of {} by the deadline", exporting ? "export" : "report", names)),
          now);
      return true;
    }
    case CoordinatorState::kTelling: {
      // I6: waiting for "done" is bounded. Members that have not answered are named: of an activated target it is then
      // unknown whether it is active.
      if (!missing(is_done, false).empty() && now < done_deadline_) return false;
      for (const auto& [id, member] : members_) {
        std::vector<std::string>& unconfirmed =
            id.first == Role::kTarget ? outcome_.unconfirmed_targets : outcome_.unconfirmed_sources;
        if (!is_done(member)) unconfirmed.push_back(member_text(id.first, id.second));
        if (id.first != Role::kTarget) continue;
        outcome_.activated_count += member.activated ? 1 : 0;
        outcome_.bytes += member.bytes;
        if (outcome_.activate && member.done && !member.activated)
          unconfirmed.push_back(member_text(id.first, id.second) + " (it could not be activated)");
      }
      // Messages that are due go out before the mailbox is closed.
      mail_.advance(now, posts);
      mail_.close(posts);
      done_deadline_ = now + options_.done_wait;
      state_ = CoordinatorState::kClosing;
      return true;
    }
    case CoordinatorState::kClosing:
      if (mail_.closed() || now >= done_deadline_) state_ = CoordinatorState::kFinished;
      return false;
    case CoordinatorState::kFinished: return false;
  }
  return false;
}

void Coordinator::advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  if (!std::exchange(started_, true)) {
    deadline_ = now + options_.timeout;
    mail_.open(posts);
  }
  std::vector<Message> messages;
  for (const Completion& completion : completions) mail_.complete(completion, messages);
  for (const Message& each : messages) handle(each);
  while (step(now, posts)) {
  }
  mail_.advance(now, posts);
}

TimePoint Coordinator::wake_at() const {
  switch (state_) {
    case CoordinatorState::kFinished: return TimePoint::never();
    case CoordinatorState::kTelling:
    case CoordinatorState::kClosing: return std::min(mail_.wake_at(), done_deadline_);
    default: return std::min(mail_.wake_at(), deadline_ + options_.report_wait);
  }
}

}  // namespace crossdock
