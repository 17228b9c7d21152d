// Sets of tokens, against each token looked at.
#include "planner/kv/token_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/text.h"
#include "tests/support/naive.h"

namespace crossdock {

void PrintTo(const TokenSet& set, std::ostream* out) {
  *out << set_text(set.intervals);
  if (set.cycle)
    *out << fmt::format(", of each {} blocks of {} tokens {}", set.cycle->cycle_blocks, set.cycle->block_tokens,
                        set_text(set.cycle->blocks));
}

namespace testing {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kTokens = 120;
constexpr uint64_t kNoLimit = uint64_t{1} << 30;

using Tokens = std::set<uint64_t>;

// ---- Definitions, token by token ----

bool in(const IntervalSet& set, uint64_t value) {
  return std::any_of(set.ranges().begin(), set.ranges().end(),
                     [value](Range range) { return range.begin() <= value && value < range.end(); });
}

Tokens naive_tokens(const TokenSet& set) {
  Tokens tokens;
  for (uint64_t token = 0; token < 2 * kTokens; ++token)
    if (in(set.intervals, token) && (!set.cycle || naive_owns_token(TokenOwnership(*set.cycle), token)))
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

uint64_t draw(uint64_t least, uint64_t most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint64_t>(least, most + 1));
}

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

TEST(TokenSet, CountsOfTokensWithoutEndAreExact) {
  // 2^64 - 1 tokens; in blocks of 4 the last one has 3.
  TokenSet set{IntervalSet{Range::all()}, std::nullopt};
  EXPECT_EQ(set.count(), UINT64_MAX);
  EXPECT_EQ(set.row_count(1), UINT64_MAX);
  EXPECT_EQ(set.row_count(4), uint64_t{1} << 62);
  set.cycle = CyclicTokens{4, 2, {Range(0, 1)}};
  EXPECT_EQ(set.count(), uint64_t{1} << 63);
  EXPECT_EQ(set.row_count(4), uint64_t{1} << 61);
  set.cycle = CyclicTokens{4, 2, {Range(1, 2)}};
  EXPECT_EQ(set.count(), (uint64_t{1} << 63) - 1);
  EXPECT_EQ(set.row_count(4), uint64_t{1} << 61);
}

TEST(TokenSet, NothingIsCountedOfNothing) {
  const TokenSet nothing;
  EXPECT_EQ(nothing.count(), 0u);
  EXPECT_EQ(nothing.row_count(16), 0u);
  EXPECT_EQ(expand_tokens(nothing, 0), IntervalSet());
  const TokenSet ten{IntervalSet{Range(0, 10)}, std::nullopt};
  EXPECT_EQ(ten.within(Range()), nothing);
  EXPECT_EQ(ten.within(Range(5, 5)), nothing);
}

// ---- expand_tokens ----

RC_GTEST_PROP(ExpandTokens, IsEmptyExactlyWhenThereAreMoreStretchesThanTheLimit, ()) {
  const TokenSet set = draw_set();
  const size_t stretch_count = naive_stretches(naive_tokens(set)).size();
  if (stretch_count > 0) RC_ASSERT(!expand_tokens(set, draw(0, stretch_count - 1)).has_value());
  RC_ASSERT(expand_tokens(set, stretch_count).has_value());
}

TEST(ExpandTokens, BlocksThatTheIntervalsCutAwayDoNotCount) {
  // Block 0 of each 4; a second rank has blocks 1 and 3.
  TokenSet set{IntervalSet{Range(0, 20)}, CyclicTokens{4, 4, {Range(0, 1)}}};
  EXPECT_EQ(expand_tokens(set, 2), (IntervalSet{Range(0, 4), Range(16, 20)}));
  EXPECT_EQ(expand_tokens(set, 1), std::nullopt);
  set = TokenSet{IntervalSet{Range(0, 8)}, CyclicTokens{4, 4, {Range(1, 2), Range(3, 4)}}};
  EXPECT_EQ(expand_tokens(set, 1), IntervalSet{Range(4, 8)});
}

TEST(ExpandTokens, BlocksOfTwoCyclesThatTouchAreOneStretch) {
  const TokenSet set{IntervalSet{Range(0, 32)}, CyclicTokens{4, 4, {Range(0, 1), Range(3, 4)}}};
  const IntervalSet stretches = {Range(0, 4), Range(12, 20), Range(28, 32)};
  EXPECT_EQ(expand_tokens(set, 3), stretches);
  EXPECT_EQ(expand_tokens(set, 2), std::nullopt);
}

TEST(ExpandTokens, TakesNoMemoryForMoreThanTheLimit) {
  const TokenSet set{IntervalSet{Range::all()}, CyclicTokens{1, 2, {Range(0, 1)}}};
  EXPECT_EQ(expand_tokens(set, kNoLimit), std::nullopt);
  EXPECT_EQ(expand_tokens(set.within(Range(1'000'000'000'000, 1'000'000'000'004)), 2),
            (IntervalSet{Range(1'000'000'000'000, 1'000'000'000'001), Range(1'000'000'000'002, 1'000'000'000'003)}));
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
  if (!same_form) RC_ASSERT((join_tokens(a, b, range, blocks - 1, common) == TokenJoin::kTooMany));
}

TEST(JoinTokens, RanksOfOneCycleHaveTheirCommonBlocks) {
  // The zigzag's rank 0 of 2 has blocks 0 and 3 of 4; half of them are in block 0 of two.
  const TokenOwnership zigzag = CyclicTokens{8, 4, {Range(0, 1), Range(3, 4)}};
  const TokenOwnership others = CyclicTokens{8, 4, {Range(1, 3)}};
  TokenSet common;
  EXPECT_EQ(join_tokens(zigzag, others, Range(0, 64), 10, common), TokenJoin::kNone);
  EXPECT_EQ(join_tokens(zigzag, zigzag, Range(0, 64), 0, common), TokenJoin::kSome);
  EXPECT_EQ(common, (TokenSet{IntervalSet{Range(0, 64)}, CyclicTokens{8, 4, {Range(0, 1), Range(3, 4)}}}));
  EXPECT_EQ(join_tokens(zigzag, CyclicTokens{8, 2, {Range(0, 1)}}, Range(0, 64), 10, common), TokenJoin::kSome);
  EXPECT_EQ(expand_tokens(common, 10), (IntervalSet{Range(0, 8), Range(32, 40)}));
}

TEST(JoinTokens, BlocksOfTwoSizesMeetInTheirCommonPeriod) {
  // Blocks of 4 (the 2nd of 2) and of 6 (the 1st of 2): [4,8), [12,16), [20,24) and [0,6), [12,18), every 24.
  TokenSet common;
  ASSERT_EQ(join_tokens(CyclicTokens{4, 2, {Range(1, 2)}}, CyclicTokens{6, 2, {Range(0, 1)}}, Range(0, 48), 3, common),
            TokenJoin::kSome);
  EXPECT_EQ(expand_tokens(common, 100), (IntervalSet{Range(4, 6), Range(12, 16), Range(28, 30), Range(36, 40)}));
  EXPECT_EQ(common.count(), 12u);
}

TEST(JoinTokens, ACycleWithAllBlocksIsNoCycle) {
  TokenSet common;
  ASSERT_EQ(join_tokens(CyclicTokens{4, 2, {Range(0, 2)}}, AllTokens(), Range(3, 48), 10, common), TokenJoin::kSome);
  EXPECT_EQ(common, (TokenSet{IntervalSet{Range(3, 48)}, std::nullopt}));
}

TEST(JoinTokens, AllOfTwoSidesIsTheRange) {
  TokenSet common;
  ASSERT_EQ(join_tokens(AllTokens(), AllTokens(), Range::all(), 0, common), TokenJoin::kSome);
  EXPECT_EQ(common, (TokenSet{IntervalSet{Range::all()}, std::nullopt}));
  EXPECT_EQ(join_tokens(AllTokens(), AllTokens(), Range(), 0, common), TokenJoin::kNone);
  EXPECT_EQ(join_tokens(AllTokens(), TokenIntervals{IntervalSet{Range(0, 5)}}, Range(5, 9), 0, common),
            TokenJoin::kNone);
}

TEST(JoinTokens, IncommensurableCyclesAreTooMany) {
  // Two primes: the common period is about 2 * 10^12 tokens, with a million blocks of each.
  const TokenOwnership a = CyclicTokens{1'000'003, 2, {Range(0, 1)}};
  const TokenOwnership b = CyclicTokens{1'000'033, 2, {Range(0, 1)}};
  TokenSet common;
  EXPECT_EQ(join_tokens(a, b, Range(0, 100), 65536, common), TokenJoin::kTooMany);
  EXPECT_EQ(join_tokens(a, b, Range(0, 100), 1'000'033, common), TokenJoin::kSome);
  EXPECT_EQ(common.count(), 100u);
}

TEST(JoinTokens, PeriodsPastSixtyFourBitsAreTooMany) {
  const uint64_t large = uint64_t{1} << 40;
  TokenSet common;
  for (const auto& [a, b] :
       {std::pair(CyclicTokens{large + 1, 2, {Range(0, 1)}}, CyclicTokens{large, 2, {Range(0, 1)}}),
        std::pair(CyclicTokens{large, large, {Range(0, 1)}}, CyclicTokens{1, 2, {Range(0, 1)}}),
        std::pair(CyclicTokens{1, 2, {Range(0, 1)}}, CyclicTokens{large, large, {Range(0, 1)}}),
        // 3 * 2^23 blocks of 2^40 tokens, though no more than 3 of each are in the sets
        std::pair(CyclicTokens{large, uint64_t{1} << 23, {Range(0, 1)}},
                  CyclicTokens{large, uint64_t{3} << 22, {Range(0, 1)}})})
    EXPECT_EQ(join_tokens(a, b, Range(0, 100), UINT64_MAX, common), TokenJoin::kTooMany);
}

TEST(JoinTokens, ARangeFarOutHasTheTokensThatTheCycleGivesIt) {
  const uint64_t begin = (uint64_t{1} << 63) + 5;
  TokenSet common;
  ASSERT_EQ(join_tokens(CyclicTokens{3, 7, {Range(2, 3)}}, CyclicTokens{5, 2, {Range(1, 2)}}, Range(begin, begin + 420),
                        1000, common),
            TokenJoin::kSome);
  uint64_t count = 0;
  for (uint64_t token = begin; token < begin + 420; ++token)
    if (static_cast<Wide>(token) / 3 % 7 == 2 && static_cast<Wide>(token) / 5 % 2 == 1) ++count;
  EXPECT_EQ(common.count(), count);
  EXPECT_EQ(expand_tokens(common, 1000)->count(), count);
}

}  // namespace
}  // namespace testing
}  // namespace crossdock
