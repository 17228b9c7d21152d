#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace crossdock {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr mode_t kNewFileMode = 0666;  // the user's umask takes away what it must

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
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

Status write_and_sync(const std::string& path, std::string_view contents) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode));
  if (file.get() < 0) return io_error("create", path, errno);
  TRY_STATUS(write_all(file.get(), contents, path));
  if (::fsync(file.get()) != 0) return io_error("sync", path, errno);
  if (file.close() != 0) return io_error("close", path, errno);
  return Status();
}

// A rename is durable only once the directory is. A file system without directory sync says EINVAL; that is its word.
Status sync_directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  Descriptor handle(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.get() < 0) return io_error("open", directory, errno);
  if (::fsync(handle.get()) != 0 && errno != EINVAL) return io_error("sync", directory, errno);
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
    if (static_cast<uint64_t>(got) > bytes_max - contents.size())
      return Status(Code::kResourceExhausted,
                    fmt::format("'{}' is larger than the limit of {} bytes", path, bytes_max));
    contents.append(buffer.data(), static_cast<size_t>(got));
  }
}

Status write_file(const std::string& path, std::string_view contents) {
  // A device or a pipe (/dev/stdout) cannot be replaced by a rename; it is written as it is.
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) return io_error("open", path, errno);
    return write_all(file.get(), contents, path);
  }
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  Status status = write_and_sync(temporary, contents);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) status = io_error("replace", path, errno);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_directory_of(path);
}

}  // namespace crossdock
