// Ports with faults: decorators around the ports of one participant that make a plan come true. The ports inside do not
// know of it, so every backend can be tried with every fault.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "executor/ports.h"
#include "tests/support/fault_plan.h"

namespace crossdock::testing {

// What the decorators of one participant share: the plan, and the completions that are not handed out yet.
class FaultState {
 public:
  explicit FaultState(FaultPlan plan);

  // The fault of the next operation of this kind, or null.
  const Fault* next(FaultCall call);
  // Posts by `post_inside` as the fault says; `post_part` does some of the operation instead.
  using PostInside = std::function<Status()>;
  Status post(const Fault* fault, FaultCall call, OpId op, const PostInside& post_inside, const PostInside& post_part);
  // An operation that nobody waits for: its completion goes nowhere.
  OpId own_op();

  void complete(Completion completion);  // hands it out, after those before it
  void arrived(Completion completion);   // from inside
  size_t take(std::span<Completion> out);
  // Nothing but late completions can come any more: hands out the first of them.
  void release_stuck();
  void release_held();

  uint64_t seed() const { return plan_.seed; }
  const std::vector<Fault>& happened() const { return happened_; }

 private:
  struct Held {
    Completion completion;
    bool is_late = false;  // else until it is released
    uint64_t left = 0;
  };
  struct UnderWay {
    FaultCall call;
    const Fault* fault;
  };

  const FaultPlan plan_;
  std::map<std::pair<FaultCall, uint64_t>, const Fault*> by_operation_;
  std::map<FaultCall, uint64_t> counts_;
  std::map<OpId, UnderWay> under_way_;  // inside
  size_t receive_count_ = 0;            // of those
  std::set<OpId> own_ops_;
  uint64_t own_op_count_ = 0;
  std::deque<Completion> ready_;
  std::deque<Held> held_;
  std::vector<Fault> happened_;
};

class FaultQueue : public CompletionQueue {
 public:
  FaultQueue(CompletionQueue& inside, FaultState& state) : inside_(inside), state_(state) {}
  TimePoint now() const override { return inside_.now(); }
  size_t wait(std::span<Completion> out, TimePoint deadline) override;

 private:
  CompletionQueue& inside_;
  FaultState& state_;
};

class FaultTransport : public Transport {
 public:
  FaultTransport(Transport& inside, FaultState& state) : inside_(inside), state_(state) {}
  Status post_copy(OpId op, const StepSpan& steps) override;
  Status post_checksum(OpId op, const StepSpan& steps, StepEnd end) override;
  Status post_revoke(OpId op, const RegionKey& key) override;
  void cancel(OpId op) override { inside_.cancel(op); }

 private:
  Transport& inside_;
  FaultState& state_;
};

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

// The ports of one participant with faults; those that it does not have are not there, and the runtime is as it was.
// One thread uses them.
class FaultPorts {
 public:
  // What `inside` points to outlives it.
  FaultPorts(const Ports& inside, FaultPlan plan);
  FaultPorts(const FaultPorts&) = delete;
  FaultPorts& operator=(const FaultPorts&) = delete;

  const Ports& ports() const { return ports_; }
  // All held and late completions come with the next wait(), or as soon as they arrive from inside.
  void release_held() { state_.release_held(); }
  // The faults that came about, in their order.
  const std::vector<Fault>& happened() const { return state_.happened(); }

 private:
  FaultState state_;
  FaultQueue queue_;
  std::unique_ptr<FaultTransport> transport_;
  std::unique_ptr<FaultObjectStore> store_;
  std::unique_ptr<FaultMessenger> messenger_;
  Ports ports_;
};

}  // namespace crossdock::testing
