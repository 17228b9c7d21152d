// Many uploads and restores at once over one store, with removes and collections between them: every restored byte is
// right, and when all is over nothing is left.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <mutex>
#include <thread>

#include "backends/local/local_transfer.h"
#include "backends/memory/synthetic.h"
#include "backends/rocksdb/rocksdb_tables.h"
#include "backends/store/heap_tables.h"
#include "backends/store/store_core.h"
#include "executor/kv/kv_store.h"
#include "model/kv/pool_binding.h"
#include "tests/support/small_transfer.h"

namespace crossdock::testing {
namespace {

constexpr size_t kWorkers = 64;
constexpr size_t kRounds = 3;
constexpr uint64_t kTokens = 300;

const Valid<CacheSchema>& schema() {
  static const Valid<CacheSchema> made = small_schema();
  return made;
}

Valid<SnapshotDescriptor> snapshot_of_worker(size_t worker) {
  return snapshot_of(schema(), Range(0, kTokens), fmt::format("request-{}", worker));
}

// The participants of one side of a worker, and their memory.
struct Side {
  Side(size_t worker, const PartitionSizes& sizes, const std::string& name, uint64_t page_tokens)
      : placement(std::make_shared<const Valid<PlacementManifest>>(
            placed(schema(), sizes, name, fmt::format("request-{}", worker)))) {
    const Valid<SnapshotDescriptor> snapshot = snapshot_of_worker(worker);
    for (const Part& part : (*placement)->parts) {
      PoolRequest request;
      request.operation = OperationId("op");
      request.page_tokens = page_tokens;
      request.shuffle_seed = worker;
      request.spare_pages = 1;
      request.instance_prefix = name + "/";
      Diagnostics diagnostics;
      std::optional<Valid<RuntimeBinding>> bound = pool_binding(
          *placement, digest(*placement), part.participant, snapshot->tokens, digest(snapshot), request, diagnostics);
      CHECK(bound.has_value());
      bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*bound)));
      CHECK(memory.add(**bindings.back()).ok());
      participants.push_back(part.participant);
    }
    fill_guards(memory);
  }

  void join(Role role) {
    for (const BindingPointer& binding : bindings) runtime.add(role, binding, memory);
  }
  void write(uint64_t seed) const {
    for (const BindingPointer& binding : bindings) write_synthetic(*binding, *schema(), seed, memory);
  }
  // Empty when all items are there and nothing else was touched.
  std::string take(uint64_t seed) const {
    for (const BindingPointer& binding : bindings)
      if (const auto wrong = take_synthetic(*binding, *schema(), seed, memory)) return *wrong;
    return check_guards(memory).value_or("");
  }

  std::shared_ptr<const Valid<PlacementManifest>> placement;
  std::vector<BindingPointer> bindings;
  std::vector<ParticipantId> participants;
  RegionMemory memory;
  MemoryRegistry registry;
  LocalRuntime runtime{registry};
};

struct Counts {
  std::atomic<uint64_t> committed = 0;
  std::atomic<uint64_t> interrupted = 0;
  std::atomic<uint64_t> restored = 0;
  std::atomic<uint64_t> restored_of_others = 0;
  std::atomic<uint64_t> not_there = 0;
};

class Stress {
 public:
  explicit Stress(StoreCore& store) : store_(store) {}

  void run() {
    std::atomic<bool> working = true;
    std::latch begin(kWorkers + 1);
    std::thread collector([&] {
      begin.arrive_and_wait();
      while (working) {
        expect(store_.gc().status(), "gc");
        expect(store_.list().status(), "list");
        expect(store_.stats().status(), "stats");
      }
    });
    std::vector<std::thread> workers;
    for (size_t worker = 0; worker < kWorkers; ++worker)
      workers.emplace_back([&, worker] {
        begin.arrive_and_wait();
        for (size_t round = 0; round < kRounds; ++round) work(worker, round);
      });
    for (std::thread& thread : workers) thread.join();
    working = false;
    collector.join();
    for (const std::string& problem : problems_) ADD_FAILURE() << problem;
  }

  Counts counts;

 private:
  void problem(std::string text) {
    const std::lock_guard lock(mutex_);
    problems_.push_back(std::move(text));
  }
  void expect(const Status& status, const std::string& what) {
    if (!status.ok()) problem(what + ": " + status.message());
  }

  void work(size_t worker, size_t round) {
    const std::string name = fmt::format("worker {} round {}", worker, round);
    if (worker % 8 == 3) upload(worker, name + " interrupted", true);
    upload(worker, name, false);
    restore(worker, worker, name);
    restore(worker, (worker + 1 + round) % kWorkers, name + " other");
    expect(store_.remove(digest(snapshot_of_worker(worker))), name + " remove");
  }

  void upload(size_t worker, const std::string& name, bool is_interrupted) {
    Side side(worker, {.tp = 2}, "prefill", 16);
    side.join(Role::kSource);
    side.write(worker);
    // Objects of one writer, or of both together.
    const Valid<PlacementManifest> shape = placed(schema(), {.tp = 1 + worker % 2}, "shape");
    Diagnostics diagnostics;
    std::optional<Valid<StoreLayout>> layout =
        layout_of(shape, std::nullopt, kObjectOrders[worker % kObjectOrders.size()].order, 64, "layout", diagnostics);
    CHECK(layout.has_value());
    UploadOptions options;
    options.txn = TxnId(name);
    options.tenant = "team";
    KvUpload what;
    what.documents = {side.placement, std::make_shared<const Valid<SnapshotDescriptor>>(snapshot_of_worker(worker)),
                      std::make_shared<const Valid<StoreLayout>>(std::move(*layout))};
    options.planner = std::make_shared<const KvUploadPlanner>(std::move(what));
    options.participants = side.participants;
    options.seed = worker;
    const std::atomic<bool> interrupted = is_interrupted;
    DriveHooks hooks;
    hooks.interrupted = &interrupted;
    Upload upload(std::move(options));
    const UploadOutcome outcome = run_local_upload(upload, store_, side.runtime, side.registry, 1, hooks);
    if (outcome.committed == is_interrupted) problem(name + ": " + outcome.cause.message());
    if (!outcome.released || !outcome.lost.empty() || side.runtime.count(LocalRuntime::State::kHeld) != 0)
      problem(name + ": sources stay pinned");
    ++(outcome.committed ? counts.committed : counts.interrupted);
  }

  void restore(size_t worker, size_t owner, const std::string& name) {
    Side side(owner, worker % 2 == 0 ? PartitionSizes{.pp = 2} : PartitionSizes{.tp = 4}, "decode", 8);
    side.join(Role::kTarget);
    RestoreOptions options;
    options.operation = OperationId(name);
    options.attempt = AttemptId(name);
    KvRestore wanted;
    wanted.target = side.placement;
    wanted.what = digest(snapshot_of_worker(owner));
    options.planner = std::make_shared<const KvRestorePlanner>(std::move(wanted));
    options.participants = side.participants;
    options.lease = LeaseRequest{name};
    options.seed = worker;
    Restore restore(std::move(options));
    const RestoreOutcome outcome = run_local_restore(restore, store_, side.runtime, side.registry, 1, DriveHooks());
    if (outcome.activated) {
      if (const std::string wrong = side.take(owner); !wrong.empty()) problem(name + ": I1: " + wrong);
      ++(owner == worker ? counts.restored : counts.restored_of_others);
      return;
    }
    if (owner == worker || outcome.cause.code() != Code::kNotFound) problem(name + ": " + outcome.cause.message());
    if (!outcome.released || side.runtime.count(LocalRuntime::State::kActive) != 0)
      problem(name + ": targets are held although nothing was restored");
    ++counts.not_there;
  }

  StoreCore& store_;
  std::mutex mutex_;
  std::vector<std::string> problems_;
};

// The store counts nothing any more, and its tables hold nothing (I4).
void expect_empty(StoreCore& store) {
  EXPECT_EQ(store.gc().status(), Status());
  StoreStats expected;
  const StoreStats stats = store.stats().value();
  expected.staging_bytes_most = stats.staging_bytes_most;
  EXPECT_TRUE(stats == expected) << "snapshots " << stats.snapshots << ", removed " << stats.removed << ", leases "
                                 << stats.leases << ", open transactions " << stats.open_transactions << ", segments "
                                 << stats.segments;
  EXPECT_EQ(store.list().value().size(), 0u);
}

void run_stress(std::unique_ptr<RecordTable> records, std::unique_ptr<ChunkTable> chunks) {
  StoreOptions options;
  options.chunk_bytes = 256;
  options.segment_bytes_max = 4096;
  options.staging_bytes = 64 * 256;  // much less than everybody would take
  const std::unique_ptr<StoreCore> store = StoreCore::open(std::move(records), std::move(chunks), options).value();
  Stress stress(*store);
  stress.run();
  EXPECT_EQ(stress.counts.committed, kWorkers * kRounds);
  EXPECT_EQ(stress.counts.interrupted, kWorkers / 8 * kRounds);
  EXPECT_EQ(stress.counts.restored, kWorkers * kRounds);
  EXPECT_EQ(stress.counts.restored_of_others + stress.counts.not_there, kWorkers * kRounds);
  EXPECT_GT(stress.counts.restored_of_others, 0u);
  expect_empty(*store);
  EXPECT_LE(store->stats().value().staging_bytes_most, options.staging_bytes);
}

TEST(StoreStress, InMemory) { run_stress(std::make_unique<HeapRecordTable>(), std::make_unique<HeapChunkTable>()); }

TEST(StoreStress, OnRocksDb) {
  std::string directory = ::testing::TempDir() + "crossdock_stress_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  {
    RocksDbTables tables = open_rocksdb_tables({.directory = directory + "/store", .create = true}).value();
    run_stress(std::move(tables.records), std::move(tables.chunks));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory + "/store/incoming"));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace crossdock::testing
