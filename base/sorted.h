// Look-up in a list that is sorted by one member, in which each value of it occurs once.
#pragma once

#include <algorithm>
#include <vector>

namespace crossdock {

// The element whose `member` equals `key`, or null. O(log n).
template <class Element, class Key>
const Element* find_sorted(const std::vector<Element>& list, Key Element::*member, const Key& key) {
  const auto found = std::lower_bound(list.begin(), list.end(), key,
                                      [member](const Element& e, const Key& wanted) { return e.*member < wanted; });
  return found != list.end() && (*found).*member == key ? &*found : nullptr;
}

}  // namespace crossdock
