// The pieces of a step as a list.
#pragma once

#include <vector>

#include "planner/copy/steps.h"

namespace crossdock::testing {

inline std::vector<ByteCopy> ranges_of(const CopyStep& step) {
  std::vector<ByteCopy> ranges;
  ByteRanges walk(step);
  for (ByteCopy piece; walk.next(piece);) ranges.push_back(piece);
  return ranges;
}

}  // namespace crossdock::testing
