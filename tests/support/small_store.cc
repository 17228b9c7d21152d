#include "tests/support/small_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kRunBytes = 3;
constexpr Range kPageHole(9, 17);

}  // namespace

ObjectBytes random_bytes(uint64_t count, Range hole, uint64_t seed) {
  Rng rng(seed + 1);
  ObjectBytes bytes(count);
  for (uint64_t i = 0; i < count; ++i)
    if (!hole.contains(i)) bytes[i] = static_cast<std::byte>(1 + rng.below(255));
  return bytes;
}

Status SmallStore::open() {
  core_ = nullptr;
  StoreOptions own = options;
  own.clock = [this] { return now; };
  TRY(core_, StoreCore::open(tables.records(), tables.chunks(), own));
  return Status();
}

RegionKey SmallStore::add_region(std::span<std::byte> bytes) {
  const RegionKey key{InstanceId("test"), RegionId("memory"), std::nullopt, ++epoch_};
  CHECK(memory.add(key, bytes).ok());
  return key;
}

Result<PutReceipt> SmallStore::put_part(const TxnId& txn, const std::string& object, const ObjectBytes& bytes,
                                        Range hole, uint64_t writer, uint64_t writer_count) {
  auto work = std::make_shared<CopyWork>();
  uint64_t payload = 0;
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    if (hole.contains(i)) continue;
    ++payload;
    if (i / kRunBytes % writer_count != writer) continue;
    CopyStep step;
    step.source_offset = step.target_offset = i;
    step.bytes = 1;
    work->steps.push_back(step);
  }
  ObjectBytes source = bytes;
  work->source_regions = {add_region(source)};
  const RegionKey key = work->source_regions.front();
  const PutStep step{RegionId(object), bytes.size(), payload, fmt::format("writer-{}", writer), StepSpan(work)};
  Result<PutReceipt> receipt = core().put(txn, step, memory);
  memory.remove(key);
  return receipt;
}

Result<StoredObject> SmallStore::put(const TxnId& txn, const std::string& object, const ObjectBytes& bytes, Range hole,
                                     uint64_t writer_count) {
  std::optional<StoredObject> stored;
  for (uint64_t writer = 0; writer < writer_count; ++writer) {
    TRY(const PutReceipt receipt, put_part(txn, object, bytes, hole, writer, writer_count));
    if (receipt.stored) stored = receipt.stored;
  }
  if (!stored) return Status(Code::kNotFound, fmt::format("no receipt completes '{}'", object));
  return *stored;
}

Result<ObjectBytes> SmallStore::read(LeaseId lease, const FoundObject& object, const ObjectBytes* right) {
  ObjectBytes target(object.object.bytes, kGuard);
  auto work = std::make_shared<CopyWork>();
  CopyStep step;
  step.bytes = object.object.bytes;
  work->steps.push_back(step);
  work->target_regions = {add_region(target)};
  const GrantId grant(work->target_regions.front().to_text());
  EXPECT_TRUE(memory.grant({grant, {{work->target_regions.front(), Range(0, target.size())}}, {}}).ok());
  const GetStep get{lease, std::make_shared<const FoundObject>(object), Range(0, object.object.bytes), StepSpan(work),
                    grant};
  const Result<GetReport> report = core().get(get, memory);
  EXPECT_TRUE(memory.revoke(grant).ok());
  memory.remove(work->target_regions.front());
  for (size_t i = 0; right != nullptr && i < target.size(); ++i)
    EXPECT_TRUE(target[i] == kGuard || target[i] == right->at(i)) << "byte " << i << " is wrong";
  if (!report.ok()) return report.status();
  EXPECT_EQ(report.value().bytes, target.size());
  return target;
}

Valid<SnapshotDescriptor> numbered_snapshot(uint64_t number) {
  SnapshotDescriptor snapshot = *example_snapshot();
  snapshot.token_fingerprint = fmt::format("tokens of {}", number);
  return valid_or_die(snapshot);
}

ObjectBytes snapshot_bytes(uint64_t number, size_t object) {
  return random_bytes(object == 0 ? 640 : 512, Range(), 100 + 2 * number + object);
}

std::shared_ptr<const Valid<StoreManifest>> numbered_manifest(uint64_t number,
                                                              const std::vector<StoredObject>& stored) {
  StoreManifest manifest = *example_store_manifest();
  manifest.snapshot = *numbered_snapshot(number);
  manifest.objects = stored;
  return std::make_shared<const Valid<StoreManifest>>(valid_or_die(std::move(manifest)));
}

PageObjectKey numbered_page(uint64_t number) {
  std::array<uint8_t, 32> bytes = {};
  bytes[0] = static_cast<uint8_t>(number);
  return PageObjectKey{PageKey(Sha256Digest(bytes)), Sha256Digest(), ObjectKey("part"), PageObject::kRows};
}

ObjectBytes page_bytes(uint64_t number) { return random_bytes(20 + number, kPageHole, number); }

Result<uint64_t> publish_snapshot(SmallStore& store, const std::string& txn, uint64_t number,
                                  std::optional<Duration> ttl, const std::string& tenant) {
  const UploadTarget target{tenant, digest(numbered_snapshot(number)), Duration::from_s(60)};
  TRY(const TxnState begun, store.core().begin(TxnId(txn), target));
  std::vector<StoredObject> stored;
  for (size_t i = 0; i < kSnapshotObjects.size(); ++i) {
    TRY(StoredObject object, store.put(TxnId(txn), kSnapshotObjects[i], snapshot_bytes(number, i), Range(), 1 + i));
    stored.push_back(std::move(object));
  }
  TRY(const TxnState ended, store.core().commit(TxnId(txn), Publication{numbered_manifest(number, stored), ttl}));
  if (!ended.sequence) return Status(Code::kConflict, "it was aborted: " + ended.reason);
  return *ended.sequence;
}

Result<uint64_t> publish_pages(SmallStore& store, const std::string& txn, const std::vector<uint64_t>& numbers,
                               std::optional<Duration> ttl) {
  TRY(const TxnState begun, store.core().begin(TxnId(txn), UploadTarget{"team-a", std::nullopt, Duration::from_s(60)}));
  std::vector<PageEntry> entries;
  for (const uint64_t number : numbers) {
    TRY(StoredObject object,
        store.put(TxnId(txn), fmt::format("page{}", number), page_bytes(number), kPageHole, 1 + number % 3));
    entries.push_back(PageEntry{numbered_page(number), std::move(object)});
  }
  TRY(const TxnState ended, store.core().commit(TxnId(txn), Publication{std::move(entries), ttl}));
  if (!ended.sequence) return Status(Code::kConflict, "it was aborted: " + ended.reason);
  return *ended.sequence;
}

}  // namespace crossdock::testing
