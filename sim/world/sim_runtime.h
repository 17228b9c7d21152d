// Runtime of a simulated participant: pins and reserves its members' pages at the cost of registering them.
#pragma once

#include <functional>
#include <map>

#include "executor/ports.h"
#include "executor/protocol.h"
#include "sim/world/sim_memory.h"
#include "sim/world/sim_node.h"

namespace crossdock {

// Called when a protocol calls the runtime.
class SimRuntimeHooks {
 public:
  virtual ~SimRuntimeHooks() = default;
  virtual void activating(SimMember& member) = 0;  // before it is
  virtual void released(SimMember& member) = 0;
};

class SimRuntime : public Runtime {
 public:
  explicit SimRuntime(SimNode& node) : node_(node) {}

  void set_hooks(SimRuntimeHooks& hooks) { hooks_ = &hooks; }
  // Before the protocol starts. The member outlives the runtime.
  void add(SimMember& member) { members_[(*member.binding)->participant] = &member; }

  Status post_pin(OpId op, const HoldId& hold) override;
  Status post_reserve(OpId op, const HoldId& hold) override;
  Status post_validate(OpId op, const HoldId& hold) override;
  Status post_activate(OpId op, const HoldId& hold) override;
  Status post_release(OpId op, const HoldId& hold) override;

 private:
  using Call = std::function<Completion(SimMember&)>;
  Status post(OpId op, RuntimeCall what, const HoldId& hold, double cost_us, const Call& call);
  Status take(OpId op, RuntimeCall what, const HoldId& hold);

  SimNode& node_;
  SimRuntimeHooks* hooks_ = nullptr;
  std::map<ParticipantId, SimMember*> members_;
};

}  // namespace crossdock
