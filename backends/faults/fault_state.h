// State that the decorators around the ports of one participant share.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "backends/faults/port_faults.h"
#include "executor/ports.h"

namespace crossdock {

// The plan, how many operations of each kind were posted, and the completions that are not handed out yet. One thread
// uses it.
class FaultState {
 public:
  // Stalls are timed by the clock of `queue`, which outlives the state.
  FaultState(PortFaultPlan plan, const CompletionQueue& queue);

  // Counts an operation of this kind, and returns its fault, or null.
  const PortFault* next(PortCall call);
  // Posts by `post_inside` as the fault says; `post_part` does some of the operation instead. Refusals of `post_inside`
  // are returned as they are.
  using PostInside = std::function<Status()>;
  Status post(const PortFault* fault, PortCall call, OpId op, const PostInside& post_inside,
              const PostInside& post_part);
  // An operation of the decorators' own: its completion is dropped.
  OpId own_op();

  // Called once the operation, which is under way, has completed OK and before its completion is handed out.
  void when_done(OpId op, std::function<void()> effect) { effects_.insert_or_assign(op, std::move(effect)); }

  void complete(Completion completion);  // hands it out, after those before it
  void arrived(Completion completion);   // from inside
  size_t take(std::span<Completion> out);
  // Nothing but late completions can come any more: hands out the first of them.
  void release_stuck();
  void release_held();
  // Completes the operations whose stall is over.
  void end_stalls();
  // When the next stall ends.
  TimePoint stall_end() const { return stalled_.empty() ? TimePoint::never() : stalled_.begin()->first; }

  uint64_t seed() const { return plan_.seed; }
  const std::vector<PortFault>& happened() const { return happened_; }

 private:
  struct Held {
    Completion completion;
    bool is_late = false;  // else until it is released
    uint64_t left = 0;
  };
  struct UnderWay {
    PortCall call;
    const PortFault* fault;
  };

  const PortFaultPlan plan_;
  const CompletionQueue& clock_;
  std::map<std::pair<PortCall, uint64_t>, const PortFault*> by_operation_;
  std::map<PortCall, uint64_t> counts_;
  std::map<OpId, UnderWay> under_way_;  // inside
  size_t receive_count_ = 0;            // of those
  std::set<OpId> own_ops_;
  uint64_t own_op_count_ = 0;
  std::deque<Completion> ready_;
  std::deque<Held> held_;
  std::multimap<TimePoint, OpId> stalled_;  // by the time at which they complete
  std::map<OpId, std::function<void()>> effects_;
  std::vector<PortFault> happened_;
};

}  // namespace crossdock
