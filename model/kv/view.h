// View: an affine map from a box of cache elements to bytes of a region, optionally through a page table.
// Pages, padding, packed [K|V] rows, head-major or token-major order and any page size are all just views.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/range.h"
#include "model/ids.h"
#include "model/kv/token_ownership.h"

namespace crossdock {

// Where the pages of a token sequence lie: page i holds the page_tokens tokens from token_begin + i * page_tokens on,
// counted in the tokens that a view selects.
struct PageTable {
  PageTableId id;
  uint64_t page_tokens = 0;
  uint64_t token_begin = 0;
  std::vector<uint64_t> slots;  // multiples of a view's page stride

  friend bool operator==(const PageTable&, const PageTable&) = default;
};

// Bytes from one index of an axis to the next.
struct ByteStrides {
  uint64_t layer = 0;
  uint64_t row = 0;  // one row is tokens_per_row tokens of the component
  uint64_t head = 0;
  uint64_t dim = 0;

  friend auto operator<=>(const ByteStrides&, const ByteStrides&) = default;
};

// Page i of the table begins slots[i] * page_stride_bytes after the view's offset.
struct ViewPages {
  PageTableId table;
  uint64_t page_stride_bytes = 0;

  friend auto operator<=>(const ViewPages&, const ViewPages&) = default;
};

// Element (layer, token, head, dim) of `component` lies at
//   offset_bytes + (layer - layers.begin) * strides.layer + (head - heads.begin) * strides.head
//                + (dim - dims.begin) * strides.dim + rows(token)
// where, with r the number of selected tokens before it divided by tokens_per_row (counted from the begin of the row
// that holds tokens.begin, or from the table's token_begin with `pages`) and n the rows of a page,
//   rows(token) = r * strides.row                                                   without `pages`
//               = slots[r / n] * page_stride_bytes + (r % n) * strides.row          with `pages`.
// A state component has the one token interval [0, 1).
struct View {
  ComponentName component;
  Range layers;
  Range tokens;
  std::optional<CyclicTokens> cycle;  // only these tokens of the interval, packed; empty: all of them
  Range heads;
  Range dims;
  RegionId region;
  uint64_t offset_bytes = 0;
  ByteStrides strides;
  std::optional<ViewPages> pages;

  friend auto operator<=>(const View&, const View&) = default;
};

}  // namespace crossdock
