// The records of the store and their keys in the RecordTable. docs/store.md lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "executor/store_types.h"

namespace crossdock {

// The kinds of records; the key of a record begins with its kind and '/'.
inline constexpr std::string_view kFormatKey = "f/format";
inline constexpr std::string_view kLifeKey = "f/life";  // how often the store was opened
inline constexpr std::string_view kTxnPrefix = "t/";
inline constexpr std::string_view kPublicationPrefix = "p/";
inline constexpr std::string_view kManifestPrefix = "m/";
inline constexpr std::string_view kObjectsPrefix = "o/";
inline constexpr std::string_view kPagePrefix = "k/";
inline constexpr std::string_view kLeasePrefix = "l/";
inline constexpr std::string_view kCatalogPrefix = "c/";

inline constexpr uint64_t kStoreFormat = 1;

// Keys of single records. Names were checked by the store: 1 to kNameBytesMax bytes.
std::string txn_key(const TxnId& txn);
std::string numbered_key(std::string_view prefix, uint64_t number);  // sorts by number
std::string page_key(const PageObjectKey& key);

// A transaction: open from its begin on, then closed and remembered for a while (LedgerLimits::closed_kept).
struct TxnRecord {
  TxnState state;
  UploadTarget target;
  TimePoint time;  // of the begin, or of the end

  friend bool operator==(const TxnRecord&, const TxnRecord&) = default;
};

// What lookups find, until it is removed. It is written anew when pins change or it is removed, in full.
struct PublicationRecord {
  uint64_t sequence = 0;
  TxnId txn;
  std::optional<ContentId> content;
  std::string tenant;
  uint64_t object_count = 0;
  // Of its objects, padding included.
  uint64_t bytes = 0;
  TimePoint created;
  std::optional<TimePoint> expires;
  bool removed = false;
  std::set<std::string> pins;
  std::vector<uint64_t> segments;  // ascending

  friend bool operator==(const PublicationRecord&, const PublicationRecord&) = default;
};

// The objects of a publication: numbers in the order of the manifest, or the keys of its pages.
struct ObjectsRecord {
  std::vector<ObjectNumber> numbers;
  std::vector<std::string> page_keys;

  friend bool operator==(const ObjectsRecord&, const ObjectsRecord&) = default;
};

// Where one page object is. Of several publications with the same page, the one that this record names has it.
struct PageRecord {
  uint64_t sequence = 0;
  FoundObject object;

  friend bool operator==(const PageRecord&, const PageRecord&) = default;
};

// While it lasts, the data of its publications stays. `end` is by the store's clock, in nanoseconds since 1970.
struct LeaseRecord {
  LeaseId id;
  std::string holder;
  TimePoint end;
  std::vector<uint64_t> sequences;  // ascending

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

std::string encode(const TxnRecord& record);
std::string encode(const PublicationRecord& record);
std::string encode(const ObjectsRecord& record);
std::string encode(const PageRecord& record);
std::string encode(const LeaseRecord& record);

// kDataLoss, naming the key, when the bytes are no such record.
template <class Record>
Result<Record> decode(std::string_view key, std::string_view bytes);

}  // namespace crossdock
