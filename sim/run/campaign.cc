#include "sim/run/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/store/store_core.h"
#include "base/rng.h"

namespace crossdock {
namespace {

Duration us(uint64_t value) { return Duration::from_ns(static_cast<int64_t>(value) * 1000); }

template <size_t Count>
uint64_t one_of(Rng& rng, const std::array<uint64_t, Count>& values) {
  return values[rng.below(Count)];
}

// Draws one scenario. Sizes are such that a copy takes milliseconds, so faults meet work under way.
class ScenarioDraw {
 public:
  ScenarioDraw(const CampaignOptions& options, uint64_t number) : options_(options), rng_(trial_seed(options, number)) {
    scenario_.name = fmt::format("trial-{}-{}", options.seed, number);
    scenario_.shows = "A random scenario.";
  }

  Scenario draw() {
    draw_cluster();
    draw_schema();
    draw_works();
    draw_faults();
    return std::move(scenario_);
  }

 private:
  bool allows(WorkKind kind) const { return options_.works.empty() || options_.works.contains(kind); }

  void draw_cluster() {
    Cluster& cluster = scenario_.cluster;
    cluster.name = "drawn";
    cluster.source = "drawn from a seed";
    cluster.machine_count = static_cast<uint32_t>(2 + rng_.below(3));
    MachineSpec& machine = cluster.machine;
    machine.gpu_count = static_cast<uint32_t>(one_of<3>(rng_, {1, 2, 4}));
    machine.hbm_gbyte_per_s = 2000;
    if (rng_.chance(1, 2)) machine.nvlink_gbyte_per_s = 400;
    machine.nvlink_latency_us = 1;
    machine.pcie_gbyte_per_s = 50;
    machine.pcie_latency_us = 1;
    machine.dram_gbyte_per_s = 100;
    machine.ssd_read_gbyte_per_s = 12;
    machine.ssd_write_gbyte_per_s = 6;
    machine.ssd_latency_us = 20;
    const bool has_two_nics = machine.gpu_count > 1 && rng_.chance(1, 2);
    machine.nics.resize(has_two_nics ? 2 : 1);
    for (NicSpec& nic : machine.nics) nic.gbit_per_s = static_cast<double>(one_of<3>(rng_, {25, 100, 400}));
    for (uint32_t gpu = 0; gpu < machine.gpu_count; ++gpu) machine.nics[gpu % machine.nics.size()].gpus.push_back(gpu);
    cluster.fabric.machines_per_leaf = static_cast<uint32_t>(1 + rng_.below(2));
    cluster.fabric.oversubscription = static_cast<double>(1 + rng_.below(3));
    cluster.fabric.nic_latency_us = 2;
    cluster.fabric.leaf_latency_us = 1;
    cluster.costs.post_us = 2;
    cluster.costs.descriptor_ns = 50;
    cluster.costs.registration_us = 10;
    cluster.costs.registration_us_per_gbyte = 100;
    cluster.costs.message_us = 5;
    cluster.costs.queue_depth = static_cast<uint32_t>(one_of<3>(rng_, {1, 4, 64}));
    if (rng_.chance(1, 8)) scenario_.origin = us(uint64_t{1} << (20 + rng_.below(30)));
  }

  Component component(const char* name, uint64_t heads) {
    Component made;
    made.name = ComponentName(name);
    made.dtype = "int8";
    made.encoding = "plain";
    made.item_bytes = 1;
    made.head_count = heads;
    made.head_dim = 1 + rng_.below(4);
    return made;
  }

  void draw_schema() {
    const uint64_t layer_count = 1 + rng_.below(4);
    layer_count_ = layer_count;
    const uint64_t kind = rng_.below(4);
    LayerGroup group;
    group.layers = IntervalSet{Range(0, layer_count)};
    if (kind == 0) {  // one latent head, and rows that several tokens have in common
      group.components = {component("latent", 1), component("scale", 1)};
      group.components[1].tokens_per_row = row_tokens_ = 2;
    } else {
      const uint64_t heads = one_of<3>(rng_, {1, 2, 4});
      group.components = {component("key", heads), component("value", heads)};
    }
    if (kind == 3 && layer_count > 1) {  // hybrid: a window below, a state above
      LayerGroup upper = group;
      const uint64_t cut = 1 + rng_.below(layer_count - 1);
      group.layers = IntervalSet{Range(0, cut)};
      group.window_tokens = 4 + rng_.below(16);
      upper.layers = IntervalSet{Range(cut, layer_count)};
      if (rng_.chance(1, 2)) {
        Component state = component("state", group.components[0].head_count);
        state.tokens_per_row = std::nullopt;
        upper.components = {state};
      }
      scenario_.cache_schema.groups.push_back(upper);
    }
    scenario_.cache_schema.groups.push_back(group);
  }

  SideSpec side() {
    SideSpec made;
    made.parallel.tp = one_of<4>(rng_, {1, 1, 2, 4});
    made.parallel.pp = 1 + rng_.below(std::min<uint64_t>(layer_count_, 2));
    if (rng_.chance(1, 6)) made.parallel.dp = 2;
    if (rng_.chance(1, 6)) made.parallel.cp = 2;
    made.cp_block_tokens = row_tokens_ * (1 + rng_.below(4));
    made.page_tokens = row_tokens_ * (1 + rng_.below(4));
    made.order = rng_.chance(1, 2) ? PoolOrder::kNhd : PoolOrder::kHnd;
    made.region_per_layer = rng_.chance(1, 2);
    made.shuffle = rng_.below(3);
    made.spare_pages = rng_.below(3);
    const uint64_t gpus = scenario_.cluster.machine.gpu_count;
    const uint64_t capacity = gpus * scenario_.cluster.machine_count;
    ParallelSpec& spec = made.parallel;
    while (spec.participant_count() > std::min<uint64_t>(capacity, 6)) {
      uint64_t& size = spec.dp > 1 ? spec.dp : spec.cp > 1 ? spec.cp : spec.pp > 1 ? spec.pp : spec.tp;
      size /= 2;
    }
    const uint64_t first = rng_.below(capacity - spec.participant_count() + 1);
    made.machine = static_cast<uint32_t>(first / gpus);
    made.gpu = static_cast<uint32_t>(first % gpus);
    return made;
  }

  WorkSpec work(WorkKind kind, const std::string& name) {
    WorkSpec made;
    made.name = name;
    made.kind = kind;
    made.tokens = tokens_;
    if (kind != WorkKind::kRestore) made.source = side();
    if (kind != WorkKind::kUpload) made.target = side();
    made.checksum = rng_.chance(1, 2);
    made.coordinator_machine = static_cast<uint32_t>(rng_.below(scenario_.cluster.machine_count));
    made.timeout = us(one_of<3>(rng_, {20'000, 60'000, 200'000}));
    made.drain = us(one_of<3>(rng_, {1'000, 20'000, 60'000}));
    made.wait = us(30'000);
    made.lease = us(one_of<3>(rng_, {5'000, 50'000, 300'000}));
    made.window_operations = static_cast<uint32_t>(1 + rng_.below(4));
    made.batch_steps = 1 + rng_.below(8);
    made.object_order = kObjectOrders[rng_.below(kObjectOrders.size())].order;
    made.object_page_tokens = row_tokens_ * (1 + rng_.below(6));
    return made;
  }

  void draw_works() {
    tokens_ = row_tokens_ * (1 + rng_.below(12));
    scenario_.bytes_scale = uint64_t{1} << (10 + rng_.below(9));
    const bool with_store = allows(WorkKind::kUpload) && (!allows(WorkKind::kTransfer) || rng_.chance(45, 100));
    if (!with_store) {
      scenario_.works.push_back(work(WorkKind::kTransfer, "move"));
      if (allows(WorkKind::kTraffic) && rng_.chance(1, 4)) {
        WorkSpec traffic = work(WorkKind::kTraffic, "others");
        traffic.bytes = scenario_.bytes_scale == 0 ? 1 : 64;
        traffic.rounds = 1 + rng_.below(4);
        scenario_.works.push_back(traffic);
      }
      return;
    }
    StoreSpec store;
    store.name = "store";
    store.machine = static_cast<uint32_t>(rng_.below(scenario_.cluster.machine_count));
    store.chunk_bytes = static_cast<uint32_t>(one_of<3>(rng_, {8, 32, 4096}));
    scenario_.stores.push_back(store);
    WorkSpec upload = work(WorkKind::kUpload, "save");
    upload.store = "store";
    // A layout by the parts of a source that is split by tokens would have overlaps.
    upload.source->parallel.cp = 1;
    upload.whole_objects = rng_.chance(1, 3);
    if (rng_.chance(1, 8)) upload.ttl = us(rng_.below(100'000) + 1);
    scenario_.works.push_back(upload);
    if (!allows(WorkKind::kRestore)) return;
    WorkSpec restore = work(WorkKind::kRestore, "load");
    restore.store = "store";
    restore.snapshot = "save";
    restore.after = "save";
    restore.at = us(rng_.below(2'000));
    scenario_.works.push_back(restore);
  }

  std::string any_machine() { return fmt::format("h{}", rng_.below(scenario_.cluster.machine_count)); }
  std::string any_nic() {
    return fmt::format("{}/nic{}", any_machine(), rng_.below(scenario_.cluster.machine.nics.size()));
  }
  std::string any_peer() {
    const WorkSpec& work = scenario_.works[rng_.below(scenario_.works.size())];
    if (work.kind == WorkKind::kUpload) return work.name + " uploader";
    if (work.kind == WorkKind::kRestore) return work.name + " restorer";
    switch (rng_.below(5)) {
      case 0: return work.name + " coordinator";
      case 1:
      case 2: return work.name + "/source *";
      default: return work.name + "/target *";
    }
  }
  std::string any_event() {
    constexpr std::array<const char*, 13> kEvents = {
        "post copy",      "done copy",       "post send receipt", "post send export", "post send ready",
        "state draining", "state releasing", "post put",          "post commit",      "done commit",
        "post get",       "post activate",   "post revoke"};
    return kEvents[rng_.below(kEvents.size())];
  }
  std::string any_operation(FaultKind kind) {
    constexpr std::array<const char*, 15> kAll = {"copy",    "checksum", "revoke",   "pin",   "reserve",
                                                  "release", "activate", "validate", "begin", "put",
                                                  "commit",  "abort",    "lookup",   "get",   "release-lease"};
    switch (kind) {
      case FaultKind::kTornWrite:
      case FaultKind::kLateWrite: return rng_.chance(1, 2) ? "copy" : "put";
      case FaultKind::kBitFlip: return rng_.chance(1, 2) ? "copy" : "get";
      case FaultKind::kShortRead: return "get";
      case FaultKind::kMessageLost:
      case FaultKind::kMessageDelayed:
      case FaultKind::kMessageDoubled: return "send *";
      default: return kAll[rng_.below(kAll.size())];
    }
  }
  // A time within the first milliseconds, in which everything happens, or later.
  Duration any_time() { return us(rng_.below(one_of<4>(rng_, {200, 2'000, 20'000, 100'000}))); }

  FaultSpec fault(FaultKind kind) {
    FaultSpec made;
    made.kind = kind;
    if (is_operation_fault(kind)) {
      made.when = WhenSpec{rng_.chance(1, 2) ? "*" : any_peer(), "post " + any_operation(kind), 1 + rng_.below(6)};
      made.count = one_of<4>(rng_, {1, 1, 3, 1000});
      made.delay = us(rng_.below(one_of<2>(rng_, {500, 50'000})));
      made.percent = rng_.below(100);
      return made;
    }
    if (rng_.chance(1, 2))
      made.at = any_time();
    else
      made.when = WhenSpec{rng_.chance(1, 2) ? "*" : any_peer(), any_event(), 1 + rng_.below(4)};
    if (made.when && rng_.chance(1, 2)) made.after = us(rng_.below(3'000));
    made.lasts = rng_.chance(1, 4) ? Duration() : us(rng_.below(one_of<3>(rng_, {500, 10'000, 100'000})) + 1);
    switch (kind) {
      case FaultKind::kLinkOff: made.target = rng_.chance(1, 4) ? any_machine() : any_nic(); break;
      case FaultKind::kLinkSlow:
        made.target = any_nic();
        made.percent = 1 + rng_.below(50);
        break;
      case FaultKind::kStraggler:
        made.target = any_machine();
        made.percent = 1 + rng_.below(30);
        break;
      case FaultKind::kMachineOff:
      case FaultKind::kPartition: made.target = any_machine(); break;
      case FaultKind::kPeerCrash:
        made.target = any_peer();
        made.mode = std::array<const char*, 3>{"lost", "done", "late"}[rng_.below(3)];
        made.delay = us(rng_.below(30'000));
        break;
      case FaultKind::kPeerRestart:
      case FaultKind::kPagesEvicted: made.target = any_peer(); break;
      case FaultKind::kStoreCrash:
        made.target = "store";
        made.mode = rng_.chance(1, 2) ? std::string(kCrashPoints[rng_.below(6)]) : rng_.chance(1, 2) ? "keep" : "lose";
        break;
      case FaultKind::kCorruptChunk:
        made.target = "store";
        made.count = 1 + rng_.below(6);
        break;
      case FaultKind::kDiskFull: made.target = "store"; break;
      case FaultKind::kAbortRequest: made.target = scenario_.works[rng_.below(scenario_.works.size())].name; break;
      case FaultKind::kMessageStorm: made.count = 1 + rng_.below(200); break;
      case FaultKind::kQueueDepth:
        made.target = "*";
        made.count = 1;
        break;
      default: break;
    }
    return made;
  }

  bool fits(FaultKind kind) const {
    const bool has_store = !scenario_.stores.empty();
    switch (kind) {
      case FaultKind::kStoreCrash:
      case FaultKind::kCorruptChunk:
      case FaultKind::kDiskFull:
      case FaultKind::kShortRead: return has_store;
      case FaultKind::kPeerRestart:
      case FaultKind::kMessageLost:
      case FaultKind::kMessageDelayed:
      case FaultKind::kMessageDoubled:
      case FaultKind::kMessageStorm: return !has_store;
      case FaultKind::kPagesEvicted: return false;  // a broken promise of the framework, not a fault to survive
      case FaultKind::kBitFlip:                     // without checksums nobody can see it
        return std::all_of(scenario_.works.begin(), scenario_.works.end(),
                           [](const WorkSpec& work) { return work.checksum || work.kind != WorkKind::kTransfer; });
      default: return true;
    }
  }

  void draw_faults() {
    std::vector<FaultKind> kinds;
    for (int kind = 0; kind <= static_cast<int>(FaultKind::kMessageDoubled); ++kind) {
      const auto each = static_cast<FaultKind>(kind);
      if (!options_.faults.empty() && !options_.faults.contains(each)) continue;
      if (fits(each) && rng_.chance(1, 2)) kinds.push_back(each);  // the others are off in this trial
    }
    if (kinds.empty() || rng_.chance(1, 8)) return;
    const uint64_t count = 1 + rng_.below(4);
    for (uint64_t i = 0; i < count; ++i) scenario_.faults.push_back(fault(kinds[rng_.below(kinds.size())]));
    if (rng_.chance(2, 5)) aim(kinds);
  }

  // A fault at one of the places where outcomes are rare, if its kind is allowed.
  void aim(const std::vector<FaultKind>& kinds) {
    const WorkSpec& work = scenario_.works[scenario_.works.size() > 1 && rng_.chance(1, 2) ? 1 : 0];
    FaultSpec made;
    made.count = 1000;
    switch (work.kind) {
      case WorkKind::kTransfer: aim_at_transfer(made, work.name); break;
      case WorkKind::kUpload: aim_at_upload(made, work.name); break;
      case WorkKind::kRestore: aim_at_restore(made, work.name); break;
      case WorkKind::kTraffic: return;
    }
    if (std::find(kinds.begin(), kinds.end(), made.kind) != kinds.end()) scenario_.faults.push_back(made);
  }
  void aim_at_transfer(FaultSpec& made, const std::string& work) {
    switch (rng_.below(6)) {
      case 5:  // its word is on the way, and it lives anew
        made.kind = FaultKind::kPeerRestart;
        made.target = work + "/target *";
        made.when = WhenSpec{work + "/target *", "post send ready", 1};
        made.after = us(rng_.below(200));
        made.count = 1;
        if (rng_.chance(1, 2)) {
          FaultSpec late;
          late.kind = FaultKind::kMessageDelayed;
          late.when = made.when;
          late.delay = us(1 + rng_.below(5'000));
          scenario_.faults.push_back(late);
        }
        break;
      case 0:  // some are active already
        made.kind = FaultKind::kPeerCrash;
        made.target = work + "/target *0";
        made.when = WhenSpec{work + " coordinator", "state telling the decision", 1};
        made.count = 1;
        break;
      case 1:
        made.kind = FaultKind::kMessageLost;
        made.when = WhenSpec{work + " coordinator", "post send decision", 1 + rng_.below(4)};
        break;
      case 2:
        made.kind = FaultKind::kFailed;
        made.when = WhenSpec{work + "/target *", "post activate", 1 + rng_.below(3)};
        break;
      case 3:  // what is under way does not end in time
        made.kind = FaultKind::kSlowOperation;
        made.when = WhenSpec{work + "/*", rng_.chance(1, 2) ? "post copy" : "post release", 1 + rng_.below(2)};
        made.delay = us(500'000);
        break;
      default:
        made.kind = FaultKind::kFailed;
        made.when = WhenSpec{work + "/target *", "post revoke", 1 + rng_.below(3)};
        break;
    }
  }
  void aim_at_upload(FaultSpec& made, const std::string& work) {
    switch (rng_.below(4)) {
      case 0:
      case 1:
        made.kind = FaultKind::kReplyLost;
        made.when = WhenSpec{work + " uploader", "post commit", 1};
        break;
      case 2:
        made.kind = FaultKind::kPeerCrash;
        made.target = work + " uploader";
        made.when = WhenSpec{work + " uploader", rng_.chance(1, 2) ? "post put" : "post commit", 1 + rng_.below(3)};
        made.count = 1;
        break;
      default:  // nobody answers any more
        made.kind = FaultKind::kStoreCrash;
        made.target = "store";
        made.mode = rng_.chance(1, 2) ? "commit-published" : "commit-after-data";
        made.at = Duration();
        made.lasts = us(1'000'000);
        made.count = 1;
        break;
    }
  }
  void aim_at_restore(FaultSpec& made, const std::string& work) {
    if (rng_.chance(1, 2)) {
      made.kind = FaultKind::kPeerCrash;
      made.target = work + " restorer";
      made.when = WhenSpec{work + " restorer", rng_.chance(1, 2) ? "post get" : "done activate", 1 + rng_.below(2)};
      made.count = 1;
    } else {
      made.kind = FaultKind::kFailed;
      made.when = WhenSpec{work + " restorer", "post activate", 2};
    }
  }

  const CampaignOptions& options_;
  Rng rng_;
  Scenario scenario_;
  uint64_t layer_count_ = 1;
  uint64_t row_tokens_ = 1;
  uint64_t tokens_ = 1;
};

struct FaultGroup {
  std::string_view name;
  std::vector<FaultKind> kinds;
};

const std::vector<FaultGroup>& fault_groups() {
  static const std::vector<FaultGroup> groups = {
      {"link", {FaultKind::kLinkOff, FaultKind::kLinkSlow, FaultKind::kPartition}},
      {"host",
       {FaultKind::kMachineOff, FaultKind::kStraggler, FaultKind::kPeerCrash, FaultKind::kPeerRestart,
        FaultKind::kQueueDepth}},
      {"store", {FaultKind::kStoreCrash, FaultKind::kCorruptChunk, FaultKind::kDiskFull, FaultKind::kShortRead}},
      {"message",
       {FaultKind::kMessageLost, FaultKind::kMessageDelayed, FaultKind::kMessageDoubled, FaultKind::kMessageStorm}},
      {"operation",
       {FaultKind::kRefused, FaultKind::kFailed, FaultKind::kReplyLost, FaultKind::kTornWrite, FaultKind::kLateWrite,
        FaultKind::kSlowOperation, FaultKind::kBitFlip}},
  };
  return groups;
}

}  // namespace

uint64_t trial_seed(const CampaignOptions& options, uint64_t number) {
  uint64_t state = options.seed;
  state = splitmix64(state) ^ number;
  return splitmix64(state);
}

Scenario draw_scenario(const CampaignOptions& options, uint64_t number) { return ScenarioDraw(options, number).draw(); }

std::set<FaultKind> fault_kinds_named(std::string_view name) {
  for (const FaultGroup& group : fault_groups())
    if (group.name == name) return std::set<FaultKind>(group.kinds.begin(), group.kinds.end());
  for (int kind = 0; kind <= static_cast<int>(FaultKind::kMessageDoubled); ++kind)
    if (fault_kind_name(static_cast<FaultKind>(kind)) == name) return {static_cast<FaultKind>(kind)};
  return {};
}

std::optional<WorkKind> work_kind_named(std::string_view name) {
  if (name == "transfer") return WorkKind::kTransfer;
  if (name == "upload") return WorkKind::kUpload;
  if (name == "restore") return WorkKind::kRestore;
  if (name == "traffic") return WorkKind::kTraffic;
  return std::nullopt;
}

bool is_failure(const RunSummary& summary) { return !summary.error.empty() || !summary.violations.empty(); }

std::string failure_kind(const RunSummary& summary) {
  if (!summary.error.empty()) return "no run";
  return summary.violations.empty() ? "" : summary.violations.front().invariant;
}

}  // namespace crossdock
