// A map from unsigned 64-bit keys to values, stored by ranges. Neighbouring ranges with equal values are one range,
// so two maps with the same contents are equal however they were written.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/range.h"

namespace crossdock {

// Value: copyable and equality comparable.
template <class Value>
class IntervalMap {
 public:
  // Sets every key of `range` to `value`. O(log n + ranges it replaces).
  void assign(Range range, Value value) {
    if (range.empty()) return;
    erase(range);
    uint64_t begin = range.begin();
    uint64_t end = range.end();
    auto next = entries_.lower_bound(end);
    if (next != entries_.end() && next->first == end && next->second.value == value) {
      end = next->second.end;
      next = entries_.erase(next);
    }
    if (next != entries_.begin()) {
      auto previous = std::prev(next);
      if (previous->second.end == begin && previous->second.value == value) {
        previous->second.end = end;
        return;
      }
    }
    entries_.emplace_hint(next, begin, Entry{end, std::move(value)});
  }

  // Removes every key of `range`. O(log n + ranges it replaces).
  void erase(Range range) {
    if (range.empty()) return;
    split(range.begin());
    split(range.end());
    entries_.erase(entries_.lower_bound(range.begin()), entries_.lower_bound(range.end()));
  }

  // The value at `key`, or null.
  const Value* find(uint64_t key) const {
    auto after = entries_.upper_bound(key);
    if (after == entries_.begin()) return nullptr;
    const auto& [begin, entry] = *std::prev(after);
    return key < entry.end ? &entry.value : nullptr;
  }

  // Calls visit(Range, const Value&) for each stored piece of `range`, cut to it, in ascending order.
  template <class Visit>
  void for_each_in(Range range, Visit visit) const {
    auto it = entries_.upper_bound(range.begin());
    if (it != entries_.begin()) --it;
    for (; it != entries_.end() && it->first < range.end(); ++it) {
      const Range piece = Range(it->first, it->second.end).intersect(range);
      if (!piece.empty()) visit(piece, it->second.value);
    }
  }

  size_t range_count() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  friend bool operator==(const IntervalMap&, const IntervalMap&) = default;

 private:
  struct Entry {
    uint64_t end;
    Value value;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  // Makes `at` the begin of a stored range if it lies inside one.
  void split(uint64_t at) {
    auto after = entries_.lower_bound(at);
    if (after == entries_.begin()) return;
    auto& [begin, entry] = *std::prev(after);
    if (entry.end <= at) return;
    entries_.emplace_hint(after, at, Entry{entry.end, entry.value});
    entry.end = at;
  }

  std::map<uint64_t, Entry> entries_;
};

}  // namespace crossdock
