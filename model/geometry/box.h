// Box: an axis-parallel block of elements of one tensor, half-open in every axis. What an axis means is the caller's:
// (layer, head, dim, token) for KV cache, a tensor's own axes for weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "base/range.h"

namespace crossdock {

// A Box that exists is well-formed: 1 to kRankMax axes, each with begin <= end.
class Box {
 public:
  static constexpr size_t kRankMax = 8;

  // Requires 1 to kRankMax axes.
  Box(std::initializer_list<Range> axes) : Box(std::span<const Range>(axes.begin(), axes.size())) {}
  explicit Box(std::span<const Range> axes);
  // Empty when the two have different or too many axes, or a begin lies past its end.
  static std::optional<Box> make(std::span<const uint64_t> begin, std::span<const uint64_t> end);

  // How many axes.
  size_t rank() const { return rank_; }
  Range axis(size_t index) const {
    CHECK(index < rank_);
    return axes_[index];
  }
  // The same box with another range in one axis.
  Box with_axis(size_t index, Range range) const;

  bool empty() const;
  // How many elements; empty when that passes 2^64 - 1.
  std::optional<uint64_t> volume() const;
  // Both of the same rank.
  bool contains(const Box& other) const;
  // Empty when nothing is common.
  std::optional<Box> intersect(const Box& other) const;

  friend bool operator==(const Box&, const Box&) = default;

 private:
  size_t rank_ = 0;
  std::array<Range, kRankMax> axes_;  // those past rank_ stay empty
};

}  // namespace crossdock
