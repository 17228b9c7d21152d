#include "sim/run/scenario_draw.h"

#include <algorithm>
#include <string>

#include "sim/run/draw.h"

namespace crossdock {
namespace {

// Dimensions are small and bytes_scale is large: contents of a few hundred bytes can be checked byte by byte and still
// load links as megabytes would.
// Sizes are such that a copy takes milliseconds, so faults meet work under way.
class ScenarioDraw {
 public:
  ScenarioDraw(const std::set<WorkKind>& kinds, Rng& rng, Scenario& scenario)
      : kinds_(kinds), rng_(rng), scenario_(scenario) {}

  void draw() {
    draw_cluster();
    draw_schema();
    draw_works();
  }

 private:
  bool allows(WorkKind kind) const { return kinds_.empty() || kinds_.contains(kind); }

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
    // A clock far from zero, for sums of times that overflow or lose precision.
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
      group.live = LiveTokens::window(4 + rng_.below(16));
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
    // Multiples of a row, which the rules ask of blocks and pages.
    made.cp_block_tokens = row_tokens_ * (1 + rng_.below(4));
    made.page_tokens = row_tokens_ * (1 + rng_.below(4));
    made.order = rng_.chance(1, 2) ? AxisOrder::kNhd : AxisOrder::kHnd;
    made.region_per_layer = rng_.chance(1, 2);
    made.shuffle = rng_.below(3);
    made.spare_pages = rng_.below(3);
    const uint64_t gpus = scenario_.cluster.machine.gpu_count;
    const uint64_t capacity = gpus * scenario_.cluster.machine_count;
    ParallelSpec& spec = made.parallel;
    // Ends: each round halves a size that is above 1, and with all at 1 there is one participant. Every size drawn is a
    // power of two.
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
    // Some expire while they are read.
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

  const std::set<WorkKind>& kinds_;
  Rng& rng_;
  Scenario& scenario_;
  uint64_t layer_count_ = 1;
  uint64_t row_tokens_ = 1;
  uint64_t tokens_ = 1;
};

}  // namespace

void draw_works(const std::set<WorkKind>& kinds, Rng& rng, Scenario& scenario) {
  ScenarioDraw(kinds, rng, scenario).draw();
}

}  // namespace crossdock
