#include "backends/rocksdb/rocksdb_tables.h"

#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "backends/rocksdb/rocksdb_database.h"

namespace crossdock {
namespace {

// Keys of chunks: object number, then index of the chunk, both big-endian, so that bytes are in the order of numbers.
constexpr size_t kObjectBytes = sizeof(uint64_t);
constexpr size_t kKeyBytes = kObjectBytes + sizeof(uint32_t);
constexpr uint64_t kSegmentMax = UINT64_MAX / kObjectsPerSegment - 1;  // the next one has a first object too

// Chunks of one read. RocksDB joins neighbours into one read of the file, and long reads are fast (huge_page_files.h);
// a larger batch would only need more memory.
constexpr size_t kReadBatch = 4;

using Key = std::array<char, kKeyBytes>;

// Big-endian, so that the keys of a segment are one interval and its file overlaps no other.
Key chunk_key(uint64_t object, uint32_t chunk) {
  Key key;
  for (size_t i = 0; i < kObjectBytes; ++i) key[i] = static_cast<char>(object >> (8 * (kObjectBytes - 1 - i)));
  for (size_t i = kObjectBytes; i < kKeyBytes; ++i) key[i] = static_cast<char>(chunk >> (8 * (kKeyBytes - 1 - i)));
  return key;
}

// The first key of a segment, which is also the end of the one before.
Key segment_key(uint64_t segment) { return chunk_key(segment * kObjectsPerSegment, 0); }

rocksdb::Slice slice(const Key& key) { return rocksdb::Slice(key.data(), key.size()); }

uint64_t segment_of_key(const rocksdb::Slice& key) {
  uint64_t object = 0;
  for (size_t i = 0; i < kObjectBytes; ++i) object = object << 8 | static_cast<uint8_t>(key[i]);
  return segment_of(ObjectNumber(object));
}

std::span<const std::byte> bytes_of(const rocksdb::Slice& value) {
  return std::as_bytes(std::span(value.data(), value.size()));
}

class RocksDbRecordTable final : public RecordTable {
 public:
  explicit RocksDbRecordTable(std::shared_ptr<RocksDbDatabase> database) : database_(std::move(database)) {}

  Result<std::optional<std::string>> get(const std::string& key) const override {
    TRY(const RocksDbDatabase::Access access, database_->access());
    std::string value;
    const rocksdb::Status status = access.db->Get(rocksdb::ReadOptions(), access.records, key, &value);
    if (status.IsNotFound()) return std::optional<std::string>();
    TRY_STATUS(rocksdb_status(status, fmt::format("read a record of the store at '{}'", database_->directory())));
    return std::optional<std::string>(std::move(value));
  }

  // One batch is one entry of the log: after a crash it is there in full or not at all (I2).
  Status write(std::span<const RecordChange> changes, bool durable) override {
    const std::string what = fmt::format("write records of the store at '{}'", database_->directory());
    return database_->write(what, durable, [&](const RocksDbDatabase::Access& access, rocksdb::WriteBatch& batch) {
      for (const RecordChange& change : changes) {
        rocksdb::Status status = change.value ? batch.Put(access.records, change.key, *change.value)
                                              : batch.Delete(access.records, change.key);
        if (!status.ok()) return status;
      }
      return rocksdb::Status::OK();
    });
  }

  Status scan(const std::string& prefix,
              const std::function<bool(std::string_view key, std::string_view value)>& visit) const override {
    TRY(const RocksDbDatabase::Access access, database_->access());
    // An iterator reads one state of the table, so a scan sees no part of a batch that is written meanwhile.
    const std::unique_ptr<rocksdb::Iterator> at(access.db->NewIterator(rocksdb::ReadOptions(), access.records));
    for (at->Seek(prefix); at->Valid() && at->key().starts_with(prefix); at->Next())
      if (!visit(at->key().ToStringView(), at->value().ToStringView())) break;
    return rocksdb_status(at->status(), fmt::format("read records of the store at '{}'", database_->directory()));
  }

 private:
  const std::shared_ptr<RocksDbDatabase> database_;
};

// The file is created with the first chunk, since RocksDB ingests no file without keys.
class RocksDbSegmentWriter final : public SegmentWriter {
 public:
  RocksDbSegmentWriter(std::shared_ptr<RocksDbDatabase> database, uint64_t segment)
      : database_(std::move(database)), segment_(segment), path_(database_->incoming_path(segment)) {}

  // Of a segment that was added, the table has the file under another name.
  ~RocksDbSegmentWriter() override {
    if (writer_ == nullptr) return;
    writer_.reset();
    database_->env().DeleteFile(path_).PermitUncheckedError();
  }

  Status append(ObjectNumber object, uint32_t chunk, std::span<const std::byte> bytes) override {
    CHECK(!finished_ && segment_of(object) == segment_);
    const Key key = chunk_key(object.value(), chunk);
    CHECK(writer_ == nullptr || slice(last_).compare(slice(key)) < 0);
    if (writer_ == nullptr) {
      writer_ =
          std::make_unique<rocksdb::SstFileWriter>(database_->incoming_env_options(), database_->incoming_options());
      status_ = rocksdb_status(writer_->Open(path_), fmt::format("create '{}'", path_));
    }
    if (!status_.ok()) return status_;
    last_ = key;
    const rocksdb::Slice value(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    status_ = rocksdb_status(writer_->Put(slice(key), value), fmt::format("write '{}'", path_));
    if (status_.ok()) bytes_ += bytes.size();
    return status_;
  }

  uint64_t bytes() const override { return bytes_; }

  Status finish() override {
    CHECK(!finished_);
    // Without a chunk there is no file, and nothing to add.
    if (writer_ == nullptr || !status_.ok()) {
      finished_ = status_.ok();
      return status_;
    }
    // Writes the index and syncs, outside of any lock, so that add() only links and records the file.
    status_ = rocksdb_status(writer_->Finish(), fmt::format("finish '{}'", path_));
    finished_ = status_.ok();
    return status_;
  }

  bool is_finished() const { return finished_; }
  bool is_empty() const { return writer_ == nullptr; }
  const std::string& path() const { return path_; }

 private:
  const std::shared_ptr<RocksDbDatabase> database_;
  const uint64_t segment_;
  const std::string path_;
  std::unique_ptr<rocksdb::SstFileWriter> writer_;
  Key last_ = {};
  uint64_t bytes_ = 0;
  bool finished_ = false;
  Status status_;  // of the first call that failed; later ones fail alike
};

class RocksDbChunkTable final : public ChunkTable {
 public:
  explicit RocksDbChunkTable(std::shared_ptr<RocksDbDatabase> database) : database_(std::move(database)) {}

  Result<std::unique_ptr<SegmentWriter>> new_segment(uint64_t segment) override {
    CHECK(segment <= kSegmentMax);
    return std::unique_ptr<SegmentWriter>(std::make_unique<RocksDbSegmentWriter>(database_, segment));
  }

  Status add(std::vector<std::unique_ptr<SegmentWriter>> segments) override;
  Status read(std::span<const ChunkName> names, const Take& take) const override;
  Status remove(std::span<const uint64_t> segments) override;
  Result<std::vector<uint64_t>> segments() const override;

 private:
  // Segments that a file of the table may hold chunks of: first to last.
  struct FileSegments {
    uint64_t first = 0;
    uint64_t last = 0;
    bool hidden = false;  // some of them may be removed although the file is there
  };
  Result<std::vector<FileSegments>> files() const;

  const std::shared_ptr<RocksDbDatabase> database_;
};

// Durable, and all segments or none (I2): RocksDB links each file into its directory, syncs files and directory, and
// then adds all of them in one record of its list of files (MANIFEST), which it syncs.
Status RocksDbChunkTable::add(std::vector<std::unique_ptr<SegmentWriter>> segments) {
  std::vector<std::string> paths;
  for (const std::unique_ptr<SegmentWriter>& segment : segments) {
    const auto* writer = dynamic_cast<const RocksDbSegmentWriter*>(segment.get());
    // store_core.cc finishes every segment before it hands them over.
    CHECK(writer != nullptr && writer->is_finished());
    if (!writer->is_empty()) paths.push_back(writer->path());
  }
  if (paths.empty()) return Status();
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  // A copy would write all bytes again and hide that incoming/ is on another file system.
  options.failed_move_fall_back_to_copy = false;
  options.write_global_seqno = false;  // the files stay as they are
  return database_->change(fmt::format("add segments to the store at '{}'", database_->directory()),
                           [&](const RocksDbDatabase::Access& access) {
                             return access.db->IngestExternalFile(access.chunks, paths, options);
                           });
}

Status RocksDbChunkTable::read(std::span<const ChunkName> names, const Take& take) const {
  TRY(const RocksDbDatabase::Access access, database_->access());
  rocksdb::ReadOptions options;
  options.fill_cache = true;  // which keeps nothing (chunk_options())
  // The caller verifies chunks itself. Checksums of blocks are verified nevertheless: in a damaged block RocksDB would
  // read arbitrary bytes as lengths.
  options.verify_checksums = true;
  std::array<Key, kReadBatch> keys;
  std::array<rocksdb::Slice, kReadBatch> slices;
  std::array<rocksdb::PinnableSlice, kReadBatch> values;
  std::array<rocksdb::Status, kReadBatch> statuses;
  for (size_t begin = 0; begin < names.size(); begin += kReadBatch) {
    const std::span<const ChunkName> batch = names.subspan(begin, std::min(kReadBatch, names.size() - begin));
    for (size_t i = 0; i < batch.size(); ++i) {
      keys[i] = chunk_key(batch[i].object.value(), batch[i].chunk);
      slices[i] = slice(keys[i]);
      values[i].Reset();
    }
    access.db->MultiGet(options, access.chunks, batch.size(), slices.data(), values.data(), statuses.data());
    for (size_t i = 0; i < batch.size(); ++i) {
      const bool found = !statuses[i].IsNotFound();
      if (found && !statuses[i].ok())
        return rocksdb_status(statuses[i],
                              fmt::format("read chunk {} of object {} in the store at '{}'", batch[i].chunk,
                                          batch[i].object.value(), database_->directory()));
      TRY_STATUS(take(begin + i, found, found ? bytes_of(values[i]) : std::span<const std::byte>()));
    }
  }
  return Status();
}

// Deletes whole files and writes no tombstones for them: space is free at once, and no compaction has to run. A crash
// in the middle leaves segments that no record names, or a publication marked as removed; the store removes them again
// (I4).
Status RocksDbChunkTable::remove(std::span<const uint64_t> segments) {
  if (segments.empty()) return Status();
  std::vector<Key> bounds;  // begin and end of each
  for (const uint64_t segment : segments) {
    CHECK(segment <= kSegmentMax);
    bounds.push_back(segment_key(segment));
    bounds.push_back(segment_key(segment + 1));
  }
  std::vector<rocksdb::Slice> slices;
  for (const Key& key : bounds) slices.push_back(slice(key));
  std::vector<rocksdb::RangePtr> ranges;
  for (size_t i = 0; i < slices.size(); i += 2) ranges.emplace_back(&slices[i], &slices[i + 1]);
  const std::string what = fmt::format("remove segments of the store at '{}'", database_->directory());
  TRY_STATUS(database_->change(what, [&](const RocksDbDatabase::Access& access) {
    return rocksdb::DeleteFilesInRanges(access.db, access.chunks, ranges.data(), ranges.size(), false);
  }));

  // A file that a tool of RocksDB merged from several segments is kept while one of them is. Range deletions hide the
  // others, so that segments() does not list them (I4).
  TRY(const std::vector<FileSegments> left, files());
  std::vector<rocksdb::RangePtr> to_hide;
  for (size_t i = 0; i < segments.size(); ++i)
    if (std::any_of(left.begin(), left.end(), [segment = segments[i]](const FileSegments& file) {
          return file.first <= segment && segment <= file.last;
        }))
      to_hide.push_back(ranges[i]);
  if (to_hide.empty()) return Status();
  return database_->write(what, true, [&](const RocksDbDatabase::Access& access, rocksdb::WriteBatch& batch) {
    for (const rocksdb::RangePtr& range : to_hide) {
      rocksdb::Status status = batch.DeleteRange(access.chunks, *range.start, *range.limit);
      if (!status.ok()) return status;
    }
    return rocksdb::Status::OK();
  });
}

Result<std::vector<RocksDbChunkTable::FileSegments>> RocksDbChunkTable::files() const {
  TRY(const RocksDbDatabase::Access access, database_->access());
  rocksdb::ColumnFamilyMetaData metadata;
  access.db->GetColumnFamilyMetaData(access.chunks, &metadata);
  std::vector<FileSegments> files;
  for (const rocksdb::LevelMetaData& level : metadata.levels)
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (file.smallestkey.size() != kKeyBytes || file.largestkey.size() != kKeyBytes)
        return Status(Code::kDataLoss,
                      fmt::format("'{}/{}' is no file of chunks", file.directory, file.relative_filename));
      const uint64_t first = segment_of_key(file.smallestkey);
      const uint64_t last = segment_of_key(file.largestkey);
      // First and last key of each file come from the list of files: no file is opened.
      // DeleteFilesInRanges() leaves files of level 0; one is there only when a segment came above a removed range.
      files.push_back({first, last, first != last || level.level == 0});
    }
  return files;
}

// From the names of files where a file is one segment. A file that may hold several is sought through, one seek for
// each segment that is left in it.
Result<std::vector<uint64_t>> RocksDbChunkTable::segments() const {
  TRY(const std::vector<FileSegments> all, files());
  TRY(const RocksDbDatabase::Access access, database_->access());
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  std::vector<uint64_t> found;
  for (const FileSegments& file : all) {
    if (!file.hidden) {
      found.push_back(file.first);
      continue;
    }
    const std::unique_ptr<rocksdb::Iterator> at(access.db->NewIterator(options, access.chunks));
    for (at->Seek(slice(segment_key(file.first))); at->Valid(); at->Seek(slice(segment_key(found.back() + 1)))) {
      const uint64_t segment = segment_of_key(at->key());
      if (segment > file.last) break;
      found.push_back(segment);
    }
    TRY_STATUS(rocksdb_status(at->status(), fmt::format("list segments of the store at '{}'", database_->directory())));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

Result<RocksDbTables> open_rocksdb_tables(const RocksDbOptions& options) {
  TRY(const std::shared_ptr<RocksDbDatabase> database, RocksDbDatabase::open(options));
  RocksDbTables tables;
  tables.records = std::make_unique<RocksDbRecordTable>(database);
  tables.chunks = std::make_unique<RocksDbChunkTable>(database);
  return tables;
}

}  // namespace crossdock
