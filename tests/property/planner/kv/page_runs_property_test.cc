// Where the rows of common tokens lie on both sides, against a walk from token to token.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/text.h"
#include "planner/kv/page_runs.h"
#include "tests/support/draw.h"
#include "tests/support/page_run_case.h"

namespace crossdock::testing {
namespace {

// ---- Definitions, token by token ----

bool in_cycle(const std::optional<CyclicTokens>& cycle, uint64_t token) {
  if (!cycle) return true;
  const uint64_t block = token / cycle->block_tokens % cycle->cycle_blocks;
  return std::any_of(cycle->blocks.ranges().begin(), cycle->blocks.ranges().end(),
                     [block](Range range) { return range.begin() <= block && block < range.end(); });
}

bool is_common(const PageRunCase& request, uint64_t token) {
  const auto holds = [token](Range range) { return range.begin() <= token && token < range.end(); };
  const std::vector<Range>& stated = request.tokens.intervals.ranges();
  return std::any_of(stated.begin(), stated.end(), holds) && holds(request.within) &&
         in_cycle(request.tokens.cycle, token) && in_cycle(request.source.map.cycle, token) &&
         in_cycle(request.target.map.cycle, token);
}

// Counts the tokens that have rows, from the one that row 0 begins with.
uint64_t naive_row(const PageRunSide& side, uint64_t token, uint64_t tokens_per_row) {
  uint64_t before = 0;
  for (uint64_t other = side.map.base_token; other < token; ++other)
    if (in_cycle(side.map.cycle, other)) ++before;
  return before / tokens_per_row;
}

RowPlace naive_place(const PageRunSide& side, uint64_t row, uint64_t tokens_per_row) {
  if (!side.table) return RowPlace{0, row};
  const uint64_t rows_per_page = side.table->page_tokens / tokens_per_row;
  return RowPlace{side.table->slots.at(row / rows_per_page), row % rows_per_page};
}

bool begins_page(const PageRunSide& side, uint64_t row, uint64_t tokens_per_row) {
  return side.table && row % (side.table->page_tokens / tokens_per_row) == 0;
}

using Places = std::vector<std::pair<RowPlace, RowPlace>>;

struct NaiveRows {
  Places places;
  uint64_t piece_count = 0;  // begun by the first row, after a gap of the tokens, and where a page begins
};

NaiveRows naive_rows(const PageRunCase& request, uint64_t token_end) {
  NaiveRows found;
  uint64_t token_before = UINT64_MAX;  // of the last row
  std::pair<uint64_t, uint64_t> rows_before;
  const uint64_t unit = request.tokens_per_row;
  for (uint64_t token = 0; token < token_end; ++token) {
    if (!is_common(request, token)) continue;
    const bool after_gap = token_before == UINT64_MAX || token_before + 1 != token;
    const std::pair<uint64_t, uint64_t> rows(naive_row(request.source, token, unit),
                                             naive_row(request.target, token, unit));
    if (token_before == UINT64_MAX || rows != rows_before) {
      found.places.emplace_back(naive_place(request.source, rows.first, unit),
                                naive_place(request.target, rows.second, unit));
      if (after_gap || begins_page(request.source, rows.first, unit) || begins_page(request.target, rows.second, unit))
        ++found.piece_count;
    }
    token_before = token;
    rows_before = rows;
  }
  return found;
}

// A run passes the end of a page only where pages touch.
RowPlace in_page(const PageRunSide& side, RowPlace place, uint64_t tokens_per_row) {
  if (!side.table || !side.map.pages_touch) return place;
  const uint64_t rows_per_page = side.table->page_tokens / tokens_per_row;
  return RowPlace{place.slot + place.row / rows_per_page, place.row % rows_per_page};
}

Places expand(const PageRuns& runs, const PageRunCase& request) {
  Places places;
  const auto place = [&](const PageRunSide& side, RowPlace first, RowPlace step, uint64_t repeat, uint64_t row) {
    return in_page(side, RowPlace{first.slot + step.slot * repeat, first.row + step.row * repeat + row},
                   request.tokens_per_row);
  };
  for (const PageRun& run : runs.runs)
    for (uint64_t repeat = 0; repeat < run.repeat; ++repeat)
      for (uint64_t row = 0; row < run.rows; ++row)
        places.emplace_back(place(request.source, run.source, run.source_step, repeat, row),
                            place(request.target, run.target, run.target_step, repeat, row));
  return places;
}

// ---- Random requests ----

constexpr uint64_t kRows = 48;  // rows of the token space

CyclicTokens draw_cycle(uint64_t tokens_per_row) {
  CyclicTokens cycle{tokens_per_row * draw(1, 4), draw(1, 5), {}};
  std::vector<Range> blocks;
  const uint64_t first = draw(0, cycle.cycle_blocks - 1);
  for (uint64_t block = 0; block < cycle.cycle_blocks; ++block)
    if (block == first || draw(0, 1) == 0) blocks.emplace_back(block, block + 1);
  cycle.blocks = IntervalSet::from_ranges(blocks);
  return cycle;
}

// Runs of neighbouring slots, some of them broken, or in any order.
std::vector<uint64_t> draw_slots(uint64_t count) {
  std::vector<uint64_t> slots(count);
  const uint64_t jump_of = draw(1, 9);
  uint64_t next = draw(0, 3);
  for (uint64_t& slot : slots) {
    if (draw(0, jump_of) == 0) next += draw(1, 3);
    slot = next++;
  }
  if (draw(0, 3) == 0) Rng(draw(0, 1'000'000)).shuffle(slots);
  return slots;
}

PageRunSide draw_side(uint64_t tokens_per_row, Range snapshot, const std::optional<CyclicTokens>& cycle) {
  PageRunSide side;
  side.map.cycle = cycle;
  const uint64_t first_row = snapshot.begin() / tokens_per_row;
  side.map.base_token = tokens_per_row * (draw(0, 1) == 0 ? first_row : draw(0, first_row));
  if (draw(0, 2) == 0) return side;
  const uint64_t rows_per_page = draw(1, 6);
  side.map.table = PageTableId("pages");
  side.map.pages_touch = draw(0, 1) == 1;
  side.table = PageTable{PageTableId("pages"), rows_per_page * tokens_per_row, side.map.base_token,
                         draw_slots(kRows / rows_per_page + 1)};
  return side;
}

// Any tokens of a range, in whole rows but for those that the range cuts.
IntervalSet draw_intervals(uint64_t tokens_per_row, Range range) {
  std::vector<Range> ranges;
  const uint64_t count = draw(0, 3);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t begin = draw(0, kRows - 1);
    ranges.push_back(Range(begin * tokens_per_row, (begin + draw(1, kRows)) * tokens_per_row).intersect(range));
  }
  if (count == 0) ranges = {range};
  return IntervalSet::from_ranges(ranges);
}

PageRunCase draw_request() {
  PageRunCase request;
  request.tokens_per_row = draw(1, 4);
  const uint64_t token_end = kRows * request.tokens_per_row;
  const uint64_t begin = draw(0, 2) == 0 ? draw(0, token_end / 3) : 0;
  const Range snapshot(begin, draw(0, 2) == 0 ? draw(begin + 1, token_end) : token_end - draw(0, 5));

  const uint64_t unit = request.tokens_per_row;
  using Cycle = std::optional<CyclicTokens>;
  const auto cycle_or = [unit](const Cycle& likely) { return draw(0, 4) == 0 ? Cycle(draw_cycle(unit)) : likely; };
  const Cycle source_cycle = draw(0, 1) == 0 ? Cycle(draw_cycle(unit)) : std::nullopt;
  const Cycle target_cycle = cycle_or(draw(0, 1) == 0 ? source_cycle : std::nullopt);
  request.source = draw_side(unit, snapshot, source_cycle);
  request.target = draw_side(unit, snapshot, target_cycle);
  request.tokens.intervals = draw_intervals(unit, snapshot);
  request.tokens.cycle = cycle_or(draw(0, 1) == 0 ? source_cycle : target_cycle);
  if (draw(0, 3) == 0) request.within = draw_intervals(unit, snapshot).hull();
  return request;
}

std::string text_of(const PageRunCase& request) {
  const auto cycle = [](const std::optional<CyclicTokens>& of) {
    return of ? fmt::format("{} of {} x {}", set_text(of->blocks), of->cycle_blocks, of->block_tokens) : "none";
  };
  const auto side = [&](const PageRunSide& of) {
    return fmt::format("base {} cycle {} touch {} pages of {} in {}", of.map.base_token, cycle(of.map.cycle),
                       of.map.pages_touch, of.table ? of.table->page_tokens : 0,
                       fmt::join(of.table ? of.table->slots : std::vector<uint64_t>(), ","));
  };
  return fmt::format("tokens {} cycle {} within {}, {} a row\n  source {}\n  target {}",
                     set_text(request.tokens.intervals), cycle(request.tokens.cycle), range_text(request.within),
                     request.tokens_per_row, side(request.source), side(request.target));
}

RC_GTEST_PROP(PageRuns, ExpandToThePlacesOfEachRowInOrder, ()) {
  const PageRunCase request = draw_request();
  RC_LOG(text_of(request));
  const NaiveRows wanted = naive_rows(request, kRows * request.tokens_per_row);
  const std::optional<PageRuns> runs = runs_of(request);
  RC_ASSERT(runs.has_value());
  RC_ASSERT(expand(*runs, request) == wanted.places);
  RC_ASSERT(runs->row_count == wanted.places.size());
  RC_ASSERT(runs->piece_count == wanted.piece_count);
  RC_ASSERT(runs->runs.size() <= runs->piece_count);
  for (const PageRun& run : runs->runs) {
    RC_ASSERT(run.rows > 0 && run.repeat > 0);
    if (run.repeat == 1) RC_ASSERT((run.source_step == RowPlace() && run.target_step == RowPlace()));
  }
  const auto ends_at = [&](const PageRunSide& side, RowPlace first, uint64_t rows, RowPlace next) {
    return in_page(side, RowPlace{first.slot, first.row + rows}, request.tokens_per_row) == next;
  };
  for (size_t i = 1; i < runs->runs.size(); ++i) {  // rows that follow each other on both sides are one stretch
    const PageRun& before = runs->runs[i - 1];
    const PageRun& run = runs->runs[i];
    if (before.repeat == 1)
      RC_ASSERT(!(ends_at(request.source, before.source, before.rows, run.source) &&
                  ends_at(request.target, before.target, before.rows, run.target)));
  }
}

RC_GTEST_PROP(PageRuns, AreEmptyWhenThereAreMorePiecesThanTheLimit, ()) {
  const PageRunCase request = draw_request();
  RC_LOG(text_of(request));
  const NaiveRows wanted = naive_rows(request, kRows * request.tokens_per_row);
  if (wanted.piece_count == 0) RC_DISCARD("no pieces");
  RC_ASSERT(!runs_of(request, draw(0, wanted.piece_count - 1)).has_value());
}

// The number of pieces that there are is enough: a rebind knows no other.
RC_GTEST_PROP(PageRuns, AreThereWhenTheLimitIsTheNumberOfPieces, ()) {
  PageRunCase request = draw_request();
  for (std::optional<CyclicTokens>* cycle : {&request.source.map.cycle, &request.target.map.cycle})
    if (*cycle) *cycle = request.tokens.cycle;  // both sides have rows for all of the tokens
  RC_LOG(text_of(request));
  const NaiveRows wanted = naive_rows(request, kRows * request.tokens_per_row);
  const std::optional<PageRuns> runs = runs_of(request, wanted.piece_count);
  RC_ASSERT(runs.has_value());
  RC_ASSERT(expand(*runs, request) == wanted.places);
}

}  // namespace
}  // namespace crossdock::testing
