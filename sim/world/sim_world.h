// The simulated world: participants on places of a cluster, with the four ports and a runtime, driven by the same
// drive() and protocols as real backends. scenario_run.h puts works on it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "executor/protocol.h"
#include "sim/scenario/cluster_links.h"
#include "sim/scenario/scenario.h"
#include "sim/world/checks.h"
#include "sim/world/engine.h"
#include "sim/world/fault_desk.h"
#include "sim/world/sim_memory.h"
#include "sim/world/sim_node.h"
#include "sim/world/sim_transport.h"
#include "sim/world/trace_log.h"

namespace crossdock {

class SimStore;

struct SimWorldOptions {
  uint64_t bytes_scale = 1;  // bytes on links for each byte of content
  bool carries_bytes = true;
  bool keeps_trace = false;
  bool reuses_epochs = false;
  uint64_t seed = 1;
  TimePoint origin;
};

class SimWorld {
 public:
  SimWorld(const Cluster& cluster, const std::vector<FaultSpec>& faults, const SimWorldOptions& options);
  ~SimWorld();

  SimEngine& engine() { return engine_; }
  const ClusterLinks& links() const { return links_; }
  const Cluster& cluster() const { return cluster_; }
  const SimWorldOptions& options() const { return options_; }
  SimMemory& memory() { return memory_; }
  Checks& checks() { return checks_; }
  TraceLog& trace() { return trace_; }
  FaultDesk& desk() { return desk_; }
  Rng& rng() { return rng_; }
  TimePoint now() const { return engine_.now(); }

  SimNode& join(const PeerId& peer, const Place& place);
  SimNode* find(const PeerId& peer);
  const std::map<PeerId, std::unique_ptr<SimNode>>& nodes() const { return nodes_; }
  // Runs `body` as the node's process.
  // At this instant, after the caller's turn.
  void start(SimNode& node, std::function<void()> body);
  // Nothing when it is dead. `delay` is of Fate::kLate.
  void kill(SimNode& node, Fate fate, Duration delay);
  // Ends a node whose protocol would go on at one instant for ever.
  void stop_spinning(SimNode& node);
  // The node has died or ended, and another with its name may join.
  void retire(const PeerId& peer);

  SimStore& add_store(const StoreSpec& spec);
  SimStore* find_store(const std::string& name);
  const std::map<std::string, std::unique_ptr<SimStore>>& stores() const { return stores_; }

  // Whether a message can pass now, and how long it takes.
  bool is_reachable(const Place& from, const Place& to) const;
  // One way, without the time of its bytes.
  Duration latency(const Place& from, const Place& to) const;
  // Ends a grant; `done` is called once nothing that was under way to it can land any more.
  void revoke(const GrantId& grant, std::function<void(Status)> done);
  // Ends the copies under way that read from the member, with what they have moved; then calls `then`, then goes on
  // with the rest of each.
  void interrupt_reads(SimMember& member, std::function<void()> then);

  // Starts a flow, and remembers it for pictures where a trace is kept.
  struct FlowRecord {
    TimePoint begin;
    TimePoint end;
    double bytes;
    std::vector<uint32_t> links;
  };
  FlowId start_flow(const Place& from, const Place& to, uint64_t content_bytes,
                    std::function<void(const FlowResult&)> done);
  const std::vector<FlowRecord>& flows() const { return flows_; }

  // Recent messages, which a storm sends again.
  void note_message(const PeerId& to, const Message& message);
  void storm(uint64_t count);

  // Operations under way that read from the member, or that can still write into it.
  uint64_t copies_of(const SimMember& member) const;

  // The number of protocol events so far, and an event of a peer's protocol: faults may wait for it.
  void event(SimNode& node, const std::string& event);
  uint64_t event_count() const { return event_count_; }
  // How a process is killed, and how a fault of the world is carried out: set by the run.
  void set_killer(std::function<void(SimNode&)> killer) { killer_ = std::move(killer); }
  void set_fault_action(std::function<void(const FaultSpec&)> action) { fault_action_ = std::move(action); }
  void trigger(const FaultSpec& fault);

  uint32_t world_track() { return trace_.track("faults", "faults"); }
  uint64_t wire_bytes(uint64_t content_bytes) const { return content_bytes * options_.bytes_scale; }

 private:
  using StoppedCopies = std::function<void(const std::vector<std::pair<SimTransport*, SimTransport::CopyPointer>>&)>;
  // Calls visit(transport, copy) for each copy of any node that is on its way.
  template <class Visit>
  void for_each_flowing(Visit visit) const {
    const auto look = [&](SimNode& node) {
      for (const auto& [op, copy] : node.transport().copies_)
        if (copy->is_flowing) visit(node.transport(), copy);
    };
    for (const auto& [peer, node] : nodes_) look(*node);
    for (const auto& node : retired_) look(*node);
  }
  void stop_copies(const std::function<bool(const SimTransport::Copy&)>& concerns, bool pauses, StoppedCopies done);

  Cluster cluster_;
  ClusterLinks links_;
  SimWorldOptions options_;
  SimEngine engine_;
  Checks checks_;
  TraceLog trace_;
  FaultDesk desk_;
  Rng rng_;
  SimMemory memory_;
  std::map<PeerId, std::unique_ptr<SimNode>> nodes_;
  std::vector<std::unique_ptr<SimNode>> retired_;
  std::map<std::string, std::unique_ptr<SimStore>> stores_;
  std::vector<FlowRecord> flows_;
  std::deque<std::pair<PeerId, Message>> messages_;
  std::function<void(const FaultSpec&)> fault_action_;
  std::function<void(SimNode&)> killer_;
  uint64_t event_count_ = 0;
};

}  // namespace crossdock
