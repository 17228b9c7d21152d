// The kinds of faults, one row each: how a scenario calls it, what it needs, and which parameters it takes. What a kind
// does is in sim/world/operation_faults.cc (faults of operations) or sim/run/fault_actions.cc (all others); how a
// campaign draws it is in sim/run/fault_draw.cc. Each of these tables has one row for each kind, or does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace crossdock {

enum class FaultKind {
  // Of the world, from a time or an event on.
  kLinkOff,
  kLinkSlow,
  kMachineOff,
  kPartition,
  kStraggler,
  kPeerCrash,
  kPeerRestart,
  kStoreCrash,
  kCorruptChunk,
  kDiskFull,
  kPagesEvicted,
  kAbortRequest,
  kMessageStorm,
  kQueueDepth,
  // Of single operations and messages.
  kRefused,
  kFailed,
  kReplyLost,
  kTornWrite,
  kLateWrite,
  kSlowOperation,
  kBitFlip,
  kShortRead,
  kMessageLost,
  kMessageDelayed,
  kMessageDoubled,
  kEnd,  // no kind: their number
};
inline constexpr size_t kFaultKindCount = static_cast<size_t>(FaultKind::kEnd);

enum class FaultScope {
  kWorld,      // happens at 'at_us', or when the event 'when' comes
  kOperation,  // happens to the operations that 'when' names
};

// What `target` names.
enum class FaultTarget { kNone, kLinks, kMachine, kPeers, kStore, kWork };

// By which a campaign allows several kinds at once; kNone: only by their own name.
enum class FaultGroup { kNone, kLink, kHost, kStore, kMessage, kOperation };
// Empty for kNone.
constexpr std::string_view fault_group_name(FaultGroup group) {
  constexpr std::array<std::string_view, 6> kNames = {"", "link", "host", "store", "message", "operation"};
  return kNames[static_cast<size_t>(group)];
}

// Parameters of its own, beside 'at_us', 'when' and 'after_us'. Two are common to a scope: a fault of the world that
// waits for an event takes 'count' (how often it happens); faults of operations take 'count' (how many they meet) and
// 'lasts_us' (until when).
enum FaultParameter : unsigned {
  kTakesLasts = 1,    // 'lasts_us', after which it is undone
  kTakesPercent = 2,  // 'percent', of a bandwidth, or of the bytes that land
  kTakesDelay = 4,    // 'delay_us'
  kTakesCount = 8,    // 'count', of what the kind counts
  kTakesMode = 16,    // 'mode'
};

// A list of texts that lives as long as the program.
using FaultTexts = std::span<const std::string_view>;

struct FaultKindRow {
  FaultKind kind = FaultKind::kEnd;
  std::string_view name;
  FaultScope scope = FaultScope::kWorld;
  FaultGroup group = FaultGroup::kNone;
  FaultTarget target = FaultTarget::kNone;
  unsigned parameters = 0;  // of FaultParameter, added up
  FaultTexts modes;         // all that 'mode' may be; empty: any text
  FaultTexts operations;    // those that it can meet; empty: any
};

namespace fault_rows {

constexpr FaultKindRow of_world(FaultKind kind, std::string_view name, FaultGroup group, FaultTarget target,
                                unsigned parameters = 0, FaultTexts modes = {}) {
  return {kind, name, FaultScope::kWorld, group, target, parameters, modes, {}};
}
constexpr FaultKindRow of_operations(FaultKind kind, std::string_view name, FaultGroup group, unsigned parameters = 0,
                                     FaultTexts operations = {}) {
  return {kind, name, FaultScope::kOperation, group, FaultTarget::kNone, parameters, {}, operations};
}

// Crash points of a store (kCrashPoints of StoreCore) without those of removal and collection, for which no work asks.
// Empty: as "lose".
inline constexpr std::array<std::string_view, 12> kStoreCrashModes = {
    "",
    "keep",
    "lose",
    "begin-recorded",
    "put-object-written",
    "commit-before-data",
    "commit-after-data",
    "commit-published",
    "abort-recorded",
    "recovery-begin",
    "recovery-aborted",
    "recovery-dropped",
};
// What becomes of the operations of a peer that dies. Empty: as "lost".
inline constexpr std::array<std::string_view, 4> kPeerCrashModes = {"", "lost", "done", "late"};
// Operations that faults of bytes can meet: those that write into a target or a store, those that carry bytes, those
// that read from a store, and messages of any kind.
inline constexpr std::array<std::string_view, 2> kWrites = {"copy", "put"};
inline constexpr std::array<std::string_view, 2> kTransits = {"copy", "get"};
inline constexpr std::array<std::string_view, 1> kStoreReads = {"get"};
inline constexpr std::array<std::string_view, 1> kSends = {"send *"};

using enum FaultKind;
using Group = FaultGroup;
using Target = FaultTarget;

inline constexpr std::array<FaultKindRow, kFaultKindCount> kAll = {
    of_world(kLinkOff, "link_off", Group::kLink, Target::kLinks, kTakesLasts),
    of_world(kLinkSlow, "link_slow", Group::kLink, Target::kLinks, kTakesLasts | kTakesPercent),
    of_world(kMachineOff, "machine_off", Group::kHost, Target::kMachine, kTakesLasts),
    of_world(kPartition, "partition", Group::kLink, Target::kLinks, kTakesLasts),
    of_world(kStraggler, "straggler", Group::kHost, Target::kLinks, kTakesLasts | kTakesPercent),
    of_world(kPeerCrash, "peer_crash", Group::kHost, Target::kPeers, kTakesDelay | kTakesMode, kPeerCrashModes),
    of_world(kPeerRestart, "peer_restart", Group::kHost, Target::kPeers),
    of_world(kStoreCrash, "store_crash", Group::kStore, Target::kStore, kTakesLasts | kTakesMode, kStoreCrashModes),
    of_world(kCorruptChunk, "corrupt_chunk", Group::kStore, Target::kStore, kTakesCount),
    of_world(kDiskFull, "disk_full", Group::kStore, Target::kStore, kTakesLasts),
    of_world(kPagesEvicted, "pages_evicted", Group::kNone, Target::kPeers),
    of_world(kAbortRequest, "abort_request", Group::kNone, Target::kWork),
    of_world(kMessageStorm, "message_storm", Group::kMessage, Target::kNone, kTakesCount),
    of_world(kQueueDepth, "queue_depth", Group::kHost, Target::kPeers, kTakesCount),
    of_operations(kRefused, "refused", Group::kOperation),
    of_operations(kFailed, "failed", Group::kOperation),
    of_operations(kReplyLost, "reply_lost", Group::kOperation),
    of_operations(kTornWrite, "torn_write", Group::kOperation, kTakesPercent, kWrites),
    of_operations(kLateWrite, "late_write", Group::kOperation, kTakesPercent | kTakesDelay, kWrites),
    of_operations(kSlowOperation, "slow_operation", Group::kOperation, kTakesDelay),
    of_operations(kBitFlip, "bit_flip", Group::kOperation, 0, kTransits),
    of_operations(kShortRead, "short_read", Group::kStore, 0, kStoreReads),
    of_operations(kMessageLost, "message_lost", Group::kMessage, 0, kSends),
    of_operations(kMessageDelayed, "message_delayed", Group::kMessage, kTakesDelay, kSends),
    of_operations(kMessageDoubled, "message_doubled", Group::kMessage, 0, kSends),
};

}  // namespace fault_rows

// In the order of the kinds.
inline constexpr const std::array<FaultKindRow, kFaultKindCount>& kFaultKinds = fault_rows::kAll;

constexpr const FaultKindRow& fault_kind_row(FaultKind kind) { return kFaultKinds[static_cast<size_t>(kind)]; }
constexpr std::string_view fault_kind_name(FaultKind kind) { return fault_kind_row(kind).name; }
constexpr bool is_operation_fault(FaultKind kind) { return fault_kind_row(kind).scope == FaultScope::kOperation; }

// For static_assert: whether `rows` has one row with a `kind` for each kind (of the scope), in their order.
template <class Rows>
constexpr bool has_every_fault_kind(const Rows& rows, std::optional<FaultScope> scope = std::nullopt) {
  size_t row = 0;
  for (size_t number = 0; number < kFaultKindCount; ++number) {
    if (scope && kFaultKinds[number].scope != *scope) continue;
    if (row == rows.size() || rows[row].kind != static_cast<FaultKind>(number)) return false;
    ++row;
  }
  return row == rows.size();
}
static_assert(has_every_fault_kind(kFaultKinds), "a kind of fault has no row in fault_kinds.h");

}  // namespace crossdock
