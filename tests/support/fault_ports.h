// Ports with faults: decorators around all ports of one participant that carry a plan out; those of the queue and the
// transport are of backends/faults/.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "backends/faults/fault_transport.h"
#include "executor/ports.h"
#include "tests/support/fault_plan.h"

namespace crossdock::testing {

class FaultObjectStore : public ObjectStore {
 public:
  FaultObjectStore(ObjectStore& inside, FaultState& state) : inside_(inside), state_(state) {}
  Status post_begin(OpId op, const TxnId& txn, const UploadTarget& target) override;
  Status post_put(OpId op, const TxnId& txn, const PutStep& step) override;
  Status post_commit(OpId op, const TxnId& txn, const Publication& publication) override;
  Status post_abort(OpId op, const TxnId& txn) override;
  Status post_lookup(OpId op, const Lookup& lookup) override;
  Status post_get(OpId op, const GetStep& step) override;
  Status post_release(OpId op, LeaseId lease) override;
  void cancel(OpId op) override { inside_.cancel(op); }

 private:
  ObjectStore& inside_;
  FaultState& state_;
};

class FaultRuntime : public Runtime {
 public:
  FaultRuntime(Runtime& inside, FaultState& state) : inside_(inside), state_(state) {}
  Status post_pin(OpId op, const HoldId& hold) override;
  Status post_reserve(OpId op, const HoldId& hold) override;
  Status post_validate(OpId op, const HoldId& hold) override;
  Status post_activate(OpId op, const HoldId& hold) override;
  Status post_release(OpId op, const HoldId& hold) override;

 private:
  Runtime& inside_;
  FaultState& state_;
};

class FaultMessenger : public Messenger {
 public:
  FaultMessenger(Messenger& inside, FaultState& state) : inside_(inside), state_(state) {}
  Status post_send(OpId op, const PeerId& to, const Message& message) override;
  Status post_recv(OpId op) override;
  void cancel(OpId op) override { inside_.cancel(op); }

 private:
  struct Waiting {
    PeerId to;
    Message message;
    uint64_t left = 0;  // further sends
  };
  void send_again(const PeerId& to, const Message& message);

  Messenger& inside_;
  FaultState& state_;
  std::vector<Waiting> waiting_;
};

// The ports of one participant with faults; those that it does not have are not there. One thread uses them.
class FaultPorts {
 public:
  // What `inside` points to outlives it.
  FaultPorts(const Ports& inside, PortFaultPlan plan, FlipBit flip_bit = {});
  FaultPorts(const FaultPorts&) = delete;
  FaultPorts& operator=(const FaultPorts&) = delete;

  const Ports& ports() const { return ports_; }
  // All held and late completions come with the next wait(), or as soon as they arrive from inside.
  void release_held() { state_.release_held(); }
  // The faults that came about, in their order.
  const std::vector<PortFault>& happened() const { return state_.happened(); }

 private:
  FaultState state_;
  FaultQueue queue_;
  std::unique_ptr<FaultTransport> transport_;
  std::unique_ptr<FaultObjectStore> store_;
  std::unique_ptr<FaultMessenger> messenger_;
  std::unique_ptr<FaultRuntime> runtime_;
  Ports ports_;
};

}  // namespace crossdock::testing
