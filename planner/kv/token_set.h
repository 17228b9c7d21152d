// The tokens of an edge: stated intervals, or those in them that belong to a cycle.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "base/interval_set.h"
#include "base/range.h"
#include "model/kv/token_counter.h"
#include "model/kv/token_ownership.h"

namespace crossdock {

// Token t is a member when it is in `intervals` and, with a cycle, the cycle contains it.
struct TokenSet {
  IntervalSet intervals;
  std::optional<CyclicTokens> cycle;

  // How many tokens; saturates at 2^64 - 1. O(ranges of blocks + intervals * log of them).
  uint64_t count() const;
  // Those that lie in `tokens` too.
  TokenSet within(Range tokens) const;
  // How many rows of `tokens_per_row` tokens they lie in. No two intervals lie in one row, and blocks of the cycle are
  // whole rows.
  uint64_t row_count(uint64_t tokens_per_row) const;

  friend bool operator==(const TokenSet&, const TokenSet&) = default;
  friend auto operator<=>(const TokenSet&, const TokenSet&) = default;
};

enum class TokenJoin {
  kNone,     // no token in common
  kSome,     // `common` holds them
  kTooMany,  // the two cycles are so incommensurable that their common period has more than `range_count_max` blocks
};

// What two ownerships have in common within `tokens`. O(intervals + blocks of the common period).
TokenJoin join_tokens(const TokenOwnership& a, const TokenOwnership& b, Range tokens, uint64_t range_count_max,
                      TokenSet& common);

// The same for two ownerships of one form, both stated intervals or both cycles of the shape of `form`, which have the
// tokens or the blocks `ranges` in common.
TokenJoin join_ranges(const TokenOwnership& form, IntervalSet ranges, Range tokens, TokenSet& common);

// Leaves in the set what the cycle has too. The set has a token before.
TokenJoin cut_to_cycle(TokenSet& set, const CyclicTokens& cycle, uint64_t range_count_max);

// The members as intervals, or empty when there are more than `range_count_max`; memory is taken for no more.
// O((intervals + result + cycles that an interval spans) log ranges of blocks).
std::optional<IntervalSet> expand_tokens(const TokenSet& set, uint64_t range_count_max);

}  // namespace crossdock
