// Completion queue of one participant of this process: any thread adds, one thread waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/steady_clock.h"
#include "executor/ports.h"

namespace crossdock {

class LocalQueue : public CompletionQueue {
 public:
  TimePoint now() const override { return steady_now(); }
  // `out` is not empty. Completions come in the order of add().
  size_t wait(std::span<Completion> out, TimePoint deadline) override;

  // From any thread; never blocks for long.
  void add(Completion completion);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Completion> completions_;
};

}  // namespace crossdock
