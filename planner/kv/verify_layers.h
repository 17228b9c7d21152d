// The layers of a tensor numbered from 0 without holes. Regions over every other layer of a model, as with alternating
// windows, are one interval in these numbers, so a sweep sees one slab instead of one for each layer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/interval_set.h"
#include "base/range.h"

namespace crossdock {

class LayerMap {
 public:
  // O(ranges of layers). The tensor has at least one layer (rule plan-tensor).
  explicit LayerMap(const IntervalSet& layers);

  // Calls visit(Range) for each interval of those of `layers` that the tensor has, counted through, ascending.
  // Returns the steps it took.
  template <class Visit>
  uint64_t for_each_counted(const IntervalSet& layers, Visit visit) const {
    uint64_t steps = 0;
    Range pending;
    for (const Range range : layers.ranges())
      for (size_t i = first_ending_after(range.begin()); i < pieces_.size() && pieces_[i].layers.begin() < range.end();
           ++i, ++steps) {
        const Range counted = pieces_[i].to_counted(range);
        if (!pending.empty() && pending.end() == counted.begin()) {
          pending = Range(pending.begin(), counted.end());
          continue;
        }
        if (!pending.empty()) visit(pending);
        pending = counted;
      }
    if (!pending.empty()) visit(pending);
    return steps + layers.ranges().size();
  }

  // The other way: calls visit(Range layers) for each interval of real layers; ends when it returns false.
  template <class Visit>
  void for_each_real(Range counted, Visit visit) const {
    const auto first = std::partition_point(pieces_.begin(), pieces_.end(), [counted](const Piece& piece) {
      return piece.counted_begin + piece.layers.size() <= counted.begin();
    });
    for (auto piece = first; piece != pieces_.end() && piece->counted_begin < counted.end(); ++piece)
      if (!visit(piece->to_real(counted))) return;
  }

 private:
  // An interval of real layers, and the number of its first layer.
  struct Piece {
    Range layers;
    uint64_t counted_begin;

    Range to_counted(Range range) const {
      const Range common = range.intersect(layers);
      return Range(common.begin() - layers.begin() + counted_begin, common.end() - layers.begin() + counted_begin);
    }
    Range to_real(Range counted) const {
      const Range common = counted.intersect(Range(counted_begin, counted_begin + layers.size()));
      return Range(common.begin() - counted_begin + layers.begin(), common.end() - counted_begin + layers.begin());
    }
  };

  // One piece is the usual case, and is answered without a search.
  size_t first_ending_after(uint64_t layer) const {
    if (pieces_.size() == 1) return pieces_[0].layers.end() <= layer ? 1 : 0;
    const auto found = std::partition_point(pieces_.begin(), pieces_.end(),
                                            [layer](const Piece& piece) { return piece.layers.end() <= layer; });
    return static_cast<size_t>(found - pieces_.begin());
  }

  std::vector<Piece> pieces_;  // ascending
};

}  // namespace crossdock
