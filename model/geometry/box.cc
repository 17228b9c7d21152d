#include "model/geometry/box.h"

#include <algorithm>

#include "base/checked.h"

// A box is the product of its axes. Only the first rank_ axes count; those past it stay empty ranges, so that the
// defaulted comparison of all of them is right.
namespace crossdock {

Box::Box(std::span<const Range> axes) : rank_(axes.size()) {
  CHECK(1 <= rank_ && rank_ <= kRankMax);
  std::copy(axes.begin(), axes.end(), axes_.begin());
}

// The way for numbers from outside: it refuses where the constructor's CHECK would end the program.
std::optional<Box> Box::make(std::span<const uint64_t> begin, std::span<const uint64_t> end) {
  if (begin.size() != end.size() || begin.empty() || begin.size() > kRankMax) return std::nullopt;
  std::array<Range, kRankMax> axes;
  for (size_t i = 0; i < begin.size(); ++i) {
    const std::optional<Range> axis = Range::make(begin[i], end[i]);
    if (!axis) return std::nullopt;
    axes[i] = *axis;
  }
  return Box(std::span<const Range>(axes.data(), begin.size()));
}

Box Box::with_axis(size_t index, Range range) const {
  CHECK(index < rank_);
  Box copy = *this;
  copy.axes_[index] = range;
  return copy;
}

bool Box::empty() const {
  return std::any_of(axes_.begin(), axes_.begin() + static_cast<ptrdiff_t>(rank_), [](Range r) { return r.empty(); });
}

// An empty axis first: with it the product is 0, however long the others are.
std::optional<uint64_t> Box::volume() const {
  if (empty()) return 0;
  Checked product = 1;
  for (size_t i = 0; i < rank_; ++i) product = product * axes_[i].size();
  return product.value();
}

bool Box::contains(const Box& other) const {
  CHECK(rank_ == other.rank_);
  if (other.empty()) return true;
  for (size_t i = 0; i < rank_; ++i)
    if (!axes_[i].contains(other.axes_[i])) return false;
  return true;
}

std::optional<Box> Box::intersect(const Box& other) const {
  CHECK(rank_ == other.rank_);
  Box common = *this;
  for (size_t i = 0; i < rank_; ++i) common.axes_[i] = axes_[i].intersect(other.axes_[i]);
  if (common.empty()) return std::nullopt;
  return common;
}

}  // namespace crossdock
