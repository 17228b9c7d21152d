#include "executor/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/canary.h"

// Why fencing comes before validating, and not only before releasing: a write that is late (a retry, a dead writer's
// last copy) must not change bytes after they were compared (I1, I5). So the order is receipts -> revoke -> checksums
// -> runtime -> report; and with a failure revoke -> release.
namespace crossdock {
namespace {

// A writer may be faster than the coordinator's message to this target. Bounded, since messages come from outside; a
// receipt that is dropped here is repeated.
constexpr size_t kEarlyReceiptsMax = 65536;

}  // namespace

Target::Target(const ParticipantOptions& options) : ParticipantProtocol(Role::kTarget, RuntimeCall::kReserve, options) {
  state_ = TransferState::kReserving;
}

bool Target::complete(const Completion& completion, TimePoint now) {
  if (revokes_ && revokes_->complete(completion, now)) return true;
  if (validate_ && validate_->complete(completion, now)) return true;
  if (activate_ && activate_->complete(completion, now)) return true;
  if (!checksums_) return false;
  const std::optional<WorkList::Ended> ended = checksums_->complete(completion, now);
  if (!ended || !ended->done) return ended.has_value();
  const WriterReceipt& receipt = *to_check_[ended->unit]->receipt;
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
    case TransferState::kFencing:
    case TransferState::kDraining: return revokes_ ? revokes_->wake_at() : TimePoint::never();
    case TransferState::kValidating: return std::min(checksums_->wake_at(), validate_->wake_at());
    case TransferState::kActivating: return activate_->wake_at();
    default: return TimePoint::never();
  }
}

void Target::handle(const Message& message) {
  if (const auto* job = std::get_if<JobBody>(&message.body)) {
    // A job that is repeated, or that comes after the decision, changes nothing.
    if (state_ == TransferState::kExporting && !decision_) accept(job->job);
  } else if (const auto* receipt = std::get_if<WriterReceipt>(&message.body)) {
    take_receipt(message.identity, *receipt);
  } else if (const auto* decision = std::get_if<DecisionBody>(&message.body)) {
    decide(*decision);
  }
}

// The job must name the binding that this target exported: one of an earlier life has other epochs. Receipts that came
// before the job are looked at again, now that it says which are expected.
void Target::accept(const std::shared_ptr<const TransferJob>& job) {
  const auto own = std::find_if(job->target_bindings.begin(), job->target_bindings.end(),
                                [&](const AnyBinding& each) { return each == binding(); });
  if (own == job->target_bindings.end()) return;
  job_ = job;
  mail_.stop_all();
  for (const JobPair& each : pairs_of(*job, Role::kTarget, options_.participant))
    expected_[each.source] = Expected{each.pair->counts.bytes, each.pair, std::nullopt, StepSpan()};
  state_ = TransferState::kCollecting;
  for (const auto& [writer, receipt] : std::exchange(early_, {})) take_receipt(writer, receipt);
}

// Success is a set of writers by identity. A receipt of a writer that the job does not name, of an earlier life of one,
// or for an earlier life of this target is stale and ignored; one that comes twice changes nothing (I1).
void Target::take_receipt(const PeerIdentity& writer, const WriterReceipt& receipt) {
  if (binding() == nullptr || receipt.target != identity_of(*binding())) return;
  if (job_ == nullptr) {
    if (early_.size() < kEarlyReceiptsMax) early_.emplace(writer, receipt);
    return;
  }
  auto found = expected_.find(writer);
  if (is_broken(Canary::kCountWriters))
    found = std::find_if(expected_.begin(), expected_.end(), [](const auto& each) { return !each.second.receipt; });
  if (found == expected_.end() || found->second.receipt || state_ != TransferState::kCollecting) return;
  // A receipt that contradicts the plan is a failure and no loss of a message: waiting for another one would not help.
  if ((receipt.bytes != found->second.bytes && !is_broken(Canary::kCountWriters)) || !receipt.path_quiet) {
    fail(Status(Code::kInvalidArgument, fmt::format("{}: {} says that {} bytes have landed, the plan has {}", label(),
                                                    writer.to_text(), receipt.bytes, found->second.bytes)),
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
    mail_.repeat(options_.coordinator, "export", message(ExportBody{Role::kTarget, binding()}));
    state_ = TransferState::kExporting;
  } else {
    return false;
  }
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

// Before anything else happens to the memory, and whatever happened before (I3). A reserve that is under way is awaited
// first: only its completion says which keys there are.
bool Target::fence(TimePoint now, std::vector<Post>& posts) {
  if (!std::exchange(fencing_, true)) {
    enter(state_, now);
    first_.stop();
  }
  if (!first_.quiet()) return quarantine(first_.under_way(), now);
  if (!revokes_) {
    if (binding() != nullptr && !is_broken(Canary::kNoFence)) keys_ = region_keys(*binding());
    revokes_.emplace(std::vector<uint64_t>(keys_.size(), 0), options_.window, options_.retry, options_.seed + 3);
  }
  post_due(*revokes_, now, ops_, posts, [&](size_t unit) { return RevokePost{keys_[unit]}; });
  std::vector<OpId> left;
  for (const std::optional<WorkList>* list : {&revokes_, &checksums_})
    if (*list)
      for (const OpId op : (*list)->under_way()) left.push_back(op);
  if (validate_)
    for (const OpId op : validate_->under_way()) left.push_back(op);
  if (revokes_->failure() && left.empty()) {
    // A late write could still reach the pages (R6 does not hold), so they must not be used again.
    outcome_.quarantined = true;
    if (!cause_) fail(could_not("be fenced off", revokes_->failure()->second), state_);
    start_closing(now);
    return true;
  }
  if (!left.empty() || !revokes_->done()) return quarantine(left, now);
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
  // The steps of a pair are made only when its checksum is due, and kept for repetitions.
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
  mail_.repeat(options_.coordinator, "ready", message(ReadyBody{outcome_.bytes}));
  state_ = TransferState::kReporting;
  return true;
}

bool Target::activate(TimePoint now, std::vector<Post>& posts) {
  activate_->advance(now, ops_, posts);
  // Quiet: between two attempts nothing is under way, so a runtime that keeps refusing ends here and not in quarantine.
  const bool is_late = now >= drain_deadline_ && activate_->quiet() && !activate_->done();
  if (activate_->failure() || is_late) {
    if (!cause_)
      cause_ = activate_->failure() ? could_not("be activated", *activate_->failure())
                                    : Status(Code::kDeadline, label() + " could not be activated in its time");
    start_release(now);
    return true;
  }
  if (!activate_->done()) return quarantine(activate_->under_way(), now);
  outcome_.activated = true;
  start_closing(now);
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
  if (state_ == TransferState::kCollecting && now >= deadline_) {
    fail(Status(Code::kDeadline, fmt::format("{} has no receipt of {} by its deadline", label(), missing_writers())),
         TransferState::kDraining);
    return true;
  }
  return fail_when_late(now, TransferState::kDraining);
}

void Target::advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) {
  for (const Message& each : take(now, completions, posts)) handle(each);
  while (step(now, posts)) {
  }
  mail_.advance(now, posts);
}

}  // namespace crossdock
