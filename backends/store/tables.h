// The two tables under a store: a small ordered table for records, and a table for bulk data in chunks. store_core.h
// implements everything else, so a store backend implements these two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "executor/ids.h"

namespace crossdock {

struct RecordChange {
  std::string key;
  std::optional<std::string> value;  // empty: the key is removed
};

// A change that fails with an error did not happen, once the table has recovered from it; if the process dies before
// that, it may have happened, in full. kUnavailable: the table is recovering, the same call may succeed later.

// Thread-safe.
class RecordTable {
 public:
  virtual ~RecordTable() = default;
  virtual Result<std::optional<std::string>> get(const std::string& key) const = 0;
  // All changes or none, also after a crash. `durable`: survives loss of power once it returns; else a crash of the
  // process only.
  virtual Status write(std::span<const RecordChange> changes, bool durable) = 0;
  // Calls visit(key, value) for each key with the prefix, in order of bytes, until it returns false. visit() changes
  // nothing in the tables.
  virtual Status scan(const std::string& prefix,
                      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;
};

// Bulk data lies in segments; a segment holds objects, an object has chunks. The number of an object is
// segment * kObjectsPerSegment + its index in the segment.
inline constexpr uint64_t kObjectsPerSegment = uint64_t{1} << 24;

inline uint64_t segment_of(ObjectNumber object) { return object.value() / kObjectsPerSegment; }

// Writes one segment, by one thread at a time. Objects come in ascending order, and the chunks of each too; chunks may
// be left out. A writer that is destroyed without being made part of the table leaves nothing behind.
class SegmentWriter {
 public:
  virtual ~SegmentWriter() = default;
  // finish() may be the first to report an error of an append.
  virtual Status append(ObjectNumber object, uint32_t chunk, std::span<const std::byte> bytes) = 0;
  // Bytes so far.
  virtual uint64_t bytes() const = 0;
  // No append follows. Waits for the disk as far as possible without add(), so that add() is short.
  virtual Status finish() = 0;
};

struct ChunkName {
  ObjectNumber object;
  uint32_t chunk = 0;
};

// Thread-safe.
class ChunkTable {
 public:
  virtual ~ChunkTable() = default;
  // `segment` is below 2^40 - 1, is not in use, and was not given to this object of the table before.
  virtual Result<std::unique_ptr<SegmentWriter>> new_segment(uint64_t segment) = 0;
  // Makes finished segments part of the table; durable once it returns. All or none, unless the process dies.
  virtual Status add(std::vector<std::unique_ptr<SegmentWriter>> segments) = 0;
  // Calls take(i, bytes) for each name, in ascending order of i; `found` false where there is no such chunk. The bytes
  // are valid during the call only, and take changes nothing in the tables. Nothing is verified. Stops when take fails,
  // with its status.
  using Take = std::function<Status(size_t i, bool found, std::span<const std::byte> bytes)>;
  virtual Status read(std::span<const ChunkName> names, const Take& take) const = 0;
  // A segment that does not exist is no error.
  virtual Status remove(std::span<const uint64_t> segments) = 0;
  // Numbers of all segments that are part of the table, ascending; those of a segment that was removed may still
  // appear until the backend got rid of it.
  virtual Result<std::vector<uint64_t>> segments() const = 0;
};

}  // namespace crossdock
