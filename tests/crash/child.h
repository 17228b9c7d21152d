// The program crash_child, as its parent sees it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/crash/event.h"

namespace crossdock::testing {

struct ChildEnd {
  std::vector<Event> events;
  std::vector<std::string> complaints;  // whatever else it said
  int exit_code = -1;
  int signal = 0;  // that ended it

  bool was_killed() const;
};

// When a child is killed: after it told of so many steps that were done, and then some time. What a test expects does
// not depend on when that is.
struct KillTime {
  uint64_t done_count = 0;
  std::chrono::microseconds then{0};
};

class Child {
 public:
  explicit Child(std::vector<std::string> arguments);
  ~Child();  // kills it, unless it has ended
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next line that it says; empty when it has ended.
  std::optional<std::string> line();
  void kill();
  // Reads to its end.
  ChildEnd end(std::optional<KillTime> kill_time = std::nullopt);

 private:
  pid_t pid_ = 0;
  int output_ = -1;
  std::string read_;
};

}  // namespace crossdock::testing
