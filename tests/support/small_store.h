// A store over tables in memory, with a clock that the test turns, and objects whose bytes the test writes itself.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/store/store_core.h"
#include "base/rng.h"
#include "model/kv/snapshot.h"
#include "model/kv/store.h"
#include "model/wire/documents.h"
#include "tests/support/store_tables.h"

namespace crossdock::testing {

using ObjectBytes = std::vector<std::byte>;

inline constexpr std::byte kGuard{0xa5};

// Bytes without meaning; those of `hole` are zero and are never written.
ObjectBytes random_bytes(uint64_t count, Range hole, uint64_t seed);

class SmallStore {
 public:
  explicit SmallStore(uint32_t chunk_bytes = 8) { options.chunk_bytes = chunk_bytes; }

  // Opens it, or opens it again over the same tables.
  Status open();
  StoreCore& core() { return *core_; }
  void pass(Duration time) { now = now + time; }

  // One writer's part of the object's bytes outside of the hole: every `writer_count`-th run of 3 bytes.
  Result<PutReceipt> put_part(const TxnId& txn, const std::string& object, const ObjectBytes& bytes, Range hole,
                              uint64_t writer, uint64_t writer_count);
  // All parts; the object as stored.
  Result<StoredObject> put(const TxnId& txn, const std::string& object, const ObjectBytes& bytes, Range hole = Range(),
                           uint64_t writer_count = 1);
  // The whole object. A failed read has to leave each byte as it was or right, of which `right` knows.
  Result<ObjectBytes> read(LeaseId lease, const FoundObject& object, const ObjectBytes* right = nullptr);

  Result<Found> look_up(const SnapshotId& snapshot, Duration lease = Duration::from_s(60)) {
    return core().lookup(Lookup{snapshot, LeaseRequest{"reader", lease}});
  }
  Result<Found> look_up(std::vector<PageObjectKey> pages, Duration lease = Duration::from_s(60)) {
    return core().lookup(Lookup{std::move(pages), LeaseRequest{"reader", lease}});
  }
  StoreStats stats() { return core().stats().value(); }

  StoreOptions options;
  StoreTables tables;
  TimePoint now = TimePoint::from_ns(0) + Duration::from_s(1000);
  MemoryRegistry memory;

 private:
  RegionKey add_region(std::span<std::byte> bytes);

  std::unique_ptr<StoreCore> core_;
  uint64_t epoch_ = 0;
};

// A snapshot of two objects of these names; others of other `number`s.
inline const std::vector<std::string> kSnapshotObjects = {"request-17/full", "request-17/rest"};
Valid<SnapshotDescriptor> numbered_snapshot(uint64_t number);
// Its bytes: 640 and 512 of them.
ObjectBytes snapshot_bytes(uint64_t number, size_t object);
std::shared_ptr<const Valid<StoreManifest>> numbered_manifest(uint64_t number, const std::vector<StoredObject>& stored);

PageObjectKey numbered_page(uint64_t number);

// Begins, puts and commits; the publication's sequence.
Result<uint64_t> publish_snapshot(SmallStore& store, const std::string& txn, uint64_t number,
                                  std::optional<Duration> ttl = std::nullopt, const std::string& tenant = "team-a");
// Pages whose objects are "page<number>" with the bytes random_bytes(20 + number, hole, number).
Result<uint64_t> publish_pages(SmallStore& store, const std::string& txn, const std::vector<uint64_t>& numbers,
                               std::optional<Duration> ttl = std::nullopt);
ObjectBytes page_bytes(uint64_t number);

}  // namespace crossdock::testing
