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
  Lookup lookup{options_.planner->key(), options_.lease};
  // The lease is not renewed, so it outlives the restore.
  lookup.lease.duration = std::max(lookup.lease.duration, options_.timeout + options_.drain);
  if (lookup.lease.holder.empty()) lookup.lease.holder = "restore " + options_.operation.text();
  lookup_.emplace(LookupPost{std::move(lookup)}, options_.retry, options_.seed);
}

std::string Restore::state() const {
  constexpr std::array<std::string_view, 8> kNames = {"looking up", "reserving",  "reading",   "fencing",
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
  return Calls{call, std::move(members), std::move(list)};
}

void Restore::post_calls(Calls& calls, TimePoint now, std::vector<Post>& posts) {
  post_due(calls.list, now, ops_, posts, [&](size_t unit) {
    return RuntimePost{calls.call, options_.participants[calls.members[unit]]};
  });
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
  if (revokes_ && revokes_->complete(completion, now)) return;
  if (validates_ && validates_->list.complete(completion, now)) return;
  if (activates_)
    if (const auto ended = activates_->list.complete(completion, now)) {
      if (ended->done) is_active_[activates_->members[ended->unit]] = true;
      return;
    }
  if (releases_ && releases_->list.complete(completion, now)) return;
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
  state_ = RestoreState::kReading;
  return true;
}

// R3: a get that failed may have written any part of its destination. Repeating it writes the same bytes again, and
// nothing is activated before all gets have succeeded.
bool Restore::read(TimePoint now, std::vector<Post>& posts) {
  post_due(*gets_, now, ops_, posts, [&](size_t unit) {
    GetStep get = job_->gets[unit];
    get.lease = found_->lease;
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
  std::vector<OpId> ops = lookup_->under_way();
  const auto add = [&](const WorkList& list) {
    for (const OpId op : list.under_way()) ops.push_back(op);
  };
  for (const std::optional<Calls>* each : {&reserves_, &validates_, &activates_, &releases_})
    if (*each) add((*each)->list);
  for (const std::optional<WorkList>* list : {&gets_, &revokes_})
    if (*list) add(**list);
  if (lease_release_)
    for (const OpId op : lease_release_->under_way()) ops.push_back(op);
  return ops;
}

bool Restore::fence(TimePoint now, std::vector<Post>& posts) {
  if (!std::exchange(fencing_, true)) {
    enter(RestoreState::kFencing, now);
    lookup_->stop();
    if (reserves_) reserves_->list.stop();
    if (gets_) {
      gets_->stop();
      for (const OpId op : gets_->under_way()) posts.push_back(Post{op, CancelPost{CancelWhere::kStore}});
    }
  }
  // What is under way comes first: a reserve that completes now adds keys that have to be revoked too. Reads hold their
  // keys until then (R2).
  if (!revokes_ && under_way().empty()) {
    for (const AnyBinding& binding : bindings_)
      if (binding != nullptr)
        for (RegionKey& key : region_keys(*binding)) keys_.push_back(std::move(key));
    std::sort(keys_.begin(), keys_.end());
    // Participants of one instance may share regions; a key is revoked once.
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    revokes_.emplace(std::vector<uint64_t>(keys_.size(), 0), options_.window, options_.retry, options_.seed + 2);
  }
  if (revokes_) post_due(*revokes_, now, ops_, posts, [&](size_t unit) { return RevokePost{keys_[unit]}; });
  const bool failed = revokes_ && revokes_->failure() && revokes_->quiet();
  if (failed && !cause_) cause_ = revokes_->failure()->second;
  if (failed || (now >= drain_deadline_ && !(revokes_ && revokes_->done()))) {
    // A late write could still reach the pages (R6 does not hold yet), so they are not given back and stay reserved.
    outcome_.lost = under_way();
    if (!cause_) cause_ = Status(Code::kDeadline, fmt::format("{} could not be fenced", label()));
    finish();
    return false;
  }
  if (!revokes_ || !revokes_->done()) return false;
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
    outcome_.lost = under_way();
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

// Its activation is under way, so it may become active yet, and its pages are not given back.
bool Restore::is_activating(size_t participant) const {
  if (!activates_) return false;
  for (size_t i = 0; i < activates_->members.size(); ++i)
    if (activates_->members[i] == participant && activates_->list.is_under_way(i)) return true;
  return false;
}

// Everything that was reserved and is not active, and the lease.
bool Restore::release(TimePoint now, std::vector<Post>& posts) {
  const bool activations_ended = !activates_ || activates_->list.quiet();
  if (!releases_) {
    // A late completion decides whether a target is released.
    if (!activations_ended && now < drain_deadline_) return false;
    enter(RestoreState::kReleasing, now);
    std::vector<size_t> members;
    for (size_t i = 0; i < bindings_.size(); ++i)
      if (bindings_[i] != nullptr && !is_active_[i] && !is_activating(i)) members.push_back(i);
    releases_ = calls(RuntimeCall::kRelease, std::move(members));
    // I4: a release that fails must not keep the others from being tried.
    releases_->list.keep_going();
    // When that fails, the lease runs out by itself (I4).
    if (found_) lease_release_.emplace(ReleaseLeasePost{found_->lease}, options_.retry, options_.seed + 3);
  }
  post_calls(*releases_, now, posts);
  if (lease_release_) lease_release_->advance(now, ops_, posts);
  const bool lease_given = !lease_release_ || lease_release_->done() || lease_release_->failure();
  if ((!releases_->list.over() || !lease_given) && now < drain_deadline_) return false;
  outcome_.released = releases_->list.done() && activations_ended;
  outcome_.lost = under_way();
  finish();
  return false;
}

void Restore::finish() {
  // The last activation may have come after its time.
  outcome_.activated = activates_ && activates_->list.done();
  if (outcome_.activated) cause_ = std::nullopt;
  if (cause_) outcome_.cause = *cause_;
  if (!outcome_.activated)
    for (size_t i = 0; i < is_active_.size(); ++i)
      if (is_active_[i]) outcome_.activated_only.push_back(options_.participants[i]);
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
    case RestoreState::kReading: return gets_->wake_at();
    case RestoreState::kFencing: return revokes_ ? revokes_->wake_at() : TimePoint::never();
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
