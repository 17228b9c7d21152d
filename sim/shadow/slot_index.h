// Which page of a page table lies in a slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace crossdock::shadow {

// A list of all slots where they lie close together, else found by halving.
class SlotIndex {
 public:
  explicit SlotIndex(const std::vector<uint64_t>& slots);  // of pages 0, 1, ...; no two alike

  // kNoPage where the slot holds none.
  uint64_t page_of(uint64_t slot) const {
    if (sorted_.empty() || slot < sorted_.front().first || slot > sorted_.back().first) return kNoPage;
    if (!dense_.empty()) return dense_[slot - sorted_.front().first];
    const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair(slot, uint64_t{0}));
    return found->first == slot ? found->second : kNoPage;
  }

  static constexpr uint64_t kNoPage = std::numeric_limits<uint64_t>::max();

 private:
  std::vector<std::pair<uint64_t, uint64_t>> sorted_;  // slot and page
  std::vector<uint64_t> dense_;
};

}  // namespace crossdock::shadow
