#include "planner/token_set.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/checked.h"

namespace crossdock {
namespace {

uint64_t count_within(Range tokens, const std::optional<CyclicTokens>& cycle) {
  return cycle ? cycle->count_below(tokens.end()) - cycle->count_below(tokens.begin()) : tokens.size();
}

// The blocks of one cycle, in units of unit_tokens, repeated over a period of period_units. Empty when there are more
// than `range_count_max` of them.
std::optional<IntervalSet> unroll(const CyclicTokens& cycle, uint64_t unit_tokens, uint64_t period_units,
                                  uint64_t range_count_max) {
  const uint64_t block_units = cycle.block_tokens / unit_tokens;
  const uint64_t cycle_units = block_units * cycle.cycle_blocks;
  const uint64_t repeats = period_units / cycle_units;
  const std::optional<uint64_t> range_count = checked_mul(repeats, cycle.blocks.ranges().size());
  if (!range_count || *range_count > range_count_max) return std::nullopt;
  std::vector<Range> ranges;
  ranges.reserve(*range_count);
  for (uint64_t repeat = 0; repeat < repeats; ++repeat)
    for (const Range blocks : cycle.blocks.ranges())
      ranges.emplace_back(repeat * cycle_units + blocks.begin() * block_units,
                          repeat * cycle_units + blocks.end() * block_units);
  return IntervalSet::from_ranges(std::move(ranges));
}

// Empty when the common period is too long.
std::optional<CyclicTokens> join_cycles(const CyclicTokens& a, const CyclicTokens& b, uint64_t range_count_max) {
  if (a.block_tokens == b.block_tokens && a.cycle_blocks == b.cycle_blocks)
    return CyclicTokens{a.block_tokens, a.cycle_blocks, a.blocks.intersect(b.blocks)};
  const uint64_t unit = std::gcd(a.block_tokens, b.block_tokens);
  const std::optional<uint64_t> a_units = checked_mul(a.block_tokens / unit, a.cycle_blocks);
  const std::optional<uint64_t> b_units = checked_mul(b.block_tokens / unit, b.cycle_blocks);
  if (!a_units || !b_units) return std::nullopt;
  const std::optional<uint64_t> period = checked_mul(*a_units / std::gcd(*a_units, *b_units), *b_units);
  if (!period || !checked_mul(*period, unit)) return std::nullopt;
  const std::optional<IntervalSet> a_blocks = unroll(a, unit, *period, range_count_max);
  const std::optional<IntervalSet> b_blocks = unroll(b, unit, *period, range_count_max);
  if (!a_blocks || !b_blocks) return std::nullopt;
  return CyclicTokens{unit, *period, a_blocks->intersect(*b_blocks)};
}

bool holds_all(const CyclicTokens& cycle) { return cycle.blocks.count() == cycle.cycle_blocks; }

void cut_to_intervals(const TokenOwnership& ownership, IntervalSet& intervals) {
  if (const auto* stated = std::get_if<TokenIntervals>(&ownership)) intervals = intervals.intersect(stated->tokens);
}

}  // namespace

uint64_t TokenSet::count() const {
  uint64_t sum = 0;
  for (const Range range : intervals.ranges())
    sum = checked_add(sum, count_within(range, cycle)).value_or(Range::kUnbounded);
  return sum;
}

TokenSet TokenSet::within(Range tokens) const {
  return TokenSet{tokens.empty() ? IntervalSet() : intervals.intersect({tokens}), cycle};
}

uint64_t TokenSet::row_count(uint64_t tokens_per_row) const {
  if (tokens_per_row == 1) return count();
  uint64_t rows = 0;
  for (const Range range : intervals.ranges()) {
    const Range whole(range.begin() - range.begin() % tokens_per_row,
                      checked_round_up(range.end(), tokens_per_row).value_or(Range::kUnbounded));
    const uint64_t row_tokens = count_within(whole, cycle);
    rows = checked_add(rows, div_round_up(row_tokens, tokens_per_row)).value_or(Range::kUnbounded);
  }
  return rows;
}

TokenJoin join_tokens(const TokenOwnership& a, const TokenOwnership& b, Range tokens, uint64_t range_count_max,
                      TokenSet& common) {
  common = TokenSet();
  if (tokens.empty()) return TokenJoin::kNone;
  common.intervals = IntervalSet{tokens};
  cut_to_intervals(a, common.intervals);
  cut_to_intervals(b, common.intervals);
  if (common.intervals.empty()) return TokenJoin::kNone;

  const auto* a_cycle = std::get_if<CyclicTokens>(&a);
  const auto* b_cycle = std::get_if<CyclicTokens>(&b);
  if (a_cycle != nullptr && b_cycle != nullptr) {
    common.cycle = join_cycles(*a_cycle, *b_cycle, range_count_max);
    if (!common.cycle) return TokenJoin::kTooMany;
  } else if (a_cycle != nullptr || b_cycle != nullptr) {
    common.cycle = a_cycle != nullptr ? *a_cycle : *b_cycle;
  }
  if (common.cycle && holds_all(*common.cycle)) common.cycle.reset();
  return common.cycle && common.count() == 0 ? TokenJoin::kNone : TokenJoin::kSome;
}

std::optional<IntervalSet> expand_tokens(const TokenSet& set, uint64_t range_count_max) {
  if (!set.cycle || holds_all(*set.cycle)) {
    if (set.intervals.ranges().size() > range_count_max) return std::nullopt;
    return set.intervals;
  }
  // Blocks of neighbouring cycles may touch, and those at the ends may lie outside: up to twice as many are looked at.
  const uint64_t looked_at_max = (Checked(range_count_max) * 2 + Checked(set.cycle->blocks.ranges().size()) * 2)
                                     .value()
                                     .value_or(Range::kUnbounded);
  std::vector<Range> ranges;
  for (const Range interval : set.intervals.ranges()) {
    const std::optional<IntervalSet> pieces = tokens_within(TokenOwnership(*set.cycle), interval, looked_at_max);
    if (!pieces || ranges.size() > looked_at_max) return std::nullopt;
    ranges.insert(ranges.end(), pieces->ranges().begin(), pieces->ranges().end());
  }
  IntervalSet stretches = IntervalSet::from_ranges(std::move(ranges));
  if (stretches.ranges().size() > range_count_max) return std::nullopt;
  return stretches;
}

}  // namespace crossdock
