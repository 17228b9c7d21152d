#include "tests/crash/crash_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace crossdock::testing {
namespace {

constexpr uint64_t kRunBytes = 1'000;  // that one writer has of an object, before the next writer's
constexpr std::byte kUntouched{0xa5};

class SharedRecords : public RecordTable {
 public:
  explicit SharedRecords(std::shared_ptr<RecordTable> table) : table_(std::move(table)) {}
  Result<std::optional<std::string>> get(const std::string& key) const override { return table_->get(key); }
  Status write(std::span<const RecordChange> changes, bool durable) override { return table_->write(changes, durable); }
  Status scan(const std::string& prefix,
              const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    return table_->scan(prefix, visit);
  }

 private:
  std::shared_ptr<RecordTable> table_;
};

class SharedChunks : public ChunkTable {
 public:
  explicit SharedChunks(std::shared_ptr<ChunkTable> table) : table_(std::move(table)) {}
  Result<std::unique_ptr<SegmentWriter>> new_segment(uint64_t segment) override { return table_->new_segment(segment); }
  Status add(std::vector<std::unique_ptr<SegmentWriter>> segments) override { return table_->add(std::move(segments)); }
  Status read(std::span<const ChunkName> names, const Take& take) const override { return table_->read(names, take); }
  Status remove(std::span<const uint64_t> segments) override { return table_->remove(segments); }
  Result<std::vector<uint64_t>> segments() const override { return table_->segments(); }

 private:
  std::shared_ptr<ChunkTable> table_;
};

RegionKey new_region() {
  static std::atomic<uint64_t> epoch = 0;
  return RegionKey{InstanceId("test"), RegionId("memory"), std::nullopt, ++epoch};
}

Status check_content(StoreCore& core, MemoryRegistry& memory, LeaseId lease, const FoundObject& object,
                     const ObjectPlan& plan, uint64_t seed) {
  if (object.object.id.text() != plan.id)
    return Status(Code::kInvalidArgument,
                  fmt::format("object '{}' is found for '{}'", object.object.id.text(), plan.id));
  const Content expected = content_of(seed, plan);
  TRY(const Content bytes, read_object(core, memory, lease, object));
  const auto [wrong, right] = std::mismatch(bytes.begin(), bytes.end(), expected.begin(), expected.end());
  if (wrong == bytes.end() && right == expected.end()) return Status();
  return Status(Code::kInvalidArgument, fmt::format("object '{}' is wrong from byte {} of {} on", plan.id,
                                                    wrong - bytes.begin(), expected.size()));
}

}  // namespace

StoreOptions small_options() {
  StoreOptions options;
  options.chunk_bytes = kChunkBytes;
  options.segment_bytes_max = 25'000;  // a snapshot has two segments or three
  options.quota_bytes = kQuotaBytes;
  options.ledger.closed_kept = Duration::from_s(50'000);
  return options;
}

Result<OpenStore> open_store(const RocksDbOptions& tables, StoreOptions options) {
  TRY(RocksDbTables opened, open_rocksdb_tables(tables));
  OpenStore store;
  store.records = std::move(opened.records);
  store.chunks = std::move(opened.chunks);
  TRY(store.core, StoreCore::open(std::make_unique<SharedRecords>(store.records),
                                  std::make_unique<SharedChunks>(store.chunks), std::move(options)));
  return store;
}

Status create_store(const RocksDbOptions& tables) {
  RocksDbOptions options = tables;
  options.create = true;
  return open_rocksdb_tables(options).status();
}

Result<std::optional<StoredObject>> put_object(StoreCore& core, MemoryRegistry& memory, const TxnId& txn,
                                               const ObjectPlan& object, uint64_t seed, uint64_t writer_count) {
  Content bytes = content_of(seed, object);
  std::optional<StoredObject> stored;
  for (uint64_t writer = 0; writer < std::min(writer_count, object.writer_count); ++writer) {
    auto work = std::make_shared<CopyWork>();
    for (uint64_t begin = 0; begin < object.bytes; begin += kRunBytes) {
      if (begin / kRunBytes % object.writer_count != writer) continue;
      const Range run(begin, std::min(begin + kRunBytes, object.bytes));
      const Range hole = run.intersect(object.hole);
      const Range before(run.begin(), hole.empty() ? run.end() : hole.begin());
      const Range after(hole.empty() ? run.end() : hole.end(), run.end());
      for (const Range part : {before, after}) {
        if (part.empty()) continue;
        CopyStep step;
        step.source_offset = step.target_offset = part.begin();
        step.bytes = part.size();
        work->steps.push_back(step);
      }
    }
    const RegionKey key = new_region();
    work->source_regions = {key};
    TRY_STATUS(memory.add(key, bytes));
    const PutStep step{RegionId(object.id), object.bytes, object.bytes - object.hole.size(),
                       fmt::format("writer-{}", writer), StepSpan(work)};
    const Result<PutReceipt> receipt = core.put(txn, step, memory);
    memory.remove(key);
    if (!receipt.ok()) return receipt.status();
    if (receipt.value().stored) stored = receipt.value().stored;
  }
  return stored;
}

Result<Content> read_object(StoreCore& core, MemoryRegistry& memory, LeaseId lease, const FoundObject& object) {
  Content bytes(object.object.bytes, kUntouched);
  auto work = std::make_shared<CopyWork>();
  if (!bytes.empty()) {
    CopyStep step;
    step.bytes = bytes.size();
    work->steps.push_back(step);
  }
  const RegionKey key = new_region();
  work->target_regions = {key};
  TRY_STATUS(memory.add(key, bytes));
  const GrantId grant(key.to_text());
  TRY_STATUS(memory.grant({grant, {{key, Range(0, bytes.size())}}, {}}));
  const Result<GetReport> report =
      core.get({lease, std::make_shared<const FoundObject>(object), Range::all(), StepSpan(work), grant}, memory);
  TRY_STATUS(memory.revoke(grant));
  memory.remove(key);
  if (!report.ok()) return report.status();
  return bytes;
}

Status check_snapshot(StoreCore& core, MemoryRegistry& memory, const Found& found, const std::string& name,
                      uint64_t seed) {
  const std::vector<ObjectPlan> plans = snapshot_objects(seed, name);
  if (found.manifest == nullptr || found.objects.size() != plans.size())
    return Status(Code::kInvalidArgument,
                  fmt::format("'{}' has {} objects, not {}", name, found.objects.size(), plans.size()));
  for (size_t i = 0; i < plans.size(); ++i)
    TRY_STATUS(check_content(core, memory, found.lease, found.objects[i], plans[i], seed));
  return Status();
}

Status check_page(StoreCore& core, MemoryRegistry& memory, const Found& found, size_t number, uint64_t page,
                  uint64_t seed) {
  return check_content(core, memory, found.lease, found.objects.at(number), page_object(seed, page), seed);
}

}  // namespace crossdock::testing
