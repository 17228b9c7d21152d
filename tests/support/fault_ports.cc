#include "tests/support/fault_ports.h"

#include <algorithm>

namespace crossdock::testing {
namespace {

bool is(const PortFault* fault, PortFaultKind kind) { return fault != nullptr && fault->kind == kind; }

}  // namespace

Status FaultObjectStore::post_begin(OpId op, const TxnId& txn, const UploadTarget& target) {
  return state_.post(
      state_.next(PortCall::kBegin), PortCall::kBegin, op, [&] { return inside_.post_begin(op, txn, target); },
      nullptr);
}

Status FaultObjectStore::post_put(OpId op, const TxnId& txn, const PutStep& step) {
  return state_.post(
      state_.next(PortCall::kPut), PortCall::kPut, op, [&] { return inside_.post_put(op, txn, step); }, nullptr);
}

Status FaultObjectStore::post_commit(OpId op, const TxnId& txn, const Publication& publication) {
  return state_.post(
      state_.next(PortCall::kCommit), PortCall::kCommit, op, [&] { return inside_.post_commit(op, txn, publication); },
      nullptr);
}

Status FaultObjectStore::post_abort(OpId op, const TxnId& txn) {
  return state_.post(
      state_.next(PortCall::kAbort), PortCall::kAbort, op, [&] { return inside_.post_abort(op, txn); }, nullptr);
}

Status FaultObjectStore::post_lookup(OpId op, const Lookup& lookup) {
  return state_.post(
      state_.next(PortCall::kLookup), PortCall::kLookup, op, [&] { return inside_.post_lookup(op, lookup); }, nullptr);
}

Status FaultObjectStore::post_get(OpId op, const GetStep& step) {
  return state_.post(
      state_.next(PortCall::kGet), PortCall::kGet, op, [&] { return inside_.post_get(op, step); },
      [&] {
        GetStep part = step;
        part.steps = some_of(step.steps, state_.seed() + op.value());
        return inside_.post_get(op, part);
      });
}

Status FaultObjectStore::post_release(OpId op, LeaseId lease) {
  return state_.post(
      state_.next(PortCall::kRelease), PortCall::kRelease, op, [&] { return inside_.post_release(op, lease); },
      nullptr);
}

Status FaultRuntime::post_pin(OpId op, const HoldId& hold) {
  return state_.post(
      state_.next(PortCall::kPin), PortCall::kPin, op, [&] { return inside_.post_pin(op, hold); }, nullptr);
}

Status FaultRuntime::post_reserve(OpId op, const HoldId& hold) {
  return state_.post(
      state_.next(PortCall::kReserve), PortCall::kReserve, op, [&] { return inside_.post_reserve(op, hold); }, nullptr);
}

Status FaultRuntime::post_validate(OpId op, const HoldId& hold) {
  return state_.post(
      state_.next(PortCall::kValidate), PortCall::kValidate, op, [&] { return inside_.post_validate(op, hold); },
      nullptr);
}

Status FaultRuntime::post_activate(OpId op, const HoldId& hold) {
  return state_.post(
      state_.next(PortCall::kActivate), PortCall::kActivate, op, [&] { return inside_.post_activate(op, hold); },
      nullptr);
}

Status FaultRuntime::post_release(OpId op, const HoldId& hold) {
  return state_.post(
      state_.next(PortCall::kReleaseHold), PortCall::kReleaseHold, op, [&] { return inside_.post_release(op, hold); },
      nullptr);
}

// What its sender does not wait for may fail, as messages may be lost.
void FaultMessenger::send_again(const PeerId& to, const Message& message) {
  const OpId op = state_.own_op();
  if (!inside_.post_send(op, to, message).ok()) state_.arrived(Completion{op, Status(), std::monostate(), true});
}

Status FaultMessenger::post_send(OpId op, const PeerId& to, const Message& message) {
  const PortFault* fault = state_.next(PortCall::kSend);
  if (is(fault, PortFaultKind::kLose) || is(fault, PortFaultKind::kReorder)) {
    state_.complete(Completion{op, Status(), std::monostate(), true});
  } else {
    TRY_STATUS(state_.post(
        fault, PortCall::kSend, op, [&] { return inside_.post_send(op, to, message); }, nullptr));
  }
  if (is(fault, PortFaultKind::kDouble)) send_again(to, message);
  for (Waiting& each : waiting_)
    if (--each.left == 0) send_again(each.to, each.message);
  std::erase_if(waiting_, [](const Waiting& each) { return each.left == 0; });
  if (is(fault, PortFaultKind::kReorder)) waiting_.push_back(Waiting{to, message, std::max<uint64_t>(1, fault->count)});
  return Status();
}

Status FaultMessenger::post_recv(OpId op) {
  return state_.post(
      state_.next(PortCall::kRecv), PortCall::kRecv, op, [&] { return inside_.post_recv(op); }, nullptr);
}

FaultPorts::FaultPorts(const Ports& inside, PortFaultPlan plan, FlipBit flip_bit)
    : state_(std::move(plan), *inside.queue), queue_(*inside.queue, state_) {
  ports_.queue = &queue_;
  if (inside.runtime != nullptr) {
    runtime_ = std::make_unique<FaultRuntime>(*inside.runtime, state_);
    ports_.runtime = runtime_.get();
  }
  if (inside.transport != nullptr) {
    transport_ = std::make_unique<FaultTransport>(*inside.transport, state_, std::move(flip_bit));
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
