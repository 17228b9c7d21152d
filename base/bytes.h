// Small binary records: little-endian numbers, and texts with their length before them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace crossdock {

class ByteWriter {
 public:
  ByteWriter& u8(uint8_t value) {
    bytes_ += static_cast<char>(value);
    return *this;
  }
  ByteWriter& u32(uint32_t value) { return number(value, 4); }
  ByteWriter& u64(uint64_t value) { return number(value, 8); }
  ByteWriter& i64(int64_t value) { return u64(static_cast<uint64_t>(value)); }
  ByteWriter& text(std::string_view text) {
    u64(text.size());
    bytes_ += text;
    return *this;
  }
  std::string take() && { return std::move(bytes_); }

 private:
  ByteWriter& number(uint64_t value, int byte_count) {
    for (int i = 0; i < byte_count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  std::string bytes_;
};

// Past the end, every value is 0 or empty and ok() is false from then on: a caller reads all and asks once.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  int64_t i64() { return static_cast<int64_t>(number(8)); }
  // A view into the bytes that are read. A length that passes their end gives an empty text and ok() false.
  std::string_view text() {
    const uint64_t size = u64();
    return take(size);
  }
  // A count of things of which each takes at least `bytes_min` bytes; 0 when there cannot be so many.
  uint64_t count(uint64_t bytes_min) {
    const uint64_t count = u64();
    if (count <= left_.size() / bytes_min) return count;
    ok_ = false;
    return 0;
  }
  bool ok() const { return ok_; }
  // Everything was read and nothing is left: the record has exactly this form.
  bool at_end() const { return ok_ && left_.empty(); }

 private:
  std::string_view take(uint64_t size) {
    if (size > left_.size()) {
      ok_ = false;
      left_ = {};
      return {};
    }
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  uint64_t number(size_t byte_count) {
    const std::string_view taken = take(byte_count);
    uint64_t value = 0;
    for (size_t i = taken.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }

  std::string_view left_;
  bool ok_ = true;
};

}  // namespace crossdock
