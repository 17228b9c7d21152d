#include "sim/run/fault_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "sim/scenario/name_pattern.h"
#include "sim/world/sim_store.h"

namespace crossdock {
namespace {

// Faults of one link or machine do not add up: the last one counts, and the end of the first one restores the full
// rate, or switches the link on. So a scenario with overlapping faults has less disturbance than it lists, and never
// one that stays.

constexpr Duration kStoreDown = Duration::from_ms(10);  // after a crash that does not say for how long

double factor_of(const FaultSpec& fault) { return static_cast<double>(std::max<uint64_t>(fault.percent, 1)) / 100; }

}  // namespace

struct FaultActions::Table {
  struct Row {
    FaultKind kind;
    void (FaultActions::*act)(const FaultSpec& fault, const std::string& target);
  };
  static constexpr auto kRows = std::to_array<Row>({
      {FaultKind::kLinkOff, &FaultActions::link_off},
      {FaultKind::kLinkSlow, &FaultActions::link_slow},
      {FaultKind::kMachineOff, &FaultActions::machine_off},
      {FaultKind::kPartition, &FaultActions::partition},
      {FaultKind::kStraggler, &FaultActions::straggler},
      {FaultKind::kPeerCrash, &FaultActions::peer_crash},
      {FaultKind::kPeerRestart, &FaultActions::peer_restart},
      {FaultKind::kStoreCrash, &FaultActions::store_crash},
      {FaultKind::kCorruptChunk, &FaultActions::corrupt_chunk},
      {FaultKind::kDiskFull, &FaultActions::disk_full},
      {FaultKind::kPagesEvicted, &FaultActions::pages_evicted},
      {FaultKind::kAbortRequest, &FaultActions::abort_request},
      {FaultKind::kMessageStorm, &FaultActions::message_storm},
      {FaultKind::kQueueDepth, &FaultActions::queue_depth},
  });
  static_assert(has_every_fault_kind(kRows, FaultScope::kWorld), "a kind of fault of the world has no action");
};

void FaultActions::happen(const FaultSpec& fault) {
  for (const Table::Row& row : Table::kRows) {
    if (row.kind != fault.kind) continue;
    if (fault_kind_row(fault.kind).target == FaultTarget::kNone) return (this->*row.act)(fault, "");
    for (const std::string& target : comma_separated(fault.target)) (this->*row.act)(fault, target);
  }
}

void FaultActions::undo_later(const FaultSpec& fault, std::function<void()> undo) {
  if (fault.lasts > Duration()) world_.engine().after(fault.lasts, std::move(undo));
}

// After the last work, so that the checks at the end find stores that answer and flows that end. What is left then is
// not due to a fault.
void FaultActions::heal() {
  for (uint32_t link = 0; link < world_.links().links().size(); ++link) {
    if (!world_.engine().is_link_on(link)) world_.engine().set_link_on(link, true);
    if (has_slowed_) world_.engine().set_link_factor(link, 1);
  }
  for (const auto& [name, store] : world_.stores()) {
    store->disarm();
    store->reopen();
  }
}

// ---- links

void FaultActions::set_links(const std::vector<uint32_t>& links, bool on) {
  for (const uint32_t link : links) world_.engine().set_link_on(link, on);
}

void FaultActions::set_links_off(const FaultSpec& fault, const std::vector<uint32_t>& links) {
  set_links(links, false);
  undo_later(fault, [this, links] { set_links(links, true); });
}

void FaultActions::link_off(const FaultSpec& fault, const std::string& target) {
  set_links_off(fault, world_.links().named(target));
}

// Network interfaces only: what is inside of a machine goes on.
void FaultActions::partition(const FaultSpec& fault, const std::string& target) {
  set_links_off(fault, nics_of(target));
}

std::vector<uint32_t> FaultActions::nics_of(const std::string& name) const {
  std::vector<uint32_t> links;
  for (size_t i = 0; i < scenario_.cluster.machine.nics.size(); ++i)
    for (const uint32_t link : world_.links().named(fmt::format("{}/nic{}", name, i))) links.push_back(link);
  return links.empty() ? world_.links().named(name) : links;  // a leaf
}

void FaultActions::set_factor(const std::string& target, double factor) {
  for (const uint32_t link : world_.links().named(target)) world_.engine().set_link_factor(link, factor);
}

void FaultActions::link_slow(const FaultSpec& fault, const std::string& target) {
  has_slowed_ = true;
  set_factor(target, factor_of(fault));
  undo_later(fault, [this, target] { set_factor(target, 1); });
}

// ---- machines

void FaultActions::straggler(const FaultSpec& fault, const std::string& target) {
  has_slowed_ = true;
  set_factor(target, factor_of(fault));
  set_slowness(target, 1 / factor_of(fault));
  undo_later(fault, [this, target] {
    set_factor(target, 1);
    set_slowness(target, 1);
  });
}

void FaultActions::set_slowness(const std::string& machine, double slowness) {
  for (const auto& [peer, node] : world_.nodes())
    if (world_.links().machine(machine) == node->place().machine) node->set_slowness(slowness);
}

void FaultActions::machine_off(const FaultSpec& fault, const std::string& target) {
  const std::vector<uint32_t> links = world_.links().named(target);
  const std::optional<uint32_t> number = world_.links().machine(target);
  // Links first: what the dying processes have under way fails, and nothing new begins.
  set_links(links, false);
  // Collected before they are killed, because a work that learns of a death may join or retire nodes.
  std::vector<SimNode*> nodes;
  for (const auto& [peer, node] : world_.nodes())
    if (node->place().machine == number) nodes.push_back(node.get());
  for (SimNode* node : nodes) kill(*node, Fate::kLost, Duration());
  std::vector<SimStore*> stores;
  for (const auto& [name, store] : world_.stores())
    if (store->place().machine == number) stores.push_back(store.get());
  // With its power a machine loses what is not durable.
  for (SimStore* store : stores) store->crash(true);
  undo_later(fault, [this, links, stores] {
    set_links(links, true);
    for (SimStore* store : stores) store->reopen();
  });
}

// ---- processes

std::vector<SimNode*> FaultActions::nodes_matching(const std::string& pattern) const {
  std::vector<SimNode*> nodes;
  for (const auto& [peer, node] : world_.nodes())
    if (matches_pattern(pattern, peer.text())) nodes.push_back(node.get());
  return nodes;
}

// The world first and the works after it, which may end with this process and look at its state.
void FaultActions::kill(SimNode& node, Fate fate, Duration delay) {
  if (node.is_dead()) return;
  world_.kill(node, fate, delay);
  for (const auto& each : works_) each->process_died(node);
}

void FaultActions::peer_crash(const FaultSpec& fault, const std::string& target) {
  const Fate fate = fault.mode == "done" ? Fate::kDone : fault.mode == "late" ? Fate::kLate : Fate::kLost;
  for (SimNode* node : nodes_matching(target)) kill(*node, fate, fault.delay);
}

void FaultActions::peer_restart(const FaultSpec&, const std::string& target) {
  for (const auto& each : works_)
    if (each->is_started() && !each->is_over()) each->restart(target);
}

void FaultActions::queue_depth(const FaultSpec& fault, const std::string& target) {
  for (SimNode* node : nodes_matching(target)) node->set_queue_depth(fault.count);
}

void FaultActions::pages_evicted(const FaultSpec&, const std::string& target) {
  for (const auto& each : works_)
    for (SimMember* member : each->members())
      if (member->is_held && member->role == Role::kSource && matches_pattern(target, member->name))
        world_.interrupt_reads(*member, [this, member] { world_.memory().overwrite(*member); });
}

void FaultActions::message_storm(const FaultSpec& fault, const std::string&) { world_.storm(fault.count); }

// ---- stores

void FaultActions::store_crash(const FaultSpec& fault, const std::string& target) {
  SimStore* const store = world_.find_store(target);
  const Duration down = fault.lasts > Duration() ? fault.lasts : kStoreDown;
  if (std::find(kCrashPoints.begin(), kCrashPoints.end(), fault.mode) != kCrashPoints.end())
    // It opens again after `down`, counted from the moment at which it comes to the point.
    return store->arm(fault.mode, true, down);
  store->crash(fault.mode != "keep");
  world_.engine().after(down, [store] { store->reopen(); });
}

void FaultActions::corrupt_chunk(const FaultSpec& fault, const std::string& target) {
  world_.find_store(target)->disk().corrupt_chunk(fault.count - 1);
}

void FaultActions::disk_full(const FaultSpec& fault, const std::string& target) {
  SimDisk& disk = world_.find_store(target)->disk();
  const auto spec = std::find_if(scenario_.stores.begin(), scenario_.stores.end(),
                                 [&](const StoreSpec& each) { return each.name == target; });
  CHECK(spec != scenario_.stores.end());
  // Nothing more fits; what is stored stays readable.
  disk.set_capacity(disk.used_bytes());
  undo_later(fault, [&disk, capacity = spec->capacity_bytes] { disk.set_capacity(capacity); });
}

// ---- works

void FaultActions::abort_request(const FaultSpec&, const std::string& target) {
  for (const auto& each : works_)
    if (each->spec().name == target && each->is_started()) return each->request_abort();
}

}  // namespace crossdock
