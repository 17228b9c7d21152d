#include "executor/written_ranges.h"

#include <fmt/format.h>

#include <algorithm>

namespace crossdock {
namespace {

// The axes by target stride, the innermost first, as far as they lie without a gap behind the contiguous bytes. What is
// left has gaps, or overlaps, and is written out piece by piece.
struct Pieces {
  uint64_t bytes;  // contiguous
  std::vector<CopyAxis> axes;
};

Pieces pieces_of(const CopyStep& step) {
  std::vector<CopyAxis> axes;
  for (const CopyAxis& axis : step.axes())
    if (axis.extent > 1) axes.push_back(axis);
  std::sort(axes.begin(), axes.end(),
            [](const CopyAxis& a, const CopyAxis& b) { return a.target_stride_bytes < b.target_stride_bytes; });
  Pieces pieces{step.bytes, {}};
  for (const CopyAxis& axis : axes) {
    if (pieces.axes.empty() && axis.target_stride_bytes == pieces.bytes)
      pieces.bytes *= axis.extent;
    else
      pieces.axes.push_back(axis);
  }
  return pieces;
}

// Calls visit(offset) for each piece, the innermost axis fastest: in ascending order where axes do not overlap.
template <class Visit>
bool for_each_piece(const std::vector<CopyAxis>& axes, size_t outer, uint64_t offset, const Visit& visit) {
  if (outer == 0) return visit(offset);
  const CopyAxis& axis = axes[outer - 1];
  for (uint64_t i = 0; i < axis.extent; ++i)
    if (!for_each_piece(axes, outer - 1, offset + i * axis.target_stride_bytes, visit)) return false;
  return true;
}

Status written_twice(uint64_t byte) {
  return Status(Code::kInvalidArgument, fmt::format("byte {} is written twice", byte));
}

}  // namespace

Result<std::vector<Range>> written_ranges(const StepSpan& steps) {
  std::vector<Range> ranges;
  for (const CopyStep& step : steps.steps()) {
    const Pieces pieces = pieces_of(step);
    const bool fits = for_each_piece(pieces.axes, pieces.axes.size(), step.target_offset, [&](uint64_t offset) {
      if (!ranges.empty() && ranges.back().end() == offset) {
        ranges.back() = Range(ranges.back().begin(), offset + pieces.bytes);
      } else {
        ranges.emplace_back(offset, offset + pieces.bytes);
      }
      return ranges.size() <= kWrittenRangesMax;
    });
    if (!fits)
      return Status(Code::kInvalidArgument, fmt::format("its bytes are in more than {} pieces", kWrittenRangesMax));
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin() < b.begin(); });
  std::vector<Range> all;
  for (const Range& range : ranges) {
    if (!all.empty() && range.begin() < all.back().end()) return written_twice(range.begin());
    if (!all.empty() && range.begin() == all.back().end())
      all.back() = Range(all.back().begin(), range.end());
    else
      all.push_back(range);
  }
  return all;
}

std::optional<uint64_t> first_common_byte(const std::vector<Range>& a, const std::vector<Range>& b) {
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() && right != b.end()) {
    const uint64_t begin = std::max(left->begin(), right->begin());
    if (begin < std::min(left->end(), right->end())) return begin;
    left->end() <= right->end() ? ++left : ++right;
  }
  return std::nullopt;
}

std::vector<Range> joined(const std::vector<Range>& a, const std::vector<Range>& b) {
  std::vector<Range> all;
  all.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all),
             [](const Range& x, const Range& y) { return x.begin() < y.begin(); });
  std::vector<Range> merged;
  for (const Range& range : all) {
    if (!merged.empty() && merged.back().end() == range.begin())
      merged.back() = Range(merged.back().begin(), range.end());
    else
      merged.push_back(range);
  }
  return merged;
}

std::vector<Range> without(const std::vector<Range>& a, const std::vector<Range>& b) {
  std::vector<Range> left;
  auto cut = b.begin();
  for (const Range& range : a) {
    uint64_t begin = range.begin();
    for (; cut != b.end() && cut->begin() < range.end(); ++cut) {
      if (begin < cut->begin()) left.emplace_back(begin, cut->begin());
      begin = cut->end();
    }
    if (begin < range.end()) left.emplace_back(begin, range.end());
  }
  return left;
}

}  // namespace crossdock
