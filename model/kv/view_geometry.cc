#include "model/kv/view_geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/checked.h"
#include "model/text.h"

// From a view to bytes. The rules here make the map from (layer, row, head, dim) to bytes injective and bounded:
// - strides nest: sorted by stride, each is at least the span of everything inside it (view-strides), so no two indices
//   reach one byte;
// - the last byte lies within the region (view-bounds), computed in checked arithmetic, so every later offset fits in
//   64 bits.
namespace crossdock {
namespace {

struct NamedAxis {
  std::string_view name;
  uint64_t stride;
  uint64_t extent;
};

// How many tokens below `token` the view selects, were it unbounded.
uint64_t selected_below(const View& view, uint64_t token) {
  return view.cycle ? view.cycle->count_below(token) : token;
}

// Row indices within a page that the view reaches: [0, row_extent) relative to the lowest.
// A view within one page need not leave room for the rows that it does not have.
uint64_t rows_in_page_max(const ViewRows& rows) {
  if (rows.per_page == 0) return rows.count;
  return rows.first_page() == rows.last_page() ? rows.count : rows.per_page;
}

struct SlotRange {
  uint64_t low;
  uint64_t high;
};

// rows.last_page() is below the length of the table (rule view-pages).
SlotRange used_slots(const ViewRows& rows) {
  const auto begin = rows.table->slots.begin() + static_cast<ptrdiff_t>(rows.first_page());
  const auto end = rows.table->slots.begin() + static_cast<ptrdiff_t>(rows.last_page()) + 1;
  const auto [low, high] = std::minmax_element(begin, end);
  return SlotRange{*low, *high};
}

// The axes that move (extent above 1), shortest stride first. A page axis counts from the lowest to the highest slot.
// Slots may come in any order, so the page axis is as long as the distance of the outermost two; with equal slots ruled
// out (page-slots) that is enough.
std::vector<NamedAxis> moving_axes(const View& view, const ViewRows& rows) {
  std::vector<NamedAxis> axes = {{"layer", view.strides.layer, view.layers.size()},
                                 {"head", view.strides.head, view.heads.size()},
                                 {"dim", view.strides.dim, view.dims.size()},
                                 {"row", view.strides.row, rows_in_page_max(rows)}};
  if (rows.per_page != 0 && rows.first_page() != rows.last_page()) {
    const SlotRange slots = used_slots(rows);
    axes.push_back(
        NamedAxis{"page", view.pages->page_stride_bytes, std::min(slots.high - slots.low, Range::kUnbounded - 1) + 1});
  }
  std::erase_if(axes, [](const NamedAxis& axis) { return axis.extent <= 1; });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const NamedAxis& a, const NamedAxis& b) { return a.stride < b.stride; });
  return axes;
}

// Items are never cut, so a transport may copy in units of them.
bool check_alignment(const View& view, const Component& component, const std::string& place, Diagnostics& diagnostics) {
  const std::array<std::pair<std::string_view, uint64_t>, 6> values = {
      {{"offset", view.offset_bytes},
       {"layer stride", view.strides.layer},
       {"row stride", view.strides.row},
       {"head stride", view.strides.head},
       {"dim stride", view.strides.dim},
       {"page stride", view.pages ? view.pages->page_stride_bytes : 0}}};
  bool aligned = true;
  for (const auto& [name, value] : values) {
    if (value % component.item_bytes == 0) continue;
    diagnostics.add(Rule::kViewAlignment, place,
                    fmt::format("{} {} is not a multiple of the item size {}", name, value, component.item_bytes));
    aligned = false;
  }
  return aligned;
}

bool check_strides(const View& view, const Component& component, const ViewRows& rows, const std::string& place,
                   Diagnostics& diagnostics) {
  uint64_t span = component.item_bytes;
  std::string_view inside = "item";
  for (const NamedAxis& axis : moving_axes(view, rows)) {
    if (axis.stride < span) {
      diagnostics.add(Rule::kViewStrides, place,
                      fmt::format("{} stride {} is shorter than the {} bytes of the {} inside it", axis.name,
                                  axis.stride, span, inside));
      return false;
    }
    const std::optional<uint64_t> next = (Checked(axis.stride) * (axis.extent - 1) + span).value();
    if (!next) {
      diagnostics.add(
          Rule::kSizeOverflow, place,
          fmt::format("{} indices at {} stride {} do not fit in 64 bits", axis.extent, axis.name, axis.stride));
      return false;
    }
    span = *next;
    inside = axis.name == "page" ? "pages between the first and the last slot" : axis.name;
  }
  return true;
}

// One past the last byte; empty when it passes 64 bits. Only the last page may be partial.
// Every page is looked at: the furthest byte need not lie in the last one. O(pages).
std::optional<uint64_t> end_of(const View& view, const Component& component, const ViewRows& rows) {
  const Checked others = Checked(view.offset_bytes) + Checked(view.strides.layer) * (view.layers.size() - 1) +
                         Checked(view.strides.head) * (view.heads.size() - 1) +
                         Checked(view.strides.dim) * (view.dims.size() - 1) + component.item_bytes;
  const uint64_t last_row = rows.first + rows.count - 1;
  if (rows.per_page == 0) return (others + Checked(view.strides.row) * last_row).value();

  const Checked page_stride = view.pages->page_stride_bytes;
  std::optional<uint64_t> end = (others + page_stride * rows.table->slots[rows.last_page()] +
                                 Checked(view.strides.row) * (last_row % rows.per_page))
                                    .value();
  for (uint64_t page = rows.first_page(); end && page < rows.last_page(); ++page) {
    const std::optional<uint64_t> page_end =
        (others + page_stride * rows.table->slots[page] + Checked(view.strides.row) * (rows.per_page - 1)).value();
    end = page_end ? std::optional(std::max(*end, *page_end)) : std::nullopt;
  }
  return end;
}

}  // namespace

// Rows are counted in the tokens that the view selects: with a cycle its tokens lie one behind the other.
std::optional<ViewRows> resolve_rows(const View& view, const Component& component, const PageTable* table, Range tokens,
                                     const std::string& place, Diagnostics& diagnostics) {
  const auto refuse = [&](Rule rule, std::string message) {
    diagnostics.add(rule, place, std::move(message));
    return std::nullopt;
  };
  const uint64_t unit = component.tokens_per_row.value_or(1);
  if (component.is_state() && (view.tokens != Range(0, 1) || view.cycle))
    return refuse(Rule::kStateTokens,
                  fmt::format("tokens {} of a state component must be [0,1)", range_text(view.tokens)));
  // Without a table, rows count from the one that holds the first token.
  const uint64_t base = table != nullptr ? table->token_begin : view.tokens.begin() - view.tokens.begin() % unit;
  if (view.tokens.begin() < base)
    return refuse(Rule::kViewPages, fmt::format("tokens {} begin before page table '{}', which begins at token {}",
                                                range_text(view.tokens), table->id.text(), base));
  const bool cycle_cuts_rows = view.cycle && view.cycle->block_tokens % unit != 0;
  if (cuts_row(view.tokens, tokens, unit) || base % unit != 0 || cycle_cuts_rows)
    return refuse(Rule::kTokenAlignment,
                  fmt::format("tokens {} cut a row of {} tokens", range_text(view.tokens), unit));

  ViewRows rows;
  // Differences do not wrap: the tokens begin at `base` or later, and counting never sinks.
  const uint64_t before_base = selected_below(view, base);
  const uint64_t first_token = selected_below(view, view.tokens.begin()) - before_base;
  const uint64_t end_token = selected_below(view, view.tokens.end()) - before_base;
  if (first_token == end_token) return refuse(Rule::kViewEmpty, "the view has no token");
  rows.first = first_token / unit;
  rows.count = div_round_up(end_token, unit) - rows.first;
  if (table == nullptr) return rows;

  rows.table = table;
  if (table->page_tokens % unit != 0)
    return refuse(Rule::kTokenAlignment,
                  fmt::format("pages of {} tokens cut a row of {} tokens", table->page_tokens, unit));
  rows.per_page = table->page_tokens / unit;
  if (rows.last_page() >= table->slots.size())
    return refuse(Rule::kViewPages,
                  fmt::format("tokens {} need {} pages, page table '{}' has {}", range_text(view.tokens),
                              rows.last_page() + 1, table->id.text(), table->slots.size()));
  return rows;
}

bool check_view_bytes(const View& view, const Component& component, const ViewRows& rows, uint64_t region_bytes,
                      const std::string& place, Diagnostics& diagnostics) {
  if (!check_alignment(view, component, place, diagnostics)) return false;
  if (!check_strides(view, component, rows, place, diagnostics)) return false;
  const std::optional<uint64_t> end = end_of(view, component, rows);
  if (end && *end <= region_bytes) return true;
  diagnostics.add(
      Rule::kViewBounds, place,
      end ? fmt::format("the view ends at byte {}, region '{}' at {}", *end, view.region.text(), region_bytes)
          : fmt::format("the view ends past 2^64, region '{}' at {}", view.region.text(), region_bytes));
  return false;
}

// One set for each page, since slots follow no stride. check_view_bytes() made sure that all of it fits in 64 bits.
void append_bytes(const View& view, const Component& component, const ViewRows& rows, size_t owner,
                  std::vector<StridedBytes>& sets) {
  const auto append = [&](uint64_t base, uint64_t row_count) {
    StridedAxes axes;
    for (const auto& [stride, extent] :
         {std::pair(view.strides.layer, view.layers.size()), std::pair(view.strides.head, view.heads.size()),
          std::pair(view.strides.dim, view.dims.size()), std::pair(view.strides.row, row_count)})
      if (extent > 1) axes.push_back(StridedAxis{stride, extent});
    std::stable_sort(axes.begin(), axes.end(),
                     [](const StridedAxis& a, const StridedAxis& b) { return a.stride_bytes > b.stride_bytes; });
    StridedBytes set{base, axes, component.item_bytes, owner};
    while (!set.axes.empty() && set.axes.back().stride_bytes == set.width) {  // contiguous: one longer run
      set.width *= set.axes.back().extent;
      set.axes.pop_back();
    }
    sets.push_back(set);
  };
  if (rows.per_page == 0) return append(view.offset_bytes + rows.first * view.strides.row, rows.count);
  const uint64_t end = rows.first + rows.count;
  for (uint64_t row = rows.first; row < end;) {
    const uint64_t page = row / rows.per_page;
    const uint64_t page_end = std::min(end, checked_mul(page + 1, rows.per_page).value_or(Range::kUnbounded));
    append(view.offset_bytes + rows.table->slots[page] * view.pages->page_stride_bytes +
               row % rows.per_page * view.strides.row,
           page_end - row);
    row = page_end;
  }
}

}  // namespace crossdock
