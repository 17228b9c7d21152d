#include "model/strided_overlap.h"

#include <algorithm>
#include <iterator>

namespace crossdock {
namespace {

using Sets = std::vector<StridedBytes>;

uint64_t outer_stride(const StridedBytes& set) { return set.axes.empty() ? 0 : set.axes.front().stride_bytes; }

// The span of one step of the outermost axis.
uint64_t inner_span(const StridedBytes& set) {
  const StridedAxis& outer = set.axes.front();
  return set.span() - outer.stride_bytes * (outer.extent - 1);
}

class OverlapSearch {
 public:
  explicit OverlapSearch(uint64_t work_max) : work_left_(work_max) {}

  // True when an overlap was found or the limit was reached.
  bool search(Sets sets) {
    std::sort(sets.begin(), sets.end(), [](const StridedBytes& a, const StridedBytes& b) { return a.base < b.base; });
    for (size_t begin = 0; begin < sets.size();) {
      uint64_t end_byte = sets[begin].base + sets[begin].span();
      size_t end = begin + 1;
      for (; end < sets.size() && sets[end].base < end_byte; ++end)
        end_byte = std::max(end_byte, sets[end].base + sets[end].span());
      if (end - begin > 1) {
        const auto first = sets.begin() + static_cast<ptrdiff_t>(begin);
        const auto last = sets.begin() + static_cast<ptrdiff_t>(end);
        if (search_cluster(Sets(std::make_move_iterator(first), std::make_move_iterator(last)))) return true;
      }
      begin = end;
    }
    return false;
  }

  StridedOverlap result;

 private:
  // Sets whose spans hang together, sorted by base.
  bool search_cluster(Sets cluster) {
    uint64_t stride = 0;
    for (const StridedBytes& set : cluster) stride = std::max(stride, outer_stride(set));
    if (stride == 0) {  // plain runs; the first two of a cluster do share a byte
      result.owners = std::minmax(cluster[0].owner, cluster[1].owner);
      return true;
    }
    return search(fits_one_step(cluster, stride) ? drop_outer(std::move(cluster)) : unroll(std::move(cluster), stride));
  }

  // All have this outer stride, and their first steps fit into one stride: then sets meet only at equal indices, and
  // at index 0 all of them are present.
  static bool fits_one_step(const Sets& cluster, uint64_t stride) {
    uint64_t end = 0;
    for (const StridedBytes& set : cluster) {
      if (outer_stride(set) != stride) return false;
      end = std::max(end, set.base - cluster.front().base + inner_span(set));
    }
    return end <= stride;
  }

  static Sets drop_outer(Sets cluster) {
    for (StridedBytes& set : cluster) set.axes.pop_front();
    return cluster;
  }

  // Empty when that passes the limit.
  Sets unroll(Sets cluster, uint64_t stride) {
    Sets unrolled;
    for (StridedBytes& set : cluster) {
      if (outer_stride(set) != stride) {
        unrolled.push_back(std::move(set));
        continue;
      }
      const uint64_t extent = set.axes.front().extent;
      if (extent > work_left_) {
        result.complete = false;
        return {};
      }
      work_left_ -= extent;
      set.axes.pop_front();
      for (uint64_t i = 0; i < extent; ++i, set.base += stride) unrolled.push_back(set);
    }
    return unrolled;
  }

  uint64_t work_left_;
};

}  // namespace

uint64_t StridedBytes::span() const {
  uint64_t bytes = width;
  for (const StridedAxis& axis : axes) bytes += axis.stride_bytes * (axis.extent - 1);
  return bytes;
}

StridedOverlap find_overlap(std::vector<StridedBytes> sets, uint64_t work_max) {
  OverlapSearch search(work_max);
  search.search(std::move(sets));
  return search.result;
}

}  // namespace crossdock
