#include "executor/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/canary.h"

// A writer knows nothing of other writers: it copies its pairs, and its receipts speak for itself alone. R3: a copy
// that failed may have written any part of its destination; repeating it writes the same bytes, because pinned pages do
// not change, and the target is not validated before the receipt.
namespace crossdock {
namespace {

// A target may be faster than the coordinator's message to this writer. Bounded, since messages come from outside; a
// grant that is dropped here is repeated.
constexpr size_t kEarlyGrantsMax = 65536;

}  // namespace

bool Writer::complete(const Completion& completion, TimePoint now) {
  if (const auto found = copies_.find(completion.op); found != copies_.end()) {
    const Copy copy = found->second;
    copies_.erase(found);
    room_.leave(copy.bytes);
    const std::optional<WorkList::Ended> ended = pairs_[copy.pair].list->complete(completion, now);
    if (ended && ended->done) outcome_.bytes += copy.bytes;
    take_turn(copy.pair);
    return true;
  }
  for (const size_t number : begun_) {
    Pair& pair = pairs_[number];
    if (!pair.checksum || !pair.checksum->complete(completion, now)) continue;
    if (const auto* sum = pair.checksum->result<StepsChecksum>()) pair.crc32c = sum->crc32c;
    return true;
  }
  return false;
}

void Writer::take_turn(size_t number) {
  if (std::exchange(pairs_[number].is_in_turn, true)) return;
  turn_.push_back(number);
}

// Only while it executes: in other states nothing of them is posted.
TimePoint Writer::wake_of_work() const {
  TimePoint wake = TimePoint::never();
  if (state_ != TransferState::kExecuting) return wake;
  for (const size_t number : begun_) {
    const Pair& pair = pairs_[number];
    // One that is in turn waits for room, which a completion brings.
    if (!pair.is_in_turn) wake = std::min(wake, pair.list->wake_at());
    if (pair.checksum) wake = std::min(wake, pair.checksum->wake_at());
  }
  return wake;
}

void Writer::hear(const Message& message) {
  if (const auto* grant = std::get_if<GrantBody>(&message.body)) {
    if (job_ == nullptr) {
      if (early_grants_.size() < kEarlyGrantsMax) early_grants_.emplace(message.identity, message);
      return;
    }
    const auto found = pair_of_.find(message.identity);
    if (found != pair_of_.end()) take_grant(pairs_[found->second], message, *grant);
  } else if (const auto* ack = std::get_if<AckBody>(&message.body)) {
    const auto found = pair_of_.find(message.identity);
    if (found != pair_of_.end() && ack->role == Role::kTarget && is_of_this_life(ack->sender))
      mail_.stop(pairs_[found->second].peer, ack->kind);
  }
}

// The job and this very life of the writer are what the target has granted its memory for.
void Writer::take_grant(Pair& pair, const Message& message, const GrantBody& body) {
  if (body.job != job_->digest || body.writer != identity()) return;
  acknowledge(pair.peer, message);
  if (pair.grant != nullptr) return;
  pair.grant = std::make_shared<const Grant>(body.grant);
  waiting_.push_back(pair_of_.at(pair.target));
}

// Served from a place of its own on: the writers' places are spread over the targets as evenly as the writers are.
void Writer::accept(const std::shared_ptr<const TransferJob>& job) {
  std::vector<JobPair> all = pairs_of(*job, Role::kSource, options_.participant);
  const auto own = std::find_if(job->source_bindings.begin(), job->source_bindings.end(),
                                [&](const AnyBinding& each) { return each->participant == options_.participant; });
  const auto place = static_cast<size_t>(own - job->source_bindings.begin());
  const size_t first = job->source_bindings.empty() ? 0 : place * all.size() / job->source_bindings.size();
  std::rotate(all.begin(), all.begin() + static_cast<ptrdiff_t>(first), all.end());
  for (const JobPair& each : all) {
    Pair pair;
    pair.copies = each.pair;
    pair.target = each.target;
    pair.peer = job->target_peers.at(each.target.participant);
    pair_of_.emplace(pair.target, pairs_.size());
    pairs_.push_back(std::move(pair));
  }
  state_ = TransferState::kExecuting;
  for (const auto& [target, message] : std::exchange(early_grants_, {})) {
    const auto found = pair_of_.find(target);
    if (found != pair_of_.end()) take_grant(pairs_[found->second], message, std::get<GrantBody>(message.body));
  }
}

bool Writer::pin(TimePoint now, std::vector<Post>& posts) {
  first_.advance(now, ops_, posts);
  if (first_.failure()) {
    fail(could_not("be pinned", *first_.failure()), TransferState::kDraining);
  } else if (first_.done()) {
    report(ExportBody{Role::kSource, binding()});
    state_ = TransferState::kExporting;
  } else {
    return false;
  }
  return true;
}

// Steps are cut for this writer's transport here, once, so that a repetition posts the same batch.
bool Writer::open(size_t number) {
  Pair& pair = pairs_[number];
  Diagnostics diagnostics(fmt::format("the work of {}", label()));
  pair.work = pair_work(*job_->copies, *pair.copies, options_.split, options_.batch, diagnostics);
  if (!pair.work) {
    fail(diagnostics.to_status(), TransferState::kDraining);
    return false;
  }
  std::vector<uint64_t> bytes;
  for (const StepSpan& batch : pair.work->batches) bytes.push_back(batch.total_bytes());
  // Its share of the window: the whole of it for one target, one operation for each of many.
  WindowLimits own = options_.window;
  own.operation_count_max = std::max<size_t>(1, own.operation_count_max / pairs_.size());
  pair.list.emplace(std::move(bytes), own, options_.retry, options_.seed + 32 + 2 * number);
  begun_.insert(number);
  take_turn(number);
  return true;
}

bool Writer::post_copies(TimePoint now, std::vector<Post>& posts) {
  // Those whose wait is over.
  for (const size_t number : begun_)
    if (pairs_[number].list->wake_at() <= now) take_turn(number);
  while (true) {
    // Room is left and no pair that has begun has anything for it.
    if (turn_.empty()) {
      if (waiting_.empty() || !room_.has_room(1)) return true;
      const size_t next = waiting_.front();
      waiting_.pop_front();
      if (!open(next)) return false;
    }
    Pair& pair = pairs_[turn_.front()];
    const std::optional<size_t> unit = pair.list->next(now);
    if (unit && !room_.has_room(pair.work->batches[*unit].total_bytes())) return true;
    const size_t number = turn_.front();
    turn_.pop_front();
    pair.is_in_turn = false;
    if (!unit) continue;
    const StepSpan& batch = pair.work->batches[*unit];
    const OpId op = ops_.next();
    pair.list->started(*unit, op);
    room_.enter(batch.total_bytes());
    copies_.emplace(op, Copy{number, batch.total_bytes()});
    ++outcome_.operations;
    posts.push_back(Post{op, CopyPost{pair.grant, batch}});
    take_turn(number);
  }
}

// A receipt says that nothing is under way on its path: all copies of the pair have completed by then (R2). Checksums
// read what was sent once no copy of the pair can be repeated any more.
bool Writer::finish_pairs(TimePoint now, std::vector<Post>& posts) {
  for (auto each = begun_.begin(); each != begun_.end();) {
    Pair& pair = pairs_[*each];
    if (const auto& failure = pair.list->failure()) {
      fail(Status(failure->second.code(),
                  fmt::format("{}: copy {} of {} to target '{}': {}", label(), failure->first + 1,
                              pair.list->unit_count(), pair.target.participant.text(), failure->second.message())),
           TransferState::kDraining);
      return false;
    }
    if (pair.list->done() && job_->checksum) {
      if (!pair.checksum)
        pair.checksum.emplace(ChecksumPost{StepSpan(pair.work->work), StepEnd::kSource}, options_.retry,
                              options_.seed + 33 + 2 * *each);
      pair.checksum->advance(now, ops_, posts);
      if (pair.checksum->failure()) {
        fail(could_not("sum what it sent", *pair.checksum->failure()), TransferState::kDraining);
        return false;
      }
    }
    if (!pair.list->done() || (pair.checksum && !pair.checksum->done())) {
      ++each;
      continue;
    }
    mail_.repeat(pair.peer, "receipt",
                 message(WriterReceipt{job_->digest, pair.target, pair.work->bytes, pair.crc32c}));
    pair.work.reset();
    ++done_count_;
    each = begun_.erase(each);
  }
  return true;
}

bool Writer::execute(TimePoint now, std::vector<Post>& posts) {
  if (!post_copies(now, posts) || !finish_pairs(now, posts)) return true;
  if (done_count_ < pairs_.size()) return false;
  state_ = TransferState::kReporting;
  return true;
}

std::string Writer::ungranted() const {
  std::vector<std::string> names;
  for (const Pair& pair : pairs_)
    if (pair.grant == nullptr) names.push_back(pair.target.to_text());
  return first_few(names);
}

std::vector<OpId> Writer::data_under_way() const {
  std::vector<OpId> ops;
  for (const auto& [op, copy] : copies_) ops.push_back(op);
  for (const Pair& pair : pairs_)
    if (pair.checksum)
      for (const OpId op : pair.checksum->under_way()) ops.push_back(op);
  return ops;
}

bool Writer::drain(TimePoint now, std::vector<Post>& posts) {
  if (drain_deadline_ == TimePoint::never()) {
    enter(TransferState::kDraining, now);
    first_.stop();
    for (Pair& pair : pairs_) {
      if (pair.list) pair.list->stop();
      if (pair.checksum) pair.checksum->stop();
    }
    for (const OpId op : data_under_way()) posts.push_back(Post{op, CancelPost{CancelWhere::kTransport}});
  }
  std::vector<OpId> left = first_.under_way();
  for (const OpId op : data_under_way()) left.push_back(op);
  // Copies read pinned pages until they complete (R2), so the pin outlives the decision.
  if (!left.empty() && !is_broken(Canary::kReleaseBeforeDrain)) return quarantine_when_late(left, now);
  start_release(now);
  return true;
}

bool Writer::step(TimePoint now, std::vector<Post>& posts) {
  if (state_ < TransferState::kDraining && decision_) {
    mail_.stop_all();
    state_ = TransferState::kDraining;
  }
  bool again = false;
  switch (state_) {
    case TransferState::kPinning: again = pin(now, posts); break;
    case TransferState::kExecuting: again = execute(now, posts); break;
    case TransferState::kDraining: return drain(now, posts);
    case TransferState::kReleasing: return release(now, posts);
    case TransferState::kClosing: close(now, posts); return false;
    default: break;
  }
  if (again || state_ >= TransferState::kDraining) return again;
  const std::string missing = state_ == TransferState::kExecuting ? ungranted() : "";
  return fail_when_late(now, TransferState::kDraining,
                        missing.empty() ? "" : fmt::format("{} has no grant of {} by its deadline", label(), missing));
}

void Writer::advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  take(now, completions, posts);
  while (step(now, posts)) {
  }
  if (!finished()) mail_.advance(now, posts);
}

}  // namespace crossdock
