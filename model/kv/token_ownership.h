// Which tokens a participant owns: all, stated intervals, or blocks of a cycle (context parallelism).
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/interval_set.h"

namespace crossdock {

// All tokens of the placement; of a state component, its one token 0.
struct AllTokens {
  friend bool operator==(const AllTokens&, const AllTokens&) = default;
  friend auto operator<=>(const AllTokens&, const AllTokens&) = default;
};

// Stated intervals: not empty in a valid document.
struct TokenIntervals {
  IntervalSet tokens;

  friend bool operator==(const TokenIntervals&, const TokenIntervals&) = default;
  friend auto operator<=>(const TokenIntervals&, const TokenIntervals&) = default;
};

// Token t is owned when (t / block_tokens) % cycle_blocks is in `blocks`. One block of the cycle per rank is plain
// interleaving; blocks {r, 2n-1-r} of a cycle of 2n is the zigzag that balances causal attention.
struct CyclicTokens {
  uint64_t block_tokens = 0;
  uint64_t cycle_blocks = 0;
  IntervalSet blocks;

  bool contains(uint64_t token) const { return blocks.contains(token / block_tokens % cycle_blocks); }
  // How many owned tokens lie below `token`. O(ranges of blocks).
  uint64_t count_below(uint64_t token) const;

  friend bool operator==(const CyclicTokens&, const CyclicTokens&) = default;
  friend auto operator<=>(const CyclicTokens&, const CyclicTokens&) = default;
};

using TokenOwnership = std::variant<AllTokens, TokenIntervals, CyclicTokens>;

// The owned tokens within `tokens` as intervals, or empty when there are more than `range_count_max` of them
// or of stated intervals; nothing is expanded in that case.
std::optional<IntervalSet> tokens_within(const TokenOwnership& ownership, Range tokens, uint64_t range_count_max);

}  // namespace crossdock
