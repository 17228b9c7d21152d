// Tables in memory: for a store that lives as long as its process, and for tests.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/store/tables.h"

namespace crossdock {

// Never fails. `durable` has no meaning here.
class HeapRecordTable : public RecordTable {
 public:
  Result<std::optional<std::string>> get(const std::string& key) const override;
  Status write(std::span<const RecordChange> changes, bool durable) override;
  Status scan(const std::string& prefix,
              const std::function<bool(std::string_view key, std::string_view value)>& visit) const override;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> records_;
};

// Never fails; wrong calls (an unfinished segment, chunks out of order) are CHECKed.
class HeapChunkTable : public ChunkTable {
 public:
  Result<std::unique_ptr<SegmentWriter>> new_segment(uint64_t segment) override;
  Status add(std::vector<std::unique_ptr<SegmentWriter>> segments) override;
  Status read(std::span<const ChunkName> names, const Take& take) const override;
  Status remove(std::span<const uint64_t> segments) override;
  Result<std::vector<uint64_t>> segments() const override;

 private:
  using Chunks = std::map<std::pair<ObjectNumber, uint32_t>, std::vector<std::byte>>;
  class Writer;

  mutable std::mutex mutex_;
  // Shared with readers, so that a removal does not take bytes from under a read.
  std::map<uint64_t, std::shared_ptr<const Chunks>> segments_;
};

}  // namespace crossdock
