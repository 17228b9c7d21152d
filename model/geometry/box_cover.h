// Exact cover of boxes by boxes: are the given boxes disjoint, and do they cover what is required and nothing else?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/geometry/box.h"

namespace crossdock {

struct BoxCoverDiagnostic {
  enum class Kind {
    kGap,      // required and not given
    kExtra,    // given and not required
    kOverlap,  // given twice
  } kind;
  // The elements concerned: one product of slabs, or several that were joined along the first axis.
  Box box;
  std::vector<size_t> given;  // the given boxes concerned: none, one, or two of them

  friend bool operator==(const BoxCoverDiagnostic&, const BoxCoverDiagnostic&) = default;
};

struct BoxCover {
  std::vector<BoxCoverDiagnostic> diagnostics;  // neighbours along the first axis that differ in nothing else are one
  uint64_t work = 0;                            // steps: one for each active box of each slab
  bool complete = true;  // false: stopped at a limit, and the diagnostics are only the first ones

  bool exact() const { return complete && diagnostics.empty(); }
};

struct BoxCoverLimits {
  // In steps, as BoxCover::work.
  uint64_t work_max = uint64_t{1} << 27;
  size_t diagnostic_count_max = 100;
};

// All boxes of one rank. Required boxes may overlap: an element is required or it is not. A sweep over the first axis,
// in each slab a sweep over the next, and so on: O(n log n) for boxes that share their boundaries, as pages and heads
// do; orthogonal stripes cost their product and stop at the limit.
BoxCover check_box_cover(std::span<const Box> required, std::span<const Box> given, const BoxCoverLimits& limits);

}  // namespace crossdock
