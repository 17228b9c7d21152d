// The state of StoreCore; for its own source files.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/store/store_core.h"
#include "backends/store/store_records.h"
#include "base/lru_map.h"

namespace crossdock {

// The bytes of chunk `chunk` of an object.
// The products do not overflow for objects that put() admitted: at most 2^32 - 1 chunks of 32 bits.
inline Range chunk_range(uint64_t chunk, uint64_t chunk_bytes, uint64_t object_bytes) {
  return Range(chunk * chunk_bytes, std::min((chunk + 1) * chunk_bytes, object_bytes));
}

// Bytes of staging memory that all puts and gets share. A holder of a share waits for no other share, so shares never
// deadlock.
class Staging {
 public:
  explicit Staging(uint64_t bytes_max) : left_(bytes_max), bytes_max_(bytes_max) {}

  class Share {
   public:
    Share(Staging& staging, uint64_t bytes) : staging_(staging), bytes_(staging.take(bytes)) {}
    ~Share() { staging_.give(bytes_); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    Staging& staging_;
    uint64_t bytes_;
  };
  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t most_used() const {
    const std::lock_guard lock(mutex_);
    return most_used_;
  }

 private:
  uint64_t take(uint64_t bytes);
  void give(uint64_t bytes);

  mutable std::mutex mutex_;
  std::condition_variable freed_;
  uint64_t left_;
  uint64_t bytes_max_;
  uint64_t most_used_ = 0;
};

// A segment that an upload writes, and which of its objects are in it.
struct UploadSegment {
  uint64_t number = 0;
  uint64_t object_count = 0;
  std::unique_ptr<SegmentWriter> writer;
  std::vector<RegionId> objects;
  bool finished = false;
};

// The bytes of an object with several writers, until all of them are there.
struct Assembly {
  std::vector<std::byte> bytes;
  uint64_t charged = 0;
};

// The bulk data of an open upload.
struct UploadData {
  std::vector<std::unique_ptr<UploadSegment>> segments;  // that no put is writing
  std::set<uint64_t> numbers;                            // of all its segments
  std::map<RegionId, ObjectNumber> objects;
  std::map<RegionId, std::shared_ptr<Assembly>> assemblies;
  bool added = false;  // segments are part of the table
  // Set before the publication's records are written, and kept when that ends unknown: a repeated commit writes the
  // same records again, and an abort removes them (I2).
  std::optional<uint64_t> sequence;
};

// Everything a store knows between two calls. Methods that do bulk I/O take the mutex only for their look into the
// maps.
struct StoreCore::State {
  State(std::unique_ptr<RecordTable> record_table, std::unique_ptr<ChunkTable> chunk_table, StoreOptions store_options);

  TimePoint now() const;
  void crash_point(std::string_view name) const {
    if (options.crash_point) options.crash_point(name);
  }
  Status write(std::vector<RecordChange> changes, bool durable) { return records->write(changes, durable); }

  // With the mutex held:
  Result<TxnState> abort(const TxnId& txn, const std::string& reason);
  Status mark_removed(PublicationRecord& publication);
  Result<PublicationRecord*> find(const ContentId& content);
  // One that look-ups find.
  Result<const PublicationRecord*> find_live(const ContentId& content, TimePoint time);
  // A record that another record requires: kDataLoss when it is missing.
  Result<std::string> required_record(const std::string& key) const;
  Result<AnyManifest> manifest_of(uint64_t sequence);
  bool is_leased(uint64_t sequence) const;
  void count_off(const LeaseRecord& lease);
  std::map<LeaseId, LeaseRecord>::iterator forget_lease(std::map<LeaseId, LeaseRecord>::iterator lease);
  // Whether look-ups find it.
  static bool is_live(const PublicationRecord& record, TimePoint time) {
    return !record.removed && (!record.expires || *record.expires > time || !record.pins.empty());
  }
  // Whether the record of a page object is this publication's; false when there is none.
  Result<bool> owns_page(uint64_t sequence, const std::string& key) const;
  uint64_t tenant_bytes(const std::string& tenant) const;
  uint64_t next_segment();

  // Takes the mutex itself:
  Result<GcReport> collect(std::unique_lock<std::mutex>& lock);
  Status drop(uint64_t sequence, std::unique_lock<std::mutex>& lock);

  // Bulk data, without the mutex.
  Result<StoredObject> write_object(const TxnId& txn, const PutStep& step, const MemoryRegistry& memory);
  Result<StoredObject> write_assembled(const TxnId& txn, const PutStep& step, const Assembly& assembly);
  Status assemble(const PutStep& step, const MemoryRegistry& memory, Assembly& assembly);
  Result<std::unique_ptr<UploadSegment>> take_segment(const TxnId& txn);
  Status give_segment(const TxnId& txn, std::unique_ptr<UploadSegment> segment, const Status& status);
  template <class FillChunk>
  Result<StoredObject> append_object(const TxnId& txn, const PutStep& step, FillChunk fill_chunk);
  uint32_t zero_crc(uint64_t bytes) const;
  // OK when the step's lease has not ended and holds the object that the step reads.
  Status check_lease(const GetStep& step) const;
  // Reads the chunks of an object and verifies them; calls use(chunk, bytes) for each.
  using UseChunk = std::function<void(uint64_t chunk, std::span<const std::byte> bytes)>;
  Status read_chunks(const FoundObject& object, std::span<const uint64_t> chunks, const UseChunk& use,
                     GetReport& report) const;

  const StoreOptions options;
  const std::unique_ptr<RecordTable> records;
  const std::unique_ptr<ChunkTable> chunks;
  // Waited for without the mutex: a get that waits must not stop the put that will give memory back.
  mutable Staging staging;

  // Where no clock is given: the system's when the store was opened, and from then on a clock that nobody sets. A step
  // of the system's clock must not end leases.
  const TimePoint opened_at;
  const TimePoint opened_steady;

  // Guards all that follows.
  mutable std::mutex mutex;
  UploadLedger ledger;
  std::map<TxnId, UploadData> uploads;
  std::map<uint64_t, PublicationRecord> publications;
  std::map<ContentId, uint64_t> contents;  // publications that are not removed
  std::map<std::string, uint64_t> published_bytes;
  std::map<LeaseId, LeaseRecord> leases;
  std::map<uint64_t, uint64_t> lease_counts;  // by publication
  // Of look-ups that may be repeated, by holder and request. Not in the records: after a restart a repetition gets
  // another lease, and the first one runs out.
  std::map<std::pair<std::string, std::string>, LeaseId> requested_leases;
  // The last numbers that were given out; numbers are never given twice in the life of a store.
  uint64_t last_segment = 0;
  uint64_t last_sequence = 0;
  uint64_t last_lease = 0;
  uint64_t assembly_bytes = 0;
  std::set<uint64_t> dropping;  // publications whose data is being removed
  LruMap<uint64_t, AnyManifest> manifests{32};
};

}  // namespace crossdock
