#include "executor/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/canary.h"

// A writer knows nothing of other writers: it copies its pairs, and its receipt speaks for itself alone. R3: a copy
// that failed may have written any part of its destination; repeating it writes the same bytes, because pinned pages do
// not change, and the target is not validated before the receipt.
namespace crossdock {

bool Writer::complete(const Completion& completion, TimePoint now) {
  if (copies_ && copies_->complete(completion, now)) return true;
  if (!checksums_) return false;
  const std::optional<WorkList::Ended> ended = checksums_->complete(completion, now);
  if (ended && ended->done) pairs_[ended->unit].crc32c = std::get<StepsChecksum>(completion.result).crc32c;
  return ended.has_value();
}

TimePoint Writer::wake_of_work() const {
  return state_ == TransferState::kExecuting ? std::min(copies_->wake_at(), checksums_->wake_at()) : TimePoint::never();
}

void Writer::handle(const Message& message) {
  if (const auto* job = std::get_if<JobBody>(&message.body)) {
    if (state_ == TransferState::kExporting && !decision_) accept(job->job);
  } else if (const auto* decision = std::get_if<DecisionBody>(&message.body)) {
    decide(*decision);
  }
}

// A job of an earlier life of this participant names another binding, and is not for this one.
// Steps are cut for this writer's transport here, once, so that a repetition posts the same batch.
void Writer::accept(const std::shared_ptr<const TransferJob>& job) {
  const auto own = std::find_if(job->source_bindings.begin(), job->source_bindings.end(),
                                [&](const AnyBinding& each) { return each == binding(); });
  if (own == job->source_bindings.end()) return;
  mail_.stop_all();
  Diagnostics diagnostics(fmt::format("the work of {}", label()));
  std::vector<uint64_t> batch_bytes;
  for (const JobPair& each : pairs_of(*job, Role::kSource, options_.participant)) {
    std::optional<PairWork> work = pair_work(*job->copies, *each.pair, options_.split, options_.batch, diagnostics);
    if (!work) return fail(diagnostics.to_status(), TransferState::kDraining);
    pairs_.push_back(
        Pair{each.target, job->target_peers.at(each.target.participant), work->bytes, StepSpan(work->work), 0});
    for (StepSpan& batch : work->batches) {
      batch_bytes.push_back(batch.total_bytes());
      batches_.push_back(std::move(batch));
    }
  }
  copies_.emplace(std::move(batch_bytes), options_.window, options_.retry, options_.seed + 1);
  checksums_.emplace(std::vector<uint64_t>(job->checksum ? pairs_.size() : 0, 0), options_.window, options_.retry,
                     options_.seed + 2);
  state_ = TransferState::kExecuting;
}

bool Writer::pin(TimePoint now, std::vector<Post>& posts) {
  first_.advance(now, ops_, posts);
  if (first_.failure()) {
    fail(could_not("be pinned", *first_.failure()), TransferState::kDraining);
  } else if (first_.done()) {
    mail_.repeat(options_.coordinator, "export", message(ExportBody{Role::kSource, binding()}));
    state_ = TransferState::kExporting;
  } else {
    return false;
  }
  return true;
}

// Receipts go out for all targets together, after the last checksum.
bool Writer::execute(TimePoint now, std::vector<Post>& posts) {
  post_due(*copies_, now, ops_, posts, [&](size_t unit) { return CopyPost{batches_[unit]}; });
  // Checksums read what was sent once no copy can be repeated any more.
  if (copies_->done())
    post_due(*checksums_, now, ops_, posts, [&](size_t unit) {
      return ChecksumPost{pairs_[unit].all, StepEnd::kSource};
    });
  if (copies_->failure()) {
    const auto& [unit, status] = *copies_->failure();
    fail(Status(status.code(),
                fmt::format("{}: copy {} of {}: {}", label(), unit + 1, copies_->unit_count(), status.message())),
         TransferState::kDraining);
    return true;
  }
  if (checksums_->failure()) {
    fail(could_not("sum what it sent", checksums_->failure()->second), TransferState::kDraining);
    return true;
  }
  // A receipt says that nothing is under way on its path: all copies have completed by now (R2).
  if (!copies_->done() || !checksums_->done()) return false;
  for (const Pair& pair : pairs_)
    mail_.repeat(pair.peer, "receipt", message(WriterReceipt{pair.target, pair.bytes, pair.crc32c, true}));
  state_ = TransferState::kReporting;
  return true;
}

std::vector<OpId> Writer::under_way() const {
  std::vector<OpId> ops = first_.under_way();
  for (const std::optional<WorkList>* list : {&copies_, &checksums_})
    if (*list)
      for (const OpId op : (*list)->under_way()) ops.push_back(op);
  return ops;
}

bool Writer::drain(TimePoint now, std::vector<Post>& posts) {
  if (drain_deadline_ == TimePoint::never()) {
    enter(TransferState::kDraining, now);
    first_.stop();
    for (std::optional<WorkList>* list : {&copies_, &checksums_}) {
      if (!*list) continue;
      (*list)->stop();
      for (const OpId op : (*list)->under_way()) posts.push_back(Post{op, CancelPost{CancelWhere::kTransport}});
    }
  }
  // On the way out, whatever the outcome: what was written before a failure is counted too.
  outcome_.bytes = copies_ ? copies_->done_bytes() : 0;
  outcome_.operations = copies_ ? copies_->attempt_count() : 0;
  const std::vector<OpId> left = under_way();
  // Copies read pinned pages until they complete (R2), so the pin outlives the decision.
  if (!left.empty() && !is_broken(Canary::kReleaseBeforeDrain)) return quarantine(left, now);
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
  return fail_when_late(now, TransferState::kDraining);
}

void Writer::advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  for (const Message& each : take(now, completions, posts)) handle(each);
  while (step(now, posts)) {
  }
  mail_.advance(now, posts);
}

}  // namespace crossdock
