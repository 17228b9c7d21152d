// What the verifier's sweeps have in common: buffers that live longer than one sweep, and the count of its work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/range.h"

namespace crossdock {

// Counts steps, and remembers why the proof had to stop.
class WorkMeter {
 public:
  enum class Stop { kNone, kSteps, kTokenRanges, kItems };

  explicit WorkMeter(uint64_t work_max) : left_(work_max) {}

  // False, from then on, once there are more steps than the limit.
  bool spend(uint64_t steps) {
    if (steps > left_) return stop(Stop::kSteps);
    left_ -= steps;
    return !stopped();
  }
  bool stop(Stop reason) {
    if (!stopped()) stop_ = reason;
    return false;
  }
  bool stopped() const { return stop_ != Stop::kNone; }
  Stop reason() const { return stop_; }

 private:
  uint64_t left_;
  Stop stop_ = Stop::kNone;
};

// base/sweep.h over thousands of short lists. Item: `Range range`, not empty, and `uint32_t id`, which orders the items
// of one begin.
template <class Item>
class SweepBuffer {
 public:
  // The most items of one sweep, which are all in memory.
  static constexpr size_t kItemsMax = size_t{1} << 23;

  void clear() { items_.clear(); }
  // False when the sweep has too many items. Empty ranges are left out.
  bool add(const Item& item) {
    if (item.range.empty()) return true;
    if (items_.size() == kItemsMax) return false;
    items_.push_back(item);
    return true;
  }

  // Calls visit(Range slab, std::span<const Item> active) -> bool for each slab that has an item, ascending. Returns
  // whether no visit was false.
  template <class Visit>
  bool run(Visit visit) {
    const auto before = [](const Item& a, const Item& b) {
      return a.range.begin() != b.range.begin() ? a.range.begin() < b.range.begin() : a.id < b.id;
    };
    if (!std::is_sorted(items_.begin(), items_.end(), before)) std::sort(items_.begin(), items_.end(), before);
    active_.clear();
    size_t waiting = 0;
    uint64_t at = 0;
    while (waiting < items_.size() || !active_.empty()) {
      if (active_.empty()) at = items_[waiting].range.begin();
      for (; waiting < items_.size() && items_[waiting].range.begin() == at; ++waiting)
        active_.push_back(items_[waiting]);
      uint64_t next = waiting < items_.size() ? items_[waiting].range.begin() : Range::kUnbounded;
      for (const Item& item : active_) next = std::min(next, item.range.end());
      if (!visit(Range(at, next), std::span<const Item>(active_))) return false;
      at = next;
      std::erase_if(active_, [at](const Item& item) { return item.range.end() <= at; });
    }
    return true;
  }

 private:
  std::vector<Item> items_;
  std::vector<Item> active_;
};

}  // namespace crossdock
