#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "base/check.h"

namespace crossdock::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

std::atomic<bool> interrupted = false;  // a signal handler may use only this kind of object
static_assert(std::atomic<bool>::is_always_lock_free);

std::atomic<bool> as_json = false;

#define CROSSDOCK_INTERRUPTED "interrupted; only files and publications that were reported as written have changed"

// While no command watches for interrupts: nothing is under way that has to be ended in order. Async-signal-safe.
void end_at_once(int signal_number) {
  constexpr char kLine[] = "crossdock: " CROSSDOCK_INTERRUPTED "\n";
  constexpr char kJson[] = "{\"errors\":[\"" CROSSDOCK_INTERRUPTED "\"],\"exit_status\":130}\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kLine, sizeof kLine - 1);
  // What waits in the buffer of standard output is lost with the process, so this is all that is there.
  if (as_json) written = write(STDOUT_FILENO, kJson, sizeof kJson - 1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// Async-signal-safe: a lock-free flag, signal() and raise(). The signal that is raised comes after this handler, which
// blocks it, and then ends the program as if there were no handler.
void handle(int signal_number) {
  if (interrupted.exchange(true)) {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
  }
}

void set_handlers(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  for (const int signal_number : kSignals) CHECK(sigaction(signal_number, &action, nullptr) == 0);
}

}  // namespace

InterruptFlag::InterruptFlag() {
  // Before the handlers: an interrupt that comes in between must not be lost.
  interrupted = false;
  set_handlers(handle);
}

InterruptFlag::~InterruptFlag() { set_handlers(end_at_once); }

void tell_of_interrupts() { set_handlers(end_at_once); }
void tell_of_interrupts_as_json() { as_json = true; }

const std::atomic<bool>& InterruptFlag::is_set() const { return interrupted; }

}  // namespace crossdock::cli
