// Sets of tokens: examples, and the largest numbers.
#include "planner/kv/token_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>

#include "model/text.h"

namespace crossdock {

void PrintTo(const TokenSet& set, std::ostream* out) {
  *out << set_text(set.intervals);
  if (set.cycle)
    *out << fmt::format(", of each {} blocks of {} tokens {}", set.cycle->cycle_blocks, set.cycle->block_tokens,
                        set_text(set.cycle->blocks));
}

}  // namespace crossdock

namespace crossdock::testing {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kNoLimit = uint64_t{1} << 30;

// ---- TokenSet ----

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
  EXPECT_EQ(join_tokens(a, b, Range(0, 4'000'000), 65536, common), TokenJoin::kTooMany);
  EXPECT_EQ(join_tokens(a, b, Range(0, 4'000'000), 1'000'033, common), TokenJoin::kSome);
  // Both have the first block; of the third, from 2,000,066 to 3,000,009.
  EXPECT_EQ(common.count(), 1'000'003u + (3'000'009 - 2'000'066));
  // Within one block of the second cycle no common period is needed.
  EXPECT_EQ(join_tokens(a, b, Range(0, 100), 65536, common), TokenJoin::kSome);
  EXPECT_EQ(common.count(), 100u);
  EXPECT_EQ(join_tokens(a, b, Range(1'500'000, 1'500'100), 65536, common), TokenJoin::kNone);
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
    EXPECT_EQ(join_tokens(a, b, Range(0, large << 3), UINT64_MAX, common), TokenJoin::kTooMany);
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
}  // namespace crossdock::testing
