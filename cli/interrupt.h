// Ctrl-C: the first one asks the running operation to abort, the second ends the program.
#pragma once

#include <atomic>

namespace crossdock::cli {

// From here on an interrupt that no InterruptFlag takes ends the program with a line that says what has changed.
void tell_of_interrupts();
// The line comes as a JSON object on standard output too, as that of every failure with --json.
void tell_of_interrupts_as_json();

// During its lifetime, SIGINT and SIGTERM set the flag instead of ending the program. One instance at a time.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  const std::atomic<bool>& is_set() const;
};

}  // namespace crossdock::cli
