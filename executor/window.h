// Window: how much may be under way at once, by operations and by bytes. One window may serve several lists of work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace crossdock {

struct WindowLimits {
  size_t operation_count_max = 16;
  uint64_t bytes_max = uint64_t{64} << 20;  // a single operation may be larger; it is then the only one
};

class Window {
 public:
  explicit Window(const WindowLimits& limits) : limits_(limits) {
    CHECK(limits.operation_count_max > 0 && limits.bytes_max > 0);
  }

  bool has_room(uint64_t bytes) const {
    if (operation_count_ == 0) return true;
    return operation_count_ < limits_.operation_count_max && bytes_ < limits_.bytes_max &&
           bytes <= limits_.bytes_max - bytes_;
  }
  void enter(uint64_t bytes) {
    CHECK(has_room(bytes));
    ++operation_count_;
    bytes_ += bytes;
  }
  void leave(uint64_t bytes) {
    CHECK(operation_count_ > 0 && bytes_ >= bytes);
    --operation_count_;
    bytes_ -= bytes;
  }

  size_t operation_count() const { return operation_count_; }
  uint64_t bytes() const { return bytes_; }

 private:
  WindowLimits limits_;
  size_t operation_count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace crossdock
