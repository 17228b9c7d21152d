#include "backends/local/thread_pool.h"

#include <utility>

#include "base/check.h"

namespace crossdock {

ThreadPool::ThreadPool(size_t thread_count, size_t waiting_max) : waiting_max_(waiting_max) {
  CHECK(thread_count > 0 && waiting_max > 0);
  for (size_t i = 0; i < thread_count; ++i) threads_.emplace_back([this] { run(); });
}

// Runs the tasks that wait: each stands for an operation whose completion was promised (R1).
ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::try_post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  // The caller is told instead of made to wait: a post never blocks (R1).
  if (waiting_.size() >= waiting_max_) return false;
  waiting_.push_back(std::move(task));
  changed_.notify_one();
  return true;
}

void ThreadPool::run() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    // Without the lock. A task does not throw; its result goes through a completion.
    task();
  }
}

}  // namespace crossdock
