#include "backends/rocksdb/rocksdb_tables.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "tests/support/rocksdb_store.h"

namespace crossdock {
namespace {

namespace fs = std::filesystem;

using Operation = FaultFileSystem::Operation;

bool says(const Status& status, const std::string& part) { return status.message().find(part) != std::string::npos; }

size_t file_count(const std::string& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST_F(RocksDbStore, HasTheRecordsThatWereWrittenAndNotTheRemovedOnes) {
  ASSERT_EQ(open(true), Status());
  EXPECT_EQ(records().get("a").value(), std::nullopt);
  const std::vector<RecordChange> changes = {{"a", "1"}, {"b", ""}, {std::string("c\0d", 3), std::string("\0", 1)}};
  ASSERT_EQ(records().write(changes, true), Status());
  ASSERT_EQ(records().write(std::vector<RecordChange>{{"a", std::nullopt}, {"e", "5"}, {"x", std::nullopt}}, false),
            Status());
  const Records expected = {{"b", ""}, {std::string("c\0d", 3), std::string("\0", 1)}, {"e", "5"}};
  EXPECT_EQ(all_records(), expected);
  EXPECT_EQ(records().get("a").value(), std::nullopt);
  EXPECT_EQ(records().get("b").value(), "");
  EXPECT_EQ(records().write({}, true), Status());
}

TEST_F(RocksDbStore, ScansAPrefixInOrderOfBytesUntilToldToStop) {
  ASSERT_EQ(open(true), Status());
  for (const char* key : {"p\xff", "p", "pa", "o", "q", "p\x01", "P"}) ASSERT_EQ(write(key, key), Status());
  for (const size_t count_max : {size_t{0}, size_t{1}, size_t{3}, size_t{100}}) {
    std::vector<std::string> seen;
    ASSERT_EQ(records().scan("p",
                             [&](std::string_view key, std::string_view value) {
                               EXPECT_EQ(key, value);
                               seen.emplace_back(key);
                               return seen.size() < count_max;
                             }),
              Status());
    std::vector<std::string> expected = {"p", "p\x01", "pa", "p\xff"};
    if (count_max < expected.size()) expected.resize(std::max(count_max, size_t{1}));
    EXPECT_EQ(seen, expected);
  }
}

TEST_F(RocksDbStore, ListsAndReadsSegmentsInAnyOrderOfAdding) {
  ASSERT_EQ(open(true), Status());
  expect_segments({});
  constexpr uint64_t kLast = UINT64_MAX / kObjectsPerSegment - 1;
  ASSERT_EQ(add({7}), Status());
  ASSERT_EQ(add({9, 2, kLast}), Status());
  ASSERT_EQ(add({0}), Status());
  expect_segments({0, 2, 7, 9, kLast});
  EXPECT_EQ(read(names_of(8)).value(), Chunks());
}

TEST_F(RocksDbStore, ReadsNamesInTheOrderGivenEvenTwice) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1, 2}), Status());
  std::vector<ChunkName> names = names_of(2);
  for (const ChunkName& name : names_of(1)) names.insert(names.begin(), name);
  names.insert(names.end(), {names[3], names[3], names[2], names[3]});
  Chunks expected = chunks_of(1);
  expected.merge(chunks_of(2));
  EXPECT_TRUE(read(names).value() == expected);
  EXPECT_EQ(read({}).value(), Chunks());
}

TEST_F(RocksDbStore, StopsReadingWhenTheTakerFails) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1}), Status());
  const Status stop(Code::kCancelled, "enough");
  size_t calls = 0;
  const Status status = chunks().read(names_of(1), [&](size_t i, bool, std::span<const std::byte>) {
    ++calls;
    return i == 5 ? stop : Status();
  });
  EXPECT_EQ(status, stop);
  EXPECT_EQ(calls, 6u);
}

TEST_F(RocksDbStore, RemovesSegmentsAndTheirFiles) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1, 2, 3, 4}), Status());
  const size_t files = file_count(directory_);
  ASSERT_EQ(chunks().remove(Segments{2, 4, 2, 77}), Status());
  expect_segments({1, 3});
  EXPECT_EQ(read(names_of(2)).value(), Chunks());
  EXPECT_EQ(file_count(directory_), files - 2);
  ASSERT_EQ(chunks().remove(Segments{}), Status());
  ASSERT_EQ(chunks().remove(Segments{1, 3}), Status());
  expect_segments({});
  ASSERT_EQ(open(), Status());
  expect_segments({});
  ASSERT_EQ(add({2}), Status());
  expect_segments({2});
}

TEST_F(RocksDbStore, RemovesASegmentThatAToolMadeOneFileWithOthers) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1, 2, 3}), Status());
  close();
  {
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(
        rocksdb::DB::Open(rocksdb::DBOptions(), directory_, {{"default", {}}, {"chunks", {}}}, &handles, &db).ok());
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    EXPECT_TRUE(db->CompactRange(options, handles[1], nullptr, nullptr).ok());
    for (rocksdb::ColumnFamilyHandle* handle : handles) EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    delete db;
  }
  ASSERT_EQ(open(), Status());
  expect_segments({1, 2, 3});
  ASSERT_EQ(chunks().remove(Segments{2}), Status());
  expect_segments({1, 3});
  ASSERT_EQ(crash(UnsyncedBytes::kLost), Status());
  expect_segments({1, 3});
  ASSERT_EQ(add({2}), Status());  // above what hides the removed chunks
  expect_segments({1, 2, 3});
  ASSERT_EQ(chunks().remove(Segments{1, 2, 3}), Status());
  expect_segments({});
}

TEST_F(RocksDbStore, SkipsSegmentsWithoutChunks) {
  ASSERT_EQ(open(true), Status());
  std::vector<std::unique_ptr<SegmentWriter>> writers;
  for (const uint64_t segment : Segments{1, 2, 3}) writers.push_back(chunks().new_segment(segment).value());
  ASSERT_EQ(writers[0]->finish(), Status());
  ASSERT_EQ(fill(*writers[1], 2), Status());
  ASSERT_EQ(writers[2]->finish(), Status());
  EXPECT_EQ(writers[0]->bytes(), 0u);
  ASSERT_EQ(chunks().add(std::move(writers)), Status());
  expect_segments({2});

  writers.clear();
  writers.push_back(chunks().new_segment(4).value());
  ASSERT_EQ(writers[0]->finish(), Status());
  ASSERT_EQ(chunks().add(std::move(writers)), Status());
  ASSERT_EQ(chunks().add({}), Status());
  expect_segments({2});
}

TEST_F(RocksDbStore, CountsTheBytesOfASegment) {
  ASSERT_EQ(open(true), Status());
  const std::unique_ptr<SegmentWriter> writer = chunks().new_segment(1).value();
  EXPECT_EQ(writer->bytes(), 0u);
  ASSERT_EQ(writer->append(ObjectNumber(kObjectsPerSegment), 0, bytes_of(std::string(300'000, 'x'))), Status());
  EXPECT_EQ(writer->bytes(), 300'000u);
  ASSERT_EQ(writer->append(ObjectNumber(kObjectsPerSegment), 7, {}), Status());
  ASSERT_EQ(writer->append(ObjectNumber(kObjectsPerSegment + 1), 0, bytes_of(std::string(5, 'x'))), Status());
  EXPECT_EQ(writer->bytes(), 300'005u);
}

TEST_F(RocksDbStore, LeavesNothingOfAWriterThatIsGivenUp) {
  ASSERT_EQ(open(true), Status());
  const size_t files = file_count(directory_ + "/incoming");
  std::unique_ptr<SegmentWriter> unfinished = chunks().new_segment(1).value();
  ASSERT_EQ(unfinished->append(ObjectNumber(kObjectsPerSegment), 0, bytes_of("bytes")), Status());
  std::unique_ptr<SegmentWriter> finished = chunks().new_segment(2).value();
  ASSERT_EQ(fill(*finished, 2), Status());
  ASSERT_EQ(add({3}), Status());
  EXPECT_EQ(file_count(directory_ + "/incoming"), files + 2);
  unfinished.reset();
  finished.reset();
  EXPECT_EQ(file_count(directory_ + "/incoming"), files);
  expect_segments({3});
}

TEST_F(RocksDbStore, RemovesWhatADeadProcessLeftInIncoming) {
  ASSERT_EQ(open(true), Status());
  close();
  std::ofstream(directory_ + "/incoming/17.sst") << "half a segment";
  ASSERT_EQ(open(), Status());
  EXPECT_EQ(file_count(directory_ + "/incoming"), 0u);
  ASSERT_EQ(add({17}), Status());
  expect_segments({17});
}

TEST_F(RocksDbStore, KeepsEverythingWhenItIsOpenedAgain) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1, 2}), Status());
  Records expected;
  for (int i = 0; i < 500; ++i) {
    const std::string key = std::to_string(i);
    ASSERT_EQ(write(key, expected[key] = std::string(static_cast<size_t>(i) * 100, 'v'), i % 50 == 0), Status());
  }
  for (int times = 0; times < 2; ++times) {
    ASSERT_EQ(open(), Status());
    expect_segments({1, 2});
    EXPECT_TRUE(all_records() == expected);
  }
}

TEST_F(RocksDbStore, IsNotFoundWhereThereIsNone) {
  EXPECT_EQ(open().code(), Code::kNotFound);
  EXPECT_TRUE(says(open(), "no store at '" + directory_ + "'"));
  EXPECT_FALSE(fs::exists(directory_));
  fs::create_directory(directory_);
  EXPECT_EQ(open().code(), Code::kNotFound);
  EXPECT_EQ(file_count(directory_), 0u);
}

TEST_F(RocksDbStore, IsNotCreatedOverAnotherOrBesideOtherFiles) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(write("key", "value"), Status());
  EXPECT_EQ(open(true).code(), Code::kConflict);
  ASSERT_EQ(open(), Status());
  EXPECT_EQ(all_records(), (Records{{"key", "value"}}));

  directory_ = root_ + "/other";
  fs::create_directory(directory_);
  std::ofstream(directory_ + "/letter") << "text";
  const Status status = open(true);
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_TRUE(says(status, "it is not empty, it holds 'letter'")) << status.message();
  EXPECT_EQ(file_count(directory_), 1u);
}

TEST_F(RocksDbStore, IsNoOtherDatabase) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory_, &db).ok());
  delete db;
  EXPECT_EQ(open().code(), Code::kNotFound);
}

TEST_F(RocksDbStore, IsOpenOnceInAProcessUnderAnyName) {
  ASSERT_EQ(open(true), Status());
  fs::create_directory_symlink(directory_, root_ + "/link");
  for (const std::string& name : {directory_, directory_ + "/", root_ + "/./store", root_ + "/link"}) {
    const Status status = open_rocksdb_tables({.directory = name}).status();
    EXPECT_EQ(status.code(), Code::kConflict) << name;
    EXPECT_TRUE(says(status, "the store at '" + fs::canonical(directory_).string() + "' is in use"))
        << status.message();
  }
  ASSERT_EQ(write("key", "value"), Status());
  const std::unique_ptr<SegmentWriter> writer = chunks().new_segment(1).value();
  close();
  EXPECT_EQ(open().code(), Code::kConflict);  // the writer still stands on it
}

// The other process is forked while this one has no database open, and dies without closing its own.
TEST_F(RocksDbStore, IsOpenInOneProcess) {
  std::array<int, 2> to_child = {};
  std::array<int, 2> to_parent = {};
  ASSERT_EQ(::pipe(to_child.data()), 0);
  ASSERT_EQ(::pipe(to_parent.data()), 0);
  char byte = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<RocksDbTables> opened = open_rocksdb_tables({.directory = directory_, .create = true});
    byte = opened.ok() ? 'y' : 'n';
    const RecordChange change{"key", "value"};
    if (opened.ok() && !opened.value().records->write({&change, 1}, false).ok()) byte = 'n';
    const bool told = ::write(to_parent[1], &byte, 1) == 1 && ::read(to_child[0], &byte, 1) == 1;
    ::_exit(told ? 0 : 1);
  }
  ASSERT_EQ(::read(to_parent[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const Status status = open();
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_TRUE(says(status, "is in use by another process")) << status.message();
  ASSERT_EQ(::write(to_child[1], &byte, 1), 1);
  int exit_code = 1;
  ASSERT_EQ(::waitpid(child, &exit_code, 0), child);
  EXPECT_EQ(exit_code, 0);
  ASSERT_EQ(open(), Status());
  EXPECT_EQ(all_records(), (Records{{"key", "value"}}));
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(fd);
}

TEST_F(RocksDbStore, DoesWithoutDirectAccessWhereTheFileSystemRefusesIt) {
  system_->refuse_direct_io();
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1, 2}), Status());
  expect_segments({1, 2});
  ASSERT_EQ(open(), Status());
  expect_segments({1, 2});
}

}  // namespace
}  // namespace crossdock
