// Token ownerships of different forms on one axis of numbers, where those that share a token share a number.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/interval_set.h"
#include "base/range.h"
#include "model/kv/token_ownership.h"

namespace crossdock {

// What the ranges of an ownership count: tokens of stated intervals, or blocks of a cycle.
struct TokenForm {
  uint64_t block_tokens = 0;  // 0: stated intervals
  uint64_t cycle_blocks = 0;

  bool is_cycle() const { return block_tokens != 0; }
  friend auto operator<=>(const TokenForm&, const TokenForm&) = default;
};

// Of all tokens as of stated intervals.
TokenForm form_of(const TokenOwnership& ownership);
// The intervals, or the blocks; null for all tokens.
const IntervalSet* ranges_of(const TokenOwnership& ownership);

// Ranges of one form on an axis that it has in common with another form. Two cycles meet in their common period, in
// units of the greatest common divisor of their blocks; intervals and a cycle in the blocks of the cycle. Two
// ownerships that share a token share a number of the axis; the converse need not hold.
class TokenAxis {
 public:
  // Empty when the common period of two cycles does not fit in 64 bits.
  static std::optional<TokenAxis> of(const TokenForm& a, const TokenForm& b);

  // The unit and the length of the axis, as those of a cycle.
  const TokenForm& form() const { return axis_; }

  // How many ranges project() gives, at most; saturates.
  uint64_t projected_count(const TokenForm& form, uint64_t range_count) const;
  // Adds the range of `form`, which is one of the two, in pieces.
  void project(const TokenForm& form, Range range, std::vector<Range>& pieces) const;

 private:
  TokenForm axis_;  // its unit and its length; of two stated forms 0 and 0
};

}  // namespace crossdock
