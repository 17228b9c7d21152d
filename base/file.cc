#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace crossdock {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr mode_t kNewFileMode = 0666;  // the user's umask takes away what it must
constexpr mode_t kPermissionBits = 07777;
constexpr int kTemporaryNamesMax = 1000;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    // Standard input is the caller's.
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void reset(int fd) {
    CHECK(fd_ < 0);
    fd_ = fd;
  }
  // Closes now, so that a late write error is seen.
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd);
  }

 private:
  int fd_;
};

Status io_error(std::string_view what, const std::string& path, int error) {
  const Code code = error == ENOENT ? Code::kNotFound : Code::kIo;
  return Status(code, fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

Status write_all(int fd, std::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error("write", path, errno);
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return Status();
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// A rename is durable only once the directory is. A file system that cannot sync directories answers EINVAL; the rename
// is then as durable as it can be there.
Status sync_directory_of(const std::string& path) {
  const std::string directory = directory_of(path);
  Descriptor handle(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.get() < 0) return io_error("open", directory, errno);
  if (::fsync(handle.get()) != 0 && errno != EINVAL) return io_error("sync", directory, errno);
  return Status();
}

// A new file beside `target`, under a name that no other file has. Removed in the end unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) {
    for (int attempt = 0; attempt < kTemporaryNamesMax && descriptor_.get() < 0; ++attempt) {
      name_ = fmt::format("{}.crossdock-{}-{}.tmp", directory_of(target), ::getpid(), attempt);
      descriptor_.reset(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode));
      if (descriptor_.get() < 0 && errno != EEXIST) break;
    }
    owned_ = descriptor_.get() >= 0;
  }
  ~TemporaryFile() {
    if (owned_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool created() const { return owned_; }
  Descriptor& descriptor() { return descriptor_; }
  bool rename_to(const std::string& target) {
    owned_ = std::rename(name_.c_str(), target.c_str()) != 0;
    return !owned_;
  }

 private:
  std::string name_;
  Descriptor descriptor_{-1};
  bool owned_ = false;
};

// `path` is what errors name.
Status replace_file(const std::string& target, std::optional<mode_t> permissions, std::string_view contents,
                    const std::string& path) {
  TemporaryFile temporary(target);
  if (!temporary.created()) return io_error("create", path, errno);
  const int fd = temporary.descriptor().get();
  if (permissions && ::fchmod(fd, *permissions) != 0) return io_error("set the permissions of", path, errno);
  TRY_STATUS(write_all(fd, contents, path));
  // Before the rename: after a crash the name must not lead to a file whose bytes are not on the disk.
  if (::fsync(fd) != 0) return io_error("sync", path, errno);
  // Network file systems report a failed write as late as here; the old file is still in place.
  if (temporary.descriptor().close() != 0) return io_error("close", path, errno);
  if (!temporary.rename_to(target)) return io_error("replace", path, errno);
  return sync_directory_of(target);
}

// A device or a pipe cannot be replaced; a directory refuses to be opened.
Status write_in_place(const std::string& path, std::string_view contents) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error("open", path, errno);
  TRY_STATUS(write_all(file.get(), contents, path));
  if (file.close() != 0) return io_error("close", path, errno);
  return Status();
}

}  // namespace

Result<std::string> read_file(const std::string& path, uint64_t bytes_max) {
  const bool is_stdin = path == "-";
  Descriptor file(is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error("open", path, errno);
  std::string contents;
  std::vector<char> buffer(kReadBytes);
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", path, errno);
    if (got == 0) return contents;
    // Cannot wrap: what was kept so far is within the limit.
    if (static_cast<uint64_t>(got) > bytes_max - contents.size())
      return Status(Code::kResourceExhausted,
                    fmt::format("'{}' is larger than the limit of {} bytes", path, bytes_max));
    contents.append(buffer.data(), static_cast<size_t>(got));
  }
}

Status write_file(const std::string& path, std::string_view contents) {
  struct stat info = {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return io_error("look at", path, errno);
  struct stat link = {};
  if (!exists && ::lstat(path.c_str(), &link) == 0)
    return Status(Code::kIo, fmt::format("cannot write '{}': it is a symbolic link to nothing", path));
  if (!exists) return replace_file(path, std::nullopt, contents, path);
  if (!S_ISREG(info.st_mode)) return write_in_place(path, contents);
  // Behind a symbolic link the file it leads to is replaced, not the link.
  const std::unique_ptr<char, decltype(&std::free)> target(::realpath(path.c_str(), nullptr), &std::free);
  if (target == nullptr) return io_error("resolve", path, errno);
  return replace_file(target.get(), info.st_mode & kPermissionBits, contents, path);
}

}  // namespace crossdock
