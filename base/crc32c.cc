#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace crossdock {
namespace {

constexpr size_t kCallBytesMax = size_t{1} << 30;  // ISA-L takes the length as an int

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous) {
  uint32_t state = ~previous;
  while (!bytes.empty()) {
    const size_t length = std::min(bytes.size(), kCallBytesMax);
    // ISA-L's signature lacks a const; it only reads.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(length), state);
    bytes = bytes.subspan(length);
  }
  return ~state;
}

}  // namespace crossdock
