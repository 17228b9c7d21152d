#include "model/kv/token_ownership.h"

#include "base/checked.h"

namespace crossdock {
namespace {

// A cycle of 2^64 tokens and more begins once. The number of ranges is known before any is made, so the limit bounds
// memory. Ranges outside `tokens` become empty, and from_ranges() drops them.
std::optional<IntervalSet> cyclic_within(const CyclicTokens& cyclic, Range tokens, uint64_t range_count_max) {
  const std::optional<uint64_t> cycle_tokens = checked_mul(cyclic.block_tokens, cyclic.cycle_blocks);
  const uint64_t first_cycle = cycle_tokens ? tokens.begin() / *cycle_tokens : 0;
  const uint64_t cycles = cycle_tokens ? div_round_up(tokens.end(), *cycle_tokens) - first_cycle : 1;
  const std::optional<uint64_t> range_count = checked_mul(cycles, cyclic.blocks.ranges().size());
  if (!range_count || *range_count > range_count_max) return std::nullopt;

  std::vector<Range> ranges;
  ranges.reserve(*range_count);
  for (uint64_t cycle = 0; cycle < cycles; ++cycle) {
    for (const Range blocks : cyclic.blocks.ranges()) {
      const auto at = [&](uint64_t block) {  // saturates: what lies past 2^64 - 1 is outside `tokens` anyway
        const Checked tokens_before = Checked(first_cycle + cycle) * cyclic.cycle_blocks + block;
        return (tokens_before * cyclic.block_tokens).value().value_or(Range::kUnbounded);
      };
      ranges.push_back(Range(at(blocks.begin()), at(blocks.end())).intersect(tokens));
    }
  }
  return IntervalSet::from_ranges(std::move(ranges));
}

}  // namespace

uint64_t CyclicTokens::count_below(uint64_t token) const {
  const uint64_t block = token / block_tokens;
  const uint64_t cycle = block / cycle_blocks;
  const uint64_t block_in_cycle = block % cycle_blocks;
  const uint64_t whole_blocks = cycle * blocks.count() + blocks.count_below(block_in_cycle);
  const uint64_t partial_tokens = blocks.contains(block_in_cycle) ? token % block_tokens : 0;
  return whole_blocks * block_tokens + partial_tokens;  // at most `token`, so nothing wraps
}

// The stated intervals are counted before they are cut, because cutting looks at all of them.
std::optional<IntervalSet> tokens_within(const TokenOwnership& ownership, Range tokens, uint64_t range_count_max) {
  if (tokens.empty()) return IntervalSet();
  if (const auto* cyclic = std::get_if<CyclicTokens>(&ownership))
    return cyclic_within(*cyclic, tokens, range_count_max);
  if (const auto* intervals = std::get_if<TokenIntervals>(&ownership)) {
    if (intervals->tokens.ranges().size() > range_count_max) return std::nullopt;
    return intervals->tokens.intersect({tokens});
  }
  return IntervalSet{tokens};
}

}  // namespace crossdock
