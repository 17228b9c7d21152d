// A map that holds a bounded number of entries; when it is full the one that was used longest ago goes.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <utility>

#include "base/check.h"

namespace crossdock {

// Key: ordered. Not for use by several threads at once.
template <class Key, class Value>
class LruMap {
 public:
  explicit LruMap(size_t entry_count_max) : entry_count_max_(entry_count_max) { CHECK(entry_count_max > 0); }

  // The value, which is now the one used last, or null. O(log n).
  Value* find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // Sets the value and returns it; the others stay where they are in memory. O(log n).
  Value& put(const Key& key, Value value) {
    if (Value* known = find(key)) return *known = std::move(value);
    if (entries_.size() == entry_count_max_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
      ++eviction_count_;
    }
    entries_.emplace_front(key, std::move(value));
    places_.emplace(key, entries_.begin());
    return entries_.front().second;
  }

  size_t size() const { return entries_.size(); }
  // Entries that had to go since the map was made.
  size_t eviction_count() const { return eviction_count_; }

 private:
  size_t entry_count_max_;
  size_t eviction_count_ = 0;
  std::list<std::pair<Key, Value>> entries_;  // used last first
  std::map<Key, typename std::list<std::pair<Key, Value>>::iterator> places_;
};

}  // namespace crossdock
