// Decorators around the completion queue and the transport of one participant that carry a plan of faults out. The
// ports inside do not know of it, so every backend can be tried with every fault.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "backends/faults/fault_state.h"
#include "executor/ports.h"

namespace crossdock {

// Some pieces of the steps, drawn by the seed; at least one is missing.
StepSpan some_of(const StepSpan& steps, uint64_t seed);

class FaultQueue : public CompletionQueue {
 public:
  FaultQueue(CompletionQueue& inside, FaultState& state) : inside_(inside), state_(state) {}
  TimePoint now() const override { return inside_.now(); }
  size_t wait(std::span<Completion> out, TimePoint deadline) override;

 private:
  CompletionQueue& inside_;
  FaultState& state_;
};

// Flips one bit of the byte at `offset` of a region; called by the thread that waits for completions.
using FlipBit = std::function<void(const RegionKey& region, uint64_t offset)>;

class FaultTransport : public Transport {
 public:
  // `flip_bit` may be empty when the plan has no kFlip.
  FaultTransport(Transport& inside, FaultState& state, FlipBit flip_bit = {})
      : inside_(inside), state_(state), flip_bit_(std::move(flip_bit)) {}
  Status post_copy(OpId op, const Grant& grant, const StepSpan& steps) override;
  Status post_checksum(OpId op, const StepSpan& steps, StepEnd end) override;
  Status post_grant(OpId op, const GrantRequest& request) override;
  Status post_revoke(OpId op, const RevokeRequest& request) override;
  void cancel(OpId op) override { inside_.cancel(op); }

 private:
  Transport& inside_;
  FaultState& state_;
  FlipBit flip_bit_;
};

// The ports of one participant whose transport has faults; the others are those inside. One thread uses them.
class FaultyTransportPorts {
 public:
  // `inside` has a transport. What it points to outlives the use of ports().
  FaultyTransportPorts(const Ports& inside, PortFaultPlan plan, FlipBit flip_bit = {});
  FaultyTransportPorts(const FaultyTransportPorts&) = delete;
  FaultyTransportPorts& operator=(const FaultyTransportPorts&) = delete;

  const Ports& ports() const { return ports_; }

 private:
  FaultState state_;
  FaultQueue queue_;
  FaultTransport transport_;
  Ports ports_;
};

}  // namespace crossdock
