#include "sim/world/sim_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/scenario/event_name.h"
#include "sim/world/sim_messenger.h"
#include "sim/world/sim_runtime.h"
#include "sim/world/sim_store.h"
#include "sim/world/sim_transport.h"
#include "sim/world/sim_world.h"

namespace crossdock {
namespace {

constexpr uint64_t kLooksMax = 10000;

uint64_t seed_of(uint64_t seed, const PeerId& peer) {
  for (const char letter : peer.text()) {
    seed ^= static_cast<uint8_t>(letter);
    seed = splitmix64(seed);
  }
  return seed;
}

}  // namespace

SimNode::SimNode(SimWorld& world, PeerId peer, Place place, uint32_t track)
    : world_(world),
      peer_(std::move(peer)),
      place_(place),
      track_(track),
      rng_(seed_of(world.options().seed, peer_)),
      transport_(std::make_unique<SimTransport>(*this)),
      messenger_(std::make_unique<SimMessenger>(*this)),
      runtime_(std::make_unique<SimRuntime>(*this)),
      queue_depth_(world.cluster().costs.queue_depth) {}

SimNode::~SimNode() = default;

void SimNode::set_store(SimStore& store) { store_ = std::make_unique<SimStorePort>(*this, store); }

Ports SimNode::ports() { return Ports{this, transport_.get(), store_.get(), messenger_.get(), runtime_.get()}; }

TimePoint SimNode::now() const { return world_.now(); }

// Simulated time stands still while a protocol asks to be called again at once. Without a limit such a protocol would
// hang the run instead of failing it (I6).
void SimNode::watch_for_spinning(TimePoint deadline) {
  if (!ready_.empty() || deadline > now() || looked_at_ != now()) look_count_ = 0;
  looked_at_ = now();
  if (++look_count_ < kLooksMax) return;
  world_.checks().check(Invariant::kI6, now(),
                        fmt::format("'{}' looks again and again although nothing happens", peer_.text()));
  world_.stop_spinning(*this);
  // The killer ends this actor in the same instant; its stack is unwound from here (R7).
  Gate never;
  (void)world_.engine().wait(never, TimePoint::never());  // until it is ended
}

size_t SimNode::wait(std::span<Completion> out, TimePoint deadline) {
  watch_for_spinning(deadline);
  while (ready_.empty())
    // Looked at once more after the deadline: a completion of the same instant counts (R8).
    if (!world_.engine().wait(gate_, deadline) && ready_.empty()) return 0;
  const size_t count = std::min(out.size(), ready_.size());
  std::move(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(count), out.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

// Every port posts through this. A refusal leaves no trace of the operation (R1); after an OK exactly one complete()
// has to follow, which the checks of I6 see.
Result<OperationEffects> SimNode::accept(OpId op, const std::string& name, bool takes_slot) {
  // Counted before the queue's depth is looked at: a post that is refused for want of a slot counts too.
  const std::vector<const FaultSpec*> faults = world_.desk().meet(peer_.text(), post_event(name), now());
  const OperationEffects effects = effects_of(faults);
  if (effects.is_refused) {
    world_.trace().instant(world_.world_track(), fmt::format("{} of {} refused", name, peer_.text()), "fault", now());
    return Status(Code::kResourceExhausted, "refused");
  }
  if (takes_slot && slots_in_use_ >= queue_depth_)
    return Status(Code::kResourceExhausted, fmt::format("{} operations are under way", slots_in_use_));
  const bool is_new = under_way_.try_emplace(op, Operation{name, now(), takes_slot}).second;
  world_.checks().check(Invariant::kI6, now(),
                        is_new ? "" : fmt::format("'{}' posts operation {} twice", peer_.text(), op.value()));
  if (takes_slot) ++slots_in_use_;
  for (const FaultSpec* fault : faults)
    world_.trace().instant(world_.world_track(),
                           fmt::format("{} {} of {}", fault_kind_name(fault->kind), name, peer_.text()), "fault",
                           now());
  return effects;
}

void SimNode::complete(OpId op, Completion completion) {
  // A dead process takes no completions; its operations go on in the world as its Fate says.
  if (is_dead_) return;
  const auto found = under_way_.find(op);
  const bool is_known = found != under_way_.end();
  world_.checks().check(
      Invariant::kI6, now(),
      is_known ? ""
               : fmt::format("operation {} of '{}' completes although it is not under way", op.value(), peer_.text()));
  if (!is_known) return;
  const Operation operation = std::move(found->second);
  under_way_.erase(found);
  if (operation.takes_slot) --slots_in_use_;
  if (operation.name != "receive")
    world_.trace().slice(track_, operation.name, "operation", operation.begin, now(),
                         completion.status.ok() ? TraceArgs{} : TraceArgs{{"failed", completion.status.message()}});
  world_.event(*this, done_event(operation.name));
  completion.op = op;
  ready_.push_back(std::move(completion));
  gate_.open();
}

void SimNode::complete_after(Duration delay, OpId op, Completion completion) {
  world_.engine().after(delay, [this, op, completion = std::move(completion)] { complete(op, completion); });
}

void SimNode::wake() {
  ready_.push_back(Completion{OpId(0), Status(), std::monostate(), true});
  gate_.open();
}

TimePoint SimNode::next_start(double cost_us) {
  // A process posts one operation after another: that is the only computing time that is modelled.
  busy_until_ = std::max(busy_until_, now()) + Duration::from_ns(static_cast<int64_t>(cost_us * slowness_ * 1e3));
  return busy_until_;
}

std::vector<std::pair<OpId, std::string>> SimNode::under_way() const {
  std::vector<std::pair<OpId, std::string>> list;
  for (const auto& [op, operation] : under_way_)
    if (operation.name != "receive") list.emplace_back(op, operation.name);
  return list;
}

void SimNode::die(Fate fate, Duration delay) {
  is_dead_ = true;
  transport_->poster_died(fate, delay);
}

}  // namespace crossdock
