// What a view comes to once its component and page table are known: rows, pages, strides, bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/diagnostics.h"
#include "model/geometry/strided_overlap.h"
#include "model/kv/cache_schema.h"
#include "model/kv/view.h"

namespace crossdock {

// The rows of a view in the order in which they are stored.
struct ViewRows {
  uint64_t first = 0;  // counted from the base of the view or of its page table
  uint64_t count = 0;
  uint64_t per_page = 0;  // 0: not paged
  const PageTable* table = nullptr;

  // Both only of paged rows: per_page is not 0.
  uint64_t first_page() const { return first / per_page; }
  uint64_t last_page() const { return (first + count - 1) / per_page; }
};

// Resolves the token axis. Diagnostics: the table is too short or begins too late (view-pages), a row is cut
// (token-alignment; only where the document's `tokens` begin and end may rows be partial). `table` is null for a view
// without pages.
std::optional<ViewRows> resolve_rows(const View& view, const Component& component, const PageTable* table, Range tokens,
                                     const std::string& place, Diagnostics& diagnostics);

// Rules view-alignment, view-strides and view-bounds. True when all hold.
bool check_view_bytes(const View& view, const Component& component, const ViewRows& rows, uint64_t region_bytes,
                      const std::string& place, Diagnostics& diagnostics);

// The bytes of a view that passed the rules above, one set per page. `owner` goes into each set.
void append_bytes(const View& view, const Component& component, const ViewRows& rows, size_t owner,
                  std::vector<StridedBytes>& sets);

}  // namespace crossdock
