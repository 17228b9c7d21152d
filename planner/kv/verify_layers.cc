#include "planner/kv/verify_layers.h"

namespace crossdock {

// Numbers follow the order of the layers, so intervals stay intervals or fall into fewer.
LayerMap::LayerMap(const IntervalSet& layers) {
  pieces_.reserve(layers.ranges().size());
  uint64_t counted = 0;
  for (const Range range : layers.ranges()) {
    pieces_.push_back(Piece{range, counted});
    counted += range.size();  // disjoint ranges have fewer than 2^64 members
  }
}

}  // namespace crossdock
