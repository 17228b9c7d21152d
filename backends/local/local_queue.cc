#include "backends/local/local_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace crossdock {

size_t LocalQueue::wait(std::span<Completion> out, TimePoint deadline) {
  CHECK(!out.empty());
  std::unique_lock lock(mutex_);
  const auto there = [&] { return !completions_.empty(); };
  if (deadline == TimePoint::never()) {
    changed_.wait(lock, there);
  } else {
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.ns())};
    // R8: the clock decides, and not the result of the wait, which may end early.
    while (!there() && steady_now() < deadline) changed_.wait_until(lock, until);
  }
  const size_t count = std::min(out.size(), completions_.size());
  std::move(completions_.begin(), completions_.begin() + static_cast<ptrdiff_t>(count), out.begin());
  completions_.erase(completions_.begin(), completions_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

void LocalQueue::add(Completion completion) {
  // Notifies under the lock, so that the queue may be destroyed as soon as its last completion was taken.
  const std::lock_guard lock(mutex_);
  completions_.push_back(std::move(completion));
  changed_.notify_one();
}

}  // namespace crossdock
