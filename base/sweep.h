// A sweep over ranges: cuts an axis into slabs within which the same items are active.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/range.h"

namespace crossdock {

// The sweep itself, over items that are sorted by where their ranges begin, none of them empty. `active` is scratch of
// the caller. Calls visit(Range slab, std::span<const Item> active) -> bool for each slab in ascending order; slabs
// without an item are left out, and the sweep stops when visit returns false. Returns whether it went through.
template <class Item, class RangeOf, class Visit>
bool sweep_sorted(std::span<const Item> items, std::vector<Item>& active, RangeOf range_of, Visit visit) {
  active.clear();
  size_t waiting = 0;
  uint64_t at = 0;
  while (waiting < items.size() || !active.empty()) {
    if (active.empty()) at = range_of(items[waiting]).begin();
    for (; waiting < items.size() && range_of(items[waiting]).begin() == at; ++waiting)
      active.push_back(items[waiting]);
    uint64_t next = waiting < items.size() ? range_of(items[waiting]).begin() : Range::kUnbounded;
    for (const Item& item : active) next = std::min(next, range_of(item).end());
    if (!visit(Range(at, next), std::span<const Item>(active))) return false;
    at = next;
    std::erase_if(active, [&](const Item& item) { return range_of(item).end() <= at; });
  }
  return true;
}

// The same for items in any order. range_of(item) gives an item's range; empty ones never become active.
// O(n log n + the sum of the active items of all slabs).
template <class Item, class RangeOf, class Visit>
bool sweep(std::vector<Item> items, RangeOf range_of, Visit visit) {
  std::erase_if(items, [&](const Item& item) { return range_of(item).empty(); });
  const auto begins_earlier = [&](const Item& a, const Item& b) { return range_of(a).begin() < range_of(b).begin(); };
  if (!std::is_sorted(items.begin(), items.end(), begins_earlier))
    std::stable_sort(items.begin(), items.end(), begins_earlier);
  std::vector<Item> active;
  return sweep_sorted(std::span<const Item>(items), active, range_of, visit);
}

}  // namespace crossdock
