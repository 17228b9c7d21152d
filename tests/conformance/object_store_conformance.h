// What every ObjectStore keeps; executor/ports.h and executor/store_types.h have the rules. The tests are in three
// files: bytes, transactions, leases.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/kv/snapshot.h"
#include "model/valid.h"
#include "tests/conformance/conformance_test.h"

namespace crossdock::testing {

class ObjectStoreConformance : public ConformanceTest {
 protected:
  void SetUp() override { open_store({}); }
  void open_store(const BackendOptions& options) {
    open(options);
    chunk_bytes_ = options.chunk_bytes;
    user_ = &join("user");
  }
  Participant& user() { return *user_; }

  // Transactions.
  TxnState begin(const std::string& txn, std::optional<SnapshotId> snapshot = {}, const std::string& tenant = "tenant");
  // All of an object, by one writer. The bytes are registered, under a name of their own.
  PutStep whole(const std::string& object, const Bytes& bytes);
  StoredObject put(const std::string& txn, const std::string& object, const Bytes& bytes);
  Status status_of(const Call& call) { return user_->run(call).status; }
  // What the store has to say of an object with these bytes.
  StoredObject stored(const std::string& object, const Bytes& bytes) const;

  // Publications.
  static PageObjectKey page_key(const std::string& object);
  static Publication pages_of(const std::vector<StoredObject>& objects);
  // Begins, puts and commits; the objects' page keys are page_key() of their names.
  TxnState publish(const std::string& txn, const std::map<std::string, Bytes>& objects);
  static Valid<SnapshotDescriptor> snapshot(const std::string& resource);
  static SnapshotId snapshot_id(const std::string& resource);
  // One byte of cache in the first object, which is not empty.
  static Publication manifest_of(const std::string& resource, std::vector<StoredObject> objects);
  TxnState publish_snapshot(const std::string& resource, const std::map<std::string, Bytes>& objects);

  // Reading.
  static LookupPost look_up(const std::string& resource, Duration lease = Duration::from_s(60));
  static LookupPost look_up_pages(const std::vector<std::string>& objects, Duration lease = Duration::from_s(60));
  struct Got {
    Status status;
    GetReport report;
    Bytes bytes;
  };
  // All bytes of an object, read as one piece.
  Got get(LeaseId lease, const FoundObject& object);
  void expect_bytes(const Found& found, const std::vector<Bytes>& expected);
  void release(const Found& found) { EXPECT_EQ(status_of(ReleaseLeasePost{found.lease}), Status()); }

  Participant* user_ = nullptr;
  uint32_t chunk_bytes_ = 0;
  uint64_t region_count_ = 0;
};

}  // namespace crossdock::testing
