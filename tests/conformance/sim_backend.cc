#include "tests/conformance/sim_backend.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "executor/transfer_job.h"
#include "sim/world/sim_messenger.h"
#include "sim/world/sim_runtime.h"
#include "sim/world/sim_store.h"
#include "sim/world/sim_world.h"

namespace crossdock::testing {
namespace {

constexpr TimePoint kStart = TimePoint::from_ns(1'700'000'000'000'000'000);
constexpr Duration kPause = Duration::from_ns(1000);
constexpr Duration kSettling = Duration::from_s(1);  // longer than anything of a backend stays under way

constexpr uint32_t kMachineCount = 2;
constexpr uint32_t kGpuCount = 2;

// Two machines with two GPUs and two NICs each.
Cluster small_cluster() {
  Cluster cluster;
  cluster.name = "small";
  cluster.machine_count = kMachineCount;
  MachineSpec& machine = cluster.machine;
  machine.gpu_count = kGpuCount;
  machine.hbm_gbyte_per_s = 3000;
  machine.nvlink_gbyte_per_s = 400;
  machine.pcie_gbyte_per_s = 50;
  machine.dram_gbyte_per_s = 200;
  machine.ssd_read_gbyte_per_s = 10;
  machine.ssd_write_gbyte_per_s = 5;
  machine.nvlink_latency_us = 1;
  machine.pcie_latency_us = 1;
  machine.ssd_latency_us = 50;
  machine.nics = {NicSpec{400, {0}}, NicSpec{400, {1}}};
  cluster.fabric.machines_per_leaf = kMachineCount;
  cluster.fabric.nic_latency_us = 2;
  cluster.costs = CostSpec{.post_us = 1, .descriptor_ns = 10, .message_us = 2};
  return cluster;
}

// Different ones in turn.
Place place_of(size_t number) {
  return Place{static_cast<uint32_t>(number) % kMachineCount, PlaceKind::kGpu,
               static_cast<uint32_t>(number / kMachineCount) % kGpuCount};
}

void wait_until(SimEngine& engine, TimePoint time) {
  Gate never;
  while (engine.wait(never, time)) continue;
}

class SimBackend : public Backend {
 public:
  SimBackend(SimWorld& world, const BackendOptions& options, const std::string& store_name)
      : world_(world), options_(options), store_(add_store(store_name)) {}
  ~SimBackend() override {
    for (const PeerId& name : names_) world_.retire(name);
    for (const auto& [key, member] : members_) world_.memory().remove_region(key);
    for (const auto& member : pages_)
      for (const RegionKey& key : region_keys(**member->binding)) world_.memory().remove_region(key);
    for (const Violation& violation : world_.checks().violations())
      ADD_FAILURE() << violation.invariant << ": " << violation.what;
  }

  Ports join(const PeerId& name) override {
    SimNode& node = world_.join(name, place_of(names_.size()));
    names_.push_back(name);
    node.set_queue_depth(options_.worker_count + options_.waiting_max);
    node.set_store(store_);
    return node.ports();
  }
  Ports join_with_pages(const PeerId& name, Role role, const BindingPointer& binding,
                        const std::shared_ptr<const Valid<CacheSchema>>& schema) override {
    auto member = std::make_unique<SimMember>();
    member->name = name.text();
    member->role = role;
    member->place = place_of(names_.size());
    // One world serves several tests, and an epoch is used once in it.
    static uint64_t epoch = 0;
    RuntimeBinding own = **binding;
    for (crossdock::Region& region : own.regions) region.epoch = ++epoch;
    Diagnostics diagnostics;
    member->binding =
        std::make_shared<const Valid<RuntimeBinding>>(*Valid<RuntimeBinding>::make(std::move(own), diagnostics));
    member->schema = schema;
    EXPECT_EQ(world_.memory().add(*member, false), Status());
    const Ports ports = join(name);
    world_.find(name)->runtime().add(*member);
    pages_.push_back(std::move(member));
    return ports;
  }
  Status add_memory(const RegionKey& key, std::span<std::byte> bytes) override {
    auto member = std::make_unique<SimMember>();
    member->name = key.to_text();
    member->place = place_of(members_.size());
    TRY_STATUS(world_.memory().add_region(*member, key, bytes));
    members_.emplace(key, std::move(member));
    return Status();
  }
  // What is under way to memory of a simulation is stopped by a revoke, which need not wait.
  std::shared_ptr<void> hold(const GrantId&, const RegionKey&) override { return nullptr; }
  void complete(const PeerId& name, Completion completion) override {
    SimNode& node = *world_.find(name);
    const OpId op = completion.op;
    EXPECT_EQ(node.accept(op, "completion", false).status(), Status());
    node.complete(op, std::move(completion));
  }
  void run_together(const std::vector<std::function<void()>>& bodies) override {
    Gate all_ended;
    size_t left = bodies.size();
    for (const std::function<void()>& body : bodies)
      world_.engine().spawn("body", [&] {
        body();
        if (--left == 0) all_ended.open();
      });
    EXPECT_TRUE(world_.engine().wait(all_ended, TimePoint::never()));
  }
  void pause() override { wait_until(world_.engine(), world_.now() + kPause); }

  void pass_time(Duration duration) override { store_.advance_clock(duration); }
  Status remove(const ContentId& content) override { return store_.core()->remove(content); }
  Status collect_garbage() override { return store_.core()->gc().status(); }
  StoreUse store_use() override {
    const StoreStats stats = store_.core()->stats().value();
    return StoreUse{stats.open_transactions, stats.snapshots + stats.page_publications + stats.removed, stats.leases,
                    stats.segments};
  }

 private:
  SimStore& add_store(const std::string& name) {
    StoreSpec spec;
    spec.name = name;
    spec.machine = kMachineCount - 1;
    spec.chunk_bytes = options_.chunk_bytes;
    spec.quota_bytes = options_.quota_bytes;
    SimStore& store = world_.add_store(spec);
    EXPECT_EQ(store.open(), Status());
    return store;
  }

  SimWorld& world_;
  BackendOptions options_;
  SimStore& store_;
  std::vector<PeerId> names_;
  std::map<RegionKey, std::unique_ptr<SimMember>> members_;
  std::vector<std::unique_ptr<SimMember>> pages_;
};

SimWorld* the_world = nullptr;  // SimGrid has one for each process

}  // namespace

bool run_in_simulation(const std::function<void()>& body) {
  const std::vector<FaultSpec> faults;
  SimWorldOptions options;
  options.origin = kStart;
  SimWorld world(small_cluster(), faults, options);
  the_world = &world;
  world.engine().spawn("tests", body);
  const bool has_ended = world.engine().run().empty();
  the_world = nullptr;
  return has_ended;
}

std::unique_ptr<Backend> make_sim_backend(const BackendOptions& options) {
  CHECK(the_world != nullptr);
  wait_until(the_world->engine(), the_world->now() + kSettling);
  return std::make_unique<SimBackend>(*the_world, options, "store" + std::to_string(the_world->stores().size()));
}

}  // namespace crossdock::testing
