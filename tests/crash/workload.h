// Random steps on a store, reported before and after each. What a thread does depends on its seed and the store's
// answers only; threads have names of their own, and look at those of others too.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "tests/crash/crash_store.h"
#include "tests/crash/event.h"

namespace crossdock::testing {

struct WorkloadOptions {
  RocksDbOptions tables;
  uint64_t seed = 0;  // of the contents
  uint32_t run = 0;   // of one directory, counted up
  uint32_t thread_count = 1;
  uint32_t step_count = 0;   // of each thread
  bool opens_again = false;  // now and then; by one thread only
  std::function<void(const Event&)> tell;
  std::function<void(std::string_view)> crash_point;
  // Called with an error that an undamaged store does not return. False: the workload ends.
  std::function<bool(const std::string& what)> complain;
};

class Workload {
 public:
  explicit Workload(WorkloadOptions options);
  ~Workload();

  // Opens the store, does all the steps, and closes it.
  void run();

 private:
  class Thread;

  TimePoint now() const { return TimePoint::from_ns(now_ns_); }
  bool open();
  // False when the store's answer is an error that does not belong here.
  bool expect(const Status& status, const std::string& what);

  const WorkloadOptions options_;
  std::atomic<int64_t> now_ns_;
  std::atomic<bool> stopped_ = false;
  MemoryRegistry memory_;
  OpenStore store_;
};

}  // namespace crossdock::testing
