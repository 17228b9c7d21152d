// Carries out the faults of the world: what each kind does to links, machines, processes, stores and works, and how it
// is undone. Faults of single operations are in sim/world/operation_faults.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/run/work_run.h"
#include "sim/scenario/scenario.h"
#include "sim/world/sim_world.h"

namespace crossdock {

class FaultActions {
 public:
  // All outlive it; `works` may grow.
  FaultActions(const Scenario& scenario, SimWorld& world, const std::vector<std::unique_ptr<WorkRun>>& works)
      : scenario_(scenario), world_(world), works_(works) {}

  // Happens now to each of its targets, and is undone after `lasts`.
  void happen(const FaultSpec& fault);
  // Ends a process; its work learns of it.
  void kill(SimNode& node, Fate fate, Duration delay);
  // Undoes what faults did to links and stores.
  void heal();

 private:
  struct Table;  // which of the following a kind does

  // `target` is one name, or empty where the kind has no target.
  void link_off(const FaultSpec& fault, const std::string& target);
  void link_slow(const FaultSpec& fault, const std::string& target);
  void machine_off(const FaultSpec& fault, const std::string& target);
  void partition(const FaultSpec& fault, const std::string& target);
  void straggler(const FaultSpec& fault, const std::string& target);
  void peer_crash(const FaultSpec& fault, const std::string& target);
  void peer_restart(const FaultSpec& fault, const std::string& target);
  void store_crash(const FaultSpec& fault, const std::string& target);
  void corrupt_chunk(const FaultSpec& fault, const std::string& target);
  void disk_full(const FaultSpec& fault, const std::string& target);
  void pages_evicted(const FaultSpec& fault, const std::string& target);
  void abort_request(const FaultSpec& fault, const std::string& target);
  void message_storm(const FaultSpec& fault, const std::string& target);
  void queue_depth(const FaultSpec& fault, const std::string& target);

  void undo_later(const FaultSpec& fault, std::function<void()> undo);
  void set_links(const std::vector<uint32_t>& links, bool on);
  void set_links_off(const FaultSpec& fault, const std::vector<uint32_t>& links);
  void set_factor(const std::string& target, double factor);
  void set_slowness(const std::string& machine, double slowness);
  std::vector<uint32_t> nics_of(const std::string& machine) const;
  std::vector<SimNode*> nodes_matching(const std::string& pattern) const;

  const Scenario& scenario_;
  SimWorld& world_;
  const std::vector<std::unique_ptr<WorkRun>>& works_;
  bool has_slowed_ = false;  // any link
};

}  // namespace crossdock
