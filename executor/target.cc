#include "executor/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/canary.h"

// Why the grant comes after the job and not with the export: only then are the writers known, and nobody else gets the
// right to write.
// Why fencing comes before validating, and not only before releasing: a write that is late (a retry, a dead writer's
// last copy) must not change bytes after they were compared (I1, I5). So the order is receipts -> revoke -> checksums
// -> runtime -> report; and with a failure revoke -> release.
namespace crossdock {

Target::Target(const ParticipantOptions& options) : ParticipantProtocol(Role::kTarget, RuntimeCall::kReserve, options) {
  state_ = TransferState::kReserving;
}

bool Target::complete(const Completion& completion, TimePoint now) {
  for (std::optional<Task>* task : {&grant_task_, &revoke_, &validate_, &activate_})
    if (*task && (*task)->complete(completion, now)) return true;
  if (!checksums_) return false;
  const std::optional<WorkList::Ended> ended = checksums_->complete(completion, now);
  if (!ended || !ended->done) return ended.has_value();
  Expected& expected = *to_check_[ended->unit];
  expected.all = StepSpan();
  const WriterReceipt& receipt = *expected.receipt;
  const uint32_t arrived = std::get<StepsChecksum>(completion.result).crc32c;
  // I5: bytes that are not those that were sent are data loss, and nothing is activated.
  if (arrived != receipt.crc32c && !cause_ && !is_broken(Canary::kSkipChecksum))
    fail(Status(Code::kDataLoss, fmt::format("{}: CRC-32C mismatch over {} bytes: sent {:08x}, received {:08x}",
                                             label(), receipt.bytes, receipt.crc32c, arrived)),
         TransferState::kDraining);
  return true;
}

TimePoint Target::wake_of_work() const {
  switch (state_) {
    case TransferState::kGranting: return grant_task_->wake_at();
    case TransferState::kFencing:
    case TransferState::kDraining: return revoke_ ? revoke_->wake_at() : TimePoint::never();
    case TransferState::kValidating: return std::min(checksums_->wake_at(), validate_->wake_at());
    case TransferState::kActivating: return activate_->wake_at();
    default: return TimePoint::never();
  }
}

void Target::hear(const Message& message) {
  if (const auto* receipt = std::get_if<WriterReceipt>(&message.body)) {
    take_receipt(message, *receipt);
  } else if (const auto* ack = std::get_if<AckBody>(&message.body)) {
    const auto writer = expected_.find(message.identity);
    if (writer != expected_.end() && ack->role == Role::kSource && is_of_this_life(ack->sender))
      mail_.stop(writer->second.peer, ack->kind);
  }
}

void Target::accept(const std::shared_ptr<const TransferJob>& job) {
  std::vector<InstanceId> writers;
  for (const JobPair& each : pairs_of(*job, Role::kTarget, options_.participant)) {
    Expected expected;
    expected.bytes = each.pair->counts.bytes;
    expected.pair = each.pair;
    expected.peer = job->source_peers.at(each.source.participant);
    expected_.emplace(each.source, std::move(expected));
    writers.push_back(each.source.instance);
  }
  // A target that receives nothing grants nothing.
  if (expected_.empty()) {
    state_ = TransferState::kCollecting;
    return;
  }
  std::sort(writers.begin(), writers.end());
  writers.erase(std::unique(writers.begin(), writers.end()), writers.end());
  GrantRequest request{grant_id(hold(), identity().instance), grant_ranges(*binding()), std::move(writers)};
  grant_task_.emplace(GrantPost{std::move(request)}, options_.retry, options_.seed + 5);
  state_ = TransferState::kGranting;
}

// Success is a set of writers by identity. A receipt of a writer that the job does not name, of an earlier life of one,
// for an earlier life of this target or for another job is stale and ignored; one that comes twice changes nothing
// (I1).
void Target::take_receipt(const Message& message, const WriterReceipt& receipt) {
  if (job_ == nullptr || receipt.job != job_->digest || receipt.target != identity()) return;
  auto found = expected_.find(message.identity);
  if (is_broken(Canary::kCountWriters))
    found = std::find_if(expected_.begin(), expected_.end(), [](const auto& each) { return !each.second.receipt; });
  if (found == expected_.end()) return;
  acknowledge(found->second.peer, message);
  // It also says that the writer has the grant.
  mail_.stop(found->second.peer, "grant");
  if (found->second.receipt || state_ != TransferState::kCollecting) return;
  // A receipt that contradicts the plan is a failure and no loss of a message: waiting for another one would not help.
  if (receipt.bytes != found->second.bytes && !is_broken(Canary::kCountWriters)) {
    fail(Status(Code::kInvalidArgument, fmt::format("{}: {} says that {} bytes have landed, the plan has {}", label(),
                                                    message.identity.to_text(), receipt.bytes, found->second.bytes)),
         TransferState::kDraining);
    return;
  }
  found->second.receipt = receipt;
}

bool Target::reserve(TimePoint now, std::vector<Post>& posts) {
  first_.advance(now, ops_, posts);
  if (first_.failure()) {
    fail(could_not("be reserved", *first_.failure()), TransferState::kDraining);
  } else if (first_.done()) {
    report(ExportBody{Role::kTarget, binding()});
    state_ = TransferState::kExporting;
  } else {
    return false;
  }
  return true;
}

bool Target::grant(TimePoint now, std::vector<Post>& posts) {
  grant_ = grant_id(hold(), identity().instance);  // from the first post on it may be live
  grant_task_->advance(now, ops_, posts);
  if (grant_task_->failure()) {
    fail(could_not("grant its memory", *grant_task_->failure()), TransferState::kDraining);
    return true;
  }
  const Grant* const granted = grant_task_->result<Grant>();
  if (granted == nullptr) return false;
  for (const auto& [writer, expected] : expected_)
    mail_.repeat(expected.peer, "grant", message(GrantBody{job_->digest, writer, *granted}));
  state_ = TransferState::kCollecting;
  return true;
}

std::string Target::missing_writers() const {
  std::vector<std::string> names;
  for (const auto& [writer, expected] : expected_)
    if (!expected.receipt) names.push_back(writer.to_text());
  return first_few(names);
}

// A target that receives nothing expects no writer and goes on at once.
bool Target::collect() {
  const auto is_missing = [](const auto& each) { return !each.second.receipt; };
  if (std::any_of(expected_.begin(), expected_.end(), is_missing)) return false;
  for (const auto& [writer, expected] : expected_) outcome_.bytes += expected.bytes;
  state_ = TransferState::kFencing;
  return true;
}

std::vector<OpId> Target::under_way() const {
  std::vector<OpId> ops = first_.under_way();
  for (const std::optional<Task>* task : {&grant_task_, &revoke_, &validate_})
    if (*task)
      for (const OpId op : (*task)->under_way()) ops.push_back(op);
  if (checksums_)
    for (const OpId op : checksums_->under_way()) ops.push_back(op);
  return ops;
}

// Before anything else happens to the memory, and whatever happened before (I3). A reserve or a grant that is under way
// is awaited first: its completion says what there is to revoke.
bool Target::fence(TimePoint now, std::vector<Post>& posts) {
  // A failure after the fence has a drain of its own, for checksums and the runtime's look.
  if (std::exchange(fenced_in_, state_) != state_) {
    enter(state_, now);
    first_.stop();
    if (grant_task_) grant_task_->stop();
  }
  if (!first_.quiet() || (grant_task_ && !grant_task_->quiet())) return quarantine_when_late(under_way(), now);
  if (grant_ && !revoke_ && !is_broken(Canary::kNoFence)) {
    if (!grant_task_->may_have_happened()) {
      grant_ = std::nullopt;
    } else {
      revoke_.emplace(RevokePost{{*grant_, !cause_ && !decision_}}, options_.retry, options_.seed + 3);
      revoke_->insist();
    }
  }
  if (revoke_) revoke_->advance(now, ops_, posts);
  if (revoke_ && revoke_->done()) grant_ = std::nullopt;
  const std::vector<OpId> left = under_way();
  if (revoke_ && revoke_->failure() && left.empty()) {
    // A late write could still reach the pages (R6 does not hold), so they must not be used again.
    if (!cause_) fail(could_not("be fenced off", *revoke_->failure()), state_);
    quarantine({}, "could not be fenced off");
    return true;
  }
  if (!left.empty() || (revoke_ && !revoke_->done())) return quarantine_when_late(left, now);
  if (cause_ || decision_) {
    start_release(now);
  } else {
    for (auto& [writer, expected] : expected_) to_check_.push_back(&expected);
    checksums_.emplace(std::vector<uint64_t>(job_->checksum ? to_check_.size() : 0, 0), options_.window, options_.retry,
                       options_.seed + 4);
    validate_.emplace(runtime_task(RuntimeCall::kValidate));
    enter(TransferState::kValidating, now);
  }
  return true;
}

bool Target::validate(TimePoint now, std::vector<Post>& posts) {
  // The steps of a pair are made only when its checksum is due, and kept for repetitions until it is there.
  while (const std::optional<size_t> unit = checksums_->next(now)) {
    if (to_check_[*unit]->all.steps().empty()) {
      Diagnostics diagnostics(label());
      std::optional<PairWork> work =
          pair_work(*job_->copies, *to_check_[*unit]->pair, options_.split, options_.batch, diagnostics);
      if (!work) {  // this target's limits are below those of the writer
        fail(diagnostics.to_status(), TransferState::kDraining);
        return true;
      }
      to_check_[*unit]->all = StepSpan(work->work);
    }
    checksums_->started(*unit, ops_.next());
    posts.push_back(Post{ops_.last(), ChecksumPost{to_check_[*unit]->all, StepEnd::kTarget}});
  }
  // The runtime looks last: it must not see bytes that are known to be wrong.
  if (checksums_->done()) validate_->advance(now, ops_, posts);
  if (checksums_->failure() || validate_->failure()) {
    fail(checksums_->failure() ? could_not("sum what has come", checksums_->failure()->second)
                               : could_not("be validated", *validate_->failure()),
         TransferState::kDraining);
    return true;
  }
  if (!checksums_->done() || !validate_->done()) return false;
  report(ReadyBody{job_->digest, outcome_.bytes});
  state_ = TransferState::kReporting;
  return true;
}

// A target that may be active is never released: its pages may be in use. It is quarantined, and named (R4).
bool Target::activate(TimePoint now, std::vector<Post>& posts) {
  activate_->advance(now, ops_, posts);
  if (activate_->done()) {
    outcome_.activated = true;
    start_closing();
    return true;
  }
  // Between two attempts nothing is under way, so a runtime that keeps refusing ends here.
  const bool is_late = now >= drain_deadline_;
  if (!activate_->failure() && !is_late) return false;
  if (!cause_)
    cause_ = activate_->failure() ? could_not("be activated", *activate_->failure())
                                  : Status(Code::kDeadline, label() + " could not be activated in its time");
  if (activate_->may_have_happened()) {
    may_be_active_ = true;
    quarantine(activate_->under_way(), "may be active");
  } else {
    start_release(now);
  }
  return true;
}

bool Target::step(TimePoint now, std::vector<Post>& posts) {
  if (decision_ && state_ < TransferState::kDraining) {
    mail_.stop_all();
    // Only a target that has reported can be activated: it alone is fenced and validated (I5).
    if (state_ == TransferState::kReporting && decision_->activate) {
      activate_.emplace(runtime_task(RuntimeCall::kActivate));
      enter(TransferState::kActivating, now);
    } else {
      if (decision_->activate && !cause_)
        cause_ = Status(Code::kConflict,
                        fmt::format("{} was told to activate while {}: that was of an earlier life", label(), state()));
      state_ = TransferState::kDraining;
    }
  }
  bool again = false;
  switch (state_) {
    case TransferState::kReserving: again = reserve(now, posts); break;
    case TransferState::kGranting: again = grant(now, posts); break;
    case TransferState::kCollecting: again = collect(); break;
    case TransferState::kFencing: again = fence(now, posts); break;
    case TransferState::kValidating: again = validate(now, posts); break;
    case TransferState::kDraining: return fence(now, posts);
    case TransferState::kActivating: return activate(now, posts);
    case TransferState::kReleasing: return release(now, posts);
    case TransferState::kClosing: close(now, posts); return false;
    default: break;
  }
  // Deadlines after the work of the state: what completed in time counts.
  if (again || state_ >= TransferState::kDraining) return again;
  return fail_when_late(now, TransferState::kDraining,
                        state_ == TransferState::kCollecting
                            ? fmt::format("{} has no receipt of {} by its deadline", label(), missing_writers())
                            : "");
}

void Target::advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  take(now, completions, posts);
  while (step(now, posts)) {
  }
  if (!finished()) mail_.advance(now, posts);
}

}  // namespace crossdock
