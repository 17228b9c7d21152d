#include "planner/kv/token_axis.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/rng.h"

namespace crossdock {
namespace {

constexpr uint64_t kTokensMax = 400;

// Ownerships of a few forms, drawn.
TokenOwnership drawn(Rng& rng) {
  std::vector<Range> ranges;
  if (rng.chance(1, 3)) {
    for (int i = 0; i < 2; ++i) {
      const uint64_t begin = rng.next() % (kTokensMax - 10);
      ranges.emplace_back(begin, begin + 1 + rng.next() % 10);
    }
    return TokenIntervals{IntervalSet::from_ranges(std::move(ranges))};
  }
  const uint64_t cycle_blocks = 1 + rng.next() % 12;
  const uint64_t block = rng.next() % cycle_blocks;
  ranges.emplace_back(block, block + 1);
  return CyclicTokens{1 + rng.next() % 6, cycle_blocks, IntervalSet::from_ranges(std::move(ranges))};
}

bool has(const TokenOwnership& ownership, uint64_t token) {
  if (const auto* stated = std::get_if<TokenIntervals>(&ownership)) return stated->tokens.contains(token);
  const auto& cyclic = std::get<CyclicTokens>(ownership);
  return cyclic.blocks.contains(token / cyclic.block_tokens % cyclic.cycle_blocks);
}

std::set<uint64_t> numbers_of(const TokenOwnership& ownership, const TokenAxis& axis) {
  std::vector<Range> pieces;
  for (const Range range : ranges_of(ownership)->ranges()) axis.project(form_of(ownership), range, pieces);
  EXPECT_LE(pieces.size(), axis.projected_count(form_of(ownership), ranges_of(ownership)->ranges().size()));
  std::set<uint64_t> numbers;
  for (const Range piece : pieces)
    for (uint64_t number = piece.begin(); number < piece.end(); ++number) numbers.insert(number);
  return numbers;
}

TEST(TokenAxis, OwnershipsThatShareATokenShareANumber) {
  uint64_t sharing = 0;
  uint64_t apart = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const TokenOwnership a = drawn(rng);
    const TokenOwnership b = drawn(rng);
    bool share_token = false;
    for (uint64_t token = 0; token < kTokensMax && !share_token; ++token) share_token = has(a, token) && has(b, token);
    const std::optional<TokenAxis> axis = TokenAxis::of(form_of(a), form_of(b));
    ASSERT_TRUE(axis.has_value());
    bool share_number = false;
    if (form_of(a).is_cycle() || form_of(b).is_cycle()) {
      const std::set<uint64_t> of_b = numbers_of(b, *axis);
      for (const uint64_t number : numbers_of(a, *axis)) share_number = share_number || of_b.contains(number);
      EXPECT_TRUE(share_number || !share_token);
      (share_number ? sharing : apart) += 1;
    }
  }
  EXPECT_GT(sharing, 500u);
  EXPECT_GT(apart, 300u);
}

TEST(TokenAxis, ALongIntervalTakesTheWholeCycle) {
  const TokenForm cycle{4, 10};
  const std::optional<TokenAxis> axis = TokenAxis::of(TokenForm(), cycle);
  const auto pieces = [&](Range range) {
    std::vector<Range> made;
    axis->project(TokenForm(), range, made);
    return made;
  };
  EXPECT_EQ(pieces(Range(0, 1)), std::vector<Range>{Range(0, 1)});
  EXPECT_EQ(pieces(Range(3, 5)), std::vector<Range>{Range(0, 2)});
  EXPECT_EQ(pieces(Range(36, 41)), (std::vector<Range>{Range(0, 1), Range(9, 10)}));
  EXPECT_EQ(pieces(Range(4, 40)), std::vector<Range>{Range(1, 10)});
  EXPECT_EQ(pieces(Range(5, 42)), std::vector<Range>{Range(0, 10)});
  EXPECT_EQ(pieces(Range(0, Range::kUnbounded)), std::vector<Range>{Range(0, 10)});
}

TEST(TokenAxis, APeriodPastSixtyFourBitsHasNone) {
  const uint64_t large = uint64_t{1} << 40;
  EXPECT_FALSE(TokenAxis::of(TokenForm{3, large}, TokenForm{5, large - 1}).has_value());
}

}  // namespace
}  // namespace crossdock
