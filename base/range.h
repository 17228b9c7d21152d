// Half-open ranges [begin, end) of unsigned 64-bit numbers: layers, heads, tokens, bytes.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/check.h"

namespace crossdock {

// A Range that exists is well-formed: begin <= end. Order: by begin, then by end.
class Range {
 public:
  static constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

  constexpr Range() = default;
  // Requires begin <= end; anything that comes from outside goes through make().
  constexpr Range(uint64_t begin, uint64_t end) : begin_(begin), end_(end) { CHECK(begin <= end); }

  static constexpr std::optional<Range> make(uint64_t begin, uint64_t end) {
    if (begin > end) return std::nullopt;
    return Range(begin, end);
  }
  // [begin, begin + count), empty when that passes 2^64 - 1.
  static constexpr std::optional<Range> make_sized(uint64_t begin, uint64_t count) {
    if (count > kUnbounded - begin) return std::nullopt;
    return Range(begin, begin + count);
  }
  static constexpr Range all() { return Range(0, kUnbounded); }

  constexpr uint64_t begin() const { return begin_; }
  constexpr uint64_t end() const { return end_; }
  constexpr uint64_t size() const { return end_ - begin_; }
  constexpr bool empty() const { return begin_ == end_; }

  constexpr bool contains(uint64_t value) const { return begin_ <= value && value < end_; }
  // An empty range lies within everything.
  constexpr bool contains(Range other) const { return other.empty() || (begin_ <= other.begin_ && other.end_ <= end_); }
  constexpr bool overlaps(Range other) const { return !intersect(other).empty(); }
  // The common part; an empty range when there is none.
  constexpr Range intersect(Range other) const {
    const uint64_t begin = std::max(begin_, other.begin_);
    const uint64_t end = std::min(end_, other.end_);
    return begin < end ? Range(begin, end) : Range();
  }

  friend constexpr auto operator<=>(Range, Range) = default;

 private:
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

// A Range whose unit is bytes of one region or object.
using ByteRange = Range;

}  // namespace crossdock
