// Where the rows of common tokens lie on both sides: examples.
#include "planner/kv/page_runs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tests/support/page_run_case.h"

namespace crossdock {

void PrintTo(const PageRun& run, std::ostream* out) {
  const auto side = [](RowPlace place, RowPlace step) {
    return fmt::format("{}:{} by {}:{}", place.slot, place.row, step.slot, step.row);
  };
  *out << fmt::format("{} rows {} times, {} -> {}", run.rows, run.repeat, side(run.source, run.source_step),
                      side(run.target, run.target_step));
}

}  // namespace crossdock

namespace crossdock::testing {
namespace {

// ---- Examples ----

PageRunSide rows_without_pages(uint64_t base_token = 0) {
  PageRunSide side;
  side.map.base_token = base_token;
  return side;
}

PageRunSide in_pages(uint64_t page_tokens, std::vector<uint64_t> slots, bool touch = false) {
  PageRunSide side;
  side.map.table = PageTableId("pages");
  side.map.pages_touch = touch;
  side.table = PageTable{PageTableId("pages"), page_tokens, 0, std::move(slots)};
  return side;
}

PageRunCase request_of(Range tokens, PageRunSide source, PageRunSide target) {
  PageRunCase request;
  request.tokens.intervals = IntervalSet{tokens};
  request.source = std::move(source);
  request.target = std::move(target);
  return request;
}

using Runs = std::vector<PageRun>;

constexpr RowPlace kNextSlot = {1, 0};

RowPlace rows_on(uint64_t rows) { return RowPlace{0, rows}; }

TEST(PageRuns, PagesInNeighbouringSlotsAreOneRun) {
  const auto runs = runs_of(request_of(Range(0, 12), in_pages(4, {5, 6, 7}), in_pages(4, {0, 1, 2})));
  EXPECT_EQ(runs->runs, (Runs{{{5, 0}, {0, 0}, 4, 3, kNextSlot, kNextSlot}}));
  EXPECT_EQ(runs->row_count, 12u);
  EXPECT_EQ(runs->piece_count, 3u);
}

TEST(PageRuns, PagesThatTouchOnBothSidesAreOneStretchOfRows) {
  const auto runs = runs_of(request_of(Range(0, 10), in_pages(4, {5, 6, 7}, true), in_pages(4, {0, 1, 2}, true)));
  EXPECT_EQ(runs->runs, (Runs{{{5, 0}, {0, 0}, 10, 1, {}, {}}}));
  EXPECT_EQ(runs->piece_count, 3u);
  EXPECT_EQ(runs_of(request_of(Range(3, 10), rows_without_pages(), in_pages(4, {4, 5, 6}, true)))->runs,
            (Runs{{{0, 3}, {4, 3}, 7, 1, {}, {}}}));
}

TEST(PageRuns, PagesThatTouchOnOneSideOnlyAreRepeated) {
  EXPECT_EQ(runs_of(request_of(Range(0, 12), in_pages(4, {5, 6, 7}, true), in_pages(4, {0, 1, 2})))->runs,
            (Runs{{{5, 0}, {0, 0}, 4, 3, kNextSlot, kNextSlot}}));
  EXPECT_EQ(runs_of(request_of(Range(0, 12), in_pages(4, {5, 6, 7}), rows_without_pages()))->runs,
            (Runs{{{5, 0}, {0, 0}, 4, 3, kNextSlot, rows_on(4)}}));
}

TEST(PageRuns, PagesThatTouchButAreNoNeighboursAreNotJoined) {
  EXPECT_EQ(runs_of(request_of(Range(0, 12), in_pages(4, {5, 7, 6}, true), rows_without_pages()))->runs,
            (Runs{{{5, 0}, {0, 0}, 4, 1, {}, {}}, {{7, 0}, {0, 4}, 4, 1, {}, {}}, {{6, 0}, {0, 8}, 4, 1, {}, {}}}));
}

TEST(PageRuns, ThePartialLastPageIsItsOwnRun) {
  // Case U33, a partly filled last page that was not sent: 100 tokens in pages of 64.
  EXPECT_EQ(runs_of(request_of(Range(0, 100), in_pages(64, {8, 9}), in_pages(64, {3, 4})))->runs,
            (Runs{{{8, 0}, {3, 0}, 64, 1, {}, {}}, {{9, 0}, {4, 0}, 36, 1, {}, {}}}));
  // Tokens [2,10): the end of the first page, one whole, the beginning of the third.
  EXPECT_EQ(runs_of(request_of(Range(2, 10), in_pages(4, {8, 9, 10}), in_pages(4, {3, 4, 5})))->runs,
            (Runs{{{8, 2}, {3, 2}, 2, 1, {}, {}}, {{9, 0}, {4, 0}, 4, 1, {}, {}}, {{10, 0}, {5, 0}, 2, 1, {}, {}}}));
}

TEST(PageRuns, ScatteredPagesAreOneRunEach) {
  EXPECT_EQ(runs_of(request_of(Range(0, 12), in_pages(4, {7, 5, 6}), in_pages(4, {0, 1, 2})))->runs,
            (Runs{{{7, 0}, {0, 0}, 4, 1, {}, {}}, {{5, 0}, {1, 0}, 4, 2, kNextSlot, kNextSlot}}));
  EXPECT_EQ(runs_of(request_of(Range(0, 12), in_pages(4, {3, 2, 1}), in_pages(4, {0, 1, 2})))->runs.size(), 3u);
  // Every second slot is no step that a run can take.
  EXPECT_EQ(runs_of(request_of(Range(0, 12), in_pages(4, {0, 2, 4}), in_pages(4, {0, 1, 2})))->runs.size(), 3u);
}

TEST(PageRuns, PagesOfDifferentSizesAreCutAtThoseOfBoth) {
  // Rows [0,4) of slot 7 and [4,8) of it go to two pages; the last page of 4 is half of slot 9.
  const auto runs = runs_of(request_of(Range(0, 12), in_pages(8, {7, 9}), in_pages(4, {2, 3, 6})));
  EXPECT_EQ(runs->runs, (Runs{{{7, 0}, {2, 0}, 4, 2, rows_on(4), kNextSlot}, {{9, 0}, {6, 0}, 4, 1, {}, {}}}));
  EXPECT_EQ(runs->piece_count, 3u);
}

TEST(PageRuns, TheBlocksOfARankAreOneRunInTheWholeSequence) {
  // Rank 1 of 2, in blocks of 4 tokens: tokens [4,8), [12,16), [20,24) are its rows [0,12).
  PageRunCase request = request_of(Range(0, 24), rows_without_pages(), rows_without_pages());
  request.source.map.cycle = CyclicTokens{4, 2, {Range(1, 2)}};
  request.tokens.cycle = request.source.map.cycle;
  const auto runs = runs_of(request);
  EXPECT_EQ(runs->runs, (Runs{{{0, 0}, {0, 4}, 4, 3, rows_on(4), rows_on(8)}}));
  EXPECT_EQ(runs->row_count, 12u);
  EXPECT_EQ(runs->piece_count, 3u);
  // Between two ranks with the same blocks the rows are one stretch.
  request.target.map.cycle = request.source.map.cycle;
  EXPECT_EQ(runs_of(request)->runs, (Runs{{{0, 0}, {0, 0}, 12, 1, {}, {}}}));
}

TEST(PageRuns, ARowOfSeveralTokensIsOneRowAlsoWhereTheSnapshotCutsIt) {
  // Tokens [3,10) at 4 a row lie in rows 0, 1 and 2.
  PageRunCase request = request_of(Range(3, 10), rows_without_pages(), in_pages(8, {6, 2}));
  request.tokens_per_row = 4;
  const auto runs = runs_of(request);
  EXPECT_EQ(runs->runs, (Runs{{{0, 0}, {6, 0}, 2, 1, {}, {}}, {{0, 2}, {2, 0}, 1, 1, {}, {}}}));
  EXPECT_EQ(runs->row_count, 3u);
}

TEST(PageRuns, RowsCountFromTheBaseOfEachSide) {
  const PageRunCase request = request_of(Range(1000, 1010), rows_without_pages(1000), rows_without_pages(992));
  EXPECT_EQ(runs_of(request)->runs, (Runs{{{0, 0}, {0, 8}, 10, 1, {}, {}}}));
}

TEST(PageRuns, NothingInCommonIsNoRun) {
  PageRunCase request = request_of(Range(0, 8), rows_without_pages(), rows_without_pages());
  request.within = Range();
  EXPECT_EQ(runs_of(request, 0)->runs, Runs());
  request.within = Range(8, 16);
  EXPECT_EQ(runs_of(request, 0)->row_count, 0u);
}

TEST(PageRuns, WorkFollowsThePiecesAndNotTheTokens) {
  const uint64_t count = uint64_t{1} << 60;
  const PageRunCase request = request_of(Range(5, count), rows_without_pages(5), rows_without_pages());
  EXPECT_EQ(runs_of(request, 1)->runs, (Runs{{{0, 0}, {0, 5}, count - 5, 1, {}, {}}}));
}

TEST(PageRuns, ACycleOfMoreBlocksThanTheLimitTakesNoMemory) {
  PageRunCase request = request_of(Range(0, uint64_t{1} << 60), rows_without_pages(), rows_without_pages());
  request.source.map.cycle = CyclicTokens{1, 2, {Range(1, 2)}};
  request.tokens.cycle = request.source.map.cycle;
  EXPECT_FALSE(runs_of(request).has_value());
  request.tokens.cycle.reset();
  EXPECT_FALSE(runs_of(request).has_value());
}

// The zigzag's first rank has the first and the last block of a cycle; the last touches the first of the next cycle.
TEST(PageRuns, BlocksOfTwoCyclesThatTouchAreOnePiece) {
  PageRunCase request = request_of(Range(0, 48), in_pages(96, {0}), in_pages(96, {0}));
  request.source.map.cycle = request.target.map.cycle = request.tokens.cycle =
      CyclicTokens{4, 4, {Range(0, 1), Range(3, 4)}};
  // Tokens [0,4), [12,20), [28,36), [44,48).
  const auto runs = runs_of(request);
  EXPECT_EQ(runs->piece_count, 4u);
  EXPECT_EQ(runs->row_count, 24u);
  EXPECT_TRUE(runs_of(request, 4).has_value());
  EXPECT_FALSE(runs_of(request, 3).has_value());
}

// A sequence that ends before the cycle's second block of this rank.
TEST(PageRuns, BlocksPastTheTokensAreNoPieces) {
  PageRunCase request = request_of(Range(0, 4), in_pages(4, {0}), in_pages(4, {0}));
  request.source.map.cycle = request.target.map.cycle = request.tokens.cycle =
      CyclicTokens{4, 4, {Range(0, 1), Range(3, 4)}};
  EXPECT_EQ(runs_of(request)->piece_count, 1u);
  EXPECT_TRUE(runs_of(request, 1).has_value());
}

}  // namespace
}  // namespace crossdock::testing
