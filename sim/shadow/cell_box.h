// Boxes of cells.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/shadow/stored_view.h"

namespace crossdock::shadow {

// Half-open in each axis.
struct CellBox {
  std::array<uint32_t, kAxisCount> begin;
  std::array<uint32_t, kAxisCount> end;

  // Cannot overflow for boxes of one view: its bytes were counted in 64 bits by the rules of bindings.
  uint64_t volume() const {
    uint64_t volume = 1;
    for (size_t axis = 0; axis < kAxisCount; ++axis) volume *= end[axis] - begin[axis];
    return volume;
  }
  bool overlaps(const CellBox& other) const {
    for (size_t axis = 0; axis < kAxisCount; ++axis)
      if (begin[axis] >= other.end[axis] || other.begin[axis] >= end[axis]) return false;
    return true;
  }
  // The other overlaps this one.
  CellBox intersect(const CellBox& other) const {
    CellBox both = *this;
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      both.begin[axis] = std::max(begin[axis], other.begin[axis]);
      both.end[axis] = std::min(end[axis], other.end[axis]);
    }
    return both;
  }
  // Appends what of this box is outside the other, which overlaps it, in boxes that do not overlap.
  template <class Append>
  void subtract(const CellBox& other, Append append) const {
    CellBox rest = *this;
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      CellBox side = rest;
      side.end[axis] = std::max(rest.begin[axis], other.begin[axis]);
      if (side.begin[axis] < side.end[axis]) append(side);
      side = rest;
      side.begin[axis] = std::min(rest.end[axis], other.end[axis]);
      if (side.begin[axis] < side.end[axis]) append(side);
      rest.begin[axis] = std::max(rest.begin[axis], other.begin[axis]);
      rest.end[axis] = std::min(rest.end[axis], other.end[axis]);
    }
  }
  // Grows over a neighbour that differs in one axis only and touches there.
  bool join(const CellBox& other) {
    size_t differing = kAxisCount;
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      if (begin[axis] == other.begin[axis] && end[axis] == other.end[axis]) continue;
      if (differing != kAxisCount) return false;
      differing = axis;
    }
    if (differing == kAxisCount ||
        (end[differing] != other.begin[differing] && other.end[differing] != begin[differing]))
      return false;
    begin[differing] = std::min(begin[differing], other.begin[differing]);
    end[differing] = std::max(end[differing], other.end[differing]);
    return true;
  }

  friend bool operator==(const CellBox&, const CellBox&) = default;
};

}  // namespace crossdock::shadow
