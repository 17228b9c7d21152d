#include "executor/participant.h"

#include <fmt/format.h>

#include <array>
#include <utility>

// The way to the end, in every case: decide or fail -> drain -> (fence) -> release -> close. Its order is what keeps
// the invariants: nothing is released while an operation is under way (R2, I3), and "done" is said only after the
// release has ended (I4). Every state has a time at which it ends (I6).
namespace crossdock {

std::string_view transfer_state_name(TransferState state) {
  constexpr std::array<std::string_view, 13> kNames = {
      "pinning",   "reserving", "exporting",  "executing", "collecting", "fencing", "validating",
      "reporting", "draining",  "activating", "releasing", "closing",    "finished"};
  return kNames[static_cast<size_t>(state)];
}

std::string ParticipantProtocol::label() const { return member_text(role_, options_.participant); }

// Before it has a binding a participant has no instance and generation; the coordinator accepts that only of members
// that have not exported.
Message ParticipantProtocol::message(MessageBody body) const {
  PeerIdentity identity{options_.participant, InstanceId(), 0};
  if (binding() != nullptr) identity = identity_of(*binding());
  return Message{options_.operation, identity, std::move(body)};
}

// Completions first and messages afterwards: a message is then handled in the newest state.
std::vector<Message> ParticipantProtocol::take(TimePoint now, std::span<const Completion> completions,
                                               std::vector<Post>& posts) {
  if (!std::exchange(started_, true)) {
    deadline_ = now + options_.timeout;
    mail_.open(posts);
  }
  std::vector<Message> messages;
  for (const Completion& completion : completions) {
    if (mail_.complete(completion, messages) || first_.complete(completion, now)) continue;
    if (release_ && release_->complete(completion, now)) continue;
    complete(completion, now);
  }
  std::erase_if(messages, [&](const Message& each) { return each.operation != options_.operation; });
  return messages;
}

// The first decision counts. One that comes again asks whether the answer was lost.
void ParticipantProtocol::decide(const DecisionBody& decision) {
  if (!decision_) decision_ = decision;
  if (state_ == TransferState::kClosing && !outcome_.quarantined && !close_deadline_)
    mail_.once(options_.coordinator, message(DoneBody{role_, outcome_.activated}));
}

// The first cause is kept: what fails later, while draining, mostly follows from it.
void ParticipantProtocol::fail(Status cause, TransferState next) {
  if (!cause_) cause_ = std::move(cause);
  mail_.stop_all();
  mail_.repeat(options_.coordinator, "failure", message(FailureBody{role_, *cause_}));
  state_ = next;
}

Status ParticipantProtocol::could_not(std::string_view what, const Status& status) const {
  return Status(status.code(), fmt::format("{} could not {}: {}", label(), what, status.message()));
}

// A participant that has reported waits longer than its own deadline, since the decision may be to activate. When it
// does not hear of one it gives up by itself, so a lost coordinator cannot hold pages for ever (I4).
bool ParticipantProtocol::fail_when_late(TimePoint now, TransferState next) {
  if (now < (state_ == TransferState::kReporting ? end_of_wait() : deadline_)) return false;
  fail(Status(Code::kDeadline, state_ == TransferState::kReporting
                                   ? fmt::format("{} heard no decision in its time", label())
                                   : fmt::format("{} was still {} at its deadline", label(), state())),
       next);
  return true;
}

// R2: what has not completed still owns the memory, so pages stay pinned and the operations are named. The protocol
// ends nevertheless (I6).
bool ParticipantProtocol::quarantine(const std::vector<OpId>& left, TimePoint now) {
  if (now < drain_deadline_) return false;
  outcome_.quarantined = true;
  outcome_.lost = left;
  if (!cause_)
    fail(Status(Code::kDeadline, fmt::format("{} was still {} when its time was over, with {} operations under way",
                                             label(), state(), left.size())),
         state_);
  start_closing(now);
  return true;
}

void ParticipantProtocol::start_release(TimePoint now) {
  if (binding() == nullptr) return start_closing(now);  // nothing was pinned or reserved
  // With a drain of its own, because a release is an operation too.
  release_.emplace(runtime_task(RuntimeCall::kRelease));
  enter(TransferState::kReleasing, now);
}

bool ParticipantProtocol::release(TimePoint now, std::vector<Post>& posts) {
  release_->advance(now, ops_, posts);
  if (!release_->done() && !release_->failure()) return quarantine(release_->under_way(), now);
  // A release that failed for good is told in the outcome, and changes no decision.
  outcome_.released = release_->done();
  if (release_->failure() && !cause_) cause_ = could_not("give its pages back", *release_->failure());
  start_closing(now);
  return true;
}

// Without a decision the failure message goes on until there is one: the coordinator may not have heard it.
void ParticipantProtocol::start_closing(TimePoint now) {
  if (cause_)
    outcome_.cause = *cause_;
  else if (!outcome_.activated && decision_ && !decision_->activate)
    outcome_.cause = Status(Code::kConflict, decision_->reason);
  linger_end_ = now + options_.linger;
  drain_deadline_ = TimePoint::never();
  state_ = TransferState::kClosing;
  if (!decision_) return;  // a failure is repeated until there is a decision
  mail_.stop_all();
  // A quarantined participant never says "done": the coordinator then names it as unconfirmed.
  if (!outcome_.quarantined) mail_.once(options_.coordinator, message(DoneBody{role_, outcome_.activated}));
}

void ParticipantProtocol::close(TimePoint now, std::vector<Post>& posts) {
  if (decision_) mail_.stop_all();
  if (!close_deadline_ && now >= close_at()) {
    mail_.advance(now, posts);
    mail_.close(posts);
    close_deadline_ = now + options_.drain;
  }
  if (!close_deadline_ || (!mail_.closed() && now < *close_deadline_)) return;
  // Sends and the receive hold no pages, so they do not quarantine; they are named all the same (I6).
  for (const OpId op : mail_.under_way()) outcome_.lost.push_back(op);
  state_ = TransferState::kFinished;
}

// Only what the state serves: work that was given up may have a time at which it would have been tried again.
TimePoint ParticipantProtocol::wake_at() const {
  if (state_ == TransferState::kFinished) return TimePoint::never();
  if (state_ == TransferState::kClosing)
    return std::min(mail_.wake_at(), close_deadline_ ? *close_deadline_ : close_at());
  TimePoint wake = std::min(mail_.wake_at(), wake_of_work());
  if (state_ <= TransferState::kReserving) wake = std::min(wake, first_.wake_at());
  if (state_ == TransferState::kReleasing) wake = std::min(wake, release_->wake_at());
  if (cause_ || decision_ || state_ >= TransferState::kDraining) return std::min(wake, drain_deadline_);
  return std::min(wake, state_ == TransferState::kReporting ? end_of_wait() : deadline_);
}

}  // namespace crossdock
