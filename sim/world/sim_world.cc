#include "sim/world/sim_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/world/sim_messenger.h"
#include "sim/world/sim_store.h"
#include "sim/world/sim_transport.h"

namespace crossdock {
namespace {

constexpr size_t kMessagesKept = 256;

}  // namespace

SimWorld::SimWorld(const Cluster& cluster, const std::vector<FaultSpec>& faults, const SimWorldOptions& options)
    : cluster_(cluster),
      links_(cluster),
      options_(options),
      engine_(links_, options.origin),
      trace_(options.keeps_trace),
      desk_(faults, options.origin),
      rng_(options.seed),
      memory_(checks_, [this] { return engine_.now(); }) {}

SimWorld::~SimWorld() = default;

SimNode& SimWorld::join(const PeerId& peer, const Place& place) {
  auto node =
      std::make_unique<SimNode>(*this, peer, place, trace_.track(fmt::format("h{}", place.machine), peer.text()));
  SimNode& joined = *node;
  CHECK(nodes_.emplace(peer, std::move(node)).second);
  return joined;
}

SimNode* SimWorld::find(const PeerId& peer) {
  const auto found = nodes_.find(peer);
  return found == nodes_.end() ? nullptr : found->second.get();
}

void SimWorld::start(SimNode& node, std::function<void()> body) {
  node.set_actor(engine_.spawn(node.peer().text(), std::move(body)));
}

// First the node, then its actor: while the stack is unwound no completion reaches it any more.
void SimWorld::kill(SimNode& node, Fate fate, Duration delay) {
  if (node.is_dead()) return;
  node.die(fate, delay);
  engine_.kill(node.actor());
}

void SimWorld::stop_spinning(SimNode& node) {
  // Later in the same instant, because an actor cannot kill itself.
  engine_.after(Duration(), [this, &node] { killer_(node); });
}

void SimWorld::retire(const PeerId& peer) {
  const auto found = nodes_.find(peer);
  CHECK(found != nodes_.end());
  // Kept: copies that it posted may be under way, and they point to their node.
  retired_.push_back(std::move(found->second));
  nodes_.erase(found);
}

SimStore& SimWorld::add_store(const StoreSpec& spec) {
  auto store = std::make_unique<SimStore>(*this, spec);
  SimStore& added = *store;
  CHECK(stores_.emplace(spec.name, std::move(store)).second);
  return added;
}

SimStore* SimWorld::find_store(const std::string& name) {
  const auto found = stores_.find(name);
  return found == stores_.end() ? nullptr : found->second.get();
}

bool SimWorld::is_reachable(const Place& from, const Place& to) const {
  for (const uint32_t link : links_.path(from, to))
    if (!engine_.is_link_on(link)) return false;
  return true;
}

// At least 1 ns, so that an answer never comes in the instant of its question.
Duration SimWorld::latency(const Place& from, const Place& to) const {
  return Duration::from_ns(static_cast<int64_t>(links_.latency_s(from, to) * 1e9) + 1);
}

// R6: the grant ends first, so no copy can begin, and then those that are flowing are stopped; done only when the last
// of them has ended. What lands later by a fault meets a grant that is revoked (SimMemory::land).
void SimWorld::revoke(const GrantId& grant, std::function<void(Status)> done) {
  const Status revoked = memory_.revoke(grant);
  if (!revoked.ok()) return done(revoked);
  stop_copies([&grant](const SimTransport::Copy& copy) { return copy.grant == grant; }, false,
              [done = std::move(done)](const auto&) { done(Status()); });
}

void SimWorld::interrupt_reads(SimMember& member, std::function<void()> then) {
  stop_copies(
      [&](const SimTransport::Copy& copy) {
        const std::vector<RegionKey>& sources = copy.steps.work().source_regions;
        return !sources.empty() && memory_.owner(sources.front()) == &member;
      },
      true,
      [then = std::move(then)](const auto& paused) {
        then();
        for (const auto& [transport, copy] : paused) transport->begin(copy);  // some may have been revoked meanwhile
      });
}

void SimWorld::stop_copies(const std::function<bool(const SimTransport::Copy&)>& concerns, bool pauses,
                           StoppedCopies done) {
  std::vector<std::pair<SimTransport*, SimTransport::CopyPointer>> concerned;
  for_each_flowing([&](SimTransport& transport, const SimTransport::CopyPointer& copy) {
    if (concerns(*copy)) concerned.emplace_back(&transport, copy);
  });
  if (concerned.empty()) return done({});
  const auto left = std::make_shared<size_t>(concerned.size());
  const auto all = std::make_shared<decltype(concerned)>(concerned);
  const auto finish = std::make_shared<StoppedCopies>(std::move(done));
  for (const auto& [transport, copy] : concerned)
    // The number of copies is fixed before the first stop, so `done` is called once whatever order they end in.
    transport->stop(copy, pauses ? SimTransport::Stop::kPause : SimTransport::Stop::kRevoke, [left, all, finish] {
      if (--*left == 0) (*finish)(*all);
    });
}

FlowId SimWorld::start_flow(const Place& from, const Place& to, uint64_t content_bytes,
                            std::function<void(const FlowResult&)> done) {
  const uint64_t bytes = wire_bytes(content_bytes);
  if (!options_.keeps_trace) return engine_.start(from, to, bytes, 0, std::move(done));
  const size_t number = flows_.size();
  flows_.push_back(FlowRecord{now(), TimePoint::never(), 0, links_.path(from, to)});
  return engine_.start(from, to, bytes, 0, [this, number, done = std::move(done)](const FlowResult& result) {
    flows_[number].end = now();
    flows_[number].bytes = static_cast<double>(result.moved_bytes);
    done(result);
  });
}

void SimWorld::note_message(const PeerId& to, const Message& message) {
  if (messages_.size() == kMessagesKept) messages_.pop_front();
  messages_.emplace_back(to, message);
}

void SimWorld::storm(uint64_t count) {
  if (messages_.empty()) return;
  for (uint64_t i = 0; i < count; ++i) {
    // Old messages, also of works that are over: receivers tell them by operation and generation.
    const auto& [to, message] = messages_[rng_.below(messages_.size())];
    const auto delay = static_cast<int64_t>(rng_.below(1'000'000));
    engine_.after(Duration::from_ns(delay), [this, peer = to, again = message] {
      if (SimNode* const node = find(peer); node != nullptr && !node->is_dead()) node->messenger().deliver(again);
    });
  }
}

uint64_t SimWorld::copies_of(const SimMember& member) const {
  uint64_t count = 0;
  for_each_flowing([&](SimTransport&, const SimTransport::CopyPointer& copy) {
    const CopyWork& work = copy->steps.work();
    const CopyStep& first = copy->steps.steps().front();
    const RegionKey& target = work.target_regions[first.target_region];
    if (memory_.owner(work.source_regions[first.source_region]) == &member ||
        (memory_.owner(target) == &member && memory_.is_live(copy->grant)))
      ++count;
  });
  return count;
}

void SimWorld::event(SimNode& node, const std::string& event) {
  checks_.set_event(++event_count_);
  trace_.set_event(event_count_);
  for (const FaultSpec* fault : desk_.triggered_by(node.peer().text(), event)) trigger(*fault);
}

void SimWorld::trigger(const FaultSpec& fault) {
  // Never inside of the event that triggers it: a fault must not destroy what its caller still uses.
  engine_.after(fault.after, [this, &fault] {
    trace_.instant(world_track(), fmt::format("{} {}", fault_kind_name(fault.kind), fault.target), "fault", now());
    fault_action_(fault);
  });
}

}  // namespace crossdock
