#include "planner/kv/view_index.h"

#include <tuple>

#include "base/checked.h"
#include "base/sorted.h"

// An index for joining by overlap: at each level a list sorted by where its ranges begin, with the furthest end up to
// each entry ("reach"). A query skips, by binary search, the entries that all end before it, and stops at the first
// that begins after it. It costs O(log n + entries looked at).
namespace crossdock {

const ViewClasses& ViewIndex::classes(const ComponentName& component, uint64_t tokens_per_row) {
  const auto [entry, is_new] = classes_.try_emplace(std::pair(component, tokens_per_row));
  ViewClasses& classes = entry->second;
  if (!is_new) return classes;

  // Views are sorted by component, so those of one are neighbours.
  const std::vector<View>& views = *end_.views;
  const auto first =
      std::lower_bound(views.begin(), views.end(), component,
                       [](const View& view, const ComponentName& name) { return view.component < name; });
  std::vector<IndexedView> own;
  for (auto view = first; view != views.end() && view->component == component; ++view) {
    const PageTable* table = view->pages ? find_sorted(*end_.page_tables, &PageTable::id, view->pages->table) : nullptr;
    const uint32_t region = end_.view_regions[static_cast<size_t>(view - views.begin())];
    own.push_back(IndexedView{&*view, region, row_map(*view, table, tokens_per_row), table, 0});
  }
  const auto box = [](const IndexedView& indexed) {
    return std::tie(indexed.view->layers, indexed.view->heads, indexed.view->dims);
  };
  // By layers, heads, dims, then tokens: each level of the index is a run of neighbours in this order.
  std::stable_sort(own.begin(), own.end(), [&](const IndexedView& a, const IndexedView& b) {
    return std::pair(box(a), a.view->tokens) < std::pair(box(b), b.view->tokens);
  });
  uint64_t layer_reach = 0;
  for (IndexedView& indexed : own) {
    const View& view = *indexed.view;
    if (classes.empty() || classes.back().layers != view.layers) {
      layer_reach = std::max(layer_reach, view.layers.end());
      classes.push_back(LayerViews{view.layers, layer_reach, {}});
    }
    std::vector<ViewClass>& of_layers = classes.back().classes;
    if (of_layers.empty() || of_layers.back().heads != view.heads || of_layers.back().dims != view.dims) {
      const uint64_t head_reach = of_layers.empty() ? 0 : of_layers.back().reach;
      of_layers.push_back(ViewClass{view.heads, view.dims, std::max(head_reach, view.heads.end()), {}});
    }
    std::vector<IndexedView>& members = of_layers.back().views;
    indexed.reach = std::max(members.empty() ? 0 : members.back().reach, view.tokens.end());
    members.push_back(std::move(indexed));
  }
  return classes;
}

RowMap ViewIndex::row_map(const View& view, const PageTable* table, uint64_t tokens_per_row) const {
  RowMap map;
  map.end = number_;
  map.cycle = view.cycle;
  if (table == nullptr) {
    // As in resolve_rows() (model/kv/view_geometry.cc): without a table, rows count from the one that holds the first
    // token.
    map.base_token = view.tokens.begin() - view.tokens.begin() % tokens_per_row;
    return map;
  }
  map.table = table->id;
  map.base_token = table->token_begin;
  const uint64_t rows_per_page = table->page_tokens / tokens_per_row;
  // Then rows of neighbouring slots are contiguous, and runs may cross from one page into the next. A product that does
  // not fit is no page stride.
  map.pages_touch = checked_mul(rows_per_page, view.strides.row) == view.pages->page_stride_bytes;
  return map;
}

}  // namespace crossdock
