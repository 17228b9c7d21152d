#include "executor/upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// What can be unknown is only the commit. So everything before it is given up by aborting the transaction, and after it
// the store is asked until it says which came first. The order of the end is puts drained -> abort or commit settled ->
// pins released: a put reads pinned pages until it completes (R2).
namespace crossdock {

Upload::Upload(UploadOptions options)
    : options_(std::move(options)),
      pins_(std::vector<uint64_t>(options_.participants.size(), 0), options_.window, options_.retry, options_.seed),
      bindings_(options_.participants.size()) {}

std::string Upload::state() const {
  constexpr std::array<std::string_view, 8> kNames = {"pinning",  "beginning", "putting",   "committing",
                                                      "draining", "aborting",  "releasing", "finished"};
  return std::string(kNames[static_cast<size_t>(state_)]);
}

std::string Upload::label() const { return fmt::format("upload '{}'", options_.txn.text()); }

void Upload::enter(UploadState state, TimePoint now) {
  state_ = state;
  drain_deadline_ = now + options_.drain;
}

// drain() begins anew: never() marks that it has not cancelled anything yet.
void Upload::fail(Status cause) {
  if (!cause_) cause_ = std::move(cause);
  state_ = UploadState::kDraining;
  drain_deadline_ = TimePoint::never();
}

// The receipt that completes an object has its checksums; which writer's it is depends on the order of puts.
void Upload::take_receipt(const PutReceipt& receipt) {
  if (receipt.stored) stored_[receipt.object] = *receipt.stored;
}

void Upload::take(TimePoint now, const Completion& completion) {
  if (const auto ended = pins_.complete(completion, now)) {
    if (!ended->done) return;
    if (const auto* binding = std::get_if<AnyBinding>(&completion.result)) bindings_[ended->unit] = *binding;
    return;
  }
  for (std::optional<Task>* task : {&begin_, &commit_, &abort_})
    if (*task && (*task)->complete(completion, now)) return;
  if (puts_)
    if (const auto ended = puts_->complete(completion, now)) {
      const auto* receipt = std::get_if<PutReceipt>(&completion.result);
      if (ended->done && receipt != nullptr) take_receipt(*receipt);
      return;
    }
  if (releases_)
    if (const auto ended = releases_->complete(completion, now); ended && ended->done) is_released_[ended->unit] = true;
}

// The transaction's name is used once, so it names the attempt too.
HoldId Upload::hold(size_t participant) const {
  return HoldId{OperationId(options_.txn.text()), AttemptId(options_.txn.text()), options_.participants[participant]};
}

bool Upload::pin(TimePoint now, std::vector<Post>& posts) {
  post_due(pins_, now, ops_, posts, [&](size_t unit) { return RuntimePost{RuntimeCall::kPin, hold(unit)}; });
  if (pins_.failure()) {
    const auto& [unit, status] = *pins_.failure();
    fail(Status(status.code(), fmt::format("source '{}' could not be pinned: {}", options_.participants[unit].text(),
                                           status.message())));
    return true;
  }
  if (!pins_.done()) return false;
  // After the pins: the plan needs their bindings, and pinned pages stay as they are while it is made.
  Result<std::shared_ptr<const UploadJob>> made = options_.planner->make_job(label(), bindings_);
  if (!made.ok()) {
    fail(made.status());
    return true;
  }
  job_ = std::move(made).value();
  UploadTarget target{options_.tenant, options_.planner->content(), options_.lease};
  begin_.emplace(BeginPost{options_.txn, std::move(target)}, options_.retry, options_.seed + 1);
  state_ = UploadState::kBeginning;
  return true;
}

// What the store says of the transaction may be that it was decided before.
bool Upload::settle(const TxnState& state) {
  if (state.phase == TxnPhase::kOpen) return false;
  outcome_.committed = state.phase == TxnPhase::kCommitted;
  outcome_.unknown = false;
  outcome_.sequence = state.sequence;
  if (outcome_.committed)
    cause_ = std::nullopt;
  else if (!cause_)
    cause_ = Status(Code::kConflict, fmt::format("{} was aborted: {}", label(), state.reason));
  return true;
}

// A begin that failed for good may have happened (kOutcomeUnknown), so drain() aborts the transaction also then.
bool Upload::begin(TimePoint now, std::vector<Post>& posts) {
  begin_->advance(now, ops_, posts);
  if (begin_->failure()) {
    fail(*begin_->failure());
    return true;
  }
  if (!begin_->done()) return false;
  // R4: a begin that is repeated may find its transaction decided, by an abort or the end of its lease.
  if (settle(*begin_->result<TxnState>())) {
    enter(UploadState::kReleasing, now);
    return true;
  }
  std::vector<uint64_t> bytes;
  for (const PutStep& step : job_->puts) bytes.push_back(step.steps.total_bytes());
  puts_.emplace(std::move(bytes), options_.window, options_.retry, options_.seed + 2);
  put_round_count_ = 1;
  state_ = UploadState::kPutting;
  return true;
}

bool Upload::put(TimePoint now, std::vector<Post>& posts) {
  post_due(*puts_, now, ops_, posts, [&](size_t unit) { return PutPost{options_.txn, job_->puts[unit]}; });
  if (puts_->failure()) {
    const auto& [unit, status] = *puts_->failure();
    fail(Status(status.code(), fmt::format("object '{}' of source '{}': {}", job_->puts[unit].object.text(),
                                           job_->puts[unit].writer, status.message())));
    return true;
  }
  if (!puts_->done()) return false;
  start_commit();
  return true;
}

// What is still there is answered from the store's ledger.
bool Upload::put_again() {
  // I6: bounded, since a store that loses bytes again and again would never let the upload end.
  if (put_round_count_ >= options_.put_round_count_max) return false;
  ++put_round_count_;
  puts_->restart();
  state_ = UploadState::kPutting;
  return true;
}

void Upload::start_commit() {
  for (const UploadObject& object : job_->objects)
    if (!stored_.contains(object.id)) {
      // The store lost what other writers had put of it.
      if (put_again()) return;
      return fail(Status(Code::kNotFound, fmt::format("the store has no word about object '{}', although every writer "
                                                      "has put its part",
                                                      object.id.text())));
    }
  Result<PublishedContent> content = options_.planner->publication(label(), *job_, stored_);
  if (!content.ok()) return fail(content.status());
  Publication publication{std::move(content).value(), options_.ttl};
  // finish() takes it out again when the commit does not succeed.
  if (const auto* manifest = std::get_if<AnyManifest>(&publication.content)) outcome_.manifest = *manifest;
  commit_.emplace(CommitPost{options_.txn, std::move(publication)}, options_.retry, options_.seed + 3);
  state_ = UploadState::kCommitting;
}

bool Upload::commit(TimePoint now, std::vector<Post>& posts) {
  commit_->advance(now, ops_, posts);
  if (const std::optional<Status> failure = commit_->failure()) {
    // The store lost bytes that it had given receipts for, as by a restart.
    if (failure->code() == Code::kNotFound && put_again()) {
      commit_ = std::nullopt;
      return true;
    }
    // The abort that follows asks the store once more; settle() then says which came first.
    outcome_.unknown = failure->code() == Code::kOutcomeUnknown;
    fail(*failure);
    return true;
  }
  if (!commit_->done()) return false;
  settle(*commit_->result<TxnState>());
  enter(UploadState::kReleasing, now);
  return true;
}

std::vector<OpId> Upload::under_way() const {
  std::vector<OpId> ops = memory_under_way();
  for (const std::optional<Task>* task : {&begin_, &commit_, &abort_})
    if (*task)
      for (const OpId op : (*task)->under_way()) ops.push_back(op);
  return ops;
}

// Those that may still use the sources' pages.
std::vector<OpId> Upload::memory_under_way() const {
  std::vector<OpId> ops = pins_.under_way();
  for (const std::optional<WorkList>* list : {&puts_, &releases_})
    if (*list)
      for (const OpId op : (*list)->under_way()) ops.push_back(op);
  return ops;
}

bool Upload::drain(TimePoint now, std::vector<Post>& posts) {
  if (drain_deadline_ == TimePoint::never()) {
    enter(UploadState::kDraining, now);
    pins_.stop();
    for (std::optional<Task>* task : {&begin_, &commit_})
      if (*task) (*task)->stop();
    if (puts_) {
      puts_->stop();
      for (const OpId op : puts_->under_way()) posts.push_back(Post{op, CancelPost{CancelWhere::kStore}});
    }
  }
  // Aborting while a put is under way would be allowed, but its pages must not be released before it completes (R2).
  if (!under_way().empty()) {
    if (now < drain_deadline_) return false;
    outcome_.lost = under_way();
    // A commit that was posted and never completed may yet succeed (I2: an upload with unknown outcome may be visible).
    outcome_.unknown = commit_.has_value();
    finish();
    return false;
  }
  // A commit that came through while it was given up decides.
  if (commit_ && commit_->done() && settle(*commit_->result<TxnState>())) {
    enter(UploadState::kReleasing, now);
    return true;
  }
  if (!begin_) {
    enter(UploadState::kReleasing, now);
    return true;
  }
  abort_.emplace(AbortPost{options_.txn}, options_.retry, options_.seed + 4);
  enter(UploadState::kAborting, now);
  return true;
}

bool Upload::abort(TimePoint now, std::vector<Post>& posts) {
  abort_->advance(now, ops_, posts);
  if (abort_->done()) {
    settle(*abort_->result<TxnState>());
  } else if (abort_->failure()) {
    // If no commit was ever posted, the store aborts at the end of the transaction's lease. Otherwise the outcome is
    // unknown.
    outcome_.unknown = commit_.has_value();
  } else {
    if (now < drain_deadline_) return false;
    outcome_.unknown = commit_.has_value();
    outcome_.lost = abort_->under_way();
    abort_->stop();
  }
  enter(UploadState::kReleasing, now);
  return true;
}

bool Upload::release(TimePoint now, std::vector<Post>& posts) {
  if (!releases_) {
    // By the hold: a pin whose answer was lost has happened all the same (R4).
    for (size_t i = 0; i < options_.participants.size(); ++i)
      if (pins_.may_have_happened(i)) pinned_.push_back(i);
    is_released_.assign(pinned_.size(), false);
    releases_.emplace(std::vector<uint64_t>(pinned_.size(), 0), options_.window, options_.retry, options_.seed + 5);
    // I4: one pin that cannot be given back must not keep the others, and each is tried for as long as there is time.
    releases_->keep_going();
    releases_->insist();
  }
  post_due(*releases_, now, ops_, posts, [&](size_t unit) {
    return RuntimePost{RuntimeCall::kRelease, hold(pinned_[unit])};
  });
  if (!releases_->over()) {
    if (now < drain_deadline_) return false;
    for (const OpId op : releases_->under_way()) outcome_.lost.push_back(op);
  }
  finish();
  return false;
}

void Upload::finish() {
  // What has completed since it was listed is not lost.
  const std::vector<OpId> left = under_way();
  std::erase_if(outcome_.lost, [&](OpId op) { return std::find(left.begin(), left.end(), op) == left.end(); });
  outcome_.bytes = done_bytes();
  outcome_.operations = puts_ ? puts_->attempt_count() : 0;
  outcome_.object_count = stored_.size();
  for (size_t i = 0; i < options_.participants.size(); ++i) {
    const auto listed = std::find(pinned_.begin(), pinned_.end(), i);
    const bool is_released = listed != pinned_.end() && is_released_[static_cast<size_t>(listed - pinned_.begin())];
    if (pins_.may_have_happened(i) && !is_released)
      outcome_.quarantined.push_back(Remains{Role::kSource, hold(i), std::nullopt, memory_under_way(), false});
  }
  outcome_.released = outcome_.quarantined.empty();
  if (cause_) outcome_.cause = *cause_;
  if (!outcome_.committed) outcome_.manifest = AnyManifest();
  state_ = UploadState::kFinished;
}

bool Upload::step(TimePoint now, std::vector<Post>& posts) {
  if (state_ < UploadState::kDraining) {
    // A commit is under way or about to be: its answer decides, and not the request.
    if (abort_request_ && state_ != UploadState::kCommitting) {
      fail(Status(Code::kCancelled, *abort_request_));
      return true;
    }
    if (now >= deadline_) {
      fail(Status(Code::kDeadline, fmt::format("{} was still {} at its deadline", label(), state())));
      return true;
    }
  }
  switch (state_) {
    case UploadState::kPinning: return pin(now, posts);
    case UploadState::kBeginning: return begin(now, posts);
    case UploadState::kPutting: return put(now, posts);
    case UploadState::kCommitting: return commit(now, posts);
    case UploadState::kDraining: return drain(now, posts);
    case UploadState::kAborting: return abort(now, posts);
    case UploadState::kReleasing: return release(now, posts);
    case UploadState::kFinished: return false;
  }
  return false;
}

// Completions before deadlines: what has completed in time counts, even when the call comes late.
void Upload::advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  if (!std::exchange(started_, true)) deadline_ = now + options_.timeout;
  for (const Completion& completion : completions) take(now, completion);
  while (step(now, posts)) {
  }
}

// Only what the state serves: work that was given up may have a time at which it would have been tried again.
TimePoint Upload::wake_of_work() const {
  switch (state_) {
    case UploadState::kPinning: return pins_.wake_at();
    case UploadState::kBeginning: return begin_->wake_at();
    case UploadState::kPutting: return puts_->wake_at();
    case UploadState::kCommitting: return commit_->wake_at();
    case UploadState::kAborting: return abort_->wake_at();
    case UploadState::kReleasing: return releases_ ? releases_->wake_at() : TimePoint::never();
    case UploadState::kDraining:
    case UploadState::kFinished: return TimePoint::never();
  }
  return TimePoint::never();
}

TimePoint Upload::wake_at() const {
  if (state_ == UploadState::kFinished) return TimePoint::never();
  return std::min(wake_of_work(), state_ < UploadState::kDraining ? deadline_ : drain_deadline_);
}

}  // namespace crossdock
