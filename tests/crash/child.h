// Starts, reads and kills the program crash_child.
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
  std::vector<std::string> complaints;  // its other lines
  int exit_code = -1;
  int signal = 0;  // that ended it

  bool was_killed() const;
};

// When a child is killed: after it reported a number of finished steps, and then some time. The expectations of a test
// do not depend on the moment.
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

  // The next line that it writes; empty when it has ended.
  std::optional<std::string> line();
  void kill();
  // Reads all its lines until it ends.
  ChildEnd end(std::optional<KillTime> kill_time = std::nullopt);

 private:
  pid_t pid_ = 0;
  int output_ = -1;
  std::string read_;
};

}  // namespace crossdock::testing
