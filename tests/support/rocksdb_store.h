// A store on RocksDB in a directory of its own, for tests; what it holds is told from its numbers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/rocksdb/rocksdb_tables.h"
#include "tests/support/fault_file_system.h"

namespace crossdock {

using Segments = std::vector<uint64_t>;
using Chunks = std::map<std::pair<uint64_t, uint32_t>, std::string>;  // by object and index
using Records = std::map<std::string, std::string>;

// What a test's segment holds: three objects, of which the second has no second chunk. Lengths differ.
inline Chunks chunks_of(uint64_t segment) {
  Chunks chunks;
  for (uint64_t object = 0; object < 3; ++object)
    for (uint32_t chunk = 0; chunk < 3; ++chunk) {
      if (object == 1 && chunk == 1) continue;
      std::string bytes(5000 + 1000 * chunk + object, '\0');
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<char>(segment * 101 + object * 31 + chunk * 7 + i * (i / 256 + 1));
      chunks[{segment * kObjectsPerSegment + 5 * object, chunk}] = std::move(bytes);
    }
  return chunks;
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

class RocksDbStore : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "crossdock_rocksdb_XXXXXX";
    ASSERT_NE(::mkdtemp(root_.data()), nullptr);
    directory_ = root_ + "/store";
  }
  void TearDown() override {
    close();
    std::filesystem::remove_all(root_);
  }

  // Also closes what was open.
  Status open(bool create = false) {
    close();
    Result<RocksDbTables> opened = open_rocksdb_tables({.directory = directory_, .create = create, .env = env_.get()});
    if (!opened.ok()) return opened.status();
    tables_ = std::move(opened).value();
    return Status();
  }
  void close() { tables_ = RocksDbTables(); }
  // The process ends, and with kLost or kTorn the machine too; then the store is opened.
  Status crash(UnsyncedBytes unsynced) {
    system_->power_off();
    close();
    system_->clear_faults();
    system_->power_on(unsynced);
    return open();
  }

  RecordTable& records() { return *tables_.records; }
  ChunkTable& chunks() { return *tables_.chunks; }

  Status write(const std::string& key, std::optional<std::string> value, bool durable = true) {
    const RecordChange change{key, std::move(value)};
    return records().write({&change, 1}, durable);
  }
  Records all_records() {
    Records found;
    const Status status = records().scan(
        "", [&found](std::string_view key, std::string_view value) { return found.emplace(key, value).second; });
    EXPECT_EQ(status, Status());
    return found;
  }

  // Appends all chunks of the segment, and finishes it when nothing failed.
  Status fill(SegmentWriter& writer, uint64_t segment) {
    for (const auto& [name, bytes] : chunks_of(segment))
      TRY_STATUS(writer.append(ObjectNumber(name.first), name.second, bytes_of(bytes)));
    return writer.finish();
  }
  Status add(const Segments& segments) {
    std::vector<std::unique_ptr<SegmentWriter>> writers;
    for (const uint64_t segment : segments) {
      TRY(std::unique_ptr<SegmentWriter> writer, chunks().new_segment(segment));
      TRY_STATUS(fill(*writer, segment));
      writers.push_back(std::move(writer));
    }
    return chunks().add(std::move(writers));
  }

  // What is there of the names; the first error ends it.
  Result<Chunks> read(const std::vector<ChunkName>& names) {
    Chunks found;
    size_t next = 0;
    TRY_STATUS(chunks().read(names, [&](size_t i, bool is_found, std::span<const std::byte> bytes) {
      EXPECT_EQ(i, next++);
      if (is_found)
        found[{names[i].object.value(), names[i].chunk}] =
            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return Status();
    }));
    EXPECT_EQ(next, names.size());
    return found;
  }
  // The names of a segment's chunks, with some around them that are not there.
  static std::vector<ChunkName> names_of(uint64_t segment) {
    std::vector<ChunkName> names;
    for (uint64_t object = 0; object < 11; ++object)
      for (uint32_t chunk = 0; chunk < 4; ++chunk)
        names.push_back({ObjectNumber(segment * kObjectsPerSegment + object), chunk});
    return names;
  }
  void expect_segments(const Segments& segments) {
    const Result<Segments> listed = chunks().segments();
    ASSERT_EQ(listed.status(), Status());
    EXPECT_EQ(listed.value(), segments);
    for (const uint64_t segment : segments) {
      const Result<Chunks> found = read(names_of(segment));
      ASSERT_EQ(found.status(), Status());
      EXPECT_TRUE(found.value() == chunks_of(segment)) << segment;
    }
  }

  std::string root_;
  std::string directory_;
  std::shared_ptr<FaultFileSystem> system_ = std::make_shared<FaultFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = FaultFileSystem::env(system_);
  RocksDbTables tables_;
};

}  // namespace crossdock
