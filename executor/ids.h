// The names that operations use, one type each, so that a call cannot take one for another.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/strong_id.h"
#include "model/ids.h"

namespace crossdock {

using OpId = StrongNumber<struct OpTag>;              // one posted operation of one participant
using TxnId = StrongName<struct TxnTag>;              // of an upload; the uploader chooses it, and never twice
using PeerId = StrongName<struct PeerTag>;            // an address of the messenger
using AttemptId = StrongName<struct AttemptTag>;      // one try of an operation; random, and never used twice
using GrantId = StrongName<struct GrantTag>;          // a right to write; its owner chooses it, and never twice
using LeaseId = StrongNumber<struct LeaseTag>;        // given by a store
using ObjectNumber = StrongNumber<struct ObjectTag>;  // of stored bytes; a store never gives one twice

// What a runtime holds pages for. A later attempt of an operation, and another participant of it, hold theirs apart.
struct HoldId {
  OperationId operation;
  AttemptId attempt;
  ParticipantId participant;

  // "'p0-t0' for operation 'move', attempt '5f0c'"
  std::string to_text() const;

  friend auto operator<=>(const HoldId&, const HoldId&) = default;
};

// Gives each operation of a participant its id.
// From 1 on; 0 is the id of no operation (executor/ports.h).
class OpIds {
 public:
  OpId next() { return OpId(++last_); }
  OpId last() const { return OpId(last_); }

 private:
  uint64_t last_ = 0;
};

}  // namespace crossdock
