// Scenario: one simulated run as data: what happens (works), what disturbs it (faults), and what is expected. The three
// are independent. Wire form: docs/formats/scenario.md; docs/simulation.md says how to write one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "executor/window.h"
#include "model/diagnostics.h"
#include "model/kv/cache_schema.h"
#include "model/kv/parallel_spec.h"
#include "model/kv/pool_binding.h"
#include "model/kv/store.h"
#include "planner/copy/steps.h"
#include "sim/scenario/cluster.h"
#include "sim/scenario/fault_kinds.h"

namespace crossdock {

// A parallel layout on some GPUs: participant i lies on GPU (gpu + i) % gpu_count of machine
// machine + (gpu + i) / gpu_count.
struct SideSpec {
  ParallelSpec parallel;
  uint64_t cp_block_tokens = 16;
  uint32_t machine = 0;
  uint32_t gpu = 0;
  uint64_t page_tokens = 16;
  AxisOrder order = AxisOrder::kNhd;
  bool region_per_layer = false;
  uint64_t shuffle = 0;  // seed of the pages' slots; 0: in order
  uint64_t spare_pages = 0;
};

enum class WorkKind { kTransfer, kUpload, kRestore, kTraffic };

struct WorkSpec {
  std::string name;
  WorkKind kind = WorkKind::kTransfer;
  Duration at;                    // after the start, or after the end of `after`
  std::string after;              // another work
  std::set<std::string> only_if;  // verdicts of `after` with which it starts at all; empty: any
  std::string snapshot;           // names its content
  uint64_t tokens = 0;
  std::optional<SideSpec> source;  // transfer, upload; traffic
  std::optional<SideSpec> target;  // transfer, restore; traffic
  std::string store;               // upload, restore
  ObjectOrder object_order = ObjectOrder::kPlhd;
  uint64_t object_page_tokens = 16;
  bool whole_objects = false;  // an object has all layers and heads, so several writers fill it together
  std::optional<Duration> ttl;
  Duration lease = Duration::from_s(1);
  uint32_t coordinator_machine = 0;  // also of the process that uploads or restores
  bool checksum = true;
  Duration timeout = Duration::from_s(2);
  Duration drain = Duration::from_s(1);
  Duration wait = Duration::from_ms(500);  // for the decision, for each participant's report, for a lost "done"
  // The library's own defaults: what is simulated is what ships.
  uint32_t window_operations = static_cast<uint32_t>(WindowLimits().operation_count_max);
  uint64_t window_bytes = WindowLimits().bytes_max;
  uint64_t batch_bytes = BatchLimits().bytes_max;
  uint64_t batch_steps = BatchLimits().step_count_max;
  uint64_t bytes = 0;   // traffic: of one flow; each place of the source to each of the target, in turn
  uint64_t rounds = 1;  // traffic
};

struct StoreSpec {
  std::string name;
  uint32_t machine = 0;
  uint32_t chunk_bytes = 4096;
  uint64_t capacity_bytes = UINT64_MAX;  // of bulk data
  uint64_t quota_bytes = UINT64_MAX;
};

// "the nth time that a peer's protocol does this": "post copy", "done copy", "state executing", "post send receipt".
struct WhenSpec {
  std::string peer = "*";  // '*' stands for any text
  std::string event;
  uint64_t nth = 1;
};

struct FaultSpec {
  FaultKind kind = FaultKind::kLinkOff;
  std::optional<Duration> at;    // after the start
  std::optional<WhenSpec> when;  // operation faults: the operation itself, and those that follow up to `count`
  Duration after;                // from there on
  std::string target;            // link, machine, peer, store, work; several between commas
  Duration lasts;                // 0: for good
  uint64_t percent = 100;        // of bandwidth; of the bytes of a torn or late write that land at first
  Duration delay;
  uint64_t count = 1;
  std::string mode;  // what becomes of a dead peer's operations: "lost", "done", "late"; of a store's
                     // unsynced data: "keep", "lose"; a crash point of the store
};

struct Scenario {
  std::string name;
  std::string shows;         // one sentence
  std::string cluster_name;  // a preset's file; empty: the document contains the cluster
  Cluster cluster;
  CacheSchema cache_schema;
  bool carries_bytes = true;  // real bytes beside the shadow; needed for stores
  uint64_t bytes_scale = 1;   // bytes on links and disks for each byte of content
  Duration origin;            // what clocks show at the start
  Duration linger;            // simulated time after the last work's end, before what is left is counted
  std::vector<StoreSpec> stores;
  std::vector<WorkSpec> works;
  std::vector<FaultSpec> faults;
  // The right verdicts of each work, and the invariants that are expected to be violated (because the framework breaks
  // its promise).
  std::map<std::string, std::set<std::string>> expected;
  std::set<std::string> expected_violations;
  Duration ends_within;  // all works have to end by then; 0: whenever their deadlines allow
};

// `load_cluster` gives the text of a cluster that is named.

std::optional<Scenario> read_scenario(std::string_view json,
                                      const std::function<std::optional<std::string>(const std::string&)>& load_cluster,
                                      const std::string& document, Diagnostics& diagnostics);
// Rules between its parts: names have to exist, machines and GPUs to be in the cluster, numbers to be in their ranges.
void check_scenario(const Scenario& scenario, Diagnostics& diagnostics);
// Canonical text; read_scenario() of it gives the same scenario.
std::string write_scenario(const Scenario& scenario);

}  // namespace crossdock
