#include "executor/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

// One state machine for all targets of one process: they are restored together or not at all, as far as the runtime
// allows it. The order of the end is reads drained -> memory fenced -> validated and activated, or released. The store
// writes into the pages, so a read that is late after a deadline could still change them; revoking the keys first is
// what makes releasing them safe (I3).
namespace crossdock {

// The objects that were found must not be deleted while they are read; hence the length of the lease.
Restore::Restore(RestoreOptions options)
    : options_(std::move(options)),
      bindings_(options_.participants.size()),
      is_active_(options_.participants.size(), false) {
  CHECK(!options_.attempt.empty());
  Lookup lookup{options_.planner->key(), options_.lease};
  // The lease is not renewed, so it outlives the restore.
  lookup.lease.duration = std::max(lookup.lease.duration, options_.timeout + options_.drain);
  if (lookup.lease.holder.empty()) lookup.lease.holder = "restore " + options_.operation.text();
  // A look-up that is repeated because its answer was lost must not lease a second time (I4).
  if (lookup.lease.request.empty()) lookup.lease.request = options_.attempt.text();
  lookup_.emplace(LookupPost{std::move(lookup)}, options_.retry, options_.seed);
}

std::string Restore::state() const {
  constexpr std::array<std::string_view, 9> kNames = {"looking up", "reserving",  "granting",  "reading", "fencing",
                                                      "validating", "activating", "releasing", "finished"};
  return std::string(kNames[static_cast<size_t>(state_)]);
}

std::string Restore::label() const { return fmt::format("restore '{}'", options_.operation.text()); }

// Each state of the end has a drain of its own, so that a slow one does not take the time of the next.
void Restore::enter(RestoreState state, TimePoint now) {
  state_ = state;
  drain_deadline_ = now + options_.drain;
}

// The memory is fenced before it is given back, so that is where every failure goes.
void Restore::fail(Status cause) {
  if (!cause_) cause_ = std::move(cause);
  if (state_ < RestoreState::kFencing) state_ = RestoreState::kFencing;
}

Restore::Calls Restore::calls(RuntimeCall call, std::vector<size_t> members) const {
  WorkList list(std::vector<uint64_t>(members.size(), 0), options_.window, options_.retry,
                options_.seed + 16 + static_cast<uint64_t>(call));
  std::vector<bool> is_done(members.size(), false);
  return Calls{call, std::move(members), std::move(list), std::move(is_done)};
}

void Restore::post_calls(Calls& calls, TimePoint now, std::vector<Post>& posts) {
  post_due(calls.list, now, ops_, posts, [&](size_t unit) {
    return RuntimePost{calls.call, hold(calls.members[unit])};
  });
}

HoldId Restore::hold(size_t participant) const {
  return HoldId{options_.operation, options_.attempt, options_.participants[participant]};
}

void Restore::take(TimePoint now, const Completion& completion) {
  if (lookup_->complete(completion, now)) {
    // Kept although the restore may have been given up: the lease has to be released.
    if (const Found* found = lookup_->result<Found>()) found_ = *found;
    return;
  }
  if (reserves_)
    if (const auto ended = reserves_->list.complete(completion, now)) {
      const auto* binding = std::get_if<AnyBinding>(&completion.result);
      if (ended->done && binding != nullptr) bindings_[reserves_->members[ended->unit]] = *binding;
      return;
    }
  if (gets_)
    if (const auto ended = gets_->complete(completion, now)) {
      const auto* report = std::get_if<GetReport>(&completion.result);
      if (ended->done && report != nullptr) outcome_.read += *report;
      return;
    }
  if (grant_ && grant_->complete(completion, now)) return;
  if (revoke_ && revoke_->complete(completion, now)) return;
  if (validates_ && validates_->list.complete(completion, now)) return;
  if (activates_)
    if (const auto ended = activates_->list.complete(completion, now)) {
      if (ended->done) is_active_[activates_->members[ended->unit]] = true;
      return;
    }
  if (releases_)
    if (const auto ended = releases_->list.complete(completion, now)) {
      if (ended->done) releases_->is_done[ended->unit] = true;
      return;
    }
  if (lease_release_) lease_release_->complete(completion, now);
}

bool Restore::look_up(TimePoint now, std::vector<Post>& posts) {
  lookup_->advance(now, ops_, posts);
  if (lookup_->failure()) {
    fail(*lookup_->failure());
    return true;
  }
  if (!lookup_->done()) return false;
  Result<Found> complete = options_.planner->complete(*found_);
  // found_ stays as it was, so that its lease is released.
  if (!complete.ok()) {
    fail(complete.status());
    return true;
  }
  found_ = std::move(complete).value();
  std::vector<size_t> all(options_.participants.size());
  std::iota(all.begin(), all.end(), size_t{0});
  reserves_ = calls(RuntimeCall::kReserve, std::move(all));
  state_ = RestoreState::kReserving;
  return true;
}

bool Restore::reserve(TimePoint now, std::vector<Post>& posts) {
  post_calls(*reserves_, now, posts);
  if (const auto& failure = reserves_->list.failure()) {
    fail(Status(failure->second.code(),
                fmt::format("target '{}' could not be reserved: {}", options_.participants[failure->first].text(),
                            failure->second.message())));
    return true;
  }
  // All of them: the job needs the bindings of every target.
  if (!reserves_->list.done()) return false;
  Result<std::shared_ptr<const RestoreJob>> made = options_.planner->make_job(label(), *found_, bindings_);
  if (!made.ok()) {
    fail(made.status());
    return true;
  }
  job_ = std::move(made).value();
  gets_.emplace(job_->get_bytes, options_.window, options_.retry, options_.seed + 1);
  // One grant for all: they are fenced and activated together. No writer is named, since the store writes where this
  // very process asks it to.
  grant_request_ = GrantRequest{
      grant_id(HoldId{options_.operation, options_.attempt, ParticipantId("restore")}, InstanceId()), {}, {}};
  for (const AnyBinding& binding : bindings_)
    for (GrantRange& range : grant_ranges(*binding)) grant_request_->ranges.push_back(std::move(range));
  // Participants of one instance may share regions; a range is granted once.
  std::sort(grant_request_->ranges.begin(), grant_request_->ranges.end(),
            [](const GrantRange& a, const GrantRange& b) { return a.region < b.region; });
  grant_request_->ranges.erase(std::unique(grant_request_->ranges.begin(), grant_request_->ranges.end()),
                               grant_request_->ranges.end());
  grant_.emplace(GrantPost{*grant_request_}, options_.retry, options_.seed + 4);
  state_ = RestoreState::kGranting;
  return true;
}

bool Restore::grant(TimePoint now, std::vector<Post>& posts) {
  grant_->advance(now, ops_, posts);
  if (grant_->failure()) {
    fail(Status(grant_->failure()->code(),
                fmt::format("{} could not grant its memory: {}", label(), grant_->failure()->message())));
    return true;
  }
  if (!grant_->done()) return false;
  state_ = RestoreState::kReading;
  return true;
}

// R3: a get that failed may have written any part of its destination. Repeating it writes the same bytes again, and
// nothing is activated before all gets have succeeded.
bool Restore::read(TimePoint now, std::vector<Post>& posts) {
  post_due(*gets_, now, ops_, posts, [&](size_t unit) {
    GetStep get = job_->gets[unit];
    get.lease = found_->lease;
    get.grant = grant_request_->id;
    return GetPost{std::move(get)};
  });
  if (const auto& failure = gets_->failure()) {
    const Status& status = failure->second;
    fail(Status(status.code(), fmt::format("{}: {}", label(), status.message())));
    return true;
  }
  if (!gets_->done()) return false;
  state_ = RestoreState::kFencing;
  return true;
}

std::vector<OpId> Restore::under_way() const {
  std::vector<OpId> ops = memory_under_way();
  for (const std::optional<Task>* task : {&lookup_, &lease_release_})
    if (*task)
      for (const OpId op : (*task)->under_way()) ops.push_back(op);
  return ops;
}

// Those that may still use the targets' pages.
std::vector<OpId> Restore::memory_under_way() const {
  std::vector<OpId> ops;
  const auto add = [&](const WorkList& list) {
    for (const OpId op : list.under_way()) ops.push_back(op);
  };
  for (const std::optional<Calls>* each : {&reserves_, &validates_, &activates_, &releases_})
    if (*each) add((*each)->list);
  if (gets_) add(*gets_);
  for (const std::optional<Task>* task : {&grant_, &revoke_})
    if (*task)
      for (const OpId op : (*task)->under_way()) ops.push_back(op);
  return ops;
}

bool Restore::fence(TimePoint now, std::vector<Post>& posts) {
  if (!std::exchange(fencing_, true)) {
    enter(RestoreState::kFencing, now);
    lookup_->stop();
    if (reserves_) reserves_->list.stop();
    if (grant_) grant_->stop();
    if (gets_) {
      gets_->stop();
      for (const OpId op : gets_->under_way()) posts.push_back(Post{op, CancelPost{CancelWhere::kStore}});
    }
  }
  // What is under way comes first: a reserve or a grant that completes now adds what has to be revoked. Reads hold
  // their memory until then (R2).
  if (!revoke_ && !is_fenced_ && under_way().empty()) {
    is_fenced_ = !grant_ || !grant_->may_have_happened();
    if (!is_fenced_) {
      revoke_.emplace(RevokePost{{grant_request_->id, !cause_}}, options_.retry, options_.seed + 2);
      revoke_->insist();
    }
  }
  if (revoke_) revoke_->advance(now, ops_, posts);
  if (revoke_ && revoke_->done()) is_fenced_ = true;
  const bool failed = revoke_ && revoke_->failure();
  if (failed && !cause_) cause_ = *revoke_->failure();
  if (failed || (now >= drain_deadline_ && !is_fenced_)) {
    // A late write could still reach the pages (R6 does not hold yet), so they are not given back and stay reserved.
    if (!cause_) cause_ = Status(Code::kDeadline, fmt::format("{} could not be fenced", label()));
    quarantine();
    finish();
    return false;
  }
  if (!is_fenced_) return false;
  // Fenced now; what failed is released, and what succeeded is looked at by the runtime.
  if (cause_) {
    enter(RestoreState::kReleasing, now);
    return true;
  }
  validates_ = calls(RuntimeCall::kValidate, reserves_->members);
  enter(RestoreState::kValidating, now);
  return true;
}

bool Restore::validate(TimePoint now, std::vector<Post>& posts) {
  post_calls(*validates_, now, posts);
  if (const auto& failure = validates_->list.failure(); failure && validates_->list.quiet()) {
    if (!cause_)
      cause_ = Status(failure->second.code(),
                      fmt::format("target '{}': {}", options_.participants[validates_->members[failure->first]].text(),
                                  failure->second.message()));
    enter(RestoreState::kReleasing, now);
    return true;
  }
  if (!validates_->list.done()) {
    if (now < drain_deadline_) return false;
    if (!cause_)
      cause_ = Status(Code::kDeadline,
                      fmt::format("{} was still validating after {} s", label(), options_.drain.ns() / 1'000'000'000));
    quarantine();
    finish();
    return false;
  }
  activates_ = calls(RuntimeCall::kActivate, reserves_->members);
  enter(RestoreState::kActivating, now);
  return true;
}

// Activations are not taken back: those that succeeded stay active, and the outcome names them (activated_only).
bool Restore::activate(TimePoint now, std::vector<Post>& posts) {
  post_calls(*activates_, now, posts);
  const auto& failure = activates_->list.failure();
  if (!activates_->list.done() && !(failure && activates_->list.quiet())) {
    if (now < drain_deadline_) return false;
    if (!failure && !cause_)
      cause_ = Status(Code::kDeadline,
                      fmt::format("{} was still activating after {} s", label(), options_.drain.ns() / 1'000'000'000));
    activates_->list.stop();
  }
  if (failure && !cause_) cause_ = failure->second;
  enter(RestoreState::kReleasing, now);
  return true;
}

// Its activation was posted and has not definitely failed, so its pages may be in use and are not given back (R4).
bool Restore::may_be_active(size_t participant) const {
  if (!activates_ || is_active_[participant]) return false;
  for (size_t i = 0; i < activates_->members.size(); ++i)
    if (activates_->members[i] == participant && activates_->list.may_have_happened(i)) return true;
  return false;
}

// What was neither activated nor given back, by name.
void Restore::quarantine() {
  outcome_.lost = under_way();
  for (size_t i = 0; i < options_.participants.size(); ++i) {
    const bool is_held = reserves_ && reserves_->list.may_have_happened(i) && !is_active_[i];
    bool is_released = false;
    if (releases_)
      for (size_t k = 0; k < releases_->members.size(); ++k)
        is_released |= releases_->members[k] == i && releases_->is_done[k];
    if (!is_held || is_released) continue;
    Remains remains{Role::kTarget, hold(i), std::nullopt, memory_under_way(), may_be_active(i)};
    if (!is_fenced_ && grant_) remains.grant = grant_request_->id;
    outcome_.quarantined.push_back(std::move(remains));
  }
}

// Everything that may be reserved and is not active, and the lease.
bool Restore::release(TimePoint now, std::vector<Post>& posts) {
  const bool activations_ended = !activates_ || activates_->list.quiet();
  if (!releases_) {
    // A late completion decides whether a target is released.
    if (!activations_ended && now < drain_deadline_) return false;
    enter(RestoreState::kReleasing, now);
    std::vector<size_t> members;
    for (size_t i = 0; i < bindings_.size(); ++i)
      if (reserves_ && reserves_->list.may_have_happened(i) && !is_active_[i] && !may_be_active(i))
        members.push_back(i);
    releases_ = calls(RuntimeCall::kRelease, std::move(members));
    // I4: a release that fails must not keep the others from being tried, and is tried for as long as there is time.
    releases_->list.keep_going();
    releases_->list.insist();
    // By the answer of the look-up: without one the lease runs out by itself (I4).
    if (found_) {
      lease_release_.emplace(ReleaseLeasePost{found_->lease}, options_.retry, options_.seed + 3);
      lease_release_->insist();
    }
  }
  post_calls(*releases_, now, posts);
  if (lease_release_) lease_release_->advance(now, ops_, posts);
  const bool lease_given = !lease_release_ || lease_release_->done() || lease_release_->failure();
  if ((!releases_->list.over() || !lease_given) && now < drain_deadline_) return false;
  quarantine();
  outcome_.released = outcome_.quarantined.empty();
  if (!releases_->list.done() && !cause_)
    cause_ = Status(Code::kDeadline, fmt::format("{} could not give all pages back", label()));
  finish();
  return false;
}

void Restore::finish() {
  // The last activation may have come after its time.
  outcome_.activated = activates_ && activates_->list.done();
  if (outcome_.activated) cause_ = std::nullopt;
  if (cause_) outcome_.cause = *cause_;
  if (!outcome_.activated)
    for (size_t i = 0; i < is_active_.size(); ++i) {
      if (is_active_[i]) outcome_.activated_only.push_back(options_.participants[i]);
      if (may_be_active(i)) outcome_.may_be_active.push_back(options_.participants[i]);
    }
  outcome_.object_count = job_ == nullptr ? 0 : job_->object_count;
  outcome_.operations = gets_ ? gets_->attempt_count() : 0;
  state_ = RestoreState::kFinished;
}

bool Restore::step(TimePoint now, std::vector<Post>& posts) {
  if (state_ < RestoreState::kFencing) {
    if (abort_request_) {
      fail(Status(Code::kCancelled, *abort_request_));
    } else if (now >= deadline_) {
      fail(Status(Code::kDeadline, fmt::format("{} was still {} at its deadline", label(), state())));
    }
  }
  switch (state_) {
    case RestoreState::kLookingUp: return look_up(now, posts);
    case RestoreState::kReserving: return reserve(now, posts);
    case RestoreState::kGranting: return grant(now, posts);
    case RestoreState::kReading: return read(now, posts);
    case RestoreState::kFencing: return fence(now, posts);
    case RestoreState::kValidating: return validate(now, posts);
    case RestoreState::kActivating: return activate(now, posts);
    case RestoreState::kReleasing: return release(now, posts);
    case RestoreState::kFinished: return false;
  }
  return false;
}

// Completions before deadlines: what has completed in time counts, even when the call comes late.
void Restore::advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  if (!std::exchange(started_, true)) deadline_ = now + options_.timeout;
  for (const Completion& completion : completions) take(now, completion);
  while (step(now, posts)) {
  }
}

// Only what the state serves: work that was given up may have a time at which it would have been tried again.
TimePoint Restore::wake_of_work() const {
  switch (state_) {
    case RestoreState::kLookingUp: return lookup_->wake_at();
    case RestoreState::kReserving: return reserves_->list.wake_at();
    case RestoreState::kGranting: return grant_->wake_at();
    case RestoreState::kReading: return gets_->wake_at();
    case RestoreState::kFencing: return revoke_ ? revoke_->wake_at() : TimePoint::never();
    case RestoreState::kValidating: return validates_->list.wake_at();
    case RestoreState::kActivating: return activates_->list.wake_at();
    case RestoreState::kReleasing: {
      if (!releases_) return TimePoint::never();
      const TimePoint wake = releases_->list.wake_at();
      return lease_release_ ? std::min(wake, lease_release_->wake_at()) : wake;
    }
    case RestoreState::kFinished: return TimePoint::never();
  }
  return TimePoint::never();
}

TimePoint Restore::wake_at() const {
  if (state_ == RestoreState::kFinished) return TimePoint::never();
  return std::min(wake_of_work(), state_ < RestoreState::kFencing ? deadline_ : drain_deadline_);
}

}  // namespace crossdock
