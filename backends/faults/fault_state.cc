#include "backends/faults/fault_state.h"

#include <algorithm>

#include "base/check.h"

namespace crossdock {
namespace {

// Data operations end kUnavailable, and may have changed a part (R3). Control operations end kOutcomeUnknown (R4).
bool is_data(PortCall call) {
  return call == PortCall::kCopy || call == PortCall::kChecksum || call == PortCall::kPut || call == PortCall::kGet ||
         call == PortCall::kRecv;
}

bool is(const PortFault* fault, PortFaultKind kind) { return fault != nullptr && fault->kind == kind; }

}  // namespace

// emplace keeps the first fault of those for one operation. Pointers are into plan_, which does not change.
FaultState::FaultState(PortFaultPlan plan, const CompletionQueue& queue) : plan_(std::move(plan)), clock_(queue) {
  for (const PortFault& fault : plan_.faults) {
    CHECK(is_possible(fault.call, fault.kind));
    by_operation_.emplace(std::pair(fault.call, fault.nth), &fault);
  }
}

const PortFault* FaultState::next(PortCall call) {
  const uint64_t number = counts_[call]++;
  const PortFault* fault = nullptr;
  if (const auto found = by_operation_.find({call, number}); found != by_operation_.end()) {
    fault = found->second;
  } else {
    const auto lasting = std::find_if(plan_.faults.begin(), plan_.faults.end(), [&](const PortFault& each) {
      return each.call == call && is_lasting(each.kind) && each.nth < number;
    });
    if (lasting != plan_.faults.end()) fault = &*lasting;
  }
  if (fault != nullptr) happened_.push_back(*fault);
  return fault;
}

OpId FaultState::own_op() {
  // From the top, where protocols, which count from 1, never get.
  const OpId op(UINT64_MAX - own_op_count_++);
  own_ops_.insert(op);
  return op;
}

// Keeps R1 whatever the fault: a refusal registers nothing, and everything else leads to exactly one completion.
Status FaultState::post(const PortFault* fault, PortCall call, OpId op, const PostInside& post_inside,
                        const PostInside& post_part) {
  if (is(fault, PortFaultKind::kRefuse)) return Status(Code::kResourceExhausted, "refused by plan");
  if (is(fault, PortFaultKind::kBreak)) return Status(Code::kIo, "the path to the target is broken");
  if (is(fault, PortFaultKind::kStall)) {
    stalled_.emplace(clock_.now() + Duration::from_s(static_cast<int64_t>(fault->count)), op);
    return Status();
  }
  if (is(fault, PortFaultKind::kFailBefore)) {
    complete(Completion{op, Status(Code::kUnavailable, "failed by plan, before it happened"), std::monostate(), true});
    return Status();
  }
  TRY_STATUS(is(fault, PortFaultKind::kPartial) ? post_part() : post_inside());
  // After the post, which may still be refused. Its completion cannot be seen before: only this thread takes
  // completions.
  under_way_.emplace(op, UnderWay{call, fault});
  receive_count_ += call == PortCall::kRecv ? 1 : 0;
  return Status();
}

// Each completion that is handed out counts for those that are late; one that becomes due by it follows it, and does
// not count itself.
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
  receive_count_ -= operation.call == PortCall::kRecv ? 1 : 0;
  // Before the completion is handed out, while the memory is still the backend's (R2).
  const auto effect = effects_.extract(completion.op);
  if (!effect.empty() && completion.status.ok()) effect.mapped()();
  const bool is_late = is(operation.fault, PortFaultKind::kLate);
  if (is_late || is(operation.fault, PortFaultKind::kHeld)) {
    held_.push_back(Held{std::move(completion), is_late, operation.fault->count});
    return;
  }
  if (is(operation.fault, PortFaultKind::kFailAfter) || is(operation.fault, PortFaultKind::kPartial)) {
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

// R1 again: what waits for others would never complete when there are no others. A receive does not count, since it may
// wait for the very peer that waits for this operation.
void FaultState::release_stuck() {
  if (!ready_.empty() || under_way_.size() > receive_count_) return;
  const auto late = std::find_if(held_.begin(), held_.end(), [](const Held& held) { return held.is_late; });
  if (late == held_.end()) return;
  ready_.push_back(std::move(late->completion));
  held_.erase(late);
}

void FaultState::end_stalls() {
  while (!stalled_.empty() && stalled_.begin()->first <= clock_.now()) {
    const OpId op = stalled_.begin()->second;
    stalled_.erase(stalled_.begin());
    complete(Completion{op, Status(Code::kCancelled, "stalled by plan"), std::monostate(), true});
  }
}

void FaultState::release_held() {
  // Operations inside too: whether a thread of the backend has finished by now is chance.
  for (auto& [op, operation] : under_way_)
    if (is(operation.fault, PortFaultKind::kHeld) || is(operation.fault, PortFaultKind::kLate))
      operation.fault = nullptr;
  for (Held& held : std::exchange(held_, {})) ready_.push_back(std::move(held.completion));
}

}  // namespace crossdock
