// What a store on RocksDB costs, against plain files on the same disk: store_bench FOLDER [REPETITIONS [MIB [SECTION]]]
// FOLDER gets two and a half times MIB (512) while it runs, and nothing stays. Store and files are measured in turn.
//   put       Upload of a snapshot, against pwrite of as many bytes and one fdatasync for each file
//   restore   all of a snapshot, against pread with O_DIRECT in calls as long as a chunk
//   ranged    one participant of another layout: bytes read for each byte needed
//   publish   Upload of 1 MiB, and the commit in it, against a file of 1 MiB with fdatasync
//   recovery  opening a store of 100,000 objects
//   memory    most memory beside the target while MIB is restored again and again, to 10 GB in all
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string_view>

#include "backends/local/local_transfer.h"
#include "backends/rocksdb/rocksdb_tables.h"
#include "backends/store/store_core.h"
#include "base/crc32c.h"
#include "bench/local_world.h"
#include "bench/raw_files.h"
#include "executor/kv/kv_store.h"
#include "model/wire/documents.h"
#include "planner/kv/store_geometry.h"

namespace crossdock {
namespace {

struct Settings {
  std::string folder;
  uint64_t repetitions = 5;
  uint64_t mib = 512;
  std::string section;
  bool has(std::string_view name) const { return section.empty() || section == name; }
};

std::unique_ptr<StoreCore> open_store(const std::string& folder, bool create, uint64_t staging_bytes = 64 * kMiB) {
  RocksDbOptions options;
  options.directory = folder + "/store";
  options.create = create;
  Result<RocksDbTables> tables = open_rocksdb_tables(options);
  CHECK(tables.ok());
  StoreOptions store_options;
  store_options.staging_bytes = staging_bytes;
  Result<std::unique_ptr<StoreCore>> store =
      StoreCore::open(std::move(tables.value().records), std::move(tables.value().chunks), store_options);
  CHECK(store.ok());
  return std::move(store).value();
}

// How long the commit took.
class TimedStore : public BlockingStore {
 public:
  explicit TimedStore(BlockingStore& store) : store_(store) {}
  Result<TxnState> begin(const TxnId& txn, const UploadTarget& target) override { return store_.begin(txn, target); }
  Result<PutReceipt> put(const TxnId& txn, const PutStep& step, const MemoryRegistry& memory) override {
    return store_.put(txn, step, memory);
  }
  Result<TxnState> commit(const TxnId& txn, const Publication& publication) override {
    const Stopwatch watch;
    Result<TxnState> state = store_.commit(txn, publication);
    commit_s = watch.cost().wall_s;
    return state;
  }
  Result<TxnState> abort(const TxnId& txn) override { return store_.abort(txn); }
  Result<Found> lookup(const Lookup& lookup) override { return store_.lookup(lookup); }
  Result<GetReport> get(const GetStep& step, const MemoryRegistry& memory) override { return store_.get(step, memory); }
  Status release(LeaseId lease) override { return store_.release(lease); }

  double commit_s = 0;  // read once the upload is over

 private:
  BlockingStore& store_;
};

struct LayoutSpec {
  ObjectOrder order = ObjectOrder::kPlhd;
  uint64_t page_tokens = 64;
};

struct Work {
  Cost cost;
  double commit_s = 0;
};

Work upload(StoreCore& store, const Side& side, const Snapshot& snapshot, const LayoutSpec& spec, size_t threads) {
  Diagnostics diagnostics;
  auto layout = layout_of(*side.placement, std::nullopt, spec.order, spec.page_tokens, "bench", diagnostics);
  CHECK(layout.has_value());
  MemoryRegistry registry;
  LocalRuntime runtime(registry);
  UploadOptions options;
  for (const BindingPointer& binding : side.bindings) {
    runtime.add(Role::kSource, binding, side.memory);
    options.participants.push_back((*binding)->participant);
  }
  options.txn = TxnId("upload-" + digest(*snapshot).hex());
  options.tenant = "bench";
  KvUpload upload;
  upload.documents =
      UploadDocuments{side.placement, snapshot, std::make_shared<const Valid<StoreLayout>>(std::move(*layout))};
  options.planner = std::make_shared<const KvUploadPlanner>(std::move(upload));
  options.window = WindowLimits{2 * threads, 256 * kMiB};
  Upload protocol(options);
  TimedStore timed(store);
  const Stopwatch watch;
  const UploadOutcome outcome = run_local_upload(protocol, timed, runtime, registry, threads, DriveHooks());
  Work work{watch.cost(), timed.commit_s};
  CHECK(outcome.committed);
  return work;
}

struct RestoreWork {
  Cost cost;
  RestoreOutcome outcome;
};

RestoreWork restore(StoreCore& store, const Side& side, const Snapshot& snapshot, size_t threads) {
  MemoryRegistry registry;
  LocalRuntime runtime(registry);
  RestoreOptions options;
  for (const BindingPointer& binding : side.bindings) {
    runtime.add(Role::kTarget, binding, side.memory);
    options.participants.push_back((*binding)->participant);
  }
  options.operation = OperationId("bench");
  options.attempt = AttemptId("bench");
  KvRestore restore;
  restore.target = side.placement;
  restore.what = digest(*snapshot);
  options.planner = std::make_shared<const KvRestorePlanner>(std::move(restore));
  options.lease = LeaseRequest{"bench", Duration::from_s(600)};
  options.window = WindowLimits{2 * threads, 256 * kMiB};
  Restore protocol(options);
  const Stopwatch watch;
  RestoreOutcome outcome = run_local_restore(protocol, store, runtime, registry, threads, DriveHooks());
  RestoreWork work{watch.cost(), std::move(outcome)};
  CHECK(work.outcome.activated);
  return work;
}

// Calls both, every second time in the other order.
void in_turn(uint64_t repetition, const std::function<void()>& one, const std::function<void()>& other) {
  repetition % 2 == 0 ? one() : other();
  repetition % 2 == 0 ? other() : one();
}

constexpr size_t kThreadCounts[] = {1, 2, 4};
const Model kModel{32, 8, 128};
const std::pair<const char*, ObjectOrder> kOrders[] = {{"plhd", ObjectOrder::kPlhd}, {"hpld", ObjectOrder::kHpld}};

struct Snapshots {
  explicit Snapshots(uint64_t mib)
      : placement(place(kModel, {8}, "source")),
        snapshot(snapshot_of(**placement, mib * kMiB / kModel.token_bytes() / 64 * 64, "bench")),
        side(make_side(placement, snapshot, Pool{AxisOrder::kNhd, 64})),
        bytes((*snapshot)->tokens.size() * kModel.token_bytes()) {
    fill(side);
  }
  double gigabytes() const { return static_cast<double>(bytes) / 1e9; }
  Placement placement;
  Snapshot snapshot;
  Side side;
  uint64_t bytes;
};

// ---- put ----

void measure_put(const Settings& settings, const Snapshots& source, const RawBuffer& buffer) {
  const double gigabytes = source.gigabytes();
  fmt::print("\nput,threads,pwrite GB/s,put GB/s,ratio,spread,to O_DIRECT,commit ms,pwrite CPU s/GB,put CPU s/GB\n");
  Samples cpu;
  for (const auto& [name, order] : kOrders)
    for (const size_t threads : kThreadCounts) {
      Samples raw_rate, rate, ratio, direct_ratio, commit_ms, raw_cpu, put_cpu;
      for (uint64_t i = 0; i < settings.repetitions; ++i) {
        Cost raw;
        Cost direct;
        Work put;
        const auto write = [&](RawCache cache, Cost& cost) {
          const ScratchFolder folder(settings.folder, "raw");
          const Stopwatch watch;
          write_raw(folder.path(), buffer.bytes(), threads, cache);
          cost = watch.cost();
        };
        const auto store = [&, order = order] {
          const ScratchFolder folder(settings.folder, "put");
          const std::unique_ptr<StoreCore> opened = open_store(folder.path(), true);
          put = upload(*opened, source.side, source.snapshot, {order, 64}, threads);
        };
        in_turn(
            i, [&] { write(RawCache::kPageCache, raw); }, store);
        write(RawCache::kDirect, direct);
        raw_rate.add(gigabytes / raw.wall_s);
        rate.add(gigabytes / put.cost.wall_s);
        ratio.add(raw.wall_s / put.cost.wall_s);
        direct_ratio.add(direct.wall_s / put.cost.wall_s);
        commit_ms.add(put.commit_s * 1e3);
        raw_cpu.add(raw.cpu_s / gigabytes);
        put_cpu.add(put.cost.cpu_s / gigabytes);
        cpu.add(put.cost.cpu_s / gigabytes);
      }
      fmt::print("{} objects of 1 MiB,{},{:.2f},{:.2f},{:.2f},{:.0f} %,{:.2f},{:.0f},{:.2f},{:.2f}\n", name, threads,
                 raw_rate.median(), rate.median(), ratio.median(), ratio.spread_percent(), direct_ratio.median(),
                 commit_ms.median(), raw_cpu.median(), put_cpu.median());
      std::fflush(stdout);
    }
  Samples crc;
  uint32_t sum = 0;
  for (uint64_t i = 0; i < settings.repetitions; ++i) {
    const Stopwatch watch;
    for (size_t at = 0; at < buffer.bytes().size(); at += kRawCallBytes)
      sum ^= crc32c(buffer.bytes().subspan(at, kRawCallBytes));
    crc.add(static_cast<double>(buffer.bytes().size()) / 1e9 / watch.cost().wall_s);
  }
  fmt::print(
      "\nchecksum,GB/s,spread,part of a put's CPU\nCRC-32C of chunks of 256 KiB ({:08x}),{:.1f},{:.0f} %,{:.0f} %\n",
      sum, crc.median(), crc.spread_percent(), 100 / crc.median() / cpu.median());
}

// ---- restore ----

void measure_restore(const Settings& settings, const Snapshots& source, const RawBuffer& buffer) {
  const Side target = make_side(place(kModel, {4}, "target"), source.snapshot, Pool{AxisOrder::kNhd, 64});
  const double gigabytes = source.gigabytes();
  fmt::print("\nrestore,threads,pread GB/s,restore GB/s,ratio,spread,pread CPU s/GB,restore CPU s/GB\n");
  for (const auto& [name, order] : kOrders) {
    const ScratchFolder folder(settings.folder, "restore");
    const std::unique_ptr<StoreCore> store = open_store(folder.path(), true);
    upload(*store, source.side, source.snapshot, {order, 64}, 2);
    for (const size_t threads : kThreadCounts) {
      write_raw(folder.path(), buffer.bytes(), threads, RawCache::kDirect);
      restore(*store, target, source.snapshot, threads);
      Samples raw_rate, rate, ratio, raw_cpu, restore_cpu;
      for (uint64_t i = 0; i < settings.repetitions; ++i) {
        Cost raw;
        Cost cost;
        in_turn(
            i,
            [&] {
              const Stopwatch watch;
              read_raw(folder.path(), buffer.bytes(), threads);
              raw = watch.cost();
            },
            [&] { cost = restore(*store, target, source.snapshot, threads).cost; });
        raw_rate.add(gigabytes / raw.wall_s);
        rate.add(gigabytes / cost.wall_s);
        ratio.add(raw.wall_s / cost.wall_s);
        raw_cpu.add(raw.cpu_s / gigabytes);
        restore_cpu.add(cost.cpu_s / gigabytes);
      }
      fmt::print("{} objects of 1 MiB,{},{:.2f},{:.2f},{:.2f},{:.0f} %,{:.2f},{:.2f}\n", name, threads,
                 raw_rate.median(), rate.median(), ratio.median(), ratio.spread_percent(), raw_cpu.median(),
                 restore_cpu.median());
      std::fflush(stdout);
    }
    check_and_clear(target);
  }
}

// ---- ranged ----

struct RangedCase {
  uint64_t stored_tp;
  uint64_t target_tp;
  const char* participant;
  uint64_t tokens;
  ObjectOrder order;
};

void measure_ranged(const Settings& settings) {
  const RangedCase cases[] = {{8, 2, "p0-t0", 2048, ObjectOrder::kPlhd}, {8, 2, "p0-t0", 2048, ObjectOrder::kHpld},
                              {8, 2, "p0-t0", 2000, ObjectOrder::kPlhd}, {8, 16, "p0-t0", 2048, ObjectOrder::kPlhd},
                              {2, 8, "p0-t1", 2048, ObjectOrder::kPlhd}, {2, 8, "p0-t1", 2048, ObjectOrder::kHpld}};
  fmt::print("\nranged restore,tokens,order,bytes needed,bytes read,read / needed\n");
  for (const RangedCase& each : cases) {
    const ScratchFolder folder(settings.folder, "ranged");
    const std::unique_ptr<StoreCore> store = open_store(folder.path(), true);
    const Placement placement = place(kModel, {each.stored_tp}, "source");
    const Snapshot snapshot = snapshot_of(**placement, each.tokens, "ranged");
    const Side source = make_side(placement, snapshot, Pool{AxisOrder::kNhd, 64});
    fill(source);
    upload(*store, source, snapshot, {each.order, 64}, 2);
    const Side target = make_side(place(kModel, {each.target_tp}, "target"), snapshot, Pool(), each.participant);
    const RestoreOutcome outcome = restore(*store, target, snapshot, 2).outcome;
    check_and_clear(target);
    fmt::print("TP{} stored; {} of TP{},{},{},{},{},{:.3f}\n", each.stored_tp, each.participant, each.target_tp,
               each.tokens, object_order_name(each.order), outcome.read.bytes, outcome.read.bytes_read,
               outcome.read_amplification());
    std::fflush(stdout);
  }
}

// ---- publish ----

void measure_publish(const Settings& settings) {
  constexpr uint64_t kPublications = 250;
  const Model model{4, 8, 128};
  const Placement placement = place(model, {1}, "source");
  const RawBuffer buffer(kMiB);
  const ScratchFolder folder(settings.folder, "publish");
  const std::unique_ptr<StoreCore> store = open_store(folder.path(), true);
  Samples raw_ms, upload_ms, commit_ms;
  for (uint64_t i = 0; i < kPublications; ++i) {
    const Snapshot snapshot = snapshot_of(**placement, 64, fmt::format("publish {}", i));
    const Side side = make_side(placement, snapshot, Pool{AxisOrder::kNhd, 64});
    fill(side);
    Work work;
    in_turn(
        i,
        [&] {
          const ScratchFolder raw(folder.path(), fmt::format("raw-{}", i));
          const Stopwatch watch;
          write_raw(raw.path(), buffer.bytes(), 1, RawCache::kPageCache);
          raw_ms.add(watch.cost().wall_s * 1e3);
        },
        [&] { work = upload(*store, side, snapshot, LayoutSpec(), 2); });
    upload_ms.add(work.cost.wall_s * 1e3);
    commit_ms.add(work.commit_s * 1e3);
  }
  fmt::print("\npublish {} times 1 MiB,p50 ms,p99 ms,p50 to the file\n", kPublications);
  for (const auto& [name, samples] : {std::pair("file and fdatasync", &raw_ms), std::pair("commit", &commit_ms),
                                      std::pair("whole upload", &upload_ms)})
    fmt::print("{},{:.2f},{:.2f},{:.2f}\n", name, samples->quantile(0.5), samples->quantile(0.99),
               samples->median() / raw_ms.median());
}

// ---- recovery ----

void measure_recovery(const Settings& settings) {
  constexpr uint64_t kSnapshots = 50;
  constexpr uint64_t kObjectsEach = 2000;  // one for each token
  const Model model{1, 1, 64};
  const Placement placement = place(model, {1}, "source");
  const ScratchFolder folder(settings.folder, "recovery");
  {
    const std::unique_ptr<StoreCore> store = open_store(folder.path(), true);
    for (uint64_t i = 0; i < kSnapshots; ++i) {
      const Snapshot snapshot = snapshot_of(**placement, kObjectsEach, fmt::format("recovery {}", i));
      const Side side = make_side(placement, snapshot, Pool());
      fill(side);
      upload(*store, side, snapshot, {ObjectOrder::kPlhd, 1}, 2);
    }
  }
  Samples open_ms;
  Samples cpu_ms;
  StoreStats stats;
  for (uint64_t i = 0; i < 2 * settings.repetitions + 1; ++i) {
    const Stopwatch watch;
    const std::unique_ptr<StoreCore> store = open_store(folder.path(), false);
    open_ms.add(watch.cost().wall_s * 1e3);
    cpu_ms.add(watch.cost().cpu_s * 1e3);
    stats = store->stats().value();
  }
  fmt::print("\nrecovery,objects,publications,median ms,spread,CPU ms\nopen,{},{},{:.1f},{:.0f} %,{:.1f}\n",
             stats.objects, stats.snapshots, open_ms.median(), open_ms.spread_percent(), cpu_ms.median());
}

// ---- memory ----

uint64_t status_bytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) << 10;
  return 0;
}

void measure_memory(const Settings& settings, const Snapshots& source) {
  constexpr uint64_t kBytes = 10'000'000'000;
  const Side target = make_side(place(kModel, {4}, "target"), source.snapshot, Pool{AxisOrder::kNhd, 64});
  fill(target);  // so that its pages are there
  const ScratchFolder folder(settings.folder, "memory");
  {
    const std::unique_ptr<StoreCore> store = open_store(folder.path(), true);
    upload(*store, source.side, source.snapshot, LayoutSpec(), 2);
  }
  fmt::print("\nmemory beside target,staging MiB,restored GB,most MiB,staging used MiB\n");
  for (const uint64_t staging_mib : {uint64_t{1}, uint64_t{8}, uint64_t{64}}) {
    const std::unique_ptr<StoreCore> store = open_store(folder.path(), false, staging_mib * kMiB);
    std::ofstream("/proc/self/clear_refs") << "5";  // begins the peak anew
    const uint64_t before = status_bytes("VmRSS");
    uint64_t restored = 0;
    while (restored < kBytes) restored += restore(*store, target, source.snapshot, 2).outcome.read.bytes;
    fmt::print("restore of {} MiB again and again,{},{:.1f},{:.1f},{:.1f}\n", settings.mib, staging_mib,
               static_cast<double>(restored) / 1e9,
               static_cast<double>(status_bytes("VmHWM") - before) / static_cast<double>(kMiB),
               static_cast<double>(store->stats().value().staging_bytes_most) / static_cast<double>(kMiB));
    std::fflush(stdout);
  }
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: store_bench FOLDER [REPETITIONS [MIB [SECTION]]]\n", stderr);
    return 2;
  }
  Settings settings;
  settings.folder = argv[1];
  settings.repetitions = number_argument(argc, argv, 2, settings.repetitions);
  settings.mib = number_argument(argc, argv, 3, settings.mib);
  if (argc > 4) settings.section = argv[4];
  if (settings.has("put") || settings.has("restore") || settings.has("memory")) {
    const Snapshots source(settings.mib);
    const RawBuffer buffer(source.bytes);
    if (settings.has("put")) measure_put(settings, source, buffer);
    if (settings.has("restore")) measure_restore(settings, source, buffer);
    if (settings.has("memory")) measure_memory(settings, source);
  }
  if (settings.has("ranged")) measure_ranged(settings);
  if (settings.has("publish")) measure_publish(settings);
  if (settings.has("recovery")) measure_recovery(settings);
  return 0;
}

}  // namespace
}  // namespace crossdock

int main(int argc, char** argv) { return crossdock::run(argc, argv); }
