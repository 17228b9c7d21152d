// How many threads work is shared out to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>

namespace crossdock {

// `count`, or one thread for each processor when it is 0.
inline size_t thread_count_or_all(size_t count) {
  return count != 0 ? count : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace crossdock
