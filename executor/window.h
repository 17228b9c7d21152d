// Window: how much may be under way at once, by operations and by bytes. Bytes alone would let small operations pile up
// in a queue; operations alone would let large ones take all memory of a backend. One window may serve several lists of
// work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace crossdock {

// Each at least 1.
struct WindowLimits {
  size_t operation_count_max = 16;
  uint64_t bytes_max = uint64_t{64} << 20;  // a single operation may be larger; it is then the only one
};

class Window {
 public:
  explicit Window(const WindowLimits& limits) : limits_(limits) {
    CHECK(limits.operation_count_max > 0 && limits.bytes_max > 0);
  }

  // Whether an operation of that many bytes may be posted now. The difference does not wrap: bytes_ is below bytes_max
  // there.
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
  // With the bytes that it entered with.
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
