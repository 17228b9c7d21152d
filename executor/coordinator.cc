#include "executor/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "executor/canary.h"

// The decision is one variable of one process, made once (decide()), so participants cannot disagree about it. What can
// be lost is only the message, and that is repeated until it is acknowledged. Messages may come late, twice or from an
// earlier life, so each handler compares the operation, the attempt and the identity, and sets a flag that stays set;
// nothing is counted.
namespace crossdock {

Status TransferOutcome::status() const {
  if (!may_be_active.empty())
    return Status(Code::kOutcomeUnknown, fmt::format("an earlier coordinator may have activated {}; {}",
                                                     first_few(may_be_active), cause.message()));
  if (!activate) return cause;
  if (unconfirmed_targets.empty()) return Status();
  return Status(Code::kOutcomeUnknown, fmt::format("activated, but not all have said that they are active: {}",
                                                   fmt::join(unconfirmed_targets, ", ")));
}

Coordinator::Coordinator(CoordinatorOptions options)
    : options_(std::move(options)),
      mail_(ops_, options_.resend, options_.seed),
      state_(options_.takes_over ? CoordinatorState::kAsking : CoordinatorState::kCollectingExports) {
  CHECK(!options_.attempt.empty() && !options_.instance.empty());
  for (const PeerAddress& each : options_.sources) members_[{Role::kSource, each.participant}].peer = each.peer;
  for (const PeerAddress& each : options_.targets) members_[{Role::kTarget, each.participant}].peer = each.peer;
}

std::string_view coordinator_state_name(CoordinatorState state) {
  constexpr std::array<std::string_view, 6> kNames = {
      "asking", "collecting exports", "collecting reports", "telling the decision", "closing", "finished"};
  return kNames[static_cast<size_t>(state)];
}

Message Coordinator::message(MessageBody body) const {
  return Message{options_.operation, options_.attempt, PeerIdentity{ParticipantId(), options_.instance, options_.term},
                 std::move(body)};
}

void Coordinator::acknowledge(const Member& member, Role role, const Message& taken) {
  mail_.once(member.peer, message(AckBody{role, std::string(taken.kind()), taken.identity}));
}

// A message of an earlier life speaks of memory that is gone: it must not make a target count as ready (I5).
bool Coordinator::is_current(const Member& member, const PeerIdentity& identity) const {
  if (is_broken(Canary::kIgnoreGeneration)) return member.binding != nullptr;
  return member.binding != nullptr && identity_of(*member.binding) == identity;
}

// An export is repeated until it is acknowledged, so equal ones are usual. A newer generation means that the
// participant restarted. Before the job that only replaces its binding. Afterwards the others work by keys of memory
// that is gone, so the transfer fails, unless nothing was expected of it.
void Coordinator::take_export(Member& member, const MemberId& id, const ExportBody& body) {
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
  } else if (!failure_ && member.is_needed) {
    failure_ =
        Status(Code::kUnavailable, fmt::format("{} restarted: generation {} took the place of {}",
                                               member_text(id.first, id.second), now.generation, known.generation));
  }
}

// The first failure is kept, as the cause; later ones mostly follow from it. One that waited for others in vain may
// name an innocent: what this coordinator itself misses then comes first.
void Coordinator::take_failure(const Member& member, const FailureBody& body) {
  if (body.cause.ok() || !member.is_needed) return;
  std::optional<Status>& kept = body.waited ? late_failure_ : failure_;
  if (!kept) kept = body.cause;
}

Coordinator::Member* Coordinator::find(Role role, const PeerIdentity& identity) {
  const auto found = members_.find({role, identity.participant});
  return found == members_.end() ? nullptr : &found->second;
}

void Coordinator::handle(const Message& message) {
  if (message.operation != options_.operation || message.attempt != options_.attempt) return;
  const PeerIdentity& identity = message.identity;
  // While it asks, the answers alone count: what else is said comes again, and is then taken.
  if (state_ == CoordinatorState::kAsking && !std::holds_alternative<KnownBody>(message.body)) return;
  if (const auto* body = std::get_if<ExportBody>(&message.body)) {
    Member* const member = find(body->role, identity);
    // The message's identity and the binding must name the same participant; the binding comes from outside.
    if (member == nullptr || body->binding == nullptr || body->binding->participant != identity.participant) return;
    take_export(*member, {body->role, identity.participant}, *body);
    acknowledge(*member, body->role, message);
  } else if (const auto* failed = std::get_if<FailureBody>(&message.body)) {
    Member* const member = find(failed->role, identity);
    if (member == nullptr || (member->binding != nullptr && !is_current(*member, identity))) return;
    take_failure(*member, *failed);
    acknowledge(*member, failed->role, message);
  } else if (const auto* ready = std::get_if<ReadyBody>(&message.body)) {
    Member* const member = find(Role::kTarget, identity);
    if (member == nullptr || job_ == nullptr || ready->job != job_->digest || !is_current(*member, identity)) return;
    member->ready = true;
    member->bytes = ready->bytes;
    acknowledge(*member, Role::kTarget, message);
  } else if (const auto* done = std::get_if<DoneBody>(&message.body)) {
    Member* const member = find(done->role, identity);
    // A participant that was told to abort before it exported has no binding, and its identity names none.
    if (member == nullptr || (member->binding != nullptr && !is_current(*member, identity))) return;
    member->done = *done;
    mail_.stop(member->peer, "decision");
    acknowledge(*member, done->role, message);
  } else if (const auto* known = std::get_if<KnownBody>(&message.body)) {
    Member* const member = find(known->role, identity);
    if (member == nullptr || state_ != CoordinatorState::kAsking) return;
    member->known = *known;
    mail_.stop(member->peer, "query");
    // What the answer says need not come again.
    if (known->done) mail_.once(member->peer, this->message(AckBody{known->role, "done", identity}));
    if (known->failure) mail_.once(member->peer, this->message(AckBody{known->role, "failure", identity}));
  } else if (const auto* ack = std::get_if<AckBody>(&message.body)) {
    Member* const member = find(ack->role, identity);
    const bool is_of_this = ack->sender.instance == options_.instance && ack->sender.generation == options_.term;
    if (member != nullptr && is_of_this && (member->binding == nullptr || is_current(*member, identity)))
      mail_.stop(member->peer, ack->kind);
  }
}

// The first few members for which it does not hold, by name.
template <class IsThere>
std::string Coordinator::missing(const IsThere& is_there) const {
  std::vector<std::string> names;
  for (const auto& [id, member] : members_)
    if (!is_there(id.first, member)) names.push_back(member_text(id.first, id.second));
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
  // Of several replicas one is read; the death of another is none of this transfer's business.
  for (auto& [id, member] : members_) member.is_needed = id.first == Role::kTarget;
  for (const CopyPair& pair : job->copies->pairs())
    members_.at({Role::kSource, ParticipantId(job->copies->sources()[pair.source].text())}).is_needed = true;
  for (const auto& [id, member] : members_) mail_.repeat(member.peer, "job", message(JobBody{job_}));
  state_ = CoordinatorState::kCollectingReports;
}

// What was repeated so far is of no use any more. After this, failures and reports change nothing.
void Coordinator::decide(bool activate, Status cause, TimePoint now) {
  outcome_.activate = activate;
  outcome_.cause = std::move(cause);
  mail_.stop_all();
  for (const auto& [id, member] : members_)
    if (!member.done)
      mail_.repeat(member.peer, "decision",
                   message(DecisionBody{activate, outcome_.cause.message(), options_.reply_to}));
  done_deadline_ = now + options_.done_wait;
  state_ = CoordinatorState::kTelling;
}

// What an earlier coordinator decided is found out: a target that has answered will not hear it any more. A decision to
// activate is finished at once. One to abort proves nothing about targets that are silent: it may be that of a
// coordinator that took over and did not know either. Nor does a target that was not ready, since it may be another
// life of one that was.
bool Coordinator::ask(TimePoint now) {
  const DecisionBody* decided = nullptr;
  for (const auto& [id, member] : members_)
    if (member.known && member.known->is_decided && (decided == nullptr || member.known->decision.activate))
      decided = &member.known->decision;
  const bool activate = decided != nullptr && decided->activate;
  const std::string silent = missing([](Role, const Member& member) { return member.known.has_value(); });
  if (!activate && !silent.empty() && now < deadline_ + options_.report_wait) return false;
  std::optional<Status> failure;
  for (auto& [id, member] : members_) {
    if (!member.known) {
      if (!activate && id.first == Role::kTarget) outcome_.may_be_active.push_back(member_text(id.first, id.second));
      continue;
    }
    if (!failure) failure = member.known->failure;
    member.done = member.known->done;
  }
  Status cause;
  if (decided != nullptr && !activate)
    cause = Status(Code::kConflict, decided->reason);
  else if (!activate)
    cause = failure          ? *failure
            : silent.empty() ? Status(Code::kUnavailable, "the coordinator was replaced before anything was decided")
                             : Status(Code::kUnavailable,
                                      fmt::format("the coordinator was replaced, and {} did not answer", silent));
  decide(activate, std::move(cause), now);
  return true;
}

bool Coordinator::collect(TimePoint now) {
  const bool exporting = state_ == CoordinatorState::kCollectingExports;
  const std::string names =
      exporting ? missing([](Role, const Member& member) { return member.binding != nullptr; })
                : missing([](Role role, const Member& member) { return role == Role::kSource || member.ready; });
  // Before the reports are looked at: with a failure known, the decision is to abort, also when all targets are
  // ready.
  if (abort_request_ || failure_) {
    decide(false, failure_ ? *failure_ : Status(Code::kCancelled, *abort_request_), now);
    return true;
  }
  const auto missed = [&] {
    return Status(Code::kDeadline, fmt::format("no {} of {} by the deadline", exporting ? "export" : "report", names));
  };
  // A participant gave up while it waited. Those whose export is missing had to speak before all others.
  if (late_failure_) {
    decide(false, exporting && !names.empty() ? missed() : *late_failure_, now);
    return true;
  }
  if (names.empty()) {
    if (exporting)
      hand_out(now);
    else
      decide(true, Status(), now);
    return true;
  }
  // A participant knows better why it did not succeed: its own failure message is awaited a little longer.
  if (now < deadline_ + options_.report_wait) return false;
  decide(false, missed(), now);
  return true;
}

// I6: waiting for "done" is bounded. Members that have not answered are named: of an activated target it is then
// unknown whether it is active.
bool Coordinator::tell(TimePoint now, std::vector<Post>& posts) {
  const bool all = missing([](Role, const Member& member) { return member.done.has_value(); }).empty();
  if (!all && now < done_deadline_) return false;
  for (const auto& [id, member] : members_) {
    const bool is_target = id.first == Role::kTarget;
    std::vector<std::string>& unconfirmed = is_target ? outcome_.unconfirmed_targets : outcome_.unconfirmed_sources;
    const std::string name = member_text(id.first, id.second);
    if (is_target) outcome_.bytes += member.bytes;
    if (!member.done) {
      unconfirmed.push_back(name);
      continue;
    }
    const PagesEnd pages = member.done->pages;
    if (pages == PagesEnd::kQuarantined) outcome_.quarantined.push_back(name);
    if (!is_target) continue;
    // What was in doubt has been said: it is active, or it is not and will not be.
    if (!outcome_.activate && pages != PagesEnd::kQuarantined) {
      std::erase(outcome_.may_be_active, name);
      if (pages == PagesEnd::kActive) outcome_.may_be_active.push_back(name);
    }
    outcome_.activated_count += pages == PagesEnd::kActive ? 1 : 0;
    if (outcome_.activate && pages != PagesEnd::kActive)
      unconfirmed.push_back(name +
                            (pages == PagesEnd::kQuarantined ? " (it may be active)" : " (it could not be activated)"));
  }
  // Messages that are due go out before the mailbox is closed.
  mail_.advance(now, posts);
  mail_.close(posts);
  done_deadline_ = now + options_.done_wait;
  state_ = CoordinatorState::kClosing;
  return true;
}

bool Coordinator::step(TimePoint now, std::vector<Post>& posts) {
  switch (state_) {
    case CoordinatorState::kAsking: return ask(now);
    case CoordinatorState::kCollectingExports:
    case CoordinatorState::kCollectingReports: return collect(now);
    case CoordinatorState::kTelling: return tell(now, posts);
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
    if (options_.takes_over)
      for (const auto& [id, member] : members_)
        mail_.repeat(member.peer, "query", message(QueryBody{options_.reply_to}));
  }
  std::vector<Message> messages;
  for (const Completion& completion : completions) mail_.complete(completion, messages);
  for (const Message& each : messages) handle(each);
  while (step(now, posts)) {
  }
  if (!finished()) mail_.advance(now, posts);
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
