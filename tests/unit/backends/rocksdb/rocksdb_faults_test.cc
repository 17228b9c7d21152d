// What a store on RocksDB does when the disk is full, reads and writes fail, and the machine stops.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

#include "backends/rocksdb/huge_page_files.h"
#include "base/rng.h"
#include "tests/support/rocksdb_store.h"

namespace crossdock {
namespace {

namespace fs = std::filesystem;

using Operation = FaultFileSystem::Operation;
using rocksdb::IOStatus;

constexpr UnsyncedBytes kEndings[] = {UnsyncedBytes::kLost, UnsyncedBytes::kTorn, UnsyncedBytes::kKept};

class RocksDbFaults : public RocksDbStore {};

std::vector<std::string> segment_files(const std::string& directory) {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".sst") found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

TEST_F(RocksDbFaults, TheFileSystemForgetsWhatWasNotSynced) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(write("durable", "1", true), Status());
  ASSERT_EQ(write("not durable", "2", false), Status());
  ASSERT_EQ(crash(UnsyncedBytes::kKept), Status());
  EXPECT_EQ(all_records(), (Records{{"durable", "1"}, {"not durable", "2"}}));
  ASSERT_EQ(write("not durable", "3", false), Status());
  ASSERT_EQ(crash(UnsyncedBytes::kLost), Status());
  EXPECT_EQ(all_records().at("durable"), "1");
  EXPECT_NE(all_records()["not durable"], "3");
}

TEST_F(RocksDbFaults, DurableChangesSurviveTheLossOfPower) {
  for (const UnsyncedBytes ending : kEndings) {
    directory_ = root_ + "/" + std::to_string(static_cast<int>(ending));
    ASSERT_EQ(open(true), Status());
    ASSERT_EQ(write("a", "1", false), Status());
    ASSERT_EQ(write("b", "2", true), Status());
    ASSERT_EQ(crash(ending), Status());
    EXPECT_EQ(all_records(), (Records{{"a", "1"}, {"b", "2"}}));
    ASSERT_EQ(add({1, 2}), Status());
    ASSERT_EQ(crash(ending), Status());
    expect_segments({1, 2});
    ASSERT_EQ(chunks().remove(Segments{1}), Status());
    ASSERT_EQ(add({3}), Status());
    ASSERT_EQ(write("b", std::nullopt, true), Status());
    ASSERT_EQ(crash(ending), Status());
    expect_segments({2, 3});
    EXPECT_EQ(all_records(), (Records{{"a", "1"}}));
  }
}

// Each write is of two records that name its number; a torn one would show a pair that differs.
TEST_F(RocksDbFaults, WritesThatWereNotDurableAreThereInOrderAndWhole) {
  for (const UnsyncedBytes ending : kEndings) {
    directory_ = root_ + "/" + std::to_string(static_cast<int>(ending));
    ASSERT_EQ(open(true), Status());
    for (int number = 1; number <= 50; ++number) {
      const std::string text = std::to_string(number) + std::string(static_cast<size_t>(number) * 97, '.');
      const std::vector<RecordChange> changes = {{"first", text}, {"second", text}};
      ASSERT_EQ(records().write(changes, number == 20), Status());
    }
    ASSERT_EQ(crash(ending), Status());
    const Records found = all_records();
    EXPECT_EQ(found.at("first"), found.at("second"));
    EXPECT_GE(std::stoi(found.at("first")), 20);
    if (ending == UnsyncedBytes::kKept) {
      EXPECT_EQ(std::stoi(found.at("first")), 50);
    }
  }
}

// What a store holds before and after a history in which one operation of the file system fails.
struct History {
  Status added;    // segments 2 and 3
  Status written;  // records "x" and "y"
  Status removed;  // segment 1
};

// Fails each change of the file system in turn, once or from then on, with either error, and ends in each way.
TEST_F(RocksDbFaults, AfterAnyFailedOperationEveryChangeIsThereInFullOrNotAtAll) {
  const auto run = [this] {
    History history;
    history.added = add({2, 3});
    history.written = records().write(std::vector<RecordChange>{{"x", "1"}, {"y", "1"}}, true);
    history.removed = chunks().remove(Segments{1});
    return history;
  };
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(write("before", "1"), Status());
  ASSERT_EQ(add({1}), Status());
  close();
  const std::string pristine = root_ + "/pristine";
  fs::rename(directory_, pristine);
  const auto start_over = [&] {
    close();
    fs::remove_all(directory_);
    fs::copy(pristine, directory_, fs::copy_options::recursive);
    return open();
  };
  ASSERT_EQ(start_over(), Status());
  const uint64_t before = system_->count();
  const History unhurt = run();
  ASSERT_EQ(unhurt.added, Status());
  ASSERT_EQ(unhurt.written, Status());
  ASSERT_EQ(unhurt.removed, Status());
  const uint64_t operations = system_->count() - before;
  ASSERT_GT(operations, 20u);

  for (uint64_t passing = 0; passing < operations; ++passing)
    for (const bool is_full : {false, true})
      for (const uint64_t failing : {uint64_t{1}, UINT64_MAX})
        for (const UnsyncedBytes ending : kEndings) {
          SCOPED_TRACE(testing::Message() << "after " << passing << " operations, full " << is_full << ", failing "
                                          << failing << ", ending " << static_cast<int>(ending));
          ASSERT_EQ(start_over(), Status());
          const IOStatus error = is_full ? IOStatus::NoSpace("injected") : IOStatus::IOError("injected");
          system_->add_fault({std::nullopt, "", error, passing, failing});
          const History history = run();
          for (const Status& status : {history.added, history.written, history.removed})
            EXPECT_TRUE(status.ok() || status.code() == (is_full ? Code::kResourceExhausted : Code::kIo))
                << status.message();
          if (failing == 1) {  // usable at once, and as it was where the change failed
            expect_segments(history.added.ok() ? (history.removed.ok() ? Segments{2, 3} : Segments{1, 2, 3})
                                               : (history.removed.ok() ? Segments{} : Segments{1}));
            EXPECT_EQ(add({5}), Status());
            EXPECT_EQ(write("after", "1"), Status());
          }

          ASSERT_EQ(crash(ending), Status());
          Result<Segments> found = chunks().segments();
          ASSERT_EQ(found.status(), Status());
          const auto has = [&found](uint64_t segment) {
            return std::binary_search(found.value().begin(), found.value().end(), segment);
          };
          EXPECT_EQ(has(2), has(3));
          EXPECT_TRUE(has(2) || !history.added.ok());
          EXPECT_TRUE(!has(1) || !history.removed.ok());
          EXPECT_EQ(has(5), failing == 1);
          expect_segments(found.value());
          const Records records = all_records();
          EXPECT_EQ(records.at("before"), "1");
          EXPECT_EQ(records.contains("x"), records.contains("y"));
          EXPECT_TRUE(records.contains("x") || !history.written.ok());
          EXPECT_EQ(records.contains("after"), failing == 1);
          EXPECT_EQ(add({6}), Status());
          EXPECT_EQ(write("again", "1"), Status());
          if (HasFailure()) return;
        }
}

TEST_F(RocksDbFaults, AFullDiskIsSaidAndTheStoreGoesOnWhenThereIsRoom) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1}), Status());
  const IOStatus full = IOStatus::NoSpace("injected");
  const auto expect_full = [](const Status& status, const std::string& what) {
    EXPECT_EQ(status.code(), Code::kResourceExhausted) << what;
    EXPECT_NE(status.message().find("cannot " + what), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("the disk is full"), std::string::npos) << status.message();
  };
  {
    std::unique_ptr<SegmentWriter> writer = chunks().new_segment(2).value();
    system_->add_fault({Operation::kWrite, "incoming/2.sst", full});
    const std::string bytes(4 << 20, 'x');
    const uint64_t before = system_->count(Operation::kWrite);
    for (const uint32_t chunk : {0u, 1u})
      ASSERT_EQ(writer->append(ObjectNumber(2 * kObjectsPerSegment), chunk, bytes_of(bytes)), Status());
    while (system_->count(Operation::kWrite) == before) std::this_thread::yield();  // a thread writes the first of it
    system_->clear_faults();
    expect_full(writer->finish(), "finish '");  // a hole must not be
  }
  system_->add_fault({Operation::kSync, "incoming/3.sst", full});
  expect_full(add({3}), "finish '");
  system_->clear_faults();
  system_->add_fault({Operation::kWrite, "MANIFEST", full});
  expect_full(add({4}), "add segments to the store at '");
  expect_full(add({5}), "add segments to the store at '");
  system_->clear_faults();
  system_->add_fault({Operation::kWrite, ".log", full});
  expect_full(write("key", "value"), "write records of the store at '");
  system_->add_fault({std::nullopt, "", full});
  expect_full(write("key", "value"), "");
  expect_full(add({7}), "");
  expect_segments({1});  // what is there can be read all the time
  EXPECT_EQ(all_records(), Records());
  system_->clear_faults();

  EXPECT_TRUE(segment_files(directory_ + "/incoming").empty());
  expect_segments({1});
  EXPECT_EQ(all_records(), Records());
  ASSERT_EQ(write("key", "value"), Status());
  ASSERT_EQ(add({6}), Status());
  ASSERT_EQ(crash(UnsyncedBytes::kLost), Status());
  expect_segments({1, 6});
  EXPECT_EQ(all_records(), (Records{{"key", "value"}}));
}

// The order in which the threads come is the machine's, but what they may see is not.
TEST_F(RocksDbFaults, ThreadsGoOnWhenChangesOfOthersFail) {
  constexpr uint64_t kRounds = 60;
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1}), Status());
  Segments added = {1};
  Records written;
  std::thread adder([&] {
    for (uint64_t segment = 2; segment < 2 + kRounds; ++segment)
      if (add({segment}).ok()) added.push_back(segment);
  });
  std::thread writer([&] {
    for (uint64_t number = 0; number < kRounds; ++number)
      if (const std::string key = std::to_string(number); write(key, key).ok()) written[key] = key;
  });
  std::thread reader([&] {
    for (uint64_t round = 0; round < kRounds; ++round) {
      const Result<Chunks> found = read(names_of(1));  // fails when the store closed for repair and cannot be opened
      EXPECT_TRUE(found.ok() ? found.value() == chunks_of(1) : found.status().code() != Code::kDataLoss);
    }
  });
  Rng rng(11);
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t before = system_->count();
    system_->add_fault({std::nullopt, "", IOStatus::NoSpace("injected"), rng.below(60), 1 + rng.below(3)});
    for (int times = 0; times < 1000 && system_->count() < before + 60; ++times) std::this_thread::yield();
  }
  for (std::thread* thread : {&adder, &writer, &reader}) thread->join();
  system_->clear_faults();
  ASSERT_EQ(write("after", "1"), Status());
  written["after"] = "1";
  expect_segments(added);
  EXPECT_EQ(all_records(), written);
  ASSERT_EQ(crash(UnsyncedBytes::kLost), Status());
  expect_segments(added);
  EXPECT_EQ(all_records(), written);
}

TEST_F(RocksDbFaults, WhatCannotBeReadIsAnErrorAndReadableAfterwards) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1, 2}), Status());
  const std::vector<std::string> files = segment_files(directory_);
  ASSERT_EQ(files.size(), 2u);
  for (const bool reopened : {false, true}) {
    if (reopened) {
      ASSERT_EQ(open(), Status());
    }
    system_->add_fault({Operation::kRead, files[0]});
    EXPECT_EQ(read(names_of(1)).status().code(), Code::kIo);
    EXPECT_TRUE(read(names_of(2)).value() == chunks_of(2));
    system_->clear_faults();
    system_->shorten_reads(files[1]);
    const Status status = read(names_of(2)).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_NE(status.message().find("of object " + std::to_string(2 * kObjectsPerSegment)), std::string::npos);
    system_->clear_faults();
    expect_segments({1, 2});
  }
}

TEST_F(RocksDbFaults, ATableFileThatCannotBeOpenedIsAnError) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1}), Status());
  close();
  system_->add_fault({Operation::kOpenForReading, ".sst"});
  const Status status = open();
  if (status.ok()) {
    EXPECT_EQ(read(names_of(1)).status().code(), Code::kIo);
  } else {
    EXPECT_EQ(status.code(), Code::kIo);
  }
  system_->clear_faults();
  ASSERT_EQ(open(), Status());
  expect_segments({1});
}

// Blocks are verified, and what is not inside a block, the footer, leads to them. The top bit of a byte is left alone:
// RocksDB 7.8 with its assertions on, as Debian has it, ends the process over one, the kind of the properties block.
TEST_F(RocksDbFaults, AFlippedByteIsAnErrorOrAMissingChunkOrHarmless) {
  ASSERT_EQ(open(true), Status());
  ASSERT_EQ(add({1}), Status());
  close();
  const std::vector<std::string> files = segment_files(directory_);
  ASSERT_EQ(files.size(), 1u);
  std::ifstream stream(files[0], std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(stream), {});

  constexpr size_t kTailBytes = 100;  // the footer has 53
  constexpr size_t kIndexBytes = 2000;
  ASSERT_GT(good.size(), kIndexBytes);
  std::vector<size_t> places;
  for (size_t back = 1; back <= kTailBytes; ++back) places.push_back(good.size() - back);
  Rng rng(20240611);
  for (int i = 0; i < 60; ++i) places.push_back(good.size() - 1 - rng.below(kIndexBytes));
  for (int i = 0; i < 60; ++i) places.push_back(rng.below(good.size()));
  size_t errors = 0;
  for (const size_t place : places)
    for (const char flip : {'\x01', '\x04', '\x7f'}) {
      SCOPED_TRACE(testing::Message() << "byte " << place << " of " << good.size() << " flipped by " << +flip);
      std::string bad = good;
      bad[place] = static_cast<char>(bad[place] ^ flip);
      std::ofstream(files[0], std::ios::binary) << bad;
      if (const Status status = open(); !status.ok()) {
        ++errors;
        continue;
      }
      EXPECT_EQ(chunks().segments().status(), Status());
      for (const ChunkName& name : names_of(1)) {
        const Result<Chunks> found = read({name});
        if (!found.ok()) ++errors;
        if (!found.ok() || found.value().empty()) continue;
        const Chunks expected = chunks_of(1);
        ASSERT_TRUE(expected.contains({name.object.value(), name.chunk}));
        EXPECT_TRUE(found.value().begin()->second == expected.at({name.object.value(), name.chunk}));
      }
      EXPECT_EQ(chunks().remove(Segments{3}), Status());
    }
  EXPECT_GT(errors, places.size());
  close();
}

// ---- Segments that are longer than what is written at once ----

constexpr size_t kPieceBytes = size_t{2} << 20;
constexpr size_t kLongChunkBytes = (size_t{512} << 10) + 7;

std::string random_bytes(Rng& rng, size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  return bytes;
}

Chunks long_chunks(uint64_t segment, uint32_t count) {
  Rng rng(segment);
  Chunks chunks;
  for (uint32_t chunk = 0; chunk < count; ++chunk)
    chunks[{segment * kObjectsPerSegment, chunk}] = random_bytes(rng, kLongChunkBytes);
  return chunks;
}

Status append_all(SegmentWriter& writer, const Chunks& chunks) {
  for (const auto& [name, bytes] : chunks)
    TRY_STATUS(writer.append(ObjectNumber(name.first), name.second, bytes_of(bytes)));
  return writer.finish();
}

std::vector<ChunkName> names_in(const Chunks& chunks) {
  std::vector<ChunkName> names;
  for (const auto& [name, bytes] : chunks) names.push_back({ObjectNumber(name.first), name.second});
  return names;
}

TEST_F(RocksDbFaults, ALongSegmentIsThereInFullOrNotAtAllWhicheverWriteFails) {
  const Chunks chunks_of_1 = long_chunks(1, 14);
  const std::string incoming = "incoming";
  ASSERT_EQ(open(true), Status());
  std::vector<std::unique_ptr<SegmentWriter>> writers;
  writers.push_back(chunks().new_segment(1).value());
  const uint64_t before = system_->count(Operation::kWrite);
  ASSERT_EQ(append_all(*writers[0], chunks_of_1), Status());
  const uint64_t writes = system_->count(Operation::kWrite) - before;
  ASSERT_GE(writes, 4u);
  ASSERT_EQ(chunks().add(std::move(writers)), Status());
  ASSERT_EQ(crash(UnsyncedBytes::kLost), Status());
  EXPECT_TRUE(read(names_in(chunks_of_1)).value() == chunks_of_1);

  uint64_t segment = 2;
  for (uint64_t passing = 0; passing < writes; ++passing)
    for (const uint64_t failing : {uint64_t{1}, UINT64_MAX}) {
      SCOPED_TRACE(testing::Message() << "after " << passing << " writes, failing " << failing);
      std::unique_ptr<SegmentWriter> writer = chunks().new_segment(segment).value();
      system_->add_fault({Operation::kWrite, incoming, IOStatus::IOError("injected"), passing, failing});
      EXPECT_EQ(append_all(*writer, long_chunks(segment, 14)).code(), Code::kIo);
      system_->clear_faults();
      writer.reset();
      EXPECT_TRUE(segment_files(directory_ + "/" + incoming).empty());
      ++segment;
    }
  ASSERT_EQ(add({segment}), Status());
  ASSERT_EQ(crash(UnsyncedBytes::kLost), Status());
  EXPECT_EQ(chunks().segments().value(), (Segments{1, segment}));
}

TEST_F(RocksDbFaults, PowerThatGoesWhileALongSegmentIsWrittenLeavesNothingOfIt) {
  for (const UnsyncedBytes ending : kEndings) {
    directory_ = root_ + "/" + std::to_string(static_cast<int>(ending));
    ASSERT_EQ(open(true), Status());
    {
      const std::unique_ptr<SegmentWriter> writer = chunks().new_segment(1).value();
      const Chunks all = long_chunks(1, 14);
      size_t appended = 0;
      for (const auto& [name, bytes] : all) {
        if (appended++ == 9) system_->power_off();
        if (!writer->append(ObjectNumber(name.first), name.second, bytes_of(bytes)).ok()) break;
      }
      EXPECT_EQ(writer->finish().code(), Code::kIo);
    }
    ASSERT_EQ(crash(ending), Status());
    expect_segments({});
    EXPECT_TRUE(segment_files(directory_ + "/incoming").empty());
  }
}

// More of them than buffers that may wait for the disk, and most of them idle with one that is not full.
TEST_F(RocksDbFaults, ManyLongSegmentsAreWrittenAtOnce) {
  constexpr uint64_t kThreads = 3;
  constexpr uint64_t kSegmentsEach = 4;
  ASSERT_EQ(open(true), Status());
  std::vector<std::unique_ptr<SegmentWriter>> writers;
  for (uint64_t segment = 1; segment <= kThreads * kSegmentsEach; ++segment)
    writers.push_back(chunks().new_segment(segment).value());
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      std::vector<Chunks> all;
      for (uint64_t i = 0; i < kSegmentsEach; ++i) all.push_back(long_chunks(1 + thread * kSegmentsEach + i, 8));
      for (uint32_t chunk = 0; chunk < 8; ++chunk)  // a chunk of each in turn
        for (uint64_t i = 0; i < kSegmentsEach; ++i) {
          const uint64_t object = (1 + thread * kSegmentsEach + i) * kObjectsPerSegment;
          EXPECT_EQ(writers[thread * kSegmentsEach + i]->append(ObjectNumber(object), chunk,
                                                                bytes_of(all[i].at({object, chunk}))),
                    Status());
        }
      for (uint64_t i = 0; i < kSegmentsEach; ++i) EXPECT_EQ(writers[thread * kSegmentsEach + i]->finish(), Status());
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(chunks().add(std::move(writers)), Status());
  ASSERT_EQ(crash(UnsyncedBytes::kLost), Status());
  for (uint64_t segment = 1; segment <= kThreads * kSegmentsEach; ++segment) {
    const Chunks expected = long_chunks(segment, 8);
    EXPECT_TRUE(read(names_in(expected)).value() == expected);
  }
}

// ---- Direct files ----

class DirectFiles : public RocksDbFaults {
 protected:
  void SetUp() override {
    RocksDbFaults::SetUp();
    path_ = root_ + "/file";
    if (!open_new().ok()) GTEST_SKIP() << "no direct access here";
  }
  IOStatus open_new() {
    rocksdb::FileOptions options;
    options.use_direct_writes = true;
    return files_->NewWritableFile(path_, options, &file_, nullptr);
  }
  IOStatus append(const std::string& bytes) { return file_->Append(bytes, rocksdb::IOOptions(), nullptr); }
  IOStatus sync() { return file_->Sync(rocksdb::IOOptions(), nullptr); }
  std::string contents() const {
    std::ifstream stream(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }

  std::shared_ptr<rocksdb::FileSystem> files_ = make_huge_page_file_system(system_);
  std::string path_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
};

TEST_F(DirectFiles, HaveExactlyWhatWasAppendedAtEachSyncAndWhenClosed) {
  Rng rng(5);
  for (int round = 0; round < 6; ++round) {
    ASSERT_TRUE(open_new().ok());
    std::string expected;
    for (const size_t bytes : {size_t{1}, kPieceBytes - 1, kPieceBytes, size_t{4096}, 3 * kPieceBytes - 4096,
                               static_cast<size_t>(rng.below(kPieceBytes)), size_t{100}}) {
      const std::string more = random_bytes(rng, bytes);
      ASSERT_TRUE(append(more).ok());
      expected += more;
      EXPECT_EQ(file_->GetFileSize(rocksdb::IOOptions(), nullptr), expected.size());
      if (rng.below(2) == 0) continue;
      ASSERT_TRUE(sync().ok());
      EXPECT_TRUE(contents() == expected);
    }
    ASSERT_TRUE(file_->Close(rocksdb::IOOptions(), nullptr).ok());
    file_.reset();
    EXPECT_TRUE(contents() == expected);
  }
}

TEST_F(DirectFiles, TellOfAFailedWriteFromThenOnAndWriteNoMore) {
  const std::string piece(kPieceBytes, 'x');
  for (uint64_t passing = 0; passing < 3; ++passing) {
    ASSERT_TRUE(open_new().ok());
    system_->add_fault({Operation::kWrite, path_, IOStatus::NoSpace("injected"), passing, 1});
    for (uint64_t i = 0; i <= passing; ++i) append(piece).PermitUncheckedError();
    EXPECT_TRUE(sync().IsNoSpace());
    const uint64_t writes = system_->count(Operation::kWrite);
    EXPECT_TRUE(append(piece).IsNoSpace());
    EXPECT_TRUE(file_->Flush(rocksdb::IOOptions(), nullptr).IsNoSpace());
    EXPECT_TRUE(file_->Fsync(rocksdb::IOOptions(), nullptr).IsNoSpace());
    EXPECT_TRUE(file_->Close(rocksdb::IOOptions(), nullptr).IsNoSpace());
    EXPECT_EQ(system_->count(Operation::kWrite), writes);
    file_.reset();
    EXPECT_EQ(contents().size(), passing * kPieceBytes);
  }
}

TEST_F(DirectFiles, AreReadAtAnyPlaceAndPastTheirEnd) {
  Rng rng(6);
  const std::string all = random_bytes(rng, 2 * kPieceBytes + 12345);
  ASSERT_TRUE(append(all).ok() && sync().ok() && file_->Close(rocksdb::IOOptions(), nullptr).ok());
  rocksdb::FileOptions options;
  options.use_direct_reads = true;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  ASSERT_TRUE(files_->NewRandomAccessFile(path_, options, &file, nullptr).ok());
  for (int round = 0; round < 200; ++round) {
    std::vector<rocksdb::FSReadRequest> requests(1 + rng.below(6));
    std::vector<std::string> buffers;
    uint64_t offset = rng.below(all.size());
    for (rocksdb::FSReadRequest& request : requests) {
      request.offset = offset;
      request.len = 1 + rng.below(round % 10 == 0 ? 3 * kPieceBytes : 300'000);
      offset += request.len + (rng.below(3) == 0 ? rng.below(10'000) : 0);
      buffers.emplace_back(request.len, '\0');
    }
    for (size_t i = 0; i < requests.size(); ++i) requests[i].scratch = buffers[i].data();
    ASSERT_TRUE(file->MultiRead(requests.data(), requests.size(), rocksdb::IOOptions(), nullptr).ok());
    for (const rocksdb::FSReadRequest& request : requests) {
      ASSERT_TRUE(request.status.ok()) << request.status.ToString();
      const std::string expected = request.offset < all.size() ? all.substr(request.offset, request.len) : "";
      EXPECT_TRUE(request.result.ToStringView() == expected) << request.offset << " " << request.len;
    }
  }
}

}  // namespace
}  // namespace crossdock
