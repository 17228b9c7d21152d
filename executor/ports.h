// The ports: all that a protocol knows of the world. A backend (local memory, RDMA, RocksDB, ...) or the simulator
// implements them; tests/conformance/ checks each rule by its number.
//
// R1 post_* never blocks. OK: exactly one completion with this id will come. Not OK: none will. kResourceExhausted:
//    nothing happened, try again after a completion.
// R2 From post to completion the named memory belongs to the backend. A deadline, a cancel or a dead peer does not give
//    it back; only the completion does.
// R3 A data operation that completes not-OK may have changed any subset of its destination.
// R4 A control operation that completes kOutcomeUnknown happened in full or not at all; every other failure means that
// it
//    did not. Repeating it is always allowed. Control operations are all calls but copies, checksums, puts and gets.
// R5 cancel() is a hint; the completion still comes.
// R6 After a revoke completes OK, no access under that grant lands any more, from anyone, and what landed before is
//    visible to whatever reads the memory next, processor or device.
// R7 wait() is the only call that blocks, and it may unwind the stack. Nothing above it is noexcept; no destructor
//    calls it.
// R8 wait() returning 0 implies now() >= deadline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "base/status.h"
#include "base/time.h"
#include "executor/copy_work.h"
#include "executor/grant.h"
#include "executor/ids.h"
#include "executor/message.h"
#include "executor/store_types.h"
#include "model/any_binding.h"

namespace crossdock {

// Of one end of some steps: CRC-32C of their pieces in order.
struct StepsChecksum {
  uint32_t crc32c = 0;
  friend bool operator==(const StepsChecksum&, const StepsChecksum&) = default;
};

// What an operation brought. Its special members are compiled once, in ports.cc, and not in each source that moves one.
struct CompletionResult
    : std::variant<std::monostate, PutReceipt, TxnState, Found, GetReport, StepsChecksum, Message, AnyBinding, Grant> {
  using Variant = variant;
  using Variant::Variant;
  using Variant::operator=;
  CompletionResult();
  CompletionResult(const CompletionResult&);
  CompletionResult(CompletionResult&&) noexcept;
  CompletionResult& operator=(const CompletionResult&);
  CompletionResult& operator=(CompletionResult&&) noexcept;
  ~CompletionResult();
};

// The id 0 is no operation's. A completion with it only makes its consumer look again.
struct Completion {
  OpId op;
  Status status;
  CompletionResult result;
  bool posted = true;  // false: the post itself was refused, and nothing happened
};

// The end of an operation that was accepted; the caller fills in the id.
inline Completion completion_of(Status status) {
  Completion completion;
  completion.status = std::move(status);
  return completion;
}
template <class Value>
Completion completion_of(Result<Value> result) {
  if (!result.ok()) return completion_of(result.status());
  Completion completion;
  completion.result = std::move(result).value();
  return completion;
}

// One for each participant, with one consumer.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  virtual TimePoint now() const = 0;
  // Waits until there is a completion, or until the deadline. Returns how many were written to `out`.
  virtual size_t wait(std::span<Completion> out, TimePoint deadline) = 0;
};

// One-sided copies from the poster's own registered memory into memory that it was granted.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Status post_copy(OpId op, const Grant& grant, const StepSpan& steps) = 0;
  // Of the end that is the poster's own memory, granted or not. -> StepsChecksum
  virtual Status post_checksum(OpId op, const StepSpan& steps, StepEnd end) = 0;
  // Grants the poster's own memory. kConflict when the grant was revoked before, or was another one. -> Grant
  virtual Status post_grant(OpId op, const GrantRequest& request) = 0;
  // Ends a grant of the poster's own memory; one that is not known is never given afterwards.
  virtual Status post_revoke(OpId op, const RevokeRequest& request) = 0;
  virtual void cancel(OpId op) = 0;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  virtual Status post_begin(OpId op, const TxnId& txn, const UploadTarget& target) = 0;       // -> TxnState
  virtual Status post_put(OpId op, const TxnId& txn, const PutStep& step) = 0;                // -> PutReceipt
  virtual Status post_commit(OpId op, const TxnId& txn, const Publication& publication) = 0;  // -> TxnState
  virtual Status post_abort(OpId op, const TxnId& txn) = 0;                                   // -> TxnState
  virtual Status post_lookup(OpId op, const Lookup& lookup) = 0;                              // -> Found
  virtual Status post_get(OpId op, const GetStep& step) = 0;                                  // -> GetReport
  virtual Status post_release(OpId op, LeaseId lease) = 0;
  virtual void cancel(OpId op) = 0;
};

// Small control messages, unordered; they may be lost or come twice.
class Messenger {
 public:
  virtual ~Messenger() = default;
  virtual Status post_send(OpId op, const PeerId& to, const Message& message) = 0;
  virtual Status post_recv(OpId op) = 0;  // -> Message
  virtual void cancel(OpId op) = 0;
};

// What the serving framework does for an operation. It owns pages and decides about traffic; nothing here allocates.
// Each call names its hold, and a call that comes twice is one call (R4). Holds of several operations are apart: the
// release of one keeps the pages of another.
//
// An active target is not in use: a framework routes nothing to it before the coordinator said that the transfer
// succeeded. So a transfer of which only some targets could be activated is never seen (docs/architecture.md).
class Runtime {
 public:
  virtual ~Runtime() = default;
  // Keeps the source's pages as they are until they are released. kConflict after the hold's release. -> AnyBinding
  virtual Status post_pin(OpId op, const HoldId& hold) = 0;
  // Takes pages for the target. kConflict after the hold's release. -> AnyBinding
  virtual Status post_reserve(OpId op, const HoldId& hold) = 0;
  // Everything has arrived and nothing lands any more: look whether it can be used.
  virtual Status post_validate(OpId op, const HoldId& hold) = 0;
  virtual Status post_activate(OpId op, const HoldId& hold) = 0;
  // Gives pinned or reserved pages back; OK also when the hold never came to be, which it then never does. kConflict
  // for a target that was activated.
  virtual Status post_release(OpId op, const HoldId& hold) = 0;
};

// Those that a participant has; a participant without a store gets no store.
struct Ports {
  CompletionQueue* queue = nullptr;  // always there
  Transport* transport = nullptr;
  ObjectStore* store = nullptr;
  Messenger* messenger = nullptr;
  Runtime* runtime = nullptr;
};

}  // namespace crossdock
