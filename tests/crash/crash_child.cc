// What the crash tests kill: a program that works on a store and tells of each step through its standard output, before
// it and, once the store has answered, after it.
//
//   crash_child work DIRECTORY SEED RUN THREADS STEPS [POINT N]   kills itself when it passes POINT for the Nth time
//   crash_child recover DIRECTORY RUN [POINT N]                   opens the store, after kShortIsOver
//   crash_child hold DIRECTORY                                    opens the store, says so, and waits to be killed
//   crash_child inspect DIRECTORY SEED THREADS                    reads everything in a store that may be damaged
//
// Exit codes: 0, or 3 and a line that says what is wrong.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tests/crash/inspect.h"
#include "tests/crash/workload.h"

namespace crossdock::testing {
namespace {

constexpr unsigned kLifeMaxS = 300;

void say(const std::string& text) {
  if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::_Exit(4);
}

[[noreturn]] void fail(const std::string& what) {
  say("! " + what + "\n");
  std::_Exit(3);
}

uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

// Kills this process at a named point.
class Killer {
 public:
  explicit Killer(std::span<const std::string> point_and_count) {
    if (point_and_count.empty()) return;
    point_ = point_and_count[0];
    count_ = number(point_and_count[1]);
  }
  void pass(std::string_view point) {
    if (point != point_ || --count_ != 0) return;
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }

 private:
  std::string point_;
  std::atomic<uint64_t> count_ = 0;
};

int work(const std::vector<std::string>& arguments) {
  Killer killer(std::span<const std::string>(arguments).subspan(5));
  WorkloadOptions options;
  options.tables.directory = arguments[0];
  options.seed = number(arguments[1]);
  options.run = static_cast<uint32_t>(number(arguments[2]));
  options.thread_count = static_cast<uint32_t>(number(arguments[3]));
  options.step_count = static_cast<uint32_t>(number(arguments[4]));
  options.opens_again = options.thread_count == 1;
  options.tell = [](const Event& event) { say(to_line(event)); };
  options.crash_point = [&killer](std::string_view point) { killer.pass(point); };
  options.complain = [](const std::string& what) -> bool { fail(what); };
  Workload(options).run();
  return 0;
}

int recover(const std::vector<std::string>& arguments) {
  Killer killer(std::span<const std::string>(arguments).subspan(2));
  StoreOptions options = small_options();
  const TimePoint now = begin_of_run(static_cast<uint32_t>(number(arguments[1]))) + kShortIsOver;
  options.clock = [now] { return now; };
  options.crash_point = [&killer](std::string_view point) { killer.pass(point); };
  RocksDbOptions tables;
  tables.directory = arguments[0];
  const Result<OpenStore> store = open_store(tables, options);
  if (!store.ok()) fail(store.status().message());
  return 0;
}

int hold(const std::vector<std::string>& arguments) {
  RocksDbOptions tables;
  tables.directory = arguments[0];
  const Result<OpenStore> store = open_store(tables, small_options());
  if (!store.ok()) fail(store.status().message());
  say("open\n");
  for (;;) ::pause();
}

int inspect(const std::vector<std::string>& arguments) {
  const Inspection seen =
      inspect_store(arguments[0], number(arguments[1]), static_cast<uint32_t>(number(arguments[2])));
  say(to_line(seen));
  for (const std::string& finding : seen.findings) say("! " + finding + "\n");
  return seen.findings.empty() ? 0 : 3;
}

}  // namespace
}  // namespace crossdock::testing

int main(int argc, char** argv) {
  using namespace crossdock::testing;
  ::alarm(kLifeMaxS);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string command = arguments.empty() ? "" : arguments.front();
  if (!arguments.empty()) arguments.erase(arguments.begin());
  if (command == "work" && arguments.size() >= 5) return work(arguments);
  if (command == "recover" && arguments.size() >= 2) return recover(arguments);
  if (command == "hold" && arguments.size() == 1) return hold(arguments);
  if (command == "inspect" && arguments.size() == 3) return inspect(arguments);
  std::fprintf(stderr, "crash_child: see tests/crash/crash_child.cc\n");
  return 2;
}
