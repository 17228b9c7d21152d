#include "tests/support/fault_ports.h"

#include <algorithm>
#include <array>

#include "base/rng.h"

namespace crossdock::testing {
namespace {

bool is_data(FaultCall call) {
  return call == FaultCall::kCopy || call == FaultCall::kChecksum || call == FaultCall::kPut ||
         call == FaultCall::kGet || call == FaultCall::kRecv;
}

bool is(const Fault* fault, FaultKind kind) { return fault != nullptr && fault->kind == kind; }

// The steps cut small, without some of them.
StepSpan some_of(const StepSpan& steps, uint64_t seed) {
  if (steps.steps().empty()) return steps;
  Rng rng(seed);
  auto work = std::make_shared<CopyWork>();
  work->source_regions = steps.work().source_regions;
  work->target_regions = steps.work().target_regions;
  std::vector<CopyStep> pieces;
  StepSplit split;
  split.bytes_max = std::max<uint64_t>(1, steps.total_bytes() / 8);
  for (const CopyStep& step : steps.steps()) CHECK(append_split(step, split, pieces));
  const uint64_t left_out = rng.below(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i)
    if (i != left_out && rng.chance(1, 2)) work->steps.push_back(pieces[i]);
  return StepSpan(std::move(work));
}

}  // namespace

FaultState::FaultState(FaultPlan plan) : plan_(std::move(plan)) {
  for (const Fault& fault : plan_.faults) {
    CHECK(is_possible(fault.call, fault.kind));
    by_operation_.emplace(std::pair(fault.call, fault.nth), &fault);
  }
}

const Fault* FaultState::next(FaultCall call) {
  const auto found = by_operation_.find({call, counts_[call]++});
  if (found == by_operation_.end()) return nullptr;
  happened_.push_back(*found->second);
  return found->second;
}

OpId FaultState::own_op() {
  const OpId op(UINT64_MAX - own_op_count_++);
  own_ops_.insert(op);
  return op;
}

Status FaultState::post(const Fault* fault, FaultCall call, OpId op, const PostInside& post_inside,
                        const PostInside& post_part) {
  if (is(fault, FaultKind::kRefuse)) return Status(Code::kResourceExhausted, "refused by plan");
  if (is(fault, FaultKind::kFailBefore)) {
    complete(Completion{op, Status(Code::kUnavailable, "failed by plan, before it happened"), std::monostate(), true});
    return Status();
  }
  TRY_STATUS(is(fault, FaultKind::kPartial) ? post_part() : post_inside());
  under_way_.emplace(op, UnderWay{call, fault});
  receive_count_ += call == FaultCall::kRecv ? 1 : 0;
  return Status();
}

void FaultState::complete(Completion completion) {
  ready_.push_back(std::move(completion));
  for (Held& held : held_)
    if (held.is_late && held.left > 0) --held.left;
  for (auto held = held_.begin(); held != held_.end();) {
    if (!held->is_late || held->left > 0) {
      ++held;
      continue;
    }
    ready_.push_back(std::move(held->completion));
    held = held_.erase(held);
  }
}

void FaultState::arrived(Completion completion) {
  if (own_ops_.erase(completion.op) == 1) return;
  const auto found = under_way_.find(completion.op);
  if (found == under_way_.end()) return complete(std::move(completion));  // of the runtime
  const UnderWay operation = found->second;
  under_way_.erase(found);
  receive_count_ -= operation.call == FaultCall::kRecv ? 1 : 0;
  const bool is_late = is(operation.fault, FaultKind::kLate);
  if (is_late || is(operation.fault, FaultKind::kHeld)) {
    held_.push_back(Held{std::move(completion), is_late, operation.fault->count});
    return;
  }
  if (is(operation.fault, FaultKind::kFailAfter) || is(operation.fault, FaultKind::kPartial)) {
    completion.status = Status(is_data(operation.call) ? Code::kUnavailable : Code::kOutcomeUnknown,
                               "failed by plan, after it happened in full or in part");
    completion.result = std::monostate();
  }
  complete(std::move(completion));
}

size_t FaultState::take(std::span<Completion> out) {
  const size_t count = std::min(out.size(), ready_.size());
  for (size_t i = 0; i < count; ++i) {
    out[i] = std::move(ready_.front());
    ready_.pop_front();
  }
  return count;
}

void FaultState::release_stuck() {
  if (!ready_.empty() || under_way_.size() > receive_count_) return;
  const auto late = std::find_if(held_.begin(), held_.end(), [](const Held& held) { return held.is_late; });
  if (late == held_.end()) return;
  ready_.push_back(std::move(late->completion));
  held_.erase(late);
}

void FaultState::release_held() {
  // Those still inside too: whether a thread of the backend is done by now is luck.
  for (auto& [op, operation] : under_way_)
    if (is(operation.fault, FaultKind::kHeld) || is(operation.fault, FaultKind::kLate)) operation.fault = nullptr;
  for (Held& held : std::exchange(held_, {})) ready_.push_back(std::move(held.completion));
}

size_t FaultQueue::wait(std::span<Completion> out, TimePoint deadline) {
  std::array<Completion, 64> taken;
  while (true) {
    state_.release_stuck();
    if (const size_t count = state_.take(out); count > 0) return count;
    const size_t count = inside_.wait(std::span(taken).first(std::min(taken.size(), out.size())), deadline);
    if (count == 0) return 0;
    for (size_t i = 0; i < count; ++i) state_.arrived(std::move(taken[i]));
  }
}

Status FaultTransport::post_copy(OpId op, const StepSpan& steps) {
  return state_.post(
      state_.next(FaultCall::kCopy), FaultCall::kCopy, op, [&] { return inside_.post_copy(op, steps); },
      [&] { return inside_.post_copy(op, some_of(steps, state_.seed() + op.value())); });
}

Status FaultTransport::post_checksum(OpId op, const StepSpan& steps, StepEnd end) {
  return state_.post(
      state_.next(FaultCall::kChecksum), FaultCall::kChecksum, op,
      [&] { return inside_.post_checksum(op, steps, end); }, nullptr);
}

Status FaultTransport::post_revoke(OpId op, const RegionKey& key) {
  return state_.post(
      state_.next(FaultCall::kRevoke), FaultCall::kRevoke, op, [&] { return inside_.post_revoke(op, key); }, nullptr);
}

Status FaultObjectStore::post_begin(OpId op, const TxnId& txn, const UploadTarget& target) {
  return state_.post(
      state_.next(FaultCall::kBegin), FaultCall::kBegin, op, [&] { return inside_.post_begin(op, txn, target); },
      nullptr);
}

Status FaultObjectStore::post_put(OpId op, const TxnId& txn, const PutStep& step) {
  return state_.post(
      state_.next(FaultCall::kPut), FaultCall::kPut, op, [&] { return inside_.post_put(op, txn, step); }, nullptr);
}

Status FaultObjectStore::post_commit(OpId op, const TxnId& txn, const Publication& publication) {
  return state_.post(
      state_.next(FaultCall::kCommit), FaultCall::kCommit, op,
      [&] { return inside_.post_commit(op, txn, publication); }, nullptr);
}

Status FaultObjectStore::post_abort(OpId op, const TxnId& txn) {
  return state_.post(
      state_.next(FaultCall::kAbort), FaultCall::kAbort, op, [&] { return inside_.post_abort(op, txn); }, nullptr);
}

Status FaultObjectStore::post_lookup(OpId op, const Lookup& lookup) {
  return state_.post(
      state_.next(FaultCall::kLookup), FaultCall::kLookup, op, [&] { return inside_.post_lookup(op, lookup); },
      nullptr);
}

Status FaultObjectStore::post_get(OpId op, const GetStep& step) {
  return state_.post(
      state_.next(FaultCall::kGet), FaultCall::kGet, op, [&] { return inside_.post_get(op, step); },
      [&] {
        GetStep part = step;
        part.steps = some_of(step.steps, state_.seed() + op.value());
        return inside_.post_get(op, part);
      });
}

Status FaultObjectStore::post_release(OpId op, LeaseId lease) {
  return state_.post(
      state_.next(FaultCall::kRelease), FaultCall::kRelease, op, [&] { return inside_.post_release(op, lease); },
      nullptr);
}

// What its sender does not wait for may fail, as messages may be lost.
void FaultMessenger::send_again(const PeerId& to, const Message& message) {
  const OpId op = state_.own_op();
  if (!inside_.post_send(op, to, message).ok()) state_.arrived(Completion{op, Status(), std::monostate(), true});
}

Status FaultMessenger::post_send(OpId op, const PeerId& to, const Message& message) {
  const Fault* fault = state_.next(FaultCall::kSend);
  if (is(fault, FaultKind::kLose) || is(fault, FaultKind::kReorder)) {
    state_.complete(Completion{op, Status(), std::monostate(), true});
  } else {
    TRY_STATUS(state_.post(
        fault, FaultCall::kSend, op, [&] { return inside_.post_send(op, to, message); }, nullptr));
  }
  if (is(fault, FaultKind::kDouble)) send_again(to, message);
  for (Waiting& each : waiting_)
    if (--each.left == 0) send_again(each.to, each.message);
  std::erase_if(waiting_, [](const Waiting& each) { return each.left == 0; });
  if (is(fault, FaultKind::kReorder)) waiting_.push_back(Waiting{to, message, std::max<uint64_t>(1, fault->count)});
  return Status();
}

Status FaultMessenger::post_recv(OpId op) {
  return state_.post(
      state_.next(FaultCall::kRecv), FaultCall::kRecv, op, [&] { return inside_.post_recv(op); }, nullptr);
}

FaultPorts::FaultPorts(const Ports& inside, FaultPlan plan) : state_(std::move(plan)), queue_(*inside.queue, state_) {
  ports_.queue = &queue_;
  ports_.runtime = inside.runtime;
  if (inside.transport != nullptr) {
    transport_ = std::make_unique<FaultTransport>(*inside.transport, state_);
    ports_.transport = transport_.get();
  }
  if (inside.store != nullptr) {
    store_ = std::make_unique<FaultObjectStore>(*inside.store, state_);
    ports_.store = store_.get();
  }
  if (inside.messenger != nullptr) {
    messenger_ = std::make_unique<FaultMessenger>(*inside.messenger, state_);
    ports_.messenger = messenger_.get();
  }
}

}  // namespace crossdock::testing
