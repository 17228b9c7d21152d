// One work of a scenario while it runs: its documents, participants and protocols, and how it ended.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/coordinator.h"
#include "executor/restore.h"
#include "executor/target.h"
#include "executor/upload.h"
#include "executor/writer.h"
#include "sim/report/run_report.h"
#include "sim/run/scenario_side.h"
#include "sim/world/sim_runtime.h"
#include "sim/world/sim_world.h"

namespace crossdock {

class WorkRun : private SimRuntimeHooks {
 public:
  WorkRun(SimWorld& world, const Scenario& scenario, const WorkSpec& spec,
          std::shared_ptr<const Valid<CacheSchema>> schema, uint64_t& next_epoch)
      : world_(world), scenario_(scenario), spec_(spec), schema_(std::move(schema)), next_epoch_(next_epoch) {}
  ~WorkRun() override = default;

  // kInvalidArgument when its documents do not fit together. `ended` is called once, when its last process has ended.
  Status start(std::function<void()> ended);
  // Asks it to abort. No effect once it is over, or when the process that would be asked is dead.
  virtual void request_abort() = 0;
  virtual void restart(const std::string& peer_pattern) { (void)peer_pattern; }
  // Of any work; a node that is not this work's is ignored.
  void process_died(const SimNode& node);

  const WorkSpec& spec() const { return spec_; }
  bool is_started() const { return is_started_; }
  bool is_over() const { return is_over_; }
  const WorkResult& result() const { return result_; }
  void skip(const std::string& verdict, const std::string& cause);
  // The longest time that it may take from its begin.
  Duration bound() const;
  // Of what it did, once it is over.
  virtual void check_end() = 0;
  // Of what a store has of it, once all works are over: everything, and right, or nothing.
  virtual void check_published() {}
  virtual void traffic(std::vector<TrafficCell>& cells) const { (void)cells; }
  std::vector<SimMember*> members() const;

 protected:
  // Makes documents, memory and processes; they run once it has returned.
  virtual Status prepare() = 0;
  virtual void conclude() = 0;  // fills in verdict, cause and bytes

  SideRequest side_request(Role role) const;
  Status make_side(Role role, std::unique_ptr<ScenarioSide>& side);
  // Starts a process that drives the protocol.
  SimNode& launch(const PeerId& peer, const Place& place, Protocol& protocol, const std::vector<SimMember*>& members,
                  SimStore* store);
  // Names of works differ, so it is used once; and equal seeds have equal names (I7).
  AttemptId attempt() const { return AttemptId(spec_.name + ", attempt 1"); }
  Place coordinator_place() const { return Place{spec_.coordinator_machine, PlaceKind::kDram, 0}; }
  // Whether no copy into its targets was repeated; empty: what lies in them did not come by copies.
  virtual std::optional<bool> copies_once() const { return std::nullopt; }
  virtual void took(const SimNode& node, const Message& message) { (void)node, (void)message; }
  // The node's protocol is in another state than before.
  virtual void entered_state(const SimNode& node) { (void)node; }
  void check_node(const SimNode& node, const std::vector<OpId>& lost);
  // `quarantined`: what the protocols of this member said that they could not give back.
  void check_pages(const SimMember& member, const std::vector<Remains>& quarantined);

  SimWorld& world_;
  const Scenario& scenario_;
  const WorkSpec& spec_;
  std::shared_ptr<const Valid<CacheSchema>> schema_;
  uint64_t& next_epoch_;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot_;
  std::unique_ptr<ScenarioSide> source_;
  std::unique_ptr<ScenarioSide> target_;
  std::vector<std::unique_ptr<SimMember>> earlier_members_;  // of processes that were started again
  WorkResult result_;

 private:
  // SimRuntimeHooks
  void activating(SimMember& member) override;
  void released(SimMember& member) override;
  void process_ended();

  std::function<void()> ended_;
  std::vector<std::unique_ptr<ProtocolObserver>> watchers_;
  std::set<const SimNode*> running_;
  bool is_started_ = false;
  bool is_over_ = false;
};

}  // namespace crossdock
