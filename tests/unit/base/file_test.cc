#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace crossdock {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kNoLimit = UINT64_MAX;
constexpr uid_t kNobody = 65534;

// An open descriptor that is closed with its scope.
class Handle {
 public:
  explicit Handle(int fd) : fd_(fd) { EXPECT_GE(fd, 0); }
  ~Handle() { ::close(fd_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Puts `fd` in the place of standard input for a scope.
class StdinIs {
 public:
  explicit StdinIs(int fd) : saved_(::dup(STDIN_FILENO)) { EXPECT_EQ(::dup2(fd, STDIN_FILENO), STDIN_FILENO); }
  ~StdinIs() { ::dup2(saved_.get(), STDIN_FILENO); }

 private:
  Handle saved_;
};

// Lets no file of this process grow past `bytes` for a scope, without the signal.
class FileBytesMax {
 public:
  explicit FileBytesMax(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &saved_), 0);
    const rlimit limit = {bytes, saved_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileBytesMax() {
    ::setrlimit(RLIMIT_FSIZE, &saved_);
    std::signal(SIGXFSZ, handler_);
  }
  FileBytesMax(const FileBytesMax&) = delete;
  FileBytesMax& operator=(const FileBytesMax&) = delete;

 private:
  rlimit saved_ = {};
  void (*handler_)(int);
};

// The permissions of a user other than root for a scope; root may read and write everything.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::seteuid(kNobody) != 0) was_root_ = false;
  }
  ~Unprivileged() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool was_root_;
};

// Each test has an empty directory of its own. The oracle reads and writes by the standard library's streams.
class File : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "crossdock_base_file_XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  std::string put(const std::string& name, const std::string& contents) const {
    std::ofstream(path(name), std::ios::binary) << contents;
    return path(name);
  }

  std::string get(const std::string& name) const {
    std::ifstream stream(path(name), std::ios::binary);
    EXPECT_TRUE(stream.is_open()) << name;
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  // Gives the directory and what is in it to the user that Unprivileged stands for.
  void give_away() const {
    if (::geteuid() != 0) return;
    for (const std::string& name : names()) ASSERT_EQ(::chown(path(name).c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(::chown(directory_.c_str(), kNobody, kNobody), 0);
  }

  std::string directory_;
};

using Names = std::vector<std::string>;

TEST_F(File, IsReadExactlyUpToTheLimit) {
  constexpr uint64_t kBufferBytes = 1 << 16;
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{100}, kBufferBytes - 1, kBufferBytes,
                               kBufferBytes + 1, 3 * kBufferBytes + 5}) {
    std::string contents(bytes, '\0');
    for (uint64_t i = 0; i < bytes; ++i) contents[i] = static_cast<char>(i * 31 + i / 256);
    const std::string file = put("in", contents);

    for (const uint64_t limit : {bytes, bytes + 1, kNoLimit}) {
      const Result<std::string> result = read_file(file, limit);
      ASSERT_TRUE(result.ok()) << bytes << " of " << limit;
      EXPECT_TRUE(result.value() == contents) << bytes << " of " << limit;
    }
    if (bytes == 0) continue;
    for (const uint64_t limit : {uint64_t{0}, bytes / 2, bytes - 1})
      EXPECT_EQ(read_file(file, limit).status().code(), Code::kResourceExhausted) << bytes << " of " << limit;
  }
}

TEST_F(File, AnEndlessFileIsRefusedOnceItPassesTheLimit) {
  EXPECT_EQ(read_file("/dev/zero", 1000).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(read_file("/dev/zero", 1'000'000).status().code(), Code::kResourceExhausted);
}

TEST_F(File, TooLargeIsSaidWithNameAndLimit) {
  const std::string file = put("in", "four");
  EXPECT_EQ(read_file(file, 3).status().message(), "'" + file + "' is larger than the limit of 3 bytes");
}

TEST_F(File, AMissingFileIsNotFound) {
  const Status status = read_file(path("missing"), kNoLimit).status();
  EXPECT_EQ(status, Status(Code::kNotFound, "cannot open '" + path("missing") + "': No such file or directory"));
  EXPECT_EQ(read_file("", kNoLimit).status().code(), Code::kNotFound);
}

TEST_F(File, ReadingWhatCannotBeReadIsReported) {
  const std::string file = put("in", "text");
  EXPECT_EQ(read_file(directory_, kNoLimit).status().code(), Code::kIo);
  EXPECT_EQ(read_file(file + "/below", kNoLimit).status().code(), Code::kIo);
}

TEST_F(File, ReadingWithoutPermissionIsReported) {
  const std::string file = put("in", "text");
  give_away();
  fs::permissions(file, fs::perms::none);
  const Unprivileged user;
  if (::geteuid() == 0) GTEST_SKIP() << "root cannot become another user here";
  EXPECT_EQ(read_file(file, kNoLimit).status().code(), Code::kIo);
}

TEST_F(File, ADashIsStandardInputWhichStaysOpen) {
  const Handle input(::open(put("in", "from standard input").c_str(), O_RDONLY));
  const StdinIs redirect(input.get());
  EXPECT_EQ(read_file("-", kNoLimit).value(), "from standard input");
  EXPECT_EQ(read_file("-", kNoLimit).value(), "");  // at its end, but still there
  ASSERT_EQ(::lseek(input.get(), 0, SEEK_SET), 0);
  EXPECT_EQ(read_file("-", 18).status().code(), Code::kResourceExhausted);
}

TEST_F(File, IsWrittenWholeWithNothingBesideIt) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{1} << 20}) {
    std::string contents(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) contents[i] = static_cast<char>(i * 31 + i / 256);
    ASSERT_EQ(write_file(path("out"), contents), Status());
    EXPECT_TRUE(get("out") == contents) << bytes;
    EXPECT_EQ(names(), Names{"out"}) << bytes;
  }
}

TEST_F(File, IsReplacedNotOverwritten) {
  put("out", "the old contents");
  fs::create_hard_link(path("out"), path("other name"));
  ASSERT_EQ(write_file(path("out"), "new"), Status());
  EXPECT_EQ(get("out"), "new");
  EXPECT_EQ(get("other name"), "the old contents");  // a reader that had the old file open is not disturbed
  EXPECT_EQ(names(), (Names{"other name", "out"}));
}

TEST_F(File, KeepsItsPermissionsWhenItIsReplaced) {
  for (const mode_t mode : {0400u, 0600u, 0640u, 0644u, 0755u, 0666u}) {
    put("out", "old");
    fs::permissions(path("out"), fs::perms{mode});
    ASSERT_EQ(write_file(path("out"), "new"), Status()) << std::oct << mode;
    EXPECT_EQ(fs::status(path("out")).permissions(), fs::perms{mode}) << std::oct << mode;
    EXPECT_EQ(names(), Names{"out"});
    fs::remove(path("out"));
  }
}

TEST_F(File, IsNotWrittenBehindASymbolicLinkToNothing) {
  fs::create_symlink("nothing", path("link"));
  const Status status = write_file(path("link"), "new");
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("it is a symbolic link to nothing"), std::string::npos);
  EXPECT_EQ(names(), Names{"link"});
}

TEST_F(File, IsReplacedBehindASymbolicLink) {
  fs::create_directory(path("elsewhere"));
  put("elsewhere/file", "old");
  fs::create_symlink("elsewhere/file", path("link"));
  ASSERT_EQ(write_file(path("link"), "new"), Status());
  EXPECT_EQ(get("elsewhere/file"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(names(), (Names{"elsewhere", "link"}));
  EXPECT_EQ(std::distance(fs::directory_iterator(path("elsewhere")), fs::directory_iterator()), 1);
}

TEST_F(File, IsWrittenIntoTheCurrentDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  const Status status = write_file("out", "here");
  fs::current_path(before);
  EXPECT_EQ(status, Status());
  EXPECT_EQ(get("out"), "here");
}

TEST_F(File, WritingIntoAMissingDirectoryIsNotFoundAndMakesNothing) {
  EXPECT_EQ(write_file(path("missing/out"), "text").code(), Code::kNotFound);
  EXPECT_EQ(write_file(path("missing/"), "text").code(), Code::kNotFound);
  EXPECT_EQ(names(), Names{});
}

TEST_F(File, WritingToAnEmptyPathIsNotFoundAndMakesNothing) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  const Status status = write_file("", "text");
  fs::current_path(before);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(names(), Names{});
}

TEST_F(File, WritingBelowAFileIsReportedAndLeavesIt) {
  put("in the way", "text");
  EXPECT_EQ(write_file(path("in the way/out"), "text").code(), Code::kIo);
  EXPECT_EQ(get("in the way"), "text");
  EXPECT_EQ(names(), Names{"in the way"});
}

TEST_F(File, WritingToADirectoryIsReportedAndLeavesIt) {
  fs::create_directory(path("directory"));
  EXPECT_EQ(write_file(path("directory"), "text").code(), Code::kIo);
  EXPECT_TRUE(fs::is_directory(path("directory")));
  EXPECT_EQ(names(), Names{"directory"});
}

TEST_F(File, AWriteThatFailsHalfWayLeavesTheOldContents) {
  put("out", "the old contents");
  const std::string contents(1 << 16, 'x');
  Status status;
  {
    const FileBytesMax limit(1 << 12);
    status = write_file(path("out"), contents);
  }
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(get("out"), "the old contents");
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(File, ARenameThatFailsLeavesTheOldContents) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a file of another user";
  put("out", "of root");
  fs::permissions(directory_, fs::perms::all | fs::perms::sticky_bit);
  Status status;
  {
    const Unprivileged user;
    if (::geteuid() == 0) GTEST_SKIP() << "root cannot become another user here";
    status = write_file(path("out"), "of somebody else");
  }
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message().find("cannot replace '" + path("out") + "'"), 0u) << status.message();
  EXPECT_EQ(get("out"), "of root");
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(File, ADirectoryThatCannotBeSyncedIsReported) {
  give_away();
  fs::permissions(directory_, fs::perms::owner_write | fs::perms::owner_exec);
  Status status;
  {
    const Unprivileged user;
    if (::geteuid() == 0) GTEST_SKIP() << "root cannot become another user here";
    status = write_file(path("out"), "text");
  }
  fs::permissions(directory_, fs::perms::owner_all);
  EXPECT_EQ(status, Status(Code::kIo, "cannot open '" + directory_ + "/': Permission denied"));
}

// The devices of the machine are written by a user who may not replace them: a write_file() that forgot its promise
// would, as root, rename an ordinary file over them.
TEST_F(File, ADeviceIsWrittenAsItIs) {
  const Unprivileged user;
  if (::geteuid() == 0) GTEST_SKIP() << "root cannot become another user here";
  EXPECT_EQ(write_file("/dev/null", "text"), Status());
}

TEST_F(File, APipeIsWrittenAsItIs) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const Handle reader(::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_EQ(write_file(path("pipe"), "through the pipe"), Status());
  std::array<char, 64> buffer = {};
  const ssize_t got = ::read(reader.get(), buffer.data(), buffer.size());
  ASSERT_GE(got, 0);
  EXPECT_EQ(std::string(buffer.data(), static_cast<size_t>(got)), "through the pipe");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_EQ(names(), Names{"pipe"});
}

TEST_F(File, AFullDeviceIsReported) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Unprivileged user;
  if (::geteuid() == 0) GTEST_SKIP() << "root cannot become another user here";
  EXPECT_EQ(write_file("/dev/full", "text"), Status(Code::kIo, "cannot write '/dev/full': No space left on device"));
}

TEST_F(File, ADeviceThatCannotBeOpenedIsReported) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0400), 0);
  give_away();
  const Unprivileged user;
  if (::geteuid() == 0) GTEST_SKIP() << "root cannot become another user here";
  EXPECT_EQ(write_file(path("pipe"), "text").code(), Code::kIo);
}

}  // namespace
}  // namespace crossdock
