// What the verifier's sweeps have in common: buffers that live longer than one sweep, and the count of its work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sweep.h"

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
  // Always false, for a caller to return. The first reason stays.
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

  // As sweep_sorted().
  template <class Visit>
  bool run(Visit visit) {
    const auto before = [](const Item& a, const Item& b) {
      return a.range.begin() != b.range.begin() ? a.range.begin() < b.range.begin() : a.id < b.id;
    };
    if (!std::is_sorted(items_.begin(), items_.end(), before)) std::sort(items_.begin(), items_.end(), before);
    return sweep_sorted(
        std::span<const Item>(items_), active_, [](const Item& item) { return item.range; }, visit);
  }

 private:
  std::vector<Item> items_;
  std::vector<Item> active_;
};

}  // namespace crossdock
