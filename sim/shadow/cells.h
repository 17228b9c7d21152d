// What the cells of a view hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/shadow/cell_box.h"
#include "sim/shadow/shadow.h"
#include "sim/shadow/stored_view.h"

namespace crossdock::shadow {

struct Held {
  ContentTag content = 0;
  uint32_t count = 0;  // of landed writes

  friend bool operator==(const Held&, const Held&) = default;
};

struct HeldBox {
  CellBox box;
  Held held;
};

// The cells of a view, in chunks of rows: of a page, or of a part of a large one. A chunk that holds one thing all over
// is a few bytes; else it has a list of boxes.
class Cells {
 public:
  Cells(const StoredView& view, ContentTag initial);

  // Each cell of the box takes what `change` makes of what it holds. A Corner counts rows from the view's first.
  // `size` is not 0 in any axis, and the box lies within the view.
  template <class Change>
  void change(const Corner& begin, const Corner& size, Change change) {
    if (chunks_.empty()) chunks_.assign(chunk_of(extents_[kRow] - 1) + 1, Chunk{initial_, 0, kNoList});
    for_each_chunk(begin, size, [&](uint64_t number, const CellBox& box) { change_in(number, box, change); });
  }

  // Calls visit(row that box rows count from, box, held) for disjoint boxes that make up the given one.
  template <class Visit>
  void for_each(const Corner& begin, const Corner& size, Visit visit) const {
    std::vector<CellBox> rest;
    for_each_chunk(begin, size, [&](uint64_t number, const CellBox& box) {
      const uint64_t row = (number + first_row_ / chunk_rows_) * chunk_rows_;  // and less first_row_ from its cells on
      if (chunks_.empty()) return visit(row, box, Held{initial_, 0});
      const Chunk& chunk = chunks_[number];
      if (chunk.list == kNoList) return visit(row, box, chunk.held());
      rest.assign(1, box);
      for (const HeldBox& each : lists_[chunk.list]) {
        if (!each.box.overlaps(box)) continue;
        visit(row, each.box.intersect(box), each.held);
        remove(rest, each.box);
      }
      for (const CellBox& each : rest) visit(row, each, chunk.held());
    });
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for_each(Corner{}, extents_, visit);
  }

  // The first cell of a box that a visit was given.
  Corner corner(uint64_t row, const CellBox& box) const {
    return {box.begin[kLayer], row + box.begin[kRow] - first_row_, box.begin[kHead], box.begin[kByte]};
  }

  // All cells hold this; how often they were written stays as it is.
  void set_all(ContentTag content);

 private:
  static constexpr uint64_t kChunkRowsMax = 256;
  static constexpr uint32_t kNoList = std::numeric_limits<uint32_t>::max();

  struct Chunk {
    ContentTag content;  // outside the boxes of its list
    uint32_t count;
    uint32_t list;  // its number; kNoList: there are no boxes

    Held held() const { return Held{content, count}; }
    void set(const Held& held) { content = held.content, count = held.count; }
  };

  uint64_t chunk_of(uint64_t row) const { return (first_row_ + row) / chunk_rows_ - first_row_ / chunk_rows_; }

  // Rows of a chunk's boxes count from its begin.
  template <class Visit>
  void for_each_chunk(const Corner& begin, const Corner& size, Visit visit) const {
    CellBox box = {};
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      box.begin[axis] = static_cast<uint32_t>(begin[axis]);
      box.end[axis] = static_cast<uint32_t>(begin[axis] + size[axis]);
    }
    const uint64_t end = first_row_ + begin[kRow] + size[kRow];
    for (uint64_t row = first_row_ + begin[kRow]; row < end;) {
      const uint64_t chunk_begin = row / chunk_rows_ * chunk_rows_;
      const uint64_t chunk_end = std::min(end, chunk_begin + chunk_rows_);
      box.begin[kRow] = static_cast<uint32_t>(row - chunk_begin);
      box.end[kRow] = static_cast<uint32_t>(chunk_end - chunk_begin);
      visit(chunk_begin / chunk_rows_ - first_row_ / chunk_rows_, box);
      row = chunk_end;
    }
  }

  // All cells of a chunk.
  CellBox whole(uint64_t number) const {
    const uint64_t begin = (number + first_row_ / chunk_rows_) * chunk_rows_;
    CellBox box = {};
    for (size_t axis = 0; axis < kAxisCount; ++axis) box.end[axis] = static_cast<uint32_t>(extents_[axis]);
    box.begin[kRow] = static_cast<uint32_t>(std::max(begin, first_row_) - begin);
    box.end[kRow] = static_cast<uint32_t>(std::min(begin + chunk_rows_, first_row_ + extents_[kRow]) - begin);
    return box;
  }

  template <class Change>
  void change_in(uint64_t number, const CellBox& box, Change change) {
    Chunk& chunk = chunks_[number];
    const CellBox all = whole(number);
    if (chunk.list == kNoList) {
      if (box == all) {
        chunk.set(change(chunk.held()));
        return;
      }
      chunk.list = take_list();
    }
    std::vector<HeldBox>& list = lists_[chunk.list];
    const bool overlaps = std::ranges::any_of(list, [&](const HeldBox& each) { return each.box.overlaps(box); });
    if (overlaps) {
      rewrite(list, box, chunk.held(), change);
    } else {
      list.push_back(HeldBox{box, change(chunk.held())});
      join_from(list, list.size() - 1);
    }
    // Back to the short form when one box covers the chunk: after a complete copy a chunk costs a few bytes again.
    if (list.size() > 1 || list.front().box != all) return;
    chunk.set(list.front().held);
    give_list(std::exchange(chunk.list, kNoList));
  }

  template <class Change>
  static void rewrite(std::vector<HeldBox>& list, const CellBox& box, Held outside, Change change) {
    std::vector<HeldBox> next;
    std::vector<CellBox> rest = {box};
    for (const HeldBox& each : list) {
      if (!each.box.overlaps(box)) {
        next.push_back(each);
        continue;
      }
      each.box.subtract(box, [&](const CellBox& piece) { next.push_back(HeldBox{piece, each.held}); });
      next.push_back(HeldBox{each.box.intersect(box), change(each.held)});
      remove(rest, each.box);
    }
    for (const CellBox& piece : rest) next.push_back(HeldBox{piece, change(outside)});
    list = std::move(next);
    // Quadratic in the boxes of one chunk, of which copies of whole rows leave few.
    for (size_t i = 0; i < list.size();) i = join_from(list, i) ? 0 : i + 1;
  }

  // Takes the other box out of each of them.
  static void remove(std::vector<CellBox>& boxes, const CellBox& other);
  // Joins the box of that number with all that it can be joined with. Whether there was one.
  static bool join_from(std::vector<HeldBox>& list, size_t number);
  uint32_t take_list();
  void give_list(uint32_t number);

  Corner extents_;
  uint64_t first_row_;
  uint64_t chunk_rows_;
  ContentTag initial_;
  std::vector<Chunk> chunks_;  // empty until something is written
  std::vector<std::vector<HeldBox>> lists_;
  std::vector<uint32_t> free_lists_;
};

}  // namespace crossdock::shadow
