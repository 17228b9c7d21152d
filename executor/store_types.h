// What an object store is told and what it answers. See executor/ports.h for the port, executor/upload_ledger.h for the
// rules of transactions.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/range.h"
#include "base/sha256.h"
#include "base/time.h"
#include "executor/copy_work.h"
#include "executor/ids.h"
#include "model/kv/store.h"
#include "model/valid.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"

namespace crossdock {

// A stored snapshot is found by the identity of its descriptor: equal content, equal name.
using SnapshotId = Sha256Digest;

// One page object's place in a page store: planner/kv/prefix_match.h, PageInventory.
struct PageObjectKey {
  PageKey page;
  Sha256Digest layout;
  ObjectKey part;
  PageObject object = PageObject::kRows;

  // "page 3f21.. layout 9a0c.. part 'h0' rows"
  std::string to_text() const;

  friend auto operator<=>(const PageObjectKey&, const PageObjectKey&) = default;
};

// What a transaction is going to publish.
struct UploadTarget {
  std::string tenant;                  // whose quota it counts against
  std::optional<SnapshotId> snapshot;  // empty: pages
  // How long the uploader may be silent before the transaction is aborted.
  Duration lease = Duration::from_s(60);

  friend bool operator==(const UploadTarget&, const UploadTarget&) = default;
};

// One fragment: what one writer has of one object. The steps' target offsets count in the object; bytes of the object
// that no writer writes are zero.
struct PutStep {
  RegionId object;             // its name in the transaction
  uint64_t object_bytes = 0;   // of the whole object; may be 0
  uint64_t payload_bytes = 0;  // that all writers together write into it
  std::string writer;          // each writer has one fragment of an object at most
  StepSpan steps;
};

// A store's word: the bytes of this fragment are taken. Once all fragments of an object are, it is stored, and the
// receipt that completed it has the checksum of each of its chunks as stored (model/kv/store.h, StoredObject).
struct PutReceipt {
  TxnId txn;
  RegionId object;
  std::string writer;
  uint64_t bytes = 0;                  // of the fragment
  std::optional<StoredObject> stored;  // of the whole object, by the receipt that completed it
  bool path_quiet = true;              // nothing of this operation is under way any more

  friend bool operator==(const PutReceipt&, const PutReceipt&) = default;
};

struct PageEntry {
  PageObjectKey key;
  StoredObject object;  // its id is that of the transaction

  friend bool operator==(const PageEntry&, const PageEntry&) = default;
};

// What a commit makes visible, at once: one snapshot, or any number of page objects. A page object that is there
// already stays as it is, since equal keys mean equal content.
struct Publication {
  std::variant<std::shared_ptr<const Valid<StoreManifest>>, std::vector<PageEntry>> content;
  std::optional<Duration> ttl;  // from the commit on; empty: without end
};

enum class TxnPhase { kOpen, kCommitted, kAborted };

struct TxnState {
  TxnId txn;
  TxnPhase phase = TxnPhase::kOpen;
  std::string reason;                // of an abort
  std::optional<uint64_t> sequence;  // of the publication, counted by the store

  friend bool operator==(const TxnState&, const TxnState&) = default;
};

// Who wants to be sure that what was found stays readable, and for how long.
struct LeaseRequest {
  std::string holder;
  Duration duration = Duration::from_s(60);
};

struct Lookup {
  // A snapshot, or page objects.
  std::variant<SnapshotId, std::vector<PageObjectKey>> key;
  LeaseRequest lease;
};

struct FoundObject {
  StoredObject object;
  ObjectNumber number;  // by which it is read

  friend bool operator==(const FoundObject&, const FoundObject&) = default;
};

// Found and leased. For pages: those of the keys that are there, in the order they were asked for.
struct Found {
  LeaseId lease;
  TimePoint lease_end;                                   // by the store's clock
  std::shared_ptr<const Valid<StoreManifest>> manifest;  // of a snapshot; else null
  std::vector<FoundObject> objects;                      // of a snapshot: those of the manifest, in its order
  std::vector<PageObjectKey> pages;                      // of each object, for pages
};

// Reads a part of one object. The steps' source offsets count in the object. Only chunks that a step touches are read,
// each once, and their checksums are verified before any of their bytes is handed out.
struct GetStep {
  LeaseId lease;
  std::shared_ptr<const FoundObject> object;
  Range within;  // only the pieces of steps within these bytes of the object; begins and ends at chunks
  StepSpan steps;
};

struct GetReport {
  uint64_t bytes = 0;       // delivered
  uint64_t bytes_read = 0;  // of stored chunks
  uint64_t chunks_read = 0;

  GetReport& operator+=(const GetReport& other) {
    bytes += other.bytes;
    bytes_read += other.bytes_read;
    chunks_read += other.chunks_read;
    return *this;
  }
  friend bool operator==(const GetReport&, const GetReport&) = default;
};

}  // namespace crossdock
