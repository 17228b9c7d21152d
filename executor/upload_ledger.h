// Upload ledger: the rules of upload transactions, for every store. It holds no bytes and does no I/O; a store asks it
// before it acts and tells it what happened. Not for several threads at once: the store's lock guards it.
//
//   begin -> put* -> commit | abort
//
// Commit and abort race: the first wins, the other is told. An abort of an unknown transaction leaves a tombstone, so
// that a delayed begin cannot revive it. A transaction whose uploader fell silent is aborted at the end of its lease;
// every begin and put renews it. Repeating a call gives the answer of the first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/range.h"
#include "base/status.h"
#include "base/time.h"
#include "executor/ids.h"
#include "executor/store_types.h"

namespace crossdock {

// Counts are of one ledger, which is one store.
struct LedgerLimits {
  size_t open_count_max = 4096;                   // transactions
  size_t closed_count_max = 65536;                // committed and aborted ones that are remembered
  uint64_t object_count_max = uint64_t{1} << 24;  // of one transaction
  Duration closed_kept = Duration::from_s(3600);  // how long they are remembered
};

class UploadLedger {
 public:
  explicit UploadLedger(const LedgerLimits& limits = {}) : limits_(limits) {}

  // The state of the transaction, which is open from now on if it was unknown. kConflict when it was begun with
  // another target; kUnavailable beyond the limits.
  // Repeating it renews the lease.
  Result<TxnState> begin(const TxnId& txn, const UploadTarget& target, TimePoint now);

  // Takes a begin back that could not be recorded; nothing was put.
  void undo_begin(const TxnId& txn);

  // Whether the fragment may be taken. A receipt: this writer's fragment was taken before, and this was the answer.
  // Empty: take it, then call fragment_taken() or fragment_failed(). kConflict: the transaction is not open.
  // kUnavailable: the same fragment is under way, or fragments of a lost object are. kInvalidArgument: sizes differ
  // from those of the object's other fragments, more bytes would be written than the object's payload, none of it, a
  // byte that is written already, or too many objects.
  Result<std::optional<PutReceipt>> admit(const TxnId& txn, const PutStep& step, TimePoint now);

  // The fragment's bytes were taken. True: with it the object is complete, and object_stored() has to follow.
  // kConflict when the transaction was aborted meanwhile, kUnavailable when the object was lost; the bytes are then
  // garbage.
  Result<bool> fragment_taken(const TxnId& txn, const PutStep& step);
  void fragment_failed(const TxnId& txn, const PutStep& step);
  // The receipt of the fragment that completed the object.
  Result<PutReceipt> object_stored(const TxnId& txn, const PutStep& step, StoredObject stored);
  // The bytes of an object are gone again: its fragments count as never taken, those under way included.
  // `why` is kept, and named when an object that was not put is asked for.
  void object_lost(const TxnId& txn, const RegionId& object, const std::string& why = {});

  // kOpen: every object that the publication names is stored and equal in size and checksums, no other was put, and the
  // snapshot is the one of begin; the transaction is now committing, until committed() or commit_failed(). kCommitted
  // or kAborted: decided before. kNotFound: an object is missing or incomplete, which is named. kConflict: unknown
  // transaction. kUnavailable: a put or a commit is under way. kInvalidArgument: the publication differs from what was
  // put.
  Result<TxnState> start_commit(const TxnId& txn, const Publication& publication, TimePoint now);
  TxnState committed(const TxnId& txn, uint64_t sequence, TimePoint now);
  void commit_failed(const TxnId& txn);

  // The state afterwards: kAborted, or kCommitted when that came first. kUnavailable while it is committing.
  Result<TxnState> abort(const TxnId& txn, const std::string& reason, TimePoint now);

  // Open transactions whose lease is over. Not those that are committing; one with a fragment under way has its lease
  // renewed.
  std::vector<TxnId> silent(TimePoint now);
  // Open transactions that are going to publish the content.
  std::vector<TxnId> uploads_of(const ContentId& content) const;
  // Forgets closed transactions that are older than the limits; returns them.
  std::vector<TxnId> forget(TimePoint now);

  // After a restart: what was recorded of a transaction. Its objects are not known any more.
  void restore(const TxnState& state, const UploadTarget& target, TimePoint lease_end_or_closed);

  const UploadTarget* target(const TxnId& txn) const;
  bool is_open(const TxnId& txn) const;  // committing included
  size_t open_count() const { return open_count_; }
  // Bytes of the objects of open transactions of a tenant, complete or not.
  uint64_t open_bytes(const std::string& tenant) const;

 private:
  struct Object {
    uint64_t bytes = 0;
    uint64_t payload_bytes = 0;
    uint64_t taken_bytes = 0;
    std::vector<Range> taken;                    // which; complete is what has no hole and not what has enough bytes
    std::map<std::string, PutReceipt> receipts;  // by writer
    std::set<std::string> under_way;
    std::optional<StoredObject> stored;
    bool lost = false;  // forgotten when nothing of it is under way any more
  };
  struct Txn {
    UploadTarget target;
    TxnState state;
    bool committing = false;
    TimePoint time;  // open: end of the lease; closed: when
    std::map<RegionId, Object> objects;
    std::string last_loss = {};  // why the store last lost bytes; empty: it has not
  };

  Result<Txn*> open_txn(const TxnId& txn);
  Result<Object*> object_under_way(Txn& txn, const PutStep& step);
  void forget_object(Txn& txn, const RegionId& object);
  Status check_object(const Txn& txn, const StoredObject& wanted) const;
  TxnState close(Txn& txn, TxnPhase phase, TimePoint now);

  LedgerLimits limits_;
  std::map<TxnId, Txn> txns_;
  size_t open_count_ = 0;
  std::map<std::string, uint64_t> open_bytes_;
};

}  // namespace crossdock
