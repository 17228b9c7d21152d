#include "sim/shadow/cells.h"

#include "base/check.h"

namespace crossdock::shadow {

Cells::Cells(const StoredView& view, ContentTag initial)
    : extents_(view.extents()),
      first_row_(view.first_row()),
      chunk_rows_(view.rows_per_page() == 0 ? kChunkRowsMax : std::min(view.rows_per_page(), kChunkRowsMax)),
      initial_(initial) {
  // So that the 32-bit numbers of CellBox hold any of them.
  for (const uint64_t extent : extents_) CHECK(extent > 0 && extent <= std::numeric_limits<uint32_t>::max());
}

void Cells::set_all(ContentTag content) {
  initial_ = content;
  for (Chunk& chunk : chunks_) chunk.content = content;
  for (std::vector<HeldBox>& list : lists_)
    for (HeldBox& each : list) each.held.content = content;
}

void Cells::remove(std::vector<CellBox>& boxes, const CellBox& other) {
  std::vector<CellBox> left;
  for (const CellBox& each : boxes) {
    if (each.overlaps(other))
      each.subtract(other, [&](const CellBox& piece) { left.push_back(piece); });
    else
      left.push_back(each);
  }
  boxes = std::move(left);
}

bool Cells::join_from(std::vector<HeldBox>& list, size_t number) {
  bool any = false;
  for (size_t other = 0; other < list.size();) {
    if (other == number || list[other].held != list[number].held || !list[number].box.join(list[other].box)) {
      ++other;
      continue;
    }
    any = true;
    const size_t last = list.size() - 1;
    // The last box moves into the gap; `number` follows it when it was the last.
    list[other] = list[last];
    if (number == last) number = other;
    list.pop_back();
    // A box that has grown may touch those that were passed over. Ends: each round removes a box.
    other = 0;
  }
  return any;
}

uint32_t Cells::take_list() {
  if (free_lists_.empty()) {
    lists_.emplace_back();
    return static_cast<uint32_t>(lists_.size() - 1);
  }
  const uint32_t number = free_lists_.back();
  free_lists_.pop_back();
  return number;
}

void Cells::give_list(uint32_t number) {
  std::vector<HeldBox>().swap(lists_[number]);  // most are not needed again
  free_lists_.push_back(number);
}

}  // namespace crossdock::shadow
