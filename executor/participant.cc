#include "executor/participant.h"

#include <fmt/format.h>

#include <array>
#include <utility>

// The way to the end, in every case: decide or fail -> drain -> (fence) -> release -> close. Its order is what keeps
// the invariants: nothing is released while an operation is under way (R2, I3), and "done" is said only after the
// release has ended (I4). Every state has a time at which it ends (I6). What could not be cleaned up by then is said in
// "done" and handed to the quarantine.
namespace crossdock {

std::string_view transfer_state_name(TransferState state) {
  constexpr std::array<std::string_view, 14> kNames = {"pinning",    "reserving", "exporting",  "executing", "granting",
                                                       "collecting", "fencing",   "validating", "reporting", "draining",
                                                       "activating", "releasing", "closing",    "finished"};
  return kNames[static_cast<size_t>(state)];
}

std::string ParticipantProtocol::label() const { return member_text(role_, options_.participant); }

// Before it has a binding a participant has no instance and generation; the coordinator accepts that only of members
// that have not exported.
PeerIdentity ParticipantProtocol::identity() const {
  return binding() == nullptr ? PeerIdentity{options_.participant, InstanceId(), 0} : identity_of(*binding());
}

Message ParticipantProtocol::message(MessageBody body) const {
  return Message{options_.operation, options_.attempt, identity(), std::move(body)};
}

void ParticipantProtocol::report(MessageBody body) {
  Message made = message(std::move(body));
  std::string topic(made.kind());
  mail_.repeat(coordinator_, std::move(topic), std::move(made));
}

void ParticipantProtocol::acknowledge(const PeerId& to, const Message& taken) {
  mail_.once(to, message(AckBody{role_, std::string(taken.kind()), taken.identity}));
}

// A message that was sent before there was a binding names no instance.
bool ParticipantProtocol::is_of_this_life(const PeerIdentity& sender) const {
  return sender.participant == options_.participant &&
         (sender.instance.empty() || sender.instance == identity().instance);
}

// Completions first and messages afterwards: a message is then handled in the newest state. One of another attempt
// speaks of other grants and other bytes, and counts for nothing.
void ParticipantProtocol::take(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  if (!std::exchange(started_, true)) {
    deadline_ = now + options_.timeout;
    mail_.open(posts);
  }
  std::vector<Message> messages;
  for (const Completion& completion : completions) {
    // What ends after the drain is none of the quarantine's any more.
    if (outcome_.quarantined) std::erase(outcome_.quarantined->operations, completion.op);
    std::erase(outcome_.lost, completion.op);
    if (mail_.complete(completion, messages) || first_.complete(completion, now)) continue;
    if (release_ && release_->complete(completion, now)) {
      released_after_all();
      continue;
    }
    complete(completion, now);
  }
  for (const Message& each : messages)
    if (each.operation == options_.operation && each.attempt == options_.attempt) handle(each);
}

// The release came through while the participant was closing.
void ParticipantProtocol::released_after_all() {
  if (!outcome_.quarantined || !release_->done() || !outcome_.quarantined->operations.empty()) return;
  outcome_.quarantined = std::nullopt;
  outcome_.released = true;
  if (linger_end_ && !done_is_known_ && !close_deadline_) report(DoneBody{role_, outcome_.pages()});
}

// Of two coordinators only the one with the higher term decides, and of two with one term the first that was heard of:
// a participant that has answered a query can no longer carry out what an earlier coordinator decided.
bool ParticipantProtocol::heeds(const PeerIdentity& coordinator) {
  if (!heeded_ || coordinator.generation > heeded_->generation) heeded_ = coordinator;
  return coordinator == *heeded_;
}

void ParticipantProtocol::handle(const Message& message) {
  const bool of_coordinator = message.identity.participant.empty();
  if (!of_coordinator) return hear(message);
  if (!heeds(message.identity)) return;
  if (const auto* query = std::get_if<QueryBody>(&message.body)) {
    turn_to(query->reply_to);
    answer();
  } else if (const auto* ack = std::get_if<AckBody>(&message.body)) {
    if (ack->role != role_ || !is_of_this_life(ack->sender)) return;
    mail_.stop(coordinator_, ack->kind);
    done_is_known_ |= ack->kind == "done";
  } else if (const auto* job = std::get_if<JobBody>(&message.body)) {
    take_job(message, *job);
  } else if (const auto* decision = std::get_if<DecisionBody>(&message.body)) {
    // The first decision counts; one that comes again asks whether the answer was lost.
    if (!decision_) decision_ = *decision;
    if (!decision->reply_to.empty()) turn_to(decision->reply_to);
    acknowledge(coordinator_, message);
  }
}

// A job that is repeated changes nothing. It must name the binding that this participant exported: one of an earlier
// life has other memory.
void ParticipantProtocol::take_job(const Message& message, const JobBody& body) {
  if (job_ == nullptr) {
    const auto& bindings = role_ == Role::kSource ? body.job->source_bindings : body.job->target_bindings;
    const bool is_for_this =
        binding() != nullptr && std::find(bindings.begin(), bindings.end(), binding()) != bindings.end();
    if (!is_for_this || state_ != TransferState::kExporting || decision_) return;
    job_ = body.job;
    mail_.stop(coordinator_, "export");
    accept(job_);
  }
  if (job_->digest == body.job->digest) acknowledge(coordinator_, message);
}

// What was being told to the other coordinator is told to this one.
void ParticipantProtocol::turn_to(const PeerId& coordinator) {
  mail_.readdress(coordinator_, coordinator);
  coordinator_ = coordinator;
}

void ParticipantProtocol::answer() {
  KnownBody known;
  known.role = role_;
  known.is_decided = decision_.has_value();
  if (decision_) known.decision = *decision_;
  if (state_ == TransferState::kClosing) known.done = DoneBody{role_, outcome_.pages()};
  known.failure = cause_;
  mail_.once(coordinator_, message(std::move(known)));
}

// The first cause is kept: what fails later, while draining, mostly follows from it.
void ParticipantProtocol::fail(Status cause, TransferState next, bool waited) {
  if (!cause_) cause_ = std::move(cause);
  mail_.stop_all();
  report(FailureBody{role_, *cause_, waited});
  state_ = next;
}

Status ParticipantProtocol::could_not(std::string_view what, const Status& status) const {
  return Status(status.code(), fmt::format("{} could not {}: {}", label(), what, status.message()));
}

// A participant that has reported waits longer than its own deadline, since the decision may be to activate. When it
// does not hear of one it gives up by itself, so a lost coordinator cannot hold pages for ever (I4).
bool ParticipantProtocol::fail_when_late(TimePoint now, TransferState next, const std::string& why) {
  if (now < (state_ == TransferState::kReporting ? end_of_wait() : deadline_)) return false;
  const bool waited = !why.empty() || state_ == TransferState::kExporting || state_ == TransferState::kReporting;
  fail(Status(Code::kDeadline, state_ == TransferState::kReporting
                                   ? fmt::format("{} heard no decision in its time", label())
                               : why.empty() ? fmt::format("{} was still {} at its deadline", label(), state())
                                             : why),
       next, waited);
  return true;
}

// R2: what has not completed still owns the memory, so pages stay as they are and the operations are named. The
// protocol ends nevertheless (I6).
void ParticipantProtocol::quarantine(const std::vector<OpId>& left, const std::string& why) {
  outcome_.quarantined = Remains{role_, hold(), grant_, left, may_be_active_};
  outcome_.lost = left;
  if (!cause_) {
    cause_ = Status(Code::kDeadline, fmt::format("{} {}", label(), why));
    // The coordinator is told while it can still decide; afterwards "done" says it.
    if (!decision_) report(FailureBody{role_, *cause_, false});
  }
  start_closing();
}

bool ParticipantProtocol::quarantine_when_late(const std::vector<OpId>& left, TimePoint now) {
  if (now < drain_deadline_) return false;
  quarantine(left,
             fmt::format("was still {} when its time was over, with {} operations under way", state(), left.size()));
  return true;
}

// By the hold and not by the binding: a pin or a reserve whose answer was lost has happened all the same (R4).
void ParticipantProtocol::start_release(TimePoint now) {
  if (!first_.may_have_happened()) return start_closing();
  // With a drain of its own, because a release is an operation too.
  release_.emplace(runtime_task(RuntimeCall::kRelease));
  release_->insist();
  enter(TransferState::kReleasing, now);
}

bool ParticipantProtocol::release(TimePoint now, std::vector<Post>& posts) {
  release_->advance(now, ops_, posts);
  if (release_->done()) {
    outcome_.released = true;
    start_closing();
    return true;
  }
  if (!release_->failure()) return quarantine_when_late(release_->under_way(), now);
  // A release that failed for good is told in the outcome, and changes no decision.
  if (!cause_) cause_ = could_not("give its pages back", *release_->failure());
  quarantine({}, "could not give its pages back");
  return true;
}

// Without a decision the failure message goes on until there is one: the coordinator may not have heard it.
void ParticipantProtocol::start_closing() {
  if (cause_)
    outcome_.cause = *cause_;
  else if (!outcome_.activated && decision_ && !decision_->activate)
    outcome_.cause = Status(Code::kConflict, decision_->reason);
  drain_deadline_ = TimePoint::never();
  state_ = TransferState::kClosing;
}

TimePoint ParticipantProtocol::close_at() const {
  if (!decision_) return end_of_wait();
  return linger_end_ ? *linger_end_ : TimePoint::never();
}

// "done" is repeated until the coordinator has it, so that one lost message does not leave it in doubt.
void ParticipantProtocol::close(TimePoint now, std::vector<Post>& posts) {
  if (decision_ && !linger_end_) {
    linger_end_ = now + options_.linger;
    mail_.stop_all();
    report(DoneBody{role_, outcome_.pages()});
  }
  if (!close_deadline_ && (done_is_known_ || now >= close_at())) {
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
