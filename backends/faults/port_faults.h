// Faults of ports as data: which operation of which kind is disturbed, and how. The decorators of fault_transport.h,
// and those of the tests for the other ports, carry a plan out. Whatever the plan, the decorated ports keep R1 to R8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace crossdock {

// The kinds of operations; each is counted on its own, from 0, refused posts included.
enum class PortCall {
  kCopy,
  kChecksum,
  kGrant,
  kRevoke,
  kBegin,
  kPut,
  kCommit,
  kAbort,
  kLookup,
  kGet,
  kRelease,
  kSend,
  kRecv,
  kPin,
  kReserve,
  kValidate,
  kActivate,
  kReleaseHold,
};
inline constexpr size_t kPortCallCount = 18;

enum class PortFaultKind {
  kFailBefore,  // nothing happens; kUnavailable
  kFailAfter,   // it happens and the answer is lost: kOutcomeUnknown of a control operation, kUnavailable of others
  kPartial,     // of a copy or a get: some of its bytes arrive; kUnavailable
  kLate,        // it completes after `count` others, or when nothing else is under way
  kHeld,        // it completes when it is released
  kRefuse,      // the post is refused with kResourceExhausted
  kLose,        // the message never arrives, and the sender does not know
  kDouble,      // the message arrives twice
  kReorder,     // the message goes out after `count` further ones; with fewer it is lost
  kBreak,       // this copy and every later one are refused with kIo: the path is broken for good
  kStall,       // this copy and every later one move nothing, and complete kCancelled `count` seconds after their post
  kFlip,        // after the copy completed OK, one bit of what it wrote is wrong
};
inline constexpr size_t kPortFaultKindCount = 12;

// Whether there is such a fault: only messages are lost, and only copies are partial.
constexpr bool is_possible(PortCall call, PortFaultKind kind) {
  switch (kind) {
    case PortFaultKind::kPartial: return call == PortCall::kCopy || call == PortCall::kGet;
    case PortFaultKind::kLose:
    case PortFaultKind::kDouble:
    case PortFaultKind::kReorder: return call == PortCall::kSend;
    case PortFaultKind::kBreak:
    case PortFaultKind::kStall:
    case PortFaultKind::kFlip: return call == PortCall::kCopy;
    default: return true;
  }
}

// Whether the fault disturbs every operation of its kind from the nth on.
constexpr bool is_lasting(PortFaultKind kind) { return kind == PortFaultKind::kBreak || kind == PortFaultKind::kStall; }

// The nth operation of a kind, from 0, is disturbed. `count` means what the kind says: operations, or seconds of a
// stall.
struct PortFault {
  PortCall call = PortCall::kCopy;
  uint64_t nth = 0;
  PortFaultKind kind = PortFaultKind::kFailBefore;
  uint64_t count = 1;

  friend bool operator==(const PortFault&, const PortFault&) = default;
};

struct PortFaultPlan {
  uint64_t seed = 1;              // which bytes a partial copy moves
  std::vector<PortFault> faults;  // of several for one operation the first counts

  friend bool operator==(const PortFaultPlan&, const PortFaultPlan&) = default;
};

}  // namespace crossdock
