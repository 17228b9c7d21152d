#include "model/geometry/strided_overlap.h"

#include <algorithm>
#include <cstddef>

// Is there a byte in two of the sets { base + sum i_k stride_k + b : 0 <= i_k < extent_k, 0 <= b < width } ? Two facts
// make walking through bytes unnecessary:
// - Sets whose spans do not overlap share no byte. Sorted by base, the sets fall into clusters of overlapping spans,
//   and clusters are independent.
// - In a cluster with one outer stride, whose first steps lie within one stride, index i of one set can meet only index
//   i of another. So the outer axis may be taken off: they share a byte exactly when their first steps do.
// Only clusters that mix shapes are unrolled along their longest axis, at the cost of its extent. Pools of serving
// engines have one shape for all pages, so their check costs O(sets * log(sets) * axes).
namespace crossdock {
namespace {

using Sets = std::vector<StridedBytes>;

// 0 for a plain run of bytes, which has no axis left to take off.
uint64_t outer_stride(const StridedBytes& set) { return set.axes.empty() ? 0 : set.axes.front().stride_bytes; }

// The span of one step of the outermost axis.
uint64_t inner_span(const StridedBytes& set) {
  const StridedAxis& outer = set.axes.front();
  return set.span() - outer.stride_bytes * (outer.extent - 1);
}

class OverlapSearch {
 public:
  explicit OverlapSearch(uint64_t work_max) : work_left_(work_max) {}

  // A stack of groups instead of recursion; each turn takes at least one axis off each set of a group, or unrolls one,
  // so it ends.
  StridedOverlap run(Sets sets) {
    std::vector<Sets> pending;  // groups that share no byte with each other
    pending.push_back(std::move(sets));
    while (!pending.empty() && result_.complete && !result_.owners) {
      Sets group = std::move(pending.back());
      pending.pop_back();
      split_into_clusters(std::move(group), pending);
    }
    return result_;
  }

 private:
  // Sets whose spans hang together go on as a group with one axis less.
  void split_into_clusters(Sets sets, std::vector<Sets>& pending) {
    std::sort(sets.begin(), sets.end(), [](const StridedBytes& a, const StridedBytes& b) { return a.base < b.base; });
    for (size_t begin = 0; begin < sets.size();) {
      // Fits: the end of a set is at most 2^64 - 1 (StridedBytes).
      uint64_t end_byte = sets[begin].base + sets[begin].span();
      size_t end = begin + 1;
      for (; end < sets.size() && sets[end].base < end_byte; ++end)
        end_byte = std::max(end_byte, sets[end].base + sets[end].span());
      // A set alone in its cluster cannot overlap anything, itself included: its strides are nested.
      if (end - begin > 1) {
        const auto first = sets.begin() + static_cast<ptrdiff_t>(begin);
        Sets next = simplify(Sets(first, first + static_cast<ptrdiff_t>(end - begin)));
        if (!result_.complete || result_.owners) return;
        pending.push_back(std::move(next));
      }
      begin = end;
    }
  }

  bool spend(uint64_t steps) {
    result_.complete = result_.complete && steps <= work_left_;
    if (result_.complete) work_left_ -= steps;
    return result_.complete;
  }

  // Takes one axis off a cluster, sorted by base; or ends the search.
  // The work counts sets, before they are copied or unrolled.
  Sets simplify(Sets cluster) {
    if (!spend(cluster.size())) return {};
    uint64_t stride = 0;
    for (const StridedBytes& set : cluster) stride = std::max(stride, outer_stride(set));
    if (stride == 0) {  // plain runs; the first two of a cluster do share a byte
      result_.owners = std::minmax(cluster[0].owner, cluster[1].owner);
      return {};
    }
    if (!fits_one_step(cluster, stride)) return unroll(cluster, stride);
    for (StridedBytes& set : cluster) set.axes.pop_front();
    return cluster;
  }

  // All have this outer stride, and their first steps fit into one stride: then sets meet only at equal indices, and
  // at index 0 all of them are present.
  // The cluster is sorted by base, so no difference wraps.
  static bool fits_one_step(const Sets& cluster, uint64_t stride) {
    uint64_t end = 0;
    for (const StridedBytes& set : cluster) {
      if (outer_stride(set) != stride) return false;
      end = std::max(end, set.base - cluster.front().base + inner_span(set));
    }
    return end <= stride;
  }

  // Only the sets with the longest stride: shorter ones stay within one step of it and may meet it as they are.
  Sets unroll(const Sets& cluster, uint64_t stride) {
    Sets unrolled;
    for (StridedBytes set : cluster) {
      if (outer_stride(set) != stride) {
        unrolled.push_back(set);
        continue;
      }
      const uint64_t extent = set.axes.front().extent;
      if (!spend(extent)) return {};
      set.axes.pop_front();
      for (uint64_t i = 0; i < extent; ++i, set.base += stride) unrolled.push_back(set);
    }
    return unrolled;
  }

  uint64_t work_left_;
  StridedOverlap result_;
};

}  // namespace

uint64_t StridedBytes::span() const {
  uint64_t bytes = width;
  for (const StridedAxis& axis : axes) bytes += axis.stride_bytes * (axis.extent - 1);
  return bytes;
}

StridedOverlap find_overlap(std::vector<StridedBytes> sets, uint64_t work_max) {
  return OverlapSearch(work_max).run(std::move(sets));
}

}  // namespace crossdock
