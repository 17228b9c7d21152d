#include "planner/kv/slot_limits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/checked.h"
#include "base/sorted.h"
#include "model/kv/view_geometry.h"

// Sufficient conditions, not necessary ones: a layout that is not understood costs a full bind, and never a wrong
// answer (I1). Pools of pages as serving engines lay them out are understood.
// Why it is enough to compare slots: two views of one pool touch the same bytes only in pages of the same slot, because
// all their bytes of one page lie within one page stride. Views of different pools stay apart as long as each stays
// below the next pool.
namespace crossdock {
namespace {

// A view with pages, as far as its region is concerned.
struct PagedView {
  size_t end;
  size_t table;
  uint64_t first_page;
  uint64_t last_page;
  uint64_t offset;
  uint64_t page_stride;
  uint64_t span;          // bytes from the first to the last within one page, along the axes inside it
  uint64_t outer_stride;  // of the axes outside a page; 0: there are none
  uint64_t outer_bytes;   // from the first to the last index of these
};

const Component& component_of(const View& view, const CacheSchema& schema) {
  const LayerGroup* group = schema.find_group(view.layers.begin());
  CHECK(group != nullptr && group->find(view.component) != nullptr);  // rules of a binding
  return *group->find(view.component);
}

// Empty when the view has no pages, or several strides outside a page.
// Page strides and the rules view-strides and view-bounds were checked for the old slots. Only what is independent of
// slots is taken from there.
std::optional<PagedView> measure(const View& view, const Component& component, const BoundEnd& end, Range tokens) {
  if (!view.pages || view.pages->page_stride_bytes == 0) return std::nullopt;
  const PageTable* table = find_sorted(*end.page_tables, &PageTable::id, view.pages->table);
  Diagnostics none;
  const std::optional<ViewRows> rows = resolve_rows(view, component, table, tokens, "", none);
  // The binding passed check_views(), which resolved the same rows.
  CHECK(rows.has_value());
  PagedView paged = {};
  paged.table = static_cast<size_t>(table - end.page_tables->data());
  paged.first_page = rows->first_page();
  paged.last_page = rows->last_page();
  paged.offset = view.offset_bytes;
  paged.page_stride = view.pages->page_stride_bytes;
  paged.span = component.item_bytes;
  for (const auto& [stride, extent] :
       {std::pair(view.strides.layer, view.layers.size()), std::pair(view.strides.head, view.heads.size()),
        std::pair(view.strides.dim, view.dims.size()), std::pair(view.strides.row, rows->per_page)}) {
    if (extent == 1) continue;
    if (stride >= paged.page_stride) {
      if (paged.outer_stride != 0) return std::nullopt;
      paged.outer_stride = stride;
      // Fits: rule view-bounds says that the last index lies within the region.
      paged.outer_bytes = stride * (extent - 1);
      continue;
    }
    // A page that is only used in part need not have room for all of its rows.
    const std::optional<uint64_t> longer = (Checked(stride) * (extent - 1) + paged.span).value();
    if (!longer || *longer > paged.page_stride) return std::nullopt;
    paged.span = *longer;
  }
  return paged;
}

// The highest safe slot of each view of one region, in the order of the views. Empty when it is not understood.
// Views are placed modulo the outer stride S, because a page at layer l lies l * S after the page at layer 0; views of
// different layers then share a pool exactly when they share slots.
std::optional<std::vector<uint64_t>> region_limits(const std::vector<PagedView>& views, uint64_t region_bytes) {
  const uint64_t page_stride = views.front().page_stride;
  uint64_t outer_stride = 0;
  for (const PagedView& view : views) {
    if (view.page_stride != page_stride) return std::nullopt;
    if (view.outer_stride == 0) continue;
    if (outer_stride != 0 && view.outer_stride != outer_stride) return std::nullopt;
    outer_stride = view.outer_stride;
  }
  const auto place = [&](const PagedView& view) {
    return outer_stride == 0 ? view.offset : view.offset % outer_stride;
  };
  std::vector<size_t> order(views.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(views[a]) < place(views[b]); });

  // Pools, and the pool of each view.
  std::vector<uint64_t> pools;
  std::vector<size_t> pool_of(views.size());
  for (const size_t i : order) {
    const uint64_t at = place(views[i]);
    // The places are ascending, and span is at most page_stride (measure()), so neither difference wraps.
    const bool in_last = !pools.empty() && at - pools.back() <= page_stride - views[i].span;
    if (!in_last && !pools.empty() && at - pools.back() < page_stride) return std::nullopt;
    if (!in_last) pools.push_back(at);
    pool_of[i] = pools.size() - 1;
  }
  std::vector<uint64_t> limits;
  for (size_t i = 0; i < views.size(); ++i) {
    const PagedView& view = views[i];
    const std::optional<uint64_t> end = (Checked(view.offset) + view.outer_bytes + view.span).value();
    if (!end || *end > region_bytes) return std::nullopt;
    uint64_t limit = (region_bytes - *end) / page_stride;
    const size_t pool = pool_of[i];
    const bool is_last = pool + 1 == pools.size();
    if (!is_last || outer_stride != 0) {
      const uint64_t next = is_last ? pools.front() + outer_stride : pools[pool + 1];
      // The last pool ends where the first one begins again, one outer stride further on.
      const uint64_t pages = (next - pools[pool]) / page_stride;
      if (pages == 0) return std::nullopt;
      limit = std::min(limit, pages - 1);
    }
    limits.push_back(limit);
  }
  return limits;
}

}  // namespace

std::optional<SlotLimits> slot_limits(std::span<const BoundEnd> ends, std::span<const BoundRegion> regions,
                                      Range tokens, const CacheSchema& schema) {
  std::map<uint32_t, std::vector<PagedView>> views_of;  // by region
  std::set<uint32_t> plain;
  for (size_t end = 0; end < ends.size(); ++end) {
    const std::vector<View>& views = *ends[end].views;
    for (size_t i = 0; i < views.size(); ++i) {
      const uint32_t region = ends[end].view_regions[i];
      if (!views[i].pages) {
        plain.insert(region);
        continue;
      }
      std::optional<PagedView> paged = measure(views[i], component_of(views[i], schema), ends[end], tokens);
      if (!paged) return std::nullopt;
      paged->end = end;
      views_of[region].push_back(*paged);
    }
  }
  std::map<std::tuple<size_t, size_t, uint64_t, uint64_t>, uint64_t> uses;
  std::set<TableSet> sets;
  for (const auto& [region, views] : views_of) {
    const std::optional<std::vector<uint64_t>> limits = region_limits(views, regions[region].bytes);
    // A view without pages in the same region has fixed bytes that slots would have to avoid.
    if (!limits || plain.contains(region)) return std::nullopt;
    std::set<std::pair<size_t, size_t>> tables;
    for (size_t i = 0; i < views.size(); ++i) {
      const PagedView& view = views[i];
      const uint64_t limit = (*limits)[i];
      const auto [use, is_new] =
          uses.try_emplace(std::tuple(view.end, view.table, view.first_page, view.last_page), limit);
      if (!is_new) use->second = std::min(use->second, limit);
      tables.insert({view.end, view.table});
    }
    if (tables.size() > 1) sets.insert(TableSet(tables.begin(), tables.end()));
  }
  SlotLimits result;
  for (const auto& [key, limit] : uses) {
    const auto& [end, table, first_page, last_page] = key;
    result.uses.push_back(PagedUse{end, table, first_page, last_page, limit});
  }
  result.shared_tables.assign(sets.begin(), sets.end());
  return result;
}

}  // namespace crossdock
