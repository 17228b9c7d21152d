// What is to go wrong, as data: which operation of which kind, and how. One line of text replays it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crossdock::testing {

// The kinds of operations; each is counted on its own, from 0, refused posts too.
enum class FaultCall {
  kCopy,
  kChecksum,
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
};
inline constexpr size_t kFaultCallCount = 12;

enum class FaultKind {
  kFailBefore,  // nothing happens; kUnavailable
  kFailAfter,   // it happens and the answer is lost: kOutcomeUnknown of a control operation, kUnavailable of others
  kPartial,     // of a copy or a get: some of its bytes arrive; kUnavailable
  kLate,        // it completes after `count` others, or when nothing else is under way
  kHeld,        // it completes when it is released
  kRefuse,      // the post is refused with kResourceExhausted
  kLose,        // the message never arrives, and the sender does not know
  kDouble,      // the message arrives twice
  kReorder,     // the message goes out after `count` further ones; with fewer it is lost
};
inline constexpr size_t kFaultKindCount = 9;

// Whether there is such a fault: messages are lost, and copies are partial.
bool is_possible(FaultCall call, FaultKind kind);

struct Fault {
  FaultCall call = FaultCall::kCopy;
  uint64_t nth = 0;
  FaultKind kind = FaultKind::kFailBefore;
  uint64_t count = 1;

  friend bool operator==(const Fault&, const Fault&) = default;
};

struct FaultPlan {
  uint64_t seed = 1;          // which bytes a partial copy moves
  std::vector<Fault> faults;  // of several for one operation the first counts

  // "seed 7: copy 3 fail-after 1, send 0 reorder 2"
  std::string to_text() const;
  // Empty when it is no such text.
  static std::optional<FaultPlan> from_text(std::string_view text);

  friend bool operator==(const FaultPlan&, const FaultPlan&) = default;
};

// Draws faults for the first `operation_count` operations of each kind. Half of the possible faults are off altogether
// in each plan; each operation has one of the others with probability `chance` of 1000. Never kHeld.
FaultPlan draw_faults(uint64_t seed, uint64_t operation_count, uint64_t chance);

}  // namespace crossdock::testing
