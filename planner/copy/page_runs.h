// Runs of rows in pages: where the rows of a copy lie on both sides, in pages and rows that a pattern gives strides to.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace crossdock {

// A place of rows on one side: the slot of their page and the row within it; slot 0 where there are no pages.
// A value alone is no byte offset: a pattern gives slots and rows their strides in bytes.
struct RowPlace {
  uint64_t slot = 0;
  uint64_t row = 0;

  friend auto operator<=>(const RowPlace&, const RowPlace&) = default;
};

// `rows` consecutive rows on both sides (past the end of a page, where pages touch), `repeat` times, each time further
// by the steps: by one slot, or by rows of the same slot.
struct PageRun {
  RowPlace source;
  RowPlace target;
  uint64_t rows = 0;
  uint64_t repeat = 1;
  RowPlace source_step;
  RowPlace target_step;

  // Equal shapes give equal steps but for their offsets.
  bool same_shape(const PageRun& other) const {
    return rows == other.rows && repeat == other.repeat && source_step == other.source_step &&
           target_step == other.target_step;
  }

  friend auto operator<=>(const PageRun&, const PageRun&) = default;
};

// Runs are disjoint on the target. `row_count` is the sum of rows * repeat over all runs.
struct PageRuns {
  std::vector<PageRun> runs;
  uint64_t row_count = 0;
  uint64_t piece_count = 0;  // stretches of rows before any were joined: cut at each page and each gap
};

}  // namespace crossdock
