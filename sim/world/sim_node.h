// One participant of a simulated world: its queue of completions, and the register of its operations, which sees that
// each completes once (I6). The ports are sim_transport.h, sim_messenger.h, sim_store.h and sim_runtime.h.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "executor/ports.h"
#include "sim/scenario/scenario.h"
#include "sim/world/engine.h"
#include "sim/world/operation_faults.h"

namespace crossdock {

class SimMessenger;
class SimRuntime;
class SimStore;
class SimStorePort;
class SimTransport;
class SimWorld;
struct SimMember;

// What becomes of the operations that a process has under way when it dies. The network interface does not die with it.
enum class Fate {
  kLost,  // some of each has landed, and no more does
  kDone,  // they go on
  kLate,  // some has landed; the rest lands later
};

class SimNode : public CompletionQueue {
 public:
  SimNode(SimWorld& world, PeerId peer, Place place, uint32_t track);
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;
  ~SimNode() override;

  TimePoint now() const override;
  size_t wait(std::span<Completion> out, TimePoint deadline) override;

  // Those that it has; a node without a store gets no store.
  Ports ports();
  SimTransport& transport() { return *transport_; }
  SimMessenger& messenger() { return *messenger_; }
  SimRuntime& runtime() { return *runtime_; }
  void set_store(SimStore& store);

  SimWorld& world() { return world_; }
  Rng& rng() { return rng_; }  // of its own, so that what others do does not shift what it draws
  const PeerId& peer() const { return peer_; }
  const Place& place() const { return place_; }
  uint32_t track() const { return track_; }

  // Takes an operation, which is under way from then on, and returns what faults do to it. kResourceExhausted when one
  // of them refuses it, and when it needs one of the queue's slots and none is free.
  Result<OperationEffects> accept(OpId op, const std::string& name, bool takes_slot);
  // Nothing once the node is dead. An operation that is not under way is a violation of I6.
  void complete(OpId op, Completion completion);
  // Completes it after a while, unless the node is dead by then.
  void complete_after(Duration delay, OpId op, Completion completion);
  void wake();  // its protocol looks again
  // When the next operation may start, since they are posted one after another.
  TimePoint next_start(double cost_us);
  // Operations that have not completed, without receives.
  std::vector<std::pair<OpId, std::string>> under_way() const;

  // Operations that take a slot (copies, checksums, puts, gets) at once. Those that are under way stay.
  void set_queue_depth(uint64_t depth) { queue_depth_ = depth; }
  void set_slowness(double factor) { slowness_ = factor; }
  void set_actor(ActorId actor) { actor_ = actor; }
  ActorId actor() const { return actor_; }
  bool is_dead() const { return is_dead_; }
  void die(Fate fate, Duration delay);  // what is under way; its actor is for the world to end

 private:
  // A protocol that wants to be called now, again and again, would never let time go on.
  void watch_for_spinning(TimePoint deadline);

  struct Operation {
    std::string name;
    TimePoint begin;
    bool takes_slot;
  };

  SimWorld& world_;
  PeerId peer_;
  Place place_;
  uint32_t track_;
  Rng rng_;
  Gate gate_;
  std::unique_ptr<SimTransport> transport_;
  std::unique_ptr<SimMessenger> messenger_;
  std::unique_ptr<SimRuntime> runtime_;
  std::unique_ptr<SimStorePort> store_;
  std::deque<Completion> ready_;
  std::map<OpId, Operation> under_way_;
  uint64_t slots_in_use_ = 0;
  uint64_t queue_depth_;
  double slowness_ = 1;
  TimePoint busy_until_;
  ActorId actor_ = 0;
  bool is_dead_ = false;
  TimePoint looked_at_;
  uint64_t look_count_ = 0;  // at this instant, with nothing to look at
};

}  // namespace crossdock
