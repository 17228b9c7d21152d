// The views of one end, arranged for joining: by layers, then by heads, then classes of equal dims, in each the views
// by their tokens. `reach` of an entry is the furthest end among the entries up to it, which makes a binary search
// possible although ranges may overlap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/range.h"
#include "model/kv/view.h"
#include "planner/copy/bound_region.h"
#include "planner/kv/bound_end.h"
#include "planner/kv/page_runs.h"

namespace crossdock {

struct IndexedView {
  const View* view;
  uint32_t region;
  RowMap rows;
  const PageTable* table;  // null without pages
  uint64_t reach;          // the furthest token end of the class up to here
};

struct ViewClass {
  Range heads;
  Range dims;
  uint64_t reach = 0;              // the furthest head end of the list up to here
  std::vector<IndexedView> views;  // by tokens
};

struct LayerViews {
  Range layers;
  uint64_t reach = 0;              // the furthest layer end of the list up to here
  std::vector<ViewClass> classes;  // by where their heads begin
};

// Of one component, by where the layers begin.
using ViewClasses = std::vector<LayerViews>;

// The end outlives the index.
class ViewIndex {
 public:
  // `number` names the end in row maps.
  ViewIndex(const BoundEnd& end, uint32_t number) : end_(end), number_(number) {}

  // Arranges the views of a component when it is first asked for. O(n log n).
  const ViewClasses& classes(const ComponentName& component, uint64_t tokens_per_row);

 private:
  RowMap row_map(const View& view, const PageTable* table, uint64_t tokens_per_row) const;

  const BoundEnd& end_;
  uint32_t number_;
  std::map<std::pair<ComponentName, uint64_t>, ViewClasses> classes_;
};

// Calls visit(item) for each item of a list whose range overlaps `wanted`. The list is sorted by
// range_of(item).begin(), and `reach` is the furthest end up to an item.
template <class Item, class RangeOf, class Visit>
// O(log n + entries between the first and the last that overlap).
void for_each_overlapping(const std::vector<Item>& list, Range wanted, RangeOf range_of, Visit visit) {
  auto item =
      std::partition_point(list.begin(), list.end(), [&](const Item& each) { return each.reach <= wanted.begin(); });
  for (; item != list.end() && range_of(*item).begin() < wanted.end(); ++item)
    if (range_of(*item).end() > wanted.begin()) visit(*item);
}

}  // namespace crossdock
