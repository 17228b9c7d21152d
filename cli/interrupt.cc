#include "cli/interrupt.h"

#include <signal.h>

#include "base/check.h"

namespace crossdock::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

std::atomic<bool> interrupted = false;  // a signal handler may use only this kind of object
static_assert(std::atomic<bool>::is_always_lock_free);

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
  interrupted = false;
  set_handlers(handle);
}

InterruptFlag::~InterruptFlag() { set_handlers(SIG_DFL); }

const std::atomic<bool>& InterruptFlag::is_set() const { return interrupted; }

}  // namespace crossdock::cli
