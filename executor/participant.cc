#include "executor/participant.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace crossdock {

std::string_view transfer_state_name(TransferState state) {
  constexpr std::array<std::string_view, 13> kNames = {
      "pinning",   "reserving", "exporting",  "executing", "collecting", "fencing", "validating",
      "reporting", "draining",  "activating", "releasing", "closing",    "finished"};
  return kNames[static_cast<size_t>(state)];
}

std::string ParticipantProtocol::label() const { return member_text(role_, options_.participant); }

Message ParticipantProtocol::message(MessageBody body) const {
  PeerIdentity identity{options_.participant, InstanceId(), 0};
  if (binding() != nullptr) identity = identity_of(*binding());
  return Message{options_.operation, identity, std::move(body)};
}

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

void ParticipantProtocol::fail(Status cause, TransferState next) {
  if (!cause_) cause_ = std::move(cause);
  mail_.stop_all();
  mail_.repeat(options_.coordinator, "failure", message(FailureBody{role_, *cause_}));
  state_ = next;
}

Status ParticipantProtocol::could_not(std::string_view what, const Status& status) const {
  return Status(status.code(), fmt::format("{} could not {}: {}", label(), what, status.message()));
}

bool ParticipantProtocol::fail_when_late(TimePoint now, TransferState next) {
  if (now < (state_ == TransferState::kReporting ? end_of_wait() : deadline_)) return false;
  fail(Status(Code::kDeadline, state_ == TransferState::kReporting
                                   ? fmt::format("{} heard no decision in its time", label())
                                   : fmt::format("{} was still {} at its deadline", label(), state())),
       next);
  return true;
}

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
  release_.emplace(runtime_task(RuntimeCall::kRelease));
  enter(TransferState::kReleasing, now);
}

bool ParticipantProtocol::release(TimePoint now, std::vector<Post>& posts) {
  release_->advance(now, ops_, posts);
  if (!release_->done() && !release_->failure()) return quarantine(release_->under_way(), now);
  outcome_.released = release_->done();
  if (release_->failure() && !cause_) cause_ = could_not("give its pages back", *release_->failure());
  start_closing(now);
  return true;
}

void ParticipantProtocol::start_closing(TimePoint now) {
  if (cause_)
    outcome_.cause = *cause_;
  else if (!outcome_.activated && decision_ && !decision_->activate)
    outcome_.cause = Status(Code::kConflict, decision_->reason);
  linger_end_ = now + options_.linger;
  drain_deadline_ = TimePoint::never();
  state_ = TransferState::kClosing;
  if (!decision_) return;  // a failure is told until somebody decides
  mail_.stop_all();
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
