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
#include "model/any_manifest.h"
#include "model/content_id.h"
#include "model/page_object.h"
#include "model/stored_object.h"

namespace crossdock {

// What a transaction is going to publish.
struct UploadTarget {
  std::string tenant;                // whose quota it counts against
  std::optional<ContentId> content;  // empty: pages
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

// A store's answer: the bytes of this fragment are taken. Once all fragments of an object are, it is stored, and the
// receipt that completed it has the checksum of each of its chunks as stored (model/stored_object.h).
struct PutReceipt {
  TxnId txn;
  RegionId object;
  std::string writer;
  uint64_t bytes = 0;                  // of the fragment
  std::optional<StoredObject> stored;  // of the whole object, by the receipt that completed it

  friend bool operator==(const PutReceipt&, const PutReceipt&) = default;
};

// One page object of a publication.
struct PageEntry {
  PageObjectKey key;
  StoredObject object;  // its id is that of the transaction

  friend bool operator==(const PageEntry&, const PageEntry&) = default;
};

// A manifest with all that it names, or page objects.
using PublishedContent = std::variant<AnyManifest, std::vector<PageEntry>>;

// What a commit makes visible, at once: one manifest, or any number of page objects. A page object that is there
// already stays as it is, since equal keys mean equal content.
struct Publication {
  PublishedContent content;
  std::optional<Duration> ttl;  // from the commit on; empty: without end
};

// A transaction leaves kOpen once and never comes back.
enum class TxnPhase { kOpen, kCommitted, kAborted };

// What a store answers to begin, commit and abort. Repeating a call gives the same answer (R4).
struct TxnState {
  TxnId txn;
  TxnPhase phase = TxnPhase::kOpen;
  std::string reason;                // of an abort
  std::optional<uint64_t> sequence;  // of the publication, counted by the store

  friend bool operator==(const TxnState&, const TxnState&) = default;
};

// The holder of a lease, and how long what was found stays readable for it.
struct LeaseRequest {
  std::string holder;
  Duration duration = Duration::from_s(60);
  // Chosen by the holder, for a look-up that may be repeated: the same holder and request get the same lease, which is
  // renewed. Empty: each look-up has a lease of its own.
  std::string request = {};
};

// Content that has a manifest, or page objects.
using LookupKey = std::variant<ContentId, std::vector<PageObjectKey>>;

// A look-up leases what it finds: it is not deleted before the lease ends or is released.
struct Lookup {
  LookupKey key;
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
  TimePoint lease_end;               // by the store's clock
  AnyManifest manifest;              // null for pages
  std::vector<FoundObject> objects;  // those of the manifest, in its order
  std::vector<PageObjectKey> pages;  // of each object, for pages
};

// Reads a part of one object. The steps' source offsets count in the object. Only chunks that a step touches are read,
// each once, and their checksums are verified before any of their bytes is handed out.
struct GetStep {
  LeaseId lease;
  std::shared_ptr<const FoundObject> object;
  Range within;  // only the pieces of steps within these bytes of the object; begins and ends at chunks
  StepSpan steps;
  GrantId grant = {};  // of the memory that the steps write into
};

// Of one get, or the sum of several; in bytes and chunks.
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
