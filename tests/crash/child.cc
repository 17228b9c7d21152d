#include "tests/crash/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/check.h"
#include "tests/support/paths.h"

namespace crossdock::testing {

bool ChildEnd::was_killed() const { return signal == SIGKILL; }

Child::Child(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), crash_child_path());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::array<int, 2> pipe = {};
  CHECK(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  CHECK(::posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  output_ = pipe[0];
}

Child::~Child() {
  if (pid_ != 0) {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(output_);
}

void Child::kill() { CHECK(::kill(pid_, SIGKILL) == 0); }

std::optional<std::string> Child::line() {
  for (;;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(output_, buffer.data(), buffer.size());
    if (count == 0) return std::nullopt;
    CHECK(count > 0 || errno == EINTR);
    if (count > 0) read_.append(buffer.data(), static_cast<size_t>(count));
  }
}

ChildEnd Child::end(std::optional<KillTime> kill_time) {
  ChildEnd ended;
  uint64_t done_count = 0;
  const auto kill_when_due = [&] {
    if (!kill_time || done_count < kill_time->done_count) return;
    std::this_thread::sleep_for(kill_time->then);
    kill();
    kill_time.reset();
  };
  kill_when_due();
  while (const std::optional<std::string> text = line()) {
    std::optional<Event> event = from_line(*text);
    if (!event) {
      ended.complaints.push_back(*text);
      continue;
    }
    done_count += event->done;
    ended.events.push_back(std::move(*event));
    kill_when_due();
  }
  int status = 0;
  CHECK(::waitpid(std::exchange(pid_, 0), &status, 0) > 0);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  return ended;
}

}  // namespace crossdock::testing
