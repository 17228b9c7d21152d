// The names that operations use, one type each, so that a call cannot take one for another.
#pragma once

#include <cstdint>

#include "base/strong_id.h"
#include "model/ids.h"

namespace crossdock {

using OpId = StrongNumber<struct OpTag>;              // one posted operation of one participant
using TxnId = StrongName<struct TxnTag>;              // of an upload; the uploader chooses it, and never twice
using PeerId = StrongName<struct PeerTag>;            // an address of the messenger
using LeaseId = StrongNumber<struct LeaseTag>;        // given by a store
using ObjectNumber = StrongNumber<struct ObjectTag>;  // of stored bytes; a store never gives one twice

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
