// What faults do to a single operation: the ports of a participant carry out these effects and know of no kind of
// fault.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/time.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

// A copy that fails after a part of it has landed.
struct PartialWrite {
  uint64_t percent = 0;          // of its bytes
  std::optional<Duration> rest;  // after which the other bytes land; empty: never

  friend bool operator==(const PartialWrite&, const PartialWrite&) = default;
};

struct OperationEffects {
  bool is_refused = false;   // the post is; nothing happens
  bool fails = false;        // it completes with an error, and has not happened
  bool loses_reply = false;  // it has happened, and completes with an error or an unknown outcome
  bool flips_bit = false;    // of the bytes on their way
  bool shortens_read = false;
  std::optional<PartialWrite> torn;
  std::optional<PartialWrite> late;
  Duration starts_later;

  bool loses_message = false;
  bool doubles_message = false;
  Duration message_later;

  friend bool operator==(const OperationEffects&, const OperationEffects&) = default;
};

// Of all faults that meet the operation; of several of a kind the last counts.
OperationEffects effects_of(std::span<const FaultSpec* const> faults);

}  // namespace crossdock
