// Sets of tokens, against each token looked at.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/text.h"
#include "planner/kv/token_set.h"
#include "tests/support/draw.h"
#include "tests/support/naive.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kTokens = 120;

constexpr uint64_t kNoLimit = uint64_t{1} << 30;

using Tokens = std::set<uint64_t>;

// ---- Definitions, token by token ----

Tokens naive_tokens(const TokenSet& set) {
  Tokens tokens;
  for (uint64_t token = 0; token < 2 * kTokens; ++token)
    if (naive_in(set.intervals, token) && (!set.cycle || naive_owns_token(TokenOwnership(*set.cycle), token)))
      tokens.insert(token);
  return tokens;
}

Tokens naive_common(const TokenOwnership& a, const TokenOwnership& b, Range tokens) {
  Tokens common;
  for (uint64_t token = tokens.begin(); token < tokens.end(); ++token)
    if (naive_owns_token(a, token) && naive_owns_token(b, token)) common.insert(token);
  return common;
}

// As few ranges as there can be.
std::vector<Range> naive_stretches(const Tokens& tokens) {
  std::vector<Range> stretches;
  for (const uint64_t token : tokens) {
    if (stretches.empty() || stretches.back().end() != token)
      stretches.emplace_back(token, token + 1);
    else
      stretches.back() = Range(stretches.back().begin(), token + 1);
  }
  return stretches;
}

// ---- Random ownerships ----

// Whose boundaries are multiples of `unit`.
IntervalSet draw_intervals(uint64_t unit, uint64_t count_max) {
  std::vector<Range> ranges;
  const uint64_t count = draw(0, count_max);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t begin = draw(0, kTokens / unit - 1);
    ranges.emplace_back(begin * unit, (begin + draw(1, kTokens / unit)) * unit);
  }
  return IntervalSet::from_ranges(std::move(ranges));
}

CyclicTokens draw_cycle(uint64_t unit) {
  CyclicTokens cycle{unit * draw(1, 6), draw(1, 6), {}};
  std::vector<Range> blocks;
  const uint64_t first = draw(0, cycle.cycle_blocks - 1);
  for (uint64_t block = 0; block < cycle.cycle_blocks; ++block)
    if (block == first || draw(0, 1) == 0) blocks.emplace_back(block, block + 1);
  cycle.blocks = IntervalSet::from_ranges(std::move(blocks));
  return cycle;
}

TokenOwnership draw_ownership() {
  switch (draw(0, 5)) {
    case 0: return AllTokens();
    case 1: return TokenIntervals{draw_intervals(1, 5)};
    default: return draw_cycle(1);
  }
}

// Most often another share of the same cycle, as of two ranks.
TokenOwnership draw_other(const TokenOwnership& ownership) {
  const auto* cycle = std::get_if<CyclicTokens>(&ownership);
  if (cycle == nullptr || draw(0, 2) == 0) return draw_ownership();
  CyclicTokens other = draw_cycle(1);
  other.block_tokens = cycle->block_tokens;
  other.cycle_blocks = cycle->cycle_blocks;
  other.blocks = other.blocks.intersect(IntervalSet{Range(0, other.cycle_blocks)});
  if (other.blocks.empty()) other.blocks = IntervalSet{Range(0, 1)};
  return other;
}

TokenSet draw_set() {
  TokenSet set;
  set.intervals = draw_intervals(1, 4);
  if (draw(0, 2) > 0) set.cycle = draw_cycle(1);
  return set;
}

std::string text_of(const TokenOwnership& ownership) {
  if (const auto* stated = std::get_if<TokenIntervals>(&ownership)) return set_text(stated->tokens);
  if (const auto* cycle = std::get_if<CyclicTokens>(&ownership))
    return fmt::format("{} of {} blocks of {}", set_text(cycle->blocks), cycle->cycle_blocks, cycle->block_tokens);
  return "all";
}

// ---- TokenSet ----

RC_GTEST_PROP(TokenSet, CountsAndExpandsItsTokens, ()) {
  const TokenSet set = draw_set();
  const Tokens tokens = naive_tokens(set);
  RC_ASSERT(set.count() == tokens.size());
  const std::optional<IntervalSet> expanded = expand_tokens(set, kNoLimit);
  RC_ASSERT(expanded.has_value());
  RC_ASSERT(expanded->ranges() == naive_stretches(tokens));
}

RC_GTEST_PROP(TokenSet, WithinKeepsThoseOfTheRange, ()) {
  const TokenSet set = draw_set();
  const uint64_t begin = draw(0, kTokens);
  const Range range(begin, draw(begin, kTokens + 30));
  Tokens kept;
  for (const uint64_t token : naive_tokens(set))
    if (range.begin() <= token && token < range.end()) kept.insert(token);
  RC_ASSERT(naive_tokens(set.within(range)) == kept);
  RC_ASSERT(set.within(range).count() == kept.size());
}

// Rows are cut by the outer ends of the tokens only, as a snapshot's begin and end do.
RC_GTEST_PROP(TokenSet, RowsAreThoseThatHoldAToken, ()) {
  const uint64_t tokens_per_row = draw(1, 6);
  TokenSet set;
  const uint64_t begin = draw(0, kTokens / 2);
  set.intervals = draw_intervals(tokens_per_row, 4).intersect(IntervalSet{Range(begin, draw(begin + 1, kTokens))});
  if (draw(0, 2) > 0) set.cycle = draw_cycle(tokens_per_row);
  std::set<uint64_t> rows;
  for (const uint64_t token : naive_tokens(set)) rows.insert(token / tokens_per_row);
  RC_ASSERT(set.row_count(tokens_per_row) == rows.size());
}

// ---- expand_tokens ----

RC_GTEST_PROP(ExpandTokens, IsEmptyExactlyWhenThereAreMoreStretchesThanTheLimit, ()) {
  const TokenSet set = draw_set();
  const size_t stretch_count = naive_stretches(naive_tokens(set)).size();
  if (stretch_count > 0) RC_ASSERT(!expand_tokens(set, draw(0, stretch_count - 1)).has_value());
  RC_ASSERT(expand_tokens(set, stretch_count).has_value());
}

// ---- join_tokens ----

RC_GTEST_PROP(JoinTokens, HoldsTheTokensThatBothHave, ()) {
  const TokenOwnership a = draw_ownership();
  const TokenOwnership b = draw_other(a);
  RC_LOG(text_of(a) + " and " + text_of(b));
  const uint64_t begin = draw(0, kTokens / 2);
  const Range range(begin, draw(begin, kTokens));
  const Tokens tokens = naive_common(a, b, range);
  for (const auto& [first, second] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    TokenSet common{IntervalSet{Range(0, 7)}, CyclicTokens{1, 2, {Range(0, 1)}}};  // of an earlier call
    const TokenJoin join = join_tokens(*first, *second, range, kNoLimit, common);
    RC_ASSERT((join == (tokens.empty() ? TokenJoin::kNone : TokenJoin::kSome)));
    if (join == TokenJoin::kNone) continue;
    RC_ASSERT(naive_tokens(common) == tokens);
    RC_ASSERT(common.count() == tokens.size());
  }
}

// How many runs of blocks of `cycle` lie in `period_tokens`, a multiple of its length.
uint64_t block_runs(const CyclicTokens& cycle, uint64_t period_tokens) {
  return period_tokens / (cycle.block_tokens * cycle.cycle_blocks) * cycle.blocks.ranges().size();
}

RC_GTEST_PROP(JoinTokens, RefusesCyclesOnlyWhenTheirPeriodHasMoreBlocksThanTheLimit, ()) {
  const CyclicTokens a = draw_cycle(1);
  const CyclicTokens b = draw_cycle(1);
  uint64_t period = a.block_tokens * a.cycle_blocks;
  while (period % (b.block_tokens * b.cycle_blocks) != 0) period += a.block_tokens * a.cycle_blocks;
  const uint64_t blocks = std::max(block_runs(a, period), block_runs(b, period));
  const Range range(0, kTokens);
  TokenSet common;
  RC_ASSERT(join_tokens(a, b, range, blocks, common) != TokenJoin::kTooMany);
  const bool same_form = a.block_tokens == b.block_tokens && a.cycle_blocks == b.cycle_blocks;
  // A cycle that holds all of its blocks cuts nothing, so no common period is needed.
  const bool cuts = a.blocks.count() < a.cycle_blocks && b.blocks.count() < b.cycle_blocks;
  RC_ASSERT((join_tokens(a, b, range, blocks - 1, common) == TokenJoin::kTooMany) == (cuts && !same_form));
}

}  // namespace
}  // namespace crossdock::testing
