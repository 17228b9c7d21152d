// Counts the tokens of a cycle.
#pragma once

#include <cstdint>
#include <optional>

#include "base/interval_rank.h"
#include "base/range.h"
#include "model/kv/token_ownership.h"

namespace crossdock {

// Counts the tokens that a cycle selects, or all of them without one, each time in O(log ranges of blocks);
// CyclicTokens::count_below walks through them. The cycle outlives it.
class TokenCounter {
 public:
  explicit TokenCounter(const CyclicTokens& cycle) : cycle_(&cycle), blocks_(cycle.blocks) {}
  explicit TokenCounter(const std::optional<CyclicTokens>& cycle) {
    if (!cycle) return;
    cycle_ = &*cycle;
    blocks_.emplace(cycle->blocks);
  }
  // A temporary would be gone when it is counted in.
  explicit TokenCounter(CyclicTokens&&) = delete;
  explicit TokenCounter(std::optional<CyclicTokens>&&) = delete;

  // Members below `token`, over all tokens and not only those of an interval.
  uint64_t count_below(uint64_t token) const;
  uint64_t count_within(Range tokens) const { return count_below(tokens.end()) - count_below(tokens.begin()); }
  // The lowest token t with count_below(t) >= count. Requires count_below(token_max) >= count.
  // O(log(token_max) log(ranges of blocks)).
  uint64_t first_with(uint64_t count, uint64_t token_max) const;

 private:
  const CyclicTokens* cycle_ = nullptr;
  std::optional<IntervalRank> blocks_;
};

}  // namespace crossdock
