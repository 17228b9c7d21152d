// Where the rows of common tokens lie on both sides, in pages: the part of a lowering that depends on page addresses,
// and the only part that a rebind with other pages computes again.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/range.h"
#include "model/kv/view.h"
#include "planner/copy/page_runs.h"
#include "planner/kv/token_set.h"

namespace crossdock {

// How one side numbers the rows of tokens.
// Equal maps over equal tables give equal runs, so they are a key.
struct RowMap {
  uint32_t end = 0;                   // whose tables are meant
  std::optional<PageTableId> table;   // empty: one run of rows
  uint64_t base_token = 0;            // row 0 holds it
  std::optional<CyclicTokens> cycle;  // only these tokens have rows
  bool pages_touch = false;           // the last row of a slot is followed by the first row of the next slot

  friend auto operator<=>(const RowMap&, const RowMap&) = default;
};

// Everything it points to outlives the call.
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
