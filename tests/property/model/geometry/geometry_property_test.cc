// The geometry engines against definitions written out element by element or byte by byte.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/rng.h"
#include "model/geometry/box_cover.h"
#include "model/geometry/strided_overlap.h"
#include "model/kv/token_cover.h"
#include "tests/support/naive.h"

namespace crossdock::testing {
namespace {

Range range_below(uint64_t size) {
  const auto a = *rc::gen::inRange<uint64_t>(0, size + 1);
  const auto b = *rc::gen::inRange<uint64_t>(0, size + 1);
  return Range(std::min(a, b), std::max(a, b));
}

std::vector<Box> boxes_below(uint64_t size, int count_max) {
  const int count = *rc::gen::inRange(0, count_max + 1);
  std::vector<Box> boxes;
  for (int i = 0; i < count; ++i) boxes.push_back(Box{range_below(size), range_below(size), range_below(size)});
  return boxes;
}

bool holds(const Box& box, uint64_t x, uint64_t y, uint64_t z) {
  return box.axis(0).contains(x) && box.axis(1).contains(y) && box.axis(2).contains(z);
}

enum class Cell { kRight, kGap, kExtra, kOverlap };

RC_GTEST_PROP(BoxCover, TellsEachWrongElementAndNoOther, ()) {
  constexpr uint64_t kSize = 4;
  const std::vector<Box> required = boxes_below(kSize, 4);
  const std::vector<Box> given = boxes_below(kSize, 5);
  const BoxCover cover = check_box_cover(required, given, BoxCoverLimits());
  RC_ASSERT(cover.complete);
  for (uint64_t x = 0; x < kSize; ++x)
    for (uint64_t y = 0; y < kSize; ++y)
      for (uint64_t z = 0; z < kSize; ++z) {
        const auto count = [&](const std::vector<Box>& boxes) {
          return std::count_if(boxes.begin(), boxes.end(), [&](const Box& box) { return holds(box, x, y, z); });
        };
        const bool is_required = count(required) > 0;
        const auto times = count(given);
        const Cell wanted = times > 1    ? Cell::kOverlap
                            : times == 0 ? (is_required ? Cell::kGap : Cell::kRight)
                                         : (is_required ? Cell::kRight : Cell::kExtra);
        std::vector<Cell> told;
        for (const BoxCoverDiagnostic& diagnostic : cover.diagnostics) {
          if (!holds(diagnostic.box, x, y, z)) continue;
          told.push_back(diagnostic.kind == BoxCoverDiagnostic::Kind::kGap     ? Cell::kGap
                         : diagnostic.kind == BoxCoverDiagnostic::Kind::kExtra ? Cell::kExtra
                                                                               : Cell::kOverlap);
          for (const size_t index : diagnostic.given) RC_ASSERT(holds(given[index], x, y, z));
        }
        if (wanted == Cell::kRight)
          RC_ASSERT(told.empty());
        else
          RC_ASSERT(told == std::vector<Cell>{wanted});
      }
}

TEST(BoxCover, StopsAtItsLimitInsteadOfExpandingStripes) {
  std::vector<Box> rows;
  std::vector<Box> columns;
  for (uint64_t i = 0; i < 200; ++i) {
    rows.push_back(Box{Range(i, i + 1), Range(0, 200)});
    columns.push_back(Box{Range(0, 200), Range(i, i + 1)});
  }
  EXPECT_TRUE(check_box_cover(rows, columns, BoxCoverLimits()).exact());
  const BoxCover stopped = check_box_cover(rows, columns, BoxCoverLimits{.work_max = 1000});
  EXPECT_FALSE(stopped.complete);
  EXPECT_LE(stopped.work, 1000u + 400u);
}

// Nested axes from the inside out, with gaps between steps.
StridedBytes draw_strided(size_t owner) {
  StridedBytes set;
  set.owner = owner;
  set.width = *rc::gen::inRange<uint64_t>(1, 4);
  uint64_t span = set.width;
  std::vector<StridedAxis> inner_first;
  const int axis_count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < axis_count; ++i) {
    const StridedAxis axis{span + *rc::gen::inRange<uint64_t>(0, 5), *rc::gen::inRange<uint64_t>(2, 4)};
    inner_first.push_back(axis);
    span += axis.stride_bytes * (axis.extent - 1);
  }
  for (size_t i = inner_first.size(); i > 0; --i) set.axes.push_back(inner_first[i - 1]);
  set.base = *rc::gen::inRange<uint64_t>(0, 60);
  return set;
}

std::vector<uint64_t> bytes_of(const StridedBytes& set) {
  std::vector<uint64_t> starts = {set.base};
  for (const StridedAxis& axis : set.axes) {
    std::vector<uint64_t> next;
    for (const uint64_t start : starts)
      for (uint64_t i = 0; i < axis.extent; ++i) next.push_back(start + i * axis.stride_bytes);
    starts = next;
  }
  std::vector<uint64_t> bytes;
  for (const uint64_t start : starts)
    for (uint64_t i = 0; i < set.width; ++i) bytes.push_back(start + i);
  return bytes;
}

RC_GTEST_PROP(StridedOverlap, FindsASharedByteExactlyWhenThereIsOne, ()) {
  std::vector<StridedBytes> sets;
  const size_t count = *rc::gen::inRange<size_t>(0, 5);
  for (size_t i = 0; i < count; ++i) sets.push_back(draw_strided(i));
  // Often the same shape at another place: what packed rows and split heads look like.
  if (count > 1 && *rc::gen::arbitrary<bool>()) {
    const uint64_t base = sets[1].base;
    sets[1] = sets[0];
    sets[1].base = base;
    sets[1].owner = 1;
  }
  std::map<uint64_t, std::set<size_t>> owners;
  for (const StridedBytes& set : sets)
    for (const uint64_t byte : bytes_of(set)) owners[byte].insert(set.owner);
  std::set<std::pair<size_t, size_t>> sharing;
  for (const auto& [byte, of] : owners)
    for (const size_t a : of)
      for (const size_t b : of)
        if (a < b) sharing.insert({a, b});

  const StridedOverlap overlap = find_overlap(sets, 1 << 20);
  RC_ASSERT(overlap.complete);
  RC_CLASSIFY(!sharing.empty(), "shared");
  RC_ASSERT(overlap.owners.has_value() == !sharing.empty());
  if (overlap.owners) RC_ASSERT(sharing.contains(*overlap.owners));
}

TEST(StridedOverlap, PackedRowsOfManyPagesNeedNoUnrolling) {
  // [K|V] rows, 8 heads side by side, one layer axis of 10^9 steps: decided without walking any of them.
  std::vector<StridedBytes> sets;
  for (size_t head = 0; head < 16; ++head) {
    StridedBytes set;
    set.base = head * 128;
    set.width = 128;
    set.owner = head;
    set.axes.push_back(StridedAxis{1 << 20, 1'000'000'000});
    set.axes.push_back(StridedAxis{2048, 512});
    sets.push_back(set);
  }
  constexpr uint64_t kSteps = 16 * 2;  // the cluster once for each axis
  EXPECT_FALSE(find_overlap(sets, kSteps).owners);
  EXPECT_TRUE(find_overlap(sets, kSteps).complete);
  EXPECT_FALSE(find_overlap(sets, kSteps - 1).complete);
  sets[3].base += 64;
  EXPECT_EQ(find_overlap(sets, 16 * 3).owners, (std::pair<size_t, size_t>(3, 4)));
}

TEST(StridedOverlap, StopsAtItsLimit) {
  StridedBytes a{.base = 0, .axes = {}, .width = 1, .owner = 0};
  a.axes.push_back(StridedAxis{3, 1'000'000'000});
  StridedBytes b{.base = 1, .axes = {}, .width = 1, .owner = 1};
  b.axes.push_back(StridedAxis{6, 500'000'000});
  EXPECT_FALSE(find_overlap({a, b}, 1000).complete);
}

TEST(StridedOverlap, ManyDifferentStridesCostNoMoreThanTheLimit) {
  // Interleaved, no two strides alike, nothing shared: each axis that is taken off leaves all the others.
  std::vector<StridedBytes> sets;
  for (uint64_t i = 0; i < 2000; ++i) {
    StridedBytes set{.base = 2 * i, .axes = {}, .width = 1, .owner = i};
    set.axes.push_back(StridedAxis{100'000 + 2 * i, 2});
    sets.push_back(set);
  }
  EXPECT_FALSE(find_overlap(sets, 100'000).complete);
  const StridedOverlap enough = find_overlap(sets, 10'000'000);
  EXPECT_TRUE(enough.complete);
  EXPECT_FALSE(enough.owners);
}

TokenOwnership draw_ownership(uint64_t size) {
  const int kind = *rc::gen::inRange(0, 8);
  if (kind == 0) return AllTokens();
  if (kind < 4) {
    std::vector<Range> ranges = {range_below(size), range_below(size)};
    if (*rc::gen::inRange(0, 3) == 0) ranges.push_back(Range(*rc::gen::inRange<uint64_t>(0, size), Range::kUnbounded));
    return TokenIntervals{IntervalSet::from_ranges(ranges)};
  }
  const auto cycle_blocks = *rc::gen::inRange<uint64_t>(1, 5);
  const auto block_tokens = *rc::gen::inRange<uint64_t>(1, 4);
  const Range blocks = range_below(cycle_blocks);
  return CyclicTokens{block_tokens, cycle_blocks, IntervalSet{blocks}};
}

RC_GTEST_PROP(TokenCover, AgreesWithCountingOwnersTokenByToken, ()) {
  const size_t count = *rc::gen::inRange<size_t>(1, 4);
  std::vector<TokenOwnership> ownerships;
  for (size_t i = 0; i < count; ++i) ownerships.push_back(draw_ownership(24));
  // Sometimes what makes it whole: the complement of the first, as intervals or as the other blocks of its cycle.
  if (*rc::gen::arbitrary<bool>()) {
    ownerships.resize(1);
    if (const auto* cyclic = std::get_if<CyclicTokens>(&ownerships[0]))
      ownerships.push_back(CyclicTokens{cyclic->block_tokens, cyclic->cycle_blocks,
                                        IntervalSet{Range(0, cyclic->cycle_blocks)}.subtract(cyclic->blocks)});
    else if (const auto* intervals = std::get_if<TokenIntervals>(&ownerships[0]))
      ownerships.push_back(TokenIntervals{IntervalSet{Range::all()}.subtract(intervals->tokens)});
  }
  const bool bounded = *rc::gen::arbitrary<bool>();
  const Range tokens = bounded ? range_below(24) : Range::all();
  RC_PRE(!tokens.empty());
  std::vector<const TokenOwnership*> pointers;
  for (const TokenOwnership& ownership : ownerships) pointers.push_back(&ownership);

  // All boundaries lie below 25 and all cycles divide 12 * 12 tokens: what comes after 200 repeats.
  const Range looked_at = tokens.intersect(Range(0, 400));
  bool exact = true;
  for (uint64_t token = looked_at.begin(); token < looked_at.end(); ++token)
    exact = exact && std::count_if(ownerships.begin(), ownerships.end(), [&](const TokenOwnership& ownership) {
                       return naive_owns_token(ownership, token);
                     }) == 1;
  const TokenCover cover = check_token_cover(pointers, tokens, 1 << 20);
  RC_CLASSIFY(exact, "exact");
  RC_ASSERT(!cover.diagnostic.has_value() == exact);
  if (!cover.diagnostic) return;
  const Range where = cover.diagnostic->tokens;
  RC_ASSERT(!where.empty());
  RC_ASSERT(tokens.contains(where));
  const auto owners = std::count_if(ownerships.begin(), ownerships.end(), [&](const TokenOwnership& ownership) {
    return naive_owns_token(ownership, where.begin());
  });
  const bool is_gap = cover.diagnostic->kind == TokenCoverDiagnostic::Kind::kGap;
  RC_ASSERT((is_gap ? owners == 0 : owners > 1));
}

RC_GTEST_PROP(CyclicTokens, CountBelowAndWithinAgreeWithCounting, ()) {
  const auto cycle_blocks = *rc::gen::inRange<uint64_t>(1, 6);
  const CyclicTokens cyclic{*rc::gen::inRange<uint64_t>(1, 5), cycle_blocks,
                            IntervalSet::from_ranges({range_below(cycle_blocks), range_below(cycle_blocks)})};
  const Range tokens = range_below(100);
  uint64_t count = 0;
  std::vector<Range> singles;
  for (uint64_t token = 0; token < tokens.end(); ++token) {
    RC_ASSERT(cyclic.count_below(token) == count);
    const bool owned = naive_owns_token(TokenOwnership(cyclic), token);
    RC_ASSERT(cyclic.contains(token) == owned);
    count += owned;
    if (owned && tokens.contains(token)) singles.push_back(Range(token, token + 1));
  }
  RC_ASSERT(tokens_within(TokenOwnership(cyclic), tokens, 1000) == IntervalSet::from_ranges(singles));
}

}  // namespace
}  // namespace crossdock::testing
