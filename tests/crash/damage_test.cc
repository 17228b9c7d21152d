// Single bytes of stored files are changed. The store then refuses to open, or reports what it cannot read, or returns
// the right bytes. It never returns wrong bytes, and never ends the process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/crash/history.h"
#include "tests/crash/inspect.h"
#include "tests/crash/workload.h"

namespace crossdock::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kThreads = 1;

// A store with some history, in files of every kind. Its second run is over.
class DamagedStore : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t run = 0; run < 2; ++run) {
      WorkloadOptions options;
      options.tables = history_.tables();
      options.seed = history_.seed();
      options.run = run;
      options.thread_count = kThreads;
      options.step_count = 120;
      options.opens_again = true;
      options.tell = [](const Event&) {};
      options.complain = [](const std::string& what) {
        ADD_FAILURE() << what;
        return false;
      };
      Workload(options).run();
    }
    list_files();
  }
  void list_files() {
    files_.clear();
    for (const fs::directory_entry& entry : fs::directory_iterator(original()))
      if (entry.is_regular_file()) files_.push_back(entry.path().filename().string());
    std::sort(files_.begin(), files_.end());
  }

  const std::string& original() const { return history_.tables().directory; }
  static std::string contents(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  // A copy with one byte that is another; none when `flip` is 0.
  std::string damaged_copy(const std::string& file, size_t place, char flip) {
    const std::string copy = copies_.path() + "/store";
    fs::remove_all(copy);
    fs::copy(original(), copy, fs::copy_options::recursive);
    std::string bytes = contents(copy + "/" + file);
    if (flip != 0) bytes.at(place) = static_cast<char>(bytes.at(place) ^ flip);
    std::ofstream(copy + "/" + file, std::ios::binary) << bytes;
    return copy;
  }
  // In a process of its own.
  Inspection inspect(const std::string& directory) {
    const ChildEnd end =
        Child({"inspect", directory, fmt::format("{}", history_.seed()), fmt::format("{}", kThreads)}).end();
    std::optional<Inspection> seen;
    for (const std::string& line : end.complaints) {
      EXPECT_FALSE(line.starts_with("! ")) << line;
      if (!seen) seen = inspection_from(line);
    }
    EXPECT_EQ(end.signal, 0);
    EXPECT_TRUE(seen.has_value());
    return seen.value_or(Inspection());
  }

  static void expect_damage(const std::string& directory, const std::string& object, uint64_t chunk, Range bytes) {
    StoreOptions options = small_options();
    options.clock = [] { return begin_of_run(1) + kAllIsOver; };
    RocksDbOptions tables;
    tables.directory = directory;
    const Result<OpenStore> store = open_store(tables, options);
    ASSERT_EQ(store.status(), Status());
    const Result<VerifyReport> report = store.value().core->verify({});
    ASSERT_EQ(report.status(), Status());
    // A block of the file has one chunk that is whole, and may have the end of the object before.
    const std::vector<DamagedChunk>& damaged = report.value().damaged;
    EXPECT_TRUE(damaged.size() == 1 || damaged.size() == 2) << damaged.size();
    EXPECT_EQ(std::ranges::count_if(damaged,
                                    [&](const DamagedChunk& each) {
                                      return each.object == object && each.chunk == chunk && each.bytes == bytes &&
                                             !each.what.empty();
                                    }),
              1);
  }

  History history_{crash_seed() * 1000 + 500};
  TemporaryDirectory copies_;
  std::vector<std::string> files_;
};

// The top bit of a byte is left alone: RocksDB 7.8 with its assertions on, as Debian has it, ends the process over one,
// the kind of a table file's properties block.
TEST_F(DamagedStore, GivesTheRightBytesOrAnErrorWithAName) {
  constexpr size_t kFlipCount = 320;
  constexpr size_t kEndBytes = 1024;
  const Inspection whole = inspect(damaged_copy(files_[0], 0, 0));
  ASSERT_EQ(whole.not_opened + whole.errors + whole.damaged_chunks, 0u);
  ASSERT_GT(whole.right, 5u);
  Rng rng(history_.seed());
  std::map<std::string, Inspection> sums;  // by kind of file
  size_t flips = 0;
  const size_t flips_each = kFlipCount / files_.size() + 2;
  for (const std::string& file : files_) {
    const size_t size = fs::file_size(original() + "/" + file);
    if (size == 0) continue;
    std::vector<size_t> places = {0, size - 1};
    while (places.size() < flips_each) {
      places.push_back(rng.below(std::min(size, kEndBytes)));
      places.push_back(size - 1 - rng.below(std::min(size, kEndBytes)));
      places.push_back(rng.below(size));
    }
    for (const size_t place : places) {
      const auto flip = static_cast<char>(1 + rng.below(127));
      SCOPED_TRACE(fmt::format("{} byte {} of {} flipped by {}\n{}", file, place, size, int{flip}, replay_line()));
      const Inspection seen = inspect(damaged_copy(file, place, flip));
      ++flips;
      Inspection& sum = sums[file.substr(0, file.find_first_of("-0123456789")) + fs::path(file).extension().string()];
      sum.not_opened += seen.not_opened;
      sum.errors += seen.errors;
      sum.missing += seen.missing - std::min(seen.missing, whole.missing);
      sum.right += seen.right;
      sum.damaged_chunks += seen.damaged_chunks;
      if (file.starts_with("LO") || file.starts_with("OPTIONS") || file.starts_with("IDENTITY")) {
        EXPECT_EQ(seen.right, whole.right) << "nothing of the store is in this file";
      }
      // RocksDB takes a log that is damaged to end there, as one does that was being written when the power went.
      if (!file.ends_with(".log")) {
        EXPECT_LE(seen.missing, whole.missing);
      }
      if (HasFailure()) return;
    }
  }
  for (const auto& [kind, sum] : sums)
    RecordProperty("files of kind " + kind,
                   fmt::format("not opened {}, right {}, missing {}, errors {}, damaged chunks {}", sum.not_opened,
                               sum.right, sum.missing, sum.errors, sum.damaged_chunks));
  EXPECT_GE(flips, 300u);
  EXPECT_GT(sums[".sst"].errors, 0u);
  EXPECT_GT(sums[".sst"].damaged_chunks, 0u);
  EXPECT_GT(sums["MANIFEST"].not_opened, 0u);
}

TEST_F(DamagedStore, IsVerifiedChunkByChunk) {
  {
    StoreOptions options = small_options();
    options.clock = [] { return begin_of_run(1) + kAllIsOver; };
    const Result<OpenStore> store = open_store(history_.tables(), options);  // only what is published is left
    ASSERT_EQ(store.status(), Status());
  }
  list_files();
  size_t checked = 0;
  for (uint32_t number = 0; number < kSnapshotsPerThread; ++number) {
    const std::string name = snapshot_name(0, number);
    for (const ObjectPlan& object : snapshot_objects(history_.seed(), name)) {
      const Content content = content_of(history_.seed(), object);
      for (uint64_t chunk = 0; (chunk + 1) * kChunkBytes <= content.size(); chunk += 2) {
        const Range bytes(chunk * kChunkBytes, (chunk + 1) * kChunkBytes);
        if (!bytes.intersect(object.hole).empty()) continue;
        const std::string_view text(reinterpret_cast<const char*>(content.data()) + bytes.begin(), bytes.size());
        for (const std::string& file : files_) {
          if (!file.ends_with(".sst")) continue;
          const size_t place = contents(original() + "/" + file).find(text);
          if (place == std::string::npos) continue;
          SCOPED_TRACE(fmt::format("object '{}' chunk {} in {}\n{}", object.id, chunk, file, replay_line()));
          expect_damage(damaged_copy(file, place + 100 * checked % kChunkBytes, 1), object.id, chunk, bytes);
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 3u);
}

}  // namespace
}  // namespace crossdock::testing
