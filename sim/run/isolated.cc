#include "sim/run/isolated.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace crossdock {
namespace {

// A child and its parent share one pipe: the child writes a length and the result and ends, the parent reads until the
// pipe closes. A crash at any point leaves a result that is too short or a status that is not 0, so a part of a result
// is never taken for one.
//
// The parent has one thread while it forks: a fork with several would copy locks that no thread of the child gives
// back.

using Clock = std::chrono::steady_clock;  // how long a child may take is real time, not that of a simulation

constexpr uint64_t kAheadPerWorker = 16;  // results that wait for one that is asked for earlier
constexpr size_t kReadBytes = 64 << 10;
constexpr int kPollMsMax = 60'000;

// Writes all of it; false when the reader has gone.
bool write_all(int file, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

// An exception must not come back into a copy of the parent's stack, so it ends the child.
[[noreturn]] void be_child(int file, pid_t parent, const std::function<std::string()>& function) noexcept {
  // A terminal sends Ctrl-C to the children too. The parent decides what an interrupt means, and ends them with itself.
  for (const int signal_number : {SIGINT, SIGTERM}) signal(signal_number, SIG_IGN);
  signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before the line above
  const std::string result = function();
  // The length first: bytes that are cut off are told from a result.
  const uint64_t size = result.size();
  std::array<char, sizeof size> head = {};
  std::memcpy(head.data(), &size, sizeof size);
  const bool ok = write_all(file, head.data(), head.size()) && write_all(file, result.data(), result.size());
  std::fflush(stdout);  // what the function printed: the parent's part was written before the fork
  std::fflush(stderr);
  _exit(ok ? 0 : 1);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("it was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("it ended with exit status {} and without a result", WEXITSTATUS(status));
}

// A child and the pipe that its result comes through.
class Child {
 public:
  static Result<Child> start(const std::function<std::string()>& function, Duration limit) {
    std::array<int, 2> ends = {};
    if (pipe(ends.data()) != 0) return Status(Code::kUnavailable, fmt::format("pipe: {}", std::strerror(errno)));
    std::fflush(nullptr);  // or the child would write once more what waits in the buffers
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      be_child(ends[1], parent, function);
    }
    const int error = errno;
    // Else the pipe would not close when the child ends, and later children would inherit it.
    close(ends[1]);
    if (pid > 0) return Child(pid, ends[0], limit);
    close(ends[0]);
    return Status(Code::kUnavailable, fmt::format("fork: {}", std::strerror(error)));
  }

  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        file_(std::exchange(other.file_, -1)),
        limit_(other.limit_),
        begin_(other.begin_),
        bytes_(std::move(other.bytes_)) {}
  Child& operator=(Child&&) = delete;
  ~Child() { end(true); }

  int file() const { return file_; }

  // The time left as poll() takes it; 0 when it is over.
  int left_ms() const {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
    if (passed >= limit_.ns()) return 0;
    const int64_t ms = (limit_.ns() - passed) / 1'000'000;
    return ms >= kPollMsMax ? kPollMsMax : static_cast<int>(ms) + 1;
  }

  // Takes what has come; true when nothing more will.
  bool read_some() {
    std::array<char, kReadBytes> buffer;
    const ssize_t size = read(file_, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) return false;
    if (size <= 0) return true;
    bytes_.append(buffer.data(), static_cast<size_t>(size));
    return false;
  }

  Result<std::string> result() {
    const int status = end(false);
    uint64_t size = 0;
    if (bytes_.size() >= sizeof size) std::memcpy(&size, bytes_.data(), sizeof size);
    if (status != 0 || bytes_.size() < sizeof size || bytes_.size() - sizeof size != size)
      return Status(Code::kUnavailable, "a child gave no result: " + how_it_ended(status));
    return bytes_.substr(sizeof size);
  }

  Status overdue() {
    end(true);
    return Status(Code::kDeadline,
                  fmt::format("a child took longer than {} ms and was killed", limit_.ns() / 1'000'000));
  }

 private:
  Child(pid_t pid, int file, Duration limit) : pid_(pid), file_(file), limit_(limit), begin_(Clock::now()) {}

  // Its wait status.
  int end(bool by_force) {
    if (pid_ == 0) return 0;
    // SIGKILL, since a child that hangs may not act on any other signal.
    if (by_force) kill(pid_, SIGKILL);
    // Before waiting: a child that still writes gets an error and ends, instead of waiting for a reader.
    close(file_);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  pid_t pid_;
  int file_;
  Duration limit_;
  Clock::time_point begin_;
  std::string bytes_;
};

// The children under way, by number.
class Nursery {
 public:
  size_t size() const { return children_.size(); }

  // Empty, or why there is no child.
  std::optional<Status> add(uint64_t number, const std::function<std::string()>& function, Duration limit) {
    Result<Child> child = Child::start(function, limit);
    if (!child.ok()) return child.status();
    children_.emplace(number, std::move(child).value());
    return std::nullopt;
  }

  // Waits until some have ended or are overdue, and puts what came of them into `results`.
  void wait(std::map<uint64_t, Result<std::string>>& results) {
    std::vector<pollfd> files;
    int wait_ms = kPollMsMax;
    for (const auto& [number, child] : children_) {
      files.push_back(pollfd{child.file(), POLLIN, 0});
      wait_ms = std::min(wait_ms, child.left_ms());
    }
    if (poll(files.data(), files.size(), wait_ms) < 0) {
      CHECK(errno == EINTR || errno == EAGAIN || errno == ENOMEM);
      return;
    }
    size_t at = 0;
    for (auto each = children_.begin(); each != children_.end(); ++at) {
      Child& child = each->second;
      // Some of the result may have come; it is over when the pipe closes.
      const bool ended = files[at].revents != 0 && child.read_some();
      if (ended || child.left_ms() == 0) {
        results.emplace(each->first, ended ? child.result() : Result<std::string>(child.overdue()));
        each = children_.erase(each);
      } else {
        ++each;
      }
    }
  }

 private:
  std::map<uint64_t, Child> children_;
};

}  // namespace

Result<std::string> run_isolated(const std::function<std::string()>& function, Duration limit) {
  Nursery nursery;
  if (const std::optional<Status> failed = nursery.add(0, function, limit)) return *failed;
  std::map<uint64_t, Result<std::string>> results;
  while (results.empty()) nursery.wait(results);
  return std::move(results.begin()->second);
}

void run_many_isolated(uint64_t count, unsigned worker_count, Duration limit_each,
                       const std::function<std::string(uint64_t)>& function,
                       const std::function<bool(uint64_t, Result<std::string>)>& take) {
  const uint64_t ahead_max = kAheadPerWorker * worker_count;
  CHECK(worker_count > 0);
  Nursery nursery;
  std::map<uint64_t, Result<std::string>> results;  // that have not been taken
  uint64_t started = 0;
  for (uint64_t taken = 0; taken < count;) {
    // The third limit bounds memory: results that are ready wait here for the slow one before them.
    while (started < count && nursery.size() < worker_count && started - taken < ahead_max) {
      const uint64_t number = started++;
      if (const auto failed = nursery.add(
              number, [&] { return function(number); }, limit_each))
        results.emplace(number, *failed);
    }
    if (nursery.size() > 0 && !results.contains(taken)) nursery.wait(results);
    for (auto first = results.find(taken); first != results.end(); first = results.find(taken)) {
      Result<std::string> result = std::move(first->second);
      results.erase(first);
      if (!take(taken++, std::move(result))) return;
    }
  }
}

}  // namespace crossdock
