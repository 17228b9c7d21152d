// The monotonic clock of the machine as a TimePoint: for completion queues and for durations that are reported. A
// protocol reads no clock; its time comes from its queue.
#pragma once

#include <chrono>

#include "base/time.h"

namespace crossdock {

inline TimePoint steady_now() {
  return TimePoint::from_ns(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace crossdock
