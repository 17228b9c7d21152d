// A few threads and a bounded list of tasks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace crossdock {

class ThreadPool {
 public:
  // At least one thread, at least one waiting task.
  ThreadPool(size_t thread_count, size_t waiting_max);
  // Tasks that wait are run first.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // False when too many tasks wait already. Tasks are begun in the order in which they came.
  bool try_post(std::function<void()> task);
  size_t thread_count() const { return threads_.size(); }

 private:
  void run();

  const size_t waiting_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace crossdock
