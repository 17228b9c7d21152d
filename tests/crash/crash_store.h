// The store that the crash tests open: RocksDB tables that a check can read while a store uses them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/rocksdb/rocksdb_tables.h"
#include "backends/store/store_core.h"
#include "tests/crash/content.h"

namespace crossdock::testing {

inline constexpr uint32_t kChunkBytes = 4096;
inline constexpr uint64_t kQuotaBytes = uint64_t{1} << 40;
inline constexpr Duration kExpiry = Duration::from_s(10);
inline constexpr Duration kShortLease = Duration::from_s(10);
inline constexpr Duration kLongLease = Duration::from_s(30'000);
// Times of each run: its begin, a first check after the short leases have ended, and a second after all have.
inline constexpr Duration kRunTime = Duration::from_s(1'000'000);
inline constexpr Duration kShortIsOver = Duration::from_s(10'000);
inline constexpr Duration kAllIsOver = Duration::from_s(500'000);

inline TimePoint begin_of_run(uint32_t run) {
  return TimePoint::from_ns(0) + Duration::from_ns(kRunTime.ns() * (run + 1));
}

StoreOptions small_options();

// A store and its tables.
struct OpenStore {
  std::shared_ptr<RecordTable> records;
  std::shared_ptr<ChunkTable> chunks;
  std::unique_ptr<StoreCore> core;  // goes first
};
Result<OpenStore> open_store(const RocksDbOptions& tables, StoreOptions options);
// Makes an empty store.
Status create_store(const RocksDbOptions& tables);

// All writers' parts of an object, or those of the first `writer_count`; empty when it is not complete then.
Result<std::optional<StoredObject>> put_object(StoreCore& core, MemoryRegistry& memory, const TxnId& txn,
                                               const ObjectPlan& object, uint64_t seed,
                                               uint64_t writer_count = UINT64_MAX);
Result<Content> read_object(StoreCore& core, MemoryRegistry& memory, LeaseId lease, const FoundObject& object);
// kInvalidArgument, naming object and byte, when a byte that was read is wrong; other errors are the store's.
Status check_snapshot(StoreCore& core, MemoryRegistry& memory, const Found& found, const std::string& name,
                      uint64_t seed);
Status check_page(StoreCore& core, MemoryRegistry& memory, const Found& found, size_t number, uint64_t page,
                  uint64_t seed);

}  // namespace crossdock::testing
