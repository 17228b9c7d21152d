// Where the rows of common tokens lie on both sides, in pages: the part of a lowering that depends on page addresses,
// and the only part that a rebind with other pages computes again.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/range.h"
#include "model/kv/view.h"
#include "planner/kv/token_set.h"

namespace crossdock {

// How one side numbers the rows of tokens.
struct RowMap {
  uint32_t end = 0;                   // whose tables are meant
  std::optional<PageTableId> table;   // empty: one run of rows
  uint64_t base_token = 0;            // row 0 holds it
  std::optional<CyclicTokens> cycle;  // only these tokens have rows
  bool pages_touch = false;           // the last row of a slot is followed by the first row of the next slot

  friend auto operator<=>(const RowMap&, const RowMap&) = default;
};

// A place of rows on one side: the slot of their page and the row within it; slot 0 where there are no pages.
struct RowPlace {
  uint64_t slot = 0;
  uint64_t row = 0;

  friend auto operator<=>(const RowPlace&, const RowPlace&) = default;
};

// `rows` consecutive rows on both sides (past the end of a page, where pages touch), `repeat` times, each time further
// by the steps: by one slot, or by rows of the same slot. Full pages in neighbouring slots and the blocks of a cycle
// are one run.
struct PageRun {
  RowPlace source;
  RowPlace target;
  uint64_t rows = 0;
  uint64_t repeat = 1;
  RowPlace source_step;
  RowPlace target_step;

  // Equal shapes lower to equal steps but for their offsets.
  bool same_shape(const PageRun& other) const {
    return rows == other.rows && repeat == other.repeat && source_step == other.source_step &&
           target_step == other.target_step;
  }

  friend auto operator<=>(const PageRun&, const PageRun&) = default;
};

struct PageRuns {
  std::vector<PageRun> runs;
  uint64_t row_count = 0;
  uint64_t piece_count = 0;  // stretches of rows before any were joined: cut at each page and each gap of the tokens
};

struct RunRequest {
  const TokenSet* tokens;
  Range within;  // only these of them
  uint64_t tokens_per_row;
  const RowMap* source;
  const RowMap* target;
  const PageTable* source_table;  // null without pages
  const PageTable* target_table;
  uint64_t piece_count_max;
};

// Empty when there are more than piece_count_max pieces; memory is taken for at most about twice as many. Where a side
// has rows only for tokens of a cycle, only these are in the runs. O(pieces).
std::optional<PageRuns> make_page_runs(const RunRequest& request);

}  // namespace crossdock
