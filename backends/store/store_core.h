// The store: transactions, publications, leases, pins and expiry over a RecordTable and a ChunkTable. It is the same
// for every backend. docs/store.md says what is written where, and what a crash leaves behind.
//
// Bulk data goes into segments that no reader sees; a commit makes them durable, then publishes with one durable,
// atomic write of records. So a lookup finds all of a snapshot or nothing (I2), and a crash in between leaves only
// segments that no record names, which recovery collects (I4).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/store/blocking_store.h"
#include "backends/store/tables.h"
#include "base/status.h"
#include "base/time.h"
#include "executor/upload_ledger.h"

namespace crossdock {

struct StoreOptions {
  uint32_t chunk_bytes = 256 << 10;                // unit of checksums and of reading
  uint64_t segment_bytes_max = uint64_t{1} << 28;  // a segment ends after the object that passes it
  uint64_t staging_bytes = uint64_t{64} << 20;     // of all puts and gets together; at least one chunk each is needed
  uint64_t assembly_bytes = uint64_t{256} << 20;   // of objects with several writers, until they are complete
  uint64_t quota_bytes = UINT64_MAX;               // of each tenant: published and being uploaded
  uint64_t lease_count_max = 65536;
  LedgerLimits ledger;
  std::function<TimePoint()> clock;                   // nanoseconds since 1970; empty: the system's
  std::function<void(std::string_view)> crash_point;  // called at each named point of kCrashPoints; for tests
};

// The points between two writes, where a crash leaves another state behind than before the first of them.
extern const std::vector<std::string_view> kCrashPoints;

struct PublicationInfo {
  uint64_t sequence = 0;
  std::optional<ContentId> content;  // empty: pages
  std::string tenant;
  uint64_t object_count = 0;
  uint64_t bytes = 0;  // of its objects
  TimePoint created;
  std::optional<TimePoint> expires;
  bool removed = false;           // lookups do not find it; its data waits for leases to end
  std::vector<std::string> pins;  // names of the holders
  uint64_t lease_count = 0;
};

struct StoreStats {
  uint64_t snapshots = 0;
  uint64_t page_publications = 0;
  uint64_t objects = 0;
  uint64_t bytes = 0;    // of the objects of all publications
  uint64_t removed = 0;  // publications that wait for leases
  uint64_t removed_bytes = 0;
  uint64_t open_transactions = 0;
  uint64_t leases = 0;
  uint64_t pins = 0;
  uint64_t segments = 0;            // of bulk data
  uint64_t staging_bytes_most = 0;  // most of StoreOptions::staging_bytes in use at once since the store was opened
  friend bool operator==(const StoreStats&, const StoreStats&) = default;
};

struct GcReport {
  uint64_t transactions_aborted = 0;  // whose lease ran out
  uint64_t publications_expired = 0;
  uint64_t publications_dropped = 0;  // removed ones without leases
  uint64_t segments_dropped = 0;      // with those that no record names
  uint64_t bytes_dropped = 0;
  uint64_t leases_ended = 0;
};

// A chunk that is missing, has another length, or does not match its checksum.
struct DamagedChunk {
  uint64_t sequence = 0;
  std::string object;
  uint64_t chunk = 0;
  Range bytes;  // of the object
  std::string what;
};

struct VerifyReport {
  uint64_t publications = 0;
  uint64_t objects = 0;
  uint64_t chunks = 0;
  uint64_t bytes = 0;
  std::vector<DamagedChunk> damaged;
};

class StoreCore : public BlockingStore {
 public:
  // Recovers: open transactions whose lease is over are aborted, segments that nothing names are collected, counters
  // are made anew from the records. kInvalidArgument: options or a format that this program does not know; kDataLoss: a
  // record that cannot be read.
  static Result<std::unique_ptr<StoreCore>> open(std::unique_ptr<RecordTable> records,
                                                 std::unique_ptr<ChunkTable> chunks, StoreOptions options);
  ~StoreCore() override;

  Result<TxnState> begin(const TxnId& txn, const UploadTarget& target) override;
  Result<PutReceipt> put(const TxnId& txn, const PutStep& step, const MemoryRegistry& memory) override;
  Result<TxnState> commit(const TxnId& txn, const Publication& publication) override;
  Result<TxnState> abort(const TxnId& txn) override;
  Result<Found> lookup(const Lookup& lookup) override;
  Result<GetReport> get(const GetStep& step, const MemoryRegistry& memory) override;
  Status release(LeaseId lease) override;

  // Every publication by ascending sequence, removed ones included.
  Result<std::vector<PublicationInfo>> list() const;
  // kNotFound when lookups do not find the snapshot. Takes no lease: the data may be removed meanwhile.
  Result<AnyManifest> manifest(const ContentId& content) const;
  // Lookups do not find it from now on; holders of leases can still read it; open uploads of it are aborted. kConflict,
  // naming the holders, when it is pinned; kNotFound when it is not published.
  Status remove(const ContentId& content);
  // The same for one publication, pages included; open uploads go on.
  Status remove_publication(uint64_t sequence);
  // A pin keeps a publication from being removed, expired or evicted until it is taken away.
  // Durable. A second pin of the same holder changes nothing. kNotFound when the publication is removed or unknown;
  // unpin: also when it has no pin of this holder.
  Status pin(uint64_t sequence, const std::string& holder);
  Status unpin(uint64_t sequence, const std::string& holder);
  // Aborts silent uploads, ends leases, removes what has expired, drops what is removed and not leased, and segments
  // that nothing names. Does nothing by itself: the owner of the store calls it from time to time.
  Result<GcReport> gc();
  Result<StoreStats> stats() const;
  // Reads every chunk. `progress` gets the bytes read so far and in all; it stops early when that returns false.
  Result<VerifyReport> verify(const std::function<bool(uint64_t, uint64_t)>& progress) const;

  // Documents beside the data, in lists that the caller names; an unknown list is empty.
  Result<std::vector<std::string>> documents(const Sha256Digest& list) const;
  // Compare and swap, durable: kConflict when the list has not `expected_count` documents any more.
  Status replace_documents(const Sha256Digest& list, const std::vector<std::string>& replacement,
                           uint64_t expected_count);

 private:
  struct State;
  explicit StoreCore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace crossdock
