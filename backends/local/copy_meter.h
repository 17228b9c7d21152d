// Measures copies: bytes moved, and the time from the first to the last.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/steady_clock.h"
#include "base/time.h"

namespace crossdock {

// Thread-safe.
class CopyMeter {
 public:
  // The first caller's time stays.
  void began() {
    int64_t none = INT64_MAX;
    first_ns_.compare_exchange_strong(none, steady_now().ns());
  }
  // Of copies that succeeded only.
  void ended(uint64_t bytes) {
    last_ns_ = steady_now().ns();
    bytes_ += bytes;
  }
  uint64_t bytes() const { return bytes_; }
  // From the first that began to the last that ended.
  Duration span() const { return bytes_ == 0 ? Duration() : Duration::from_ns(last_ns_ - first_ns_); }

 private:
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<int64_t> first_ns_ = INT64_MAX;
  std::atomic<int64_t> last_ns_ = 0;
};

}  // namespace crossdock
