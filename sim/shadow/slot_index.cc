#include "sim/shadow/slot_index.h"

namespace crossdock::shadow {
namespace {

constexpr uint64_t kSparseMax = 8;  // slots for each page, up to which there is a list of all slots

}  // namespace

SlotIndex::SlotIndex(const std::vector<uint64_t>& slots) {
  for (size_t page = 0; page < slots.size(); ++page) sorted_.emplace_back(slots[page], page);
  std::sort(sorted_.begin(), sorted_.end());
  if (sorted_.empty()) return;
  const uint64_t span = sorted_.back().first - sorted_.front().first;
  // In this form without overflow. Few pages in a huge pool would need a list as long as the pool.
  if (span / kSparseMax > sorted_.size()) return;
  dense_.assign(span + 1, kNoPage);
  for (const auto& [slot, page] : sorted_) dense_[slot - sorted_.front().first] = page;
}

}  // namespace crossdock::shadow
