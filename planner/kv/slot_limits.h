// Which slots the pages of a binding may move to without a full check of its views: what BoundSide::rebind() relies on.
//
// A region is understood when all its views have pages of one stride P, and their other axes with strides of P and more
// (a layer axis, say) have one stride S. Then its bytes fall into pools: views whose bytes lie within one page of each
// other share a pool, and the next pool begins a whole number of pages, or more, further on (modulo S). A slot is safe
// below the begin of the next pool and the end of the region. Within a pool, pages of one table were compared when the
// binding was checked, and tables that share a region must not share slots. Anything else is not understood.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/kv/cache_schema.h"
#include "planner/copy/bound_region.h"
#include "planner/kv/bound_end.h"

namespace crossdock {

// Pages of one table that the views of one end use.
// Slots are counted in page strides of the views; `slot_max` is the highest that is safe for all of them.
struct PagedUse {
  size_t end = 0;  // numbers of the side's ends, and of the end's page tables
  size_t table = 0;
  uint64_t first_page = 0;
  uint64_t last_page = 0;
  uint64_t slot_max = 0;

  friend auto operator<=>(const PagedUse&, const PagedUse&) = default;
};

using TableSet = std::vector<std::pair<size_t, size_t>>;  // (end, table), sorted

struct SlotLimits {
  std::vector<PagedUse> uses;
  std::vector<TableSet> shared_tables;  // tables with pages in one region, for each different set of more than one
};

// Empty when a region is not understood. The views passed the rules of a binding. O(n log n) in views.
std::optional<SlotLimits> slot_limits(std::span<const BoundEnd> ends, std::span<const BoundRegion> regions,
                                      Range tokens, const CacheSchema& schema);

}  // namespace crossdock
