// A request for page runs with both page tables in place.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rng.h"
#include "planner/kv/page_runs.h"

namespace crossdock::testing {

inline constexpr uint64_t kNoPieceLimit = uint64_t{1} << 30;

// One side of a request, with its table in place.
struct PageRunSide {
  RowMap map;
  std::optional<PageTable> table;
};

struct PageRunCase {
  TokenSet tokens;
  Range within = Range::all();
  uint64_t tokens_per_row = 1;
  PageRunSide source;
  PageRunSide target;
};

inline std::optional<PageRuns> runs_of(const PageRunCase& request, uint64_t piece_count_max = kNoPieceLimit) {
  const auto table = [](const PageRunSide& side) { return side.table ? &*side.table : nullptr; };
  return make_page_runs(RunRequest{&request.tokens, request.within, request.tokens_per_row, &request.source.map,
                                   &request.target.map, table(request.source), table(request.target), piece_count_max});
}

}  // namespace crossdock::testing
