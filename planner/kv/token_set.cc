#include "planner/kv/token_set.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "planner/kv/token_axis.h"

// Tokens as sets: Tokens(set) = intervals, cut with { t : (t / block_tokens) mod cycle_blocks in blocks } where there
// is a cycle. Joining and counting work on this description. Tokens themselves are enumerated only by expand_tokens(),
// under a limit: a plan without a snapshot is about 2^64 - 1 tokens.
namespace crossdock {
namespace {

// The blocks of one cycle on the axis. Empty when there are more than `range_count_max` of them; the count is compared
// with the limit before memory is taken.
std::optional<IntervalSet> unroll(const CyclicTokens& cycle, const TokenAxis& axis, uint64_t range_count_max) {
  const TokenForm form = form_of(cycle);
  if (axis.projected_count(form, cycle.blocks.ranges().size()) > range_count_max) return std::nullopt;
  std::vector<Range> ranges;
  for (const Range blocks : cycle.blocks.ranges()) axis.project(form, blocks, ranges);
  return IntervalSet::from_ranges(std::move(ranges));
}

// Empty when the common period is too long.
// The intersection of two cycles is again a cycle, in the units and with the length of their axis. Equal shapes need no
// unrolling; two engines with the same context parallelism meet here.
std::optional<CyclicTokens> join_cycles(const CyclicTokens& a, const CyclicTokens& b, uint64_t range_count_max) {
  if (form_of(a) == form_of(b)) return CyclicTokens{a.block_tokens, a.cycle_blocks, a.blocks.intersect(b.blocks)};
  const std::optional<TokenAxis> axis = TokenAxis::of(form_of(a), form_of(b));
  if (!axis || !checked_mul(axis->form().cycle_blocks, axis->form().block_tokens)) return std::nullopt;
  const std::optional<IntervalSet> a_blocks = unroll(a, *axis, range_count_max);
  const std::optional<IntervalSet> b_blocks = unroll(b, *axis, range_count_max);
  if (!a_blocks || !b_blocks) return std::nullopt;
  return CyclicTokens{axis->form().block_tokens, axis->form().cycle_blocks, a_blocks->intersect(*b_blocks)};
}

bool holds_all(const CyclicTokens& cycle) { return cycle.blocks.count() == cycle.cycle_blocks; }

void cut_to_intervals(const TokenOwnership& ownership, IntervalSet& intervals) {
  if (const auto* stated = std::get_if<TokenIntervals>(&ownership)) intervals = intervals.intersect(stated->tokens);
}

}  // namespace

uint64_t TokenSet::count() const {
  const TokenCounter counter(cycle);
  uint64_t sum = 0;
  for (const Range range : intervals.ranges()) sum = saturating_add(sum, counter.count_within(range));
  return sum;
}

TokenSet TokenSet::within(Range tokens) const {
  return TokenSet{tokens.empty() ? IntervalSet() : intervals.intersect({tokens}), cycle};
}

// An interval is widened to whole rows, because its first and last row may hold fewer tokens. The rule token-alignment
// says that no two intervals share a row and that blocks are whole rows, so no row is counted twice.
uint64_t TokenSet::row_count(uint64_t tokens_per_row) const {
  if (tokens_per_row == 1) return count();
  const TokenCounter counter(cycle);
  uint64_t rows = 0;
  for (const Range range : intervals.ranges()) {
    const Range whole(range.begin() - range.begin() % tokens_per_row,
                      checked_round_up(range.end(), tokens_per_row).value_or(Range::kUnbounded));
    const uint64_t row_tokens = counter.count_within(whole);
    rows = saturating_add(rows, div_round_up(row_tokens, tokens_per_row));
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

  for (const TokenOwnership* ownership : {&a, &b}) {
    const auto* cycle = std::get_if<CyclicTokens>(ownership);
    if (cycle == nullptr) continue;
    const TokenJoin outcome = cut_to_cycle(common, *cycle, range_count_max);
    if (outcome != TokenJoin::kSome) return outcome;
  }
  return TokenJoin::kSome;
}

// A cycle of all blocks says nothing; leaving it out gives one form for one set, as comparing plans needs (I7).
// A cycle may have no token in short intervals. An edge must not move nothing (rule plan-edge), so that is kNone.
TokenJoin cut_to_cycle(TokenSet& set, const CyclicTokens& cycle, uint64_t range_count_max) {
  if (holds_all(cycle)) return TokenJoin::kSome;
  std::optional<CyclicTokens> common = set.cycle ? join_cycles(*set.cycle, cycle, range_count_max) : cycle;
  if (!common) {
    // Short tokens may lie within one block, and then no common period is needed.
    const Range hull = set.intervals.hull();
    const uint64_t block = hull.begin() / cycle.block_tokens;
    if (block != (hull.end() - 1) / cycle.block_tokens) return TokenJoin::kTooMany;
    return cycle.blocks.contains(block % cycle.cycle_blocks) ? TokenJoin::kSome : TokenJoin::kNone;
  }
  set.cycle = std::move(common);
  return set.count() == 0 ? TokenJoin::kNone : TokenJoin::kSome;
}

TokenJoin join_ranges(const TokenOwnership& form, IntervalSet ranges, Range tokens, TokenSet& common) {
  common = TokenSet();
  if (tokens.empty() || ranges.empty()) return TokenJoin::kNone;
  if (const auto* cyclic = std::get_if<CyclicTokens>(&form)) {
    common.intervals = IntervalSet{tokens};
    return cut_to_cycle(common, CyclicTokens{cyclic->block_tokens, cyclic->cycle_blocks, std::move(ranges)},
                        UINT64_MAX);
  }
  common.intervals = ranges.intersect({tokens});
  return common.intervals.empty() ? TokenJoin::kNone : TokenJoin::kSome;
}

// Walks from block to block instead of from cycle to cycle: a window may begin and end anywhere in a cycle. A lower
// bound of the result is compared with the limit first, so that long intervals are refused without walking.
std::optional<IntervalSet> expand_tokens(const TokenSet& set, uint64_t range_count_max) {
  if (!set.cycle || holds_all(*set.cycle)) {
    if (set.intervals.ranges().size() > range_count_max) return std::nullopt;
    return set.intervals;
  }
  const CyclicTokens& cycle = *set.cycle;
  const std::vector<Range>& blocks = cycle.blocks.ranges();
  // A cycle longer than 2^64 tokens comes round once.
  const uint64_t cycle_tokens = saturating_mul(cycle.block_tokens, cycle.cycle_blocks);
  // The last stretch of a cycle then continues in the first one of the next.
  const bool cycles_touch = blocks.front().begin() == 0 && blocks.back().end() == cycle.cycle_blocks;
  const uint64_t stretches_per_cycle = blocks.size() - (cycles_touch ? 1 : 0);  // at least
  std::vector<Range> stretches;
  for (const Range interval : set.intervals.ranges()) {
    const uint64_t whole_cycles = std::max<uint64_t>(interval.size() / cycle_tokens, 1) - 1;
    const std::optional<uint64_t> at_least = (Checked(whole_cycles) * stretches_per_cycle + stretches.size()).value();
    if (!at_least || *at_least > range_count_max) return std::nullopt;
    for (uint64_t token = interval.begin(); token < interval.end();) {
      const uint64_t base = token / cycle_tokens * cycle_tokens;
      const uint64_t block = (token - base) / cycle.block_tokens;
      const auto place = [&](uint64_t at) {
        return (Checked(at) * cycle.block_tokens + base).value().value_or(Range::kUnbounded);
      };
      const auto next =
          std::partition_point(blocks.begin(), blocks.end(), [&](Range range) { return range.end() <= block; });
      if (next == blocks.end()) {
        // Saturation ends the loop: no interval ends past 2^64 - 1.
        token = saturating_add(base, cycle_tokens);
        continue;
      }
      const uint64_t begin = std::max(token, place(next->begin()));
      const uint64_t end = std::min(interval.end(), place(next->end()));
      token = end;
      if (begin >= end) break;  // the next block begins past the interval
      if (!stretches.empty() && stretches.back().end() == begin) {
        stretches.back() = Range(stretches.back().begin(), end);
        continue;
      }
      if (stretches.size() == range_count_max) return std::nullopt;
      stretches.emplace_back(begin, end);
    }
  }
  // The stretches are ascending and do not touch, so they are in canonical form without sorting.
  return IntervalSet::from_canonical(std::move(stretches));
}

}  // namespace crossdock
