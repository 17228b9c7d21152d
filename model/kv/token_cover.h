// Do token ownerships share out an interval of tokens exactly?
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/range.h"
#include "model/kv/token_ownership.h"

namespace crossdock {

// The first diagnostic found. `kTooMuchWork`: the cycles are so incommensurable that more than `range_count_max`
// intervals would have to be looked at.
struct TokenCoverDiagnostic {
  enum class Kind { kGap, kOverlap, kTooMuchWork } kind;
  Range tokens;      // of a gap or an overlap
  size_t first = 0;  // of an overlap: the two owners
  size_t second = 0;
};

struct TokenCover {
  std::optional<TokenCoverDiagnostic> diagnostic;  // empty: each token is in exactly one of the ownerships
  uint64_t range_count = 0;                        // intervals that were looked at
};

// Compares ownerships over `tokens`. Equal cycles are compared by their blocks;
// otherwise intervals are compared over one period after the last stated boundary, which decides for all that follows.
TokenCover check_token_cover(std::span<const TokenOwnership* const> ownerships, Range tokens, uint64_t range_count_max);

}  // namespace crossdock
