#include "sim/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/rng.h"
#include "base/sorted.h"

namespace crossdock {
namespace {

// ---- where the bytes of a view lie

// A byte of a view by the numbers that the strides multiply. A row counts within its page; without dim padding the dim
// stays 0 and the byte counts through all dims of the head.
enum Digit : size_t { kLayerDigit, kSlotDigit, kRowDigit, kHeadDigit, kDimDigit, kByteDigit, kDigitCount };
using Digits = std::array<uint64_t, kDigitCount>;

// The axes of a cell, as stored: layers and heads count from the view's first, rows from the first that it holds, bytes
// from the begin of its first dim.
enum Axis : size_t { kLayer, kRow, kHead, kByte, kAxisCount };
using Corner = std::array<uint64_t, kAxisCount>;

constexpr std::array<Axis, kDigitCount> kAxisOfDigit = {kLayer, kRow, kRow, kHead, kByte, kByte};

class SlotIndex {
 public:
  explicit SlotIndex(const std::vector<uint64_t>& slots) {
    for (size_t page = 0; page < slots.size(); ++page) sorted_.emplace_back(slots[page], page);
    std::sort(sorted_.begin(), sorted_.end());
    if (sorted_.empty()) return;
    const uint64_t span = sorted_.back().first - sorted_.front().first;
    if (span / kSparseMax > sorted_.size()) return;
    dense_.assign(span + 1, kNoPage);
    for (const auto& [slot, page] : sorted_) dense_[slot - sorted_.front().first] = page;
  }

  // kNoPage where the slot holds none.
  uint64_t page_of(uint64_t slot) const {
    if (sorted_.empty() || slot < sorted_.front().first || slot > sorted_.back().first) return kNoPage;
    if (!dense_.empty()) return dense_[slot - sorted_.front().first];
    const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair(slot, uint64_t{0}));
    return found->first == slot ? found->second : kNoPage;
  }

  static constexpr uint64_t kNoPage = std::numeric_limits<uint64_t>::max();

 private:
  static constexpr uint64_t kSparseMax = 8;  // slots for each page, up to which there is a list of all slots

  std::vector<std::pair<uint64_t, uint64_t>> sorted_;
  std::vector<uint64_t> dense_;
};

// A view, or several that differ in their layers only and lie at equal distances: one for each layer of a pool.
class StoredView {
 public:
  // `layers` in the order in which they lie, `layer_stride` apart. Their view is one layer of `like`, at `offset`.
  StoredView(const View& like, const Component& component, std::vector<uint64_t> layers, uint64_t layer_stride,
             uint64_t offset, const PageTable* table, const SlotIndex* slots)
      : view_(&like),
        component_(&component),
        layers_(std::move(layers)),
        slots_(slots),
        tokens_per_row_(component.tokens_per_row.value_or(1)),
        begin_(offset) {
    consecutive_layers_ = layers_.back() - layers_.front() == layers_.size() - 1 && std::ranges::is_sorted(layers_);
    set_rows(table);
    set_radices(layer_stride);
  }

  const View& view() const { return *view_; }
  const Component& component() const { return *component_; }
  uint64_t begin() const { return begin_; }  // the first byte
  uint64_t end() const { return end_; }      // one past the last
  Corner extents() const { return {layers_.size(), row_count_, view_->heads.size(), head_bytes()}; }
  // Whether equal places in both mean the same.
  bool is_alike(const StoredView& other) const {
    return component_->name == other.component_->name && component_->item_bytes == other.component_->item_bytes &&
           component_->tokens_per_row == other.component_->tokens_per_row;
  }
  uint64_t head_bytes() const { return view_->dims.size() * component_->item_bytes; }
  uint64_t first_row() const { return first_; }  // row 0 of the cells, counted from the base of the view or table
  uint64_t rows_per_page() const { return per_page_; }  // 0: no pages

  // Whether each digit can be found by division: each stride passes over all that is inside it.
  bool is_nested() const {
    uint64_t span = 1;
    for (size_t i = radix_count_; i-- > 0;) {
      if (radices_[i].stride < span) return false;
      span += radices_[i].stride * (radices_[i].extent - 1);
    }
    return true;
  }

  // False when the byte is not one of the view's. `row` is the cell's.
  bool locate(uint64_t byte, Digits& digits, uint64_t& row) const {
    if (byte < begin_ || byte >= end_) return false;
    digits = {};
    uint64_t rest = byte - begin_;
    for (size_t i = 0; i < radix_count_; ++i) {
      const Radix& radix = radices_[i];
      if (rest < radix.stride) continue;
      const uint64_t index = radix.stride == 1 ? rest : rest / radix.stride;
      if (index >= radix.extent) return false;
      digits[radix.digit] = index;
      rest -= index * radix.stride;
    }
    if (rest != 0) return false;
    row = row_at(digits[kSlotDigit], digits[kRowDigit]);
    return row != kNoRow;
  }

  static constexpr uint64_t kNoRow = std::numeric_limits<uint64_t>::max();
  uint64_t row_at(uint64_t slot_digit, uint64_t row_digit) const {
    if (!many_pages_) return row_digit;
    const uint64_t page = slots_->page_of(low_slot_ + slot_digit);
    if (page == SlotIndex::kNoPage) return kNoRow;
    const uint64_t row = page * per_page_ + row_digit;
    return row >= first_ && row - first_ < row_count_ ? row - first_ : kNoRow;
  }

  Corner corner(const Digits& digits, uint64_t row) const {
    return {digits[kLayerDigit], row, digits[kHeadDigit],
            digits[kDimDigit] * component_->item_bytes + digits[kByteDigit]};
  }
  uint64_t extent_of(size_t digit) const { return extent_of_[digit]; }
  uint64_t stride_of(Digit digit) const { return stride_of_[digit]; }

  // What the index means in the model, and for how many indices from there on it grows by one each.
  struct Meaning {
    uint64_t value;
    uint64_t run;
  };
  Meaning meaning(Axis axis, uint64_t index) const {
    switch (axis) {
      case kLayer: return {layers_[index], consecutive_layers_ ? layers_.size() - index : 1};
      case kRow: return row_meaning(index);
      case kHead: return {view_->heads.begin() + index, view_->heads.size() - index};
      default: return {view_->dims.begin() * component_->item_bytes + index, head_bytes() - index};
    }
  }
  Corner meaning(const Corner& at) const {
    Corner result = {};
    for (size_t axis = 0; axis < kAxisCount; ++axis) result[axis] = meaning(static_cast<Axis>(axis), at[axis]).value;
    return result;
  }
  // "component key layer 3 head 1 token 17".
  std::string text(const Corner& meaning) const {
    std::string text =
        fmt::format("component {} layer {} head {}", component_->name.text(), meaning[kLayer], meaning[kHead]);
    if (!component_->is_state())
      text += fmt::format(" token {}", std::max(meaning[kRow] * tokens_per_row_, view_->tokens.begin()));
    if (meaning[kByte] != 0) text += fmt::format(" byte {}", meaning[kByte]);
    return text;
  }

 private:
  struct Radix {
    Digit digit;
    uint64_t stride;
    uint64_t extent;  // at least 2
  };

  void set_rows(const PageTable* table) {
    const View& view = *view_;
    const auto below = [&view](uint64_t token) { return view.cycle ? view.cycle->count_below(token) : token; };
    const uint64_t base =
        table != nullptr ? table->token_begin : view.tokens.begin() / tokens_per_row_ * tokens_per_row_;
    tokens_before_ = below(base);
    first_ = (below(view.tokens.begin()) - tokens_before_) / tokens_per_row_;
    const uint64_t end = div_round_up(below(view.tokens.end()) - tokens_before_, tokens_per_row_);
    CHECK(end > first_);
    row_count_ = end - first_;
    if (table == nullptr) {
      begin_ += first_ * view.strides.row;
      return;
    }
    per_page_ = table->page_tokens / tokens_per_row_;
    const uint64_t first_page = first_ / per_page_;
    const uint64_t last_page = (end - 1) / per_page_;
    many_pages_ = first_page != last_page;
    CHECK(last_page < table->slots.size());
    const auto slots = std::span(table->slots).subspan(first_page, last_page - first_page + 1);
    low_slot_ = std::ranges::min(slots);
    slot_span_ = std::ranges::max(slots) - low_slot_ + 1;
    begin_ += low_slot_ * view.pages->page_stride_bytes;
    if (!many_pages_) begin_ += first_ % per_page_ * view.strides.row;
  }

  void set_radices(uint64_t layer_stride) {
    const View& view = *view_;
    const uint64_t item = component_->item_bytes;
    const bool packed = view.dims.size() == 1 || view.strides.dim == item;
    extent_of_ = {layers_.size(),
                  slot_span_,
                  many_pages_ ? per_page_ : row_count_,
                  view.heads.size(),
                  packed ? 1 : view.dims.size(),
                  packed ? head_bytes() : item};
    stride_of_ = {layer_stride,     view.pages ? view.pages->page_stride_bytes : 0,
                  view.strides.row, view.strides.head,
                  view.strides.dim, 1};
    end_ = begin_ + 1;
    for (size_t digit = 0; digit < kDigitCount; ++digit) {
      if (extent_of_[digit] == 1) continue;
      radices_[radix_count_++] = Radix{static_cast<Digit>(digit), stride_of_[digit], extent_of_[digit]};
      end_ += stride_of_[digit] * (extent_of_[digit] - 1);
    }
    std::sort(radices_.begin(), radices_.begin() + static_cast<ptrdiff_t>(radix_count_),
              [](const Radix& a, const Radix& b) { return a.stride > b.stride; });
  }

  Meaning row_meaning(uint64_t index) const {
    const uint64_t before = tokens_before_ + (first_ + index) * tokens_per_row_;  // selected tokens below the row
    if (!view_->cycle) return {before / tokens_per_row_, row_count_ - index};
    const CyclicTokens& cycle = *view_->cycle;
    const uint64_t of_cycle = cycle.blocks.count() * cycle.block_tokens;
    uint64_t number = before % of_cycle / cycle.block_tokens;  // of the block among those that are selected
    uint64_t block = 0;
    for (const Range blocks : cycle.blocks.ranges()) {
      block = blocks.begin() + number;
      if (number < blocks.size()) break;
      number -= blocks.size();
    }
    const uint64_t within = before % cycle.block_tokens;
    const uint64_t token = (before / of_cycle * cycle.cycle_blocks + block) * cycle.block_tokens + within;
    return {token / tokens_per_row_, (cycle.block_tokens - within) / tokens_per_row_};
  }

  const View* view_;
  const Component* component_;
  std::vector<uint64_t> layers_;
  const SlotIndex* slots_;
  uint64_t tokens_per_row_;
  bool consecutive_layers_ = false;
  bool many_pages_ = false;
  uint64_t per_page_ = 0;
  uint64_t first_ = 0;
  uint64_t row_count_ = 0;
  uint64_t low_slot_ = 0;
  uint64_t slot_span_ = 1;
  uint64_t tokens_before_ = 0;  // selected ones, below the base
  uint64_t begin_;
  uint64_t end_ = 0;
  std::array<Radix, kDigitCount> radices_ = {};  // longest stride first
  size_t radix_count_ = 0;
  std::array<uint64_t, kDigitCount> extent_of_ = {};
  std::array<uint64_t, kDigitCount> stride_of_ = {};
};

// ---- what the cells hold

struct Held {
  ContentId content = 0;
  uint32_t count = 0;  // of landed writes

  friend bool operator==(const Held&, const Held&) = default;
};

// Half-open in each axis.
struct CellBox {
  std::array<uint32_t, kAxisCount> begin;
  std::array<uint32_t, kAxisCount> end;

  uint64_t volume() const {
    uint64_t volume = 1;
    for (size_t axis = 0; axis < kAxisCount; ++axis) volume *= end[axis] - begin[axis];
    return volume;
  }
  bool overlaps(const CellBox& other) const {
    for (size_t axis = 0; axis < kAxisCount; ++axis)
      if (begin[axis] >= other.end[axis] || other.begin[axis] >= end[axis]) return false;
    return true;
  }
  CellBox intersect(const CellBox& other) const {
    CellBox both = *this;
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      both.begin[axis] = std::max(begin[axis], other.begin[axis]);
      both.end[axis] = std::min(end[axis], other.end[axis]);
    }
    return both;
  }
  // Appends what of this box is outside the other, which overlaps it, in boxes that do not overlap.
  template <class Append>
  void subtract(const CellBox& other, Append append) const {
    CellBox rest = *this;
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      CellBox side = rest;
      side.end[axis] = std::max(rest.begin[axis], other.begin[axis]);
      if (side.begin[axis] < side.end[axis]) append(side);
      side = rest;
      side.begin[axis] = std::min(rest.end[axis], other.end[axis]);
      if (side.begin[axis] < side.end[axis]) append(side);
      rest.begin[axis] = std::max(rest.begin[axis], other.begin[axis]);
      rest.end[axis] = std::min(rest.end[axis], other.end[axis]);
    }
  }
  // Grows over a neighbour that differs in one axis only and touches there.
  bool join(const CellBox& other) {
    size_t differing = kAxisCount;
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      if (begin[axis] == other.begin[axis] && end[axis] == other.end[axis]) continue;
      if (differing != kAxisCount) return false;
      differing = axis;
    }
    if (differing == kAxisCount ||
        (end[differing] != other.begin[differing] && other.end[differing] != begin[differing]))
      return false;
    begin[differing] = std::min(begin[differing], other.begin[differing]);
    end[differing] = std::max(end[differing], other.end[differing]);
    return true;
  }

  friend bool operator==(const CellBox&, const CellBox&) = default;
};

struct HeldBox {
  CellBox box;
  Held held;
};

// The cells of a view, in chunks of rows: of a page, or of a part of a large one. A chunk that holds one thing all over
// is a few bytes; else it has a list of boxes.
class Cells {
 public:
  Cells(const StoredView& view, ContentId initial)
      : extents_(view.extents()),
        first_row_(view.first_row()),
        chunk_rows_(view.rows_per_page() == 0 ? kChunkRowsMax : std::min(view.rows_per_page(), kChunkRowsMax)),
        initial_(initial) {
    for (const uint64_t extent : extents_) CHECK(extent > 0 && extent <= std::numeric_limits<uint32_t>::max());
  }

  // Each cell of the box takes what `change` makes of what it holds. A Corner counts rows from the view's first.
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

  void set_all(ContentId content) {
    initial_ = content;
    for (Chunk& chunk : chunks_) chunk.content = content;
    for (std::vector<HeldBox>& list : lists_)
      for (HeldBox& each : list) each.held.content = content;
  }

 private:
  static constexpr uint64_t kChunkRowsMax = 256;
  static constexpr uint32_t kNoList = std::numeric_limits<uint32_t>::max();

  struct Chunk {
    ContentId content;  // outside the boxes of its list
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
    for (size_t i = 0; i < list.size();) i = join_from(list, i) ? 0 : i + 1;
  }

  static void remove(std::vector<CellBox>& boxes, const CellBox& other) {
    std::vector<CellBox> left;
    for (const CellBox& each : boxes) {
      if (each.overlaps(other))
        each.subtract(other, [&](const CellBox& piece) { left.push_back(piece); });
      else
        left.push_back(each);
    }
    boxes = std::move(left);
  }

  // Joins the box of that number with all that it can be joined with. Whether there was one.
  static bool join_from(std::vector<HeldBox>& list, size_t number) {
    bool any = false;
    for (size_t other = 0; other < list.size();) {
      if (other == number || list[other].held != list[number].held || !list[number].box.join(list[other].box)) {
        ++other;
        continue;
      }
      any = true;
      const size_t last = list.size() - 1;
      list[other] = list[last];
      if (number == last) number = other;
      list.pop_back();
      other = 0;
    }
    return any;
  }

  uint32_t take_list() {
    if (free_lists_.empty()) {
      lists_.emplace_back();
      return static_cast<uint32_t>(lists_.size() - 1);
    }
    const uint32_t number = free_lists_.back();
    free_lists_.pop_back();
    return number;
  }
  void give_list(uint32_t number) {
    std::vector<HeldBox>().swap(lists_[number]);  // most are not needed again
    free_lists_.push_back(number);
  }

  Corner extents_;
  uint64_t first_row_;
  uint64_t chunk_rows_;
  ContentId initial_;
  std::vector<Chunk> chunks_;  // empty until something is written
  std::vector<std::vector<HeldBox>> lists_;
  std::vector<uint32_t> free_lists_;
};

// A byte of a region, found in a view.
struct Place {
  uint32_t view = 0;
  Digits digits = {};
  uint64_t row = 0;
};

// One layer of a view.
struct ViewLayer {
  const View* view;
  const Component* component;
  uint64_t layer;
  uint64_t offset;
};

auto all_but_layer(const ViewLayer& each) {
  const View& view = *each.view;
  return std::tie(view.region, view.component, view.tokens, view.cycle, view.heads, view.dims, view.strides.row,
                  view.strides.head, view.strides.dim, view.pages, each.component->tokens_per_row,
                  each.component->item_bytes);
}

std::vector<ViewLayer> layers_of_views(const RuntimeBinding& binding, const CacheSchema& schema) {
  std::vector<ViewLayer> all;
  for (const View& view : binding.views)
    for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) {
      const LayerGroup* group = schema.find_group(layer);
      CHECK(group != nullptr);
      const Component* component = group->find(view.component);
      CHECK(component != nullptr);
      const uint64_t offset = view.offset_bytes + (layer - view.layers.begin()) * view.strides.layer;
      all.push_back(ViewLayer{&view, component, layer, offset});
    }
  std::sort(all.begin(), all.end(), [](const ViewLayer& a, const ViewLayer& b) {
    return std::tuple_cat(all_but_layer(a), std::tie(a.offset)) < std::tuple_cat(all_but_layer(b), std::tie(b.offset));
  });
  return all;
}

// How many of the first ones lie at equal distances and differ in nothing else.
size_t progression(std::span<const ViewLayer> layers) {
  size_t count = 1;
  while (count < layers.size() && all_but_layer(layers[count]) == all_but_layer(layers[0]) &&
         layers[count].offset - layers[count - 1].offset == layers[1].offset - layers[0].offset)
    ++count;
  return count;
}

}  // namespace

// The cells of all views of a binding, and the way to them from bytes of its regions.
class ShadowCells {
 public:
  ShadowCells(std::shared_ptr<const Valid<RuntimeBinding>> binding, std::shared_ptr<const Valid<CacheSchema>> schema,
              ContentId initial);
  ShadowCells(const ShadowCells&) = delete;
  ShadowCells& operator=(const ShadowCells&) = delete;

  const RuntimeBinding& binding() const { return **binding_; }
  const std::vector<StoredView>& views() const { return views_; }
  std::vector<Cells>& cells() { return cells_; }  // of each view
  const std::vector<Cells>& cells() const { return cells_; }
  std::optional<uint32_t> find_region(const RegionKey& key) const;
  // False when no view holds the byte. Looks first into the view where `place` is.
  bool find(uint32_t region, uint64_t byte, Place& place) const;
  uint64_t count_unknown() { return ++unknown_count_; }

 private:
  struct RegionViews {
    std::vector<uint32_t> views;     // sorted by begin
    std::vector<uint64_t> ends_max;  // the highest end of a view up to there
  };

  bool store(std::span<const ViewLayer> layers);
  void index_regions();

  std::shared_ptr<const Valid<RuntimeBinding>> binding_;
  std::shared_ptr<const Valid<CacheSchema>> schema_;
  std::map<PageTableId, SlotIndex> slots_;
  std::vector<StoredView> views_;
  std::vector<Cells> cells_;
  std::vector<RegionViews> regions_;  // as in the binding
  std::vector<uint32_t> region_of_;   // of each view
  uint64_t unknown_count_ = 0;        // checksums of unknown content so far
};

ShadowCells::ShadowCells(std::shared_ptr<const Valid<RuntimeBinding>> of_binding,
                         std::shared_ptr<const Valid<CacheSchema>> schema, ContentId initial)
    : binding_(std::move(of_binding)), schema_(std::move(schema)) {
  for (const PageTable& table : binding().page_tables) slots_.emplace(table.id, table.slots);
  const std::vector<ViewLayer> all = layers_of_views(binding(), **schema_);
  for (size_t i = 0; i < all.size();) {
    const size_t count = progression(std::span(all).subspan(i));
    if (!store(std::span(all).subspan(i, count)))
      for (size_t k = 0; k < count; ++k) CHECK(store(std::span(all).subspan(i + k, 1)));  // by the rule of strides
    i += count;
  }
  for (const StoredView& view : views_) cells_.emplace_back(view, initial);
  index_regions();
}

// False when the layers together cannot be told apart by division.
bool ShadowCells::store(std::span<const ViewLayer> layers) {
  const View& like = *layers[0].view;
  const PageTable* table = like.pages ? find_sorted(binding().page_tables, &PageTable::id, like.pages->table) : nullptr;
  CHECK((table != nullptr) == like.pages.has_value());
  std::vector<uint64_t> ids;
  for (const ViewLayer& each : layers) ids.push_back(each.layer);
  const uint64_t stride = layers.size() == 1 ? 0 : layers[1].offset - layers[0].offset;
  StoredView view(like, *layers[0].component, std::move(ids), stride, layers[0].offset, table,
                  table == nullptr ? nullptr : &slots_.at(table->id));
  if (!view.is_nested()) return false;
  views_.push_back(std::move(view));
  return true;
}

void ShadowCells::index_regions() {
  const std::vector<Region>& all = binding().regions;
  regions_.resize(all.size());
  for (uint32_t i = 0; i < views_.size(); ++i) {
    const Region* region = find_sorted(all, &Region::id, views_[i].view().region);
    CHECK(region != nullptr);
    region_of_.push_back(static_cast<uint32_t>(region - all.data()));
    regions_[region_of_.back()].views.push_back(i);
  }
  for (RegionViews& region : regions_) {
    std::ranges::sort(region.views, {}, [&](uint32_t view) { return views_[view].begin(); });
    uint64_t end_max = 0;
    for (const uint32_t view : region.views) {
      end_max = std::max(end_max, views_[view].end());
      region.ends_max.push_back(end_max);
    }
  }
}

std::optional<uint32_t> ShadowCells::find_region(const RegionKey& key) const {
  const Region* region = find_sorted(binding().regions, &Region::id, key.id);
  if (region == nullptr || RegionKey::of(binding(), *region) != key) return std::nullopt;
  return static_cast<uint32_t>(region - binding().regions.data());
}

bool ShadowCells::find(uint32_t region, uint64_t byte, Place& place) const {
  // No two views share a byte, so the one that was hit before is right if it holds the byte.
  if (region_of_.empty()) return false;
  if (region_of_[place.view] == region && views_[place.view].locate(byte, place.digits, place.row)) return true;
  const RegionViews& in = regions_[region];
  const auto after = std::ranges::upper_bound(in.views, byte, {}, [&](uint32_t view) { return views_[view].begin(); });
  for (size_t i = static_cast<size_t>(after - in.views.begin()); i > 0 && in.ends_max[i - 1] > byte; --i) {
    place.view = in.views[i - 1];
    if (views_[place.view].locate(byte, place.digits, place.row)) return true;
  }
  return false;
}

namespace {

// ---- steps

// Cells of the source that go to cells of the target, one to one.
struct Piece {
  uint32_t source_view;
  uint32_t target_view;
  Corner source;
  Corner target;
  Corner size;
};

// Indices of one axis that follow each other on both sides.
struct Run {
  uint64_t source;
  uint64_t target;
  uint64_t size;
};

// Takes a step apart into pieces. What is left of it is a list of blocks: bytes along some axes. A block is one piece,
// or a few, when each of its axes moves one axis of the cells by the same distance all along, on both sides; else it is
// cut into blocks for which that is more likely, in the worst case into single bytes.
class StepDecoder {
 public:
  // A side: the names of its regions, as steps number them, and its cells.
  struct Side {
    const std::vector<RegionKey>& regions;
    const ShadowCells& cells;
  };

  StepDecoder(const Side& source, const Side& target)
      : ends_{End{source, "reads", &CopyAxis::source_stride_bytes},
              End{target, "writes", &CopyAxis::target_stride_bytes}} {}

  // The pieces of a step, or what is wrong with it.
  std::string decode(const CopyStep& step, std::vector<Piece>& pieces) {
    pieces.clear();
    blocks_.clear();
    if (!enter_region(kFrom, step.source_region) || !enter_region(kTo, step.target_region)) return fault_;
    Block block;
    block.offset = {step.source_offset, step.target_offset};
    for (const CopyAxis& axis : step.axes()) block.push(axis);
    if (step.bytes > 1) block.push(CopyAxis{step.bytes, 1, 1});
    blocks_.push_back(block);
    while (!blocks_.empty()) {
      block = blocks_.back();
      blocks_.pop_back();
      if (!take(block, pieces)) return fault_;
    }
    return "";
  }

 private:
  static constexpr size_t kAxesMax = 20;
  enum Which : size_t { kFrom, kTo };

  struct End {
    End(const Side& side, const char* of_verb, uint64_t CopyAxis::*of_stride)
        : keys(side.regions), cells(side.cells), verb(of_verb), stride(of_stride) {}

    const StoredView& view() const { return cells.views()[place.view]; }
    Corner corner() const { return view().corner(place.digits, place.row); }
    Corner meaning() const { return view().meaning(corner()); }
    const std::string& participant() const { return cells.binding().participant.text(); }

    const std::vector<RegionKey>& keys;
    const ShadowCells& cells;
    const char* verb;
    uint64_t CopyAxis::*stride;
    uint32_t number = kNotLookedUp;  // of the step's region in the work
    uint32_t region = 0;             // and in the binding
    Place place;                     // of the block's first byte
  };
  static constexpr uint32_t kNotLookedUp = std::numeric_limits<uint32_t>::max();

  struct Block {
    std::array<uint64_t, 2> offset = {};
    std::array<CopyAxis, kAxesMax> axes = {};  // outermost first
    size_t axis_count = 0;

    void push(CopyAxis axis) {
      CHECK(axis_count < kAxesMax);
      axes[axis_count++] = axis;
    }
    void erase(size_t axis) {
      std::copy(axes.begin() + static_cast<ptrdiff_t>(axis) + 1, axes.begin() + static_cast<ptrdiff_t>(axis_count),
                axes.begin() + static_cast<ptrdiff_t>(axis));
      --axis_count;
    }
    void insert(size_t at, CopyAxis axis) {
      CHECK(axis_count < kAxesMax);
      std::copy_backward(axes.begin() + static_cast<ptrdiff_t>(at), axes.begin() + static_cast<ptrdiff_t>(axis_count),
                         axes.begin() + static_cast<ptrdiff_t>(axis_count) + 1);
      axes[at] = axis;
      ++axis_count;
    }
    void set_extent(size_t axis, uint64_t extent) {
      if (extent == 1) return erase(axis);
      axes[axis].extent = extent;
    }
  };

  // How one axis of a block moves the digits of one side, and for how many indices.
  struct Motion {
    std::array<int64_t, kDigitCount> digits = {};
    uint64_t count = 0;
    bool from_begin = false;  // of the digit that ends it
    Axis axis = kAxisCount;   // that it moves; kAxisCount: none, or several
  };

  bool enter_region(size_t which, uint32_t number) {
    End& end = ends_[which];
    if (number >= end.keys.size()) return refuse(fmt::format("{} region {}, which has no name", end.verb, number));
    if (end.number == number) return true;
    const std::optional<uint32_t> found = end.cells.find_region(end.keys[number]);
    if (!found)
      return refuse(fmt::format("{} region {}, which '{}' does not have", end.verb, end.keys[number].to_text(),
                                end.participant()));
    end.number = number;
    end.region = *found;
    return true;
  }

  bool refuse(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }
  bool refuse_byte(size_t which, uint64_t byte) {
    const End& end = ends_[which];
    return refuse(fmt::format("{} byte {} of region '{}' of '{}', which belongs to no view", end.verb, byte,
                              end.cells.binding().regions[end.region].id.text(), end.participant()));
  }
  bool refuse_move(const Block& block, const Corner& source, const Corner& target) {
    const CopyAxis last = block.axis_count == 0 ? CopyAxis{} : block.axes[block.axis_count - 1];
    const uint64_t bytes = last.source_stride_bytes == 1 && last.target_stride_bytes == 1 ? last.extent : 1;
    const End& from = ends_[kFrom];
    const End& to = ends_[kTo];
    return refuse(fmt::format("writes {} bytes from {} of '{}' to {} of '{}'", bytes, from.view().text(source),
                              from.participant(), to.view().text(target), to.participant()));
  }

  // False with a fault. Appends pieces, or puts blocks in its place.
  bool take(const Block& block, std::vector<Piece>& pieces) {
    for (const size_t which : {kFrom, kTo})
      if (!ends_[which].cells.find(ends_[which].region, block.offset[which], ends_[which].place))
        return refuse_byte(which, block.offset[which]);
    const Corner source = ends_[kFrom].meaning();
    const Corner target = ends_[kTo].meaning();
    if (source != target || !ends_[kFrom].view().is_alike(ends_[kTo].view())) return refuse_move(block, source, target);
    for (size_t axis = 0; axis < block.axis_count; ++axis) {
      for (const size_t which : {kFrom, kTo}) motions_[which][axis] = motion(which, block, axis);
      const Motion& a = motions_[kFrom][axis];
      const Motion& b = motions_[kTo][axis];
      const Motion& shorter = a.count < b.count ? a : b;
      if (shorter.count < block.axes[axis].extent) return cut(block, axis, shorter.count, shorter.from_begin);
      if (a.axis == kAxisCount || a.axis != b.axis) return cut(block, axis, 1, false);
    }
    for (const size_t which : {kFrom, kTo})
      if (const std::optional<size_t> axis = carrying_axis(which, block)) return cut(block, *axis, 1, false);
    return append(block, pieces);
  }

  Motion motion(size_t which, const Block& block, size_t axis) const {
    const End& end = ends_[which];
    Motion motion;
    Place next;
    motion.count = 1;
    if (!end.view().locate(block.offset[which] + block.axes[axis].*end.stride, next.digits, next.row)) return motion;
    motion.count = std::numeric_limits<uint64_t>::max();
    for (size_t digit = 0; digit < kDigitCount; ++digit) {
      const uint64_t at = end.place.digits[digit];
      const int64_t by = static_cast<int64_t>(next.digits[digit] - at);
      if (by == 0) continue;
      motion.digits[digit] = by;
      const Axis moved = kAxisOfDigit[digit];
      motion.axis = motion.count == std::numeric_limits<uint64_t>::max() || motion.axis == moved ? moved : kAxisCount;
      const uint64_t step = static_cast<uint64_t>(by < 0 ? -by : by);
      const uint64_t count = by < 0 ? at / step + 1 : (end.view().extent_of(digit) - 1 - at) / step + 1;
      if (count >= motion.count) continue;
      motion.count = count;
      motion.from_begin = by > 0 && at < step && end.view().extent_of(digit) % step == 0;
    }
    return motion;
  }

  // Puts the first `count` indices of the axis and the rest into the list. When each further `count` of them are
  // likely to be alike (`periodic`), all whole periods stay together, as two axes.
  bool cut(const Block& block, size_t axis, uint64_t count, bool periodic) {
    const CopyAxis& whole = block.axes[axis];
    const uint64_t periods = whole.extent / count;
    const bool fold = periodic && count > 1 && periods > 1 && block.axis_count < kAxesMax;
    const uint64_t first_count = fold ? periods * count : count;
    if (first_count < whole.extent) {
      Block rest = block;
      for (const size_t which : {kFrom, kTo}) rest.offset[which] += first_count * (whole.*ends_[which].stride);
      rest.set_extent(axis, whole.extent - first_count);
      blocks_.push_back(rest);
    }
    Block first = block;
    first.set_extent(axis, count);
    if (fold)
      first.insert(axis, CopyAxis{periods, whole.source_stride_bytes * count, whole.target_stride_bytes * count});
    blocks_.push_back(first);
    return true;
  }

  // An axis that leaves the range of a digit when others have moved it before.
  std::optional<size_t> carrying_axis(size_t which, const Block& block) const {
    const End& end = ends_[which];
    for (size_t digit = 0; digit < kDigitCount; ++digit) {
      uint64_t low = end.place.digits[digit];
      uint64_t high = low;
      std::optional<size_t> outermost;
      for (size_t axis = block.axis_count; axis-- > 0;) {
        const int64_t by = motions_[which][axis].digits[digit];
        if (by == 0) continue;
        outermost = axis;
        const uint64_t way = static_cast<uint64_t>(by < 0 ? -by : by) * (block.axes[axis].extent - 1);
        if (by < 0 ? way > low : way > end.view().extent_of(digit) - 1 - high) return outermost;
        if (by < 0)
          low -= way;
        else
          high += way;
      }
    }
    return std::nullopt;
  }

  bool append(const Block& block, std::vector<Piece>& pieces) {
    for (size_t axis = 0; axis < kAxisCount; ++axis)
      if (!find_runs(block, static_cast<Axis>(axis))) return false;
    const Piece like{ends_[kFrom].place.view, ends_[kTo].place.view, {}, {}, {}};
    for (const Run& layers : runs_[kLayer])
      for (const Run& rows : runs_[kRow])
        for (const Run& heads : runs_[kHead])
          for (const Run& bytes : runs_[kByte]) {
            Piece piece = like;
            piece.source = {layers.source, rows.source, heads.source, bytes.source};
            piece.target = {layers.target, rows.target, heads.target, bytes.target};
            piece.size = {layers.size, rows.size, heads.size, bytes.size};
            pieces.push_back(piece);
          }
    return true;
  }

  // The distance by which a block's axis moves an axis of the cells within a page.
  int64_t distance(size_t which, size_t axis) const {
    const Motion& motion = motions_[which][axis];
    switch (motion.axis) {
      case kLayer: return motion.digits[kLayerDigit];
      case kRow: return motion.digits[kRowDigit];
      case kHead: return motion.digits[kHeadDigit];
      default:
        return motion.digits[kDimDigit] * static_cast<int64_t>(ends_[which].view().component().item_bytes) +
               motion.digits[kByteDigit];
    }
  }
  bool moves_slots(size_t axis) const {
    return motions_[kFrom][axis].digits[kSlotDigit] != 0 || motions_[kTo][axis].digits[kSlotDigit] != 0;
  }

  // The indices of one axis of the cells that the block runs through, on both sides; each is compared, or each run of
  // those that mean following numbers. The axes that run through following cells are a run; the others, and those
  // through slots, are gone through index by index.
  bool find_runs(const Block& block, Axis axis) {
    std::vector<size_t>& others = axes_scratch_;
    others.clear();
    for (size_t i = 0; i < block.axis_count; ++i)
      if (motions_[kFrom][i].axis == axis) others.push_back(i);
    uint64_t size = 1;
    for (size_t i = others.size(); i-- > 0;) {  // inner axes come last
      const int64_t wanted = static_cast<int64_t>(size);
      if (moves_slots(others[i]) || distance(kFrom, others[i]) != wanted || distance(kTo, others[i]) != wanted)
        continue;
      size *= block.axes[others[i]].extent;
      others.erase(others.begin() + static_cast<ptrdiff_t>(i));
      i = others.size();  // an outer one may have been passed over
    }
    runs_[axis].clear();
    std::array<uint64_t, kAxesMax> indices = {};
    do {
      if (!append_run(block, axis, indices, size)) return false;
    } while (advance(block, others, indices));
    return true;
  }

  static bool advance(const Block& block, const std::vector<size_t>& axes, std::array<uint64_t, kAxesMax>& indices) {
    for (size_t i = axes.size(); i-- > 0;) {
      if (++indices[i] < block.axes[axes[i]].extent) return true;
      indices[i] = 0;
    }
    return false;
  }

  // Where a run begins, as digits; the row is found in its page.
  bool begin_of(size_t which, const Block& block, Axis axis, const std::array<uint64_t, kAxesMax>& indices,
                uint64_t size, uint64_t& begin) {
    const End& end = ends_[which];
    Digits digits = end.place.digits;
    uint64_t byte = block.offset[which];
    for (size_t i = 0; i < axes_scratch_.size(); ++i) {
      for (size_t digit = 0; digit < kDigitCount; ++digit)
        digits[digit] += indices[i] * static_cast<uint64_t>(motions_[which][axes_scratch_[i]].digits[digit]);
      byte += indices[i] * (block.axes[axes_scratch_[i]].*end.stride);
    }
    const StoredView& view = end.view();
    if (axis != kRow) {
      begin = view.corner(digits, 0)[axis];
      return true;
    }
    begin = view.row_at(digits[kSlotDigit], digits[kRowDigit]);
    if (begin == StoredView::kNoRow) return refuse_byte(which, byte);
    // Rows that a view holds of a page follow each other.
    uint64_t held = size;
    while (held > 1 && view.row_at(digits[kSlotDigit], digits[kRowDigit] + held - 1) == StoredView::kNoRow) --held;
    return held == size || refuse_byte(which, byte + held * view.stride_of(kRowDigit));
  }

  bool append_run(const Block& block, Axis axis, const std::array<uint64_t, kAxesMax>& indices, uint64_t size) {
    Run run{0, 0, size};
    if (!begin_of(kFrom, block, axis, indices, size, run.source) ||
        !begin_of(kTo, block, axis, indices, size, run.target))
      return false;
    const StoredView& from = ends_[kFrom].view();
    const StoredView& to = ends_[kTo].view();
    for (uint64_t i = 0; i < size;) {
      const StoredView::Meaning source = from.meaning(axis, run.source + i);
      const StoredView::Meaning target = to.meaning(axis, run.target + i);
      if (source.value != target.value) {
        Corner source_cell = ends_[kFrom].meaning();
        Corner target_cell = ends_[kTo].meaning();
        source_cell[axis] = source.value;
        target_cell[axis] = target.value;
        return refuse_move(block, source_cell, target_cell);
      }
      i += std::min(source.run, target.run);
    }
    std::vector<Run>& runs = runs_[axis];
    if (!runs.empty() && runs.back().source + runs.back().size == run.source &&
        runs.back().target + runs.back().size == run.target)
      runs.back().size += run.size;
    else
      runs.push_back(run);
    return true;
  }

  std::array<End, 2> ends_;
  std::vector<Block> blocks_;
  std::array<std::array<Motion, kAxesMax>, 2> motions_ = {};  // of the axes of the block at hand
  std::array<std::vector<Run>, kAxisCount> runs_;
  std::vector<size_t> axes_scratch_;
  std::string fault_;
};

// A hash of a sequence of bytes of known content: what it is does not depend on how the sequence was cut.
class ContentHash {
 public:
  void add(ContentId content, uint64_t bytes) {
    if (content != content_) flush();
    content_ = content;
    bytes_ += bytes;
  }
  uint32_t finish() {
    flush();
    return static_cast<uint32_t>(state_ ^ (state_ >> 32));
  }

 private:
  void flush() {
    if (bytes_ == 0) return;
    for (const uint64_t word : {content_, bytes_}) {
      state_ ^= word;
      state_ = splitmix64(state_);
    }
    bytes_ = 0;
  }

  uint64_t state_ = 0x6372'6f73'7364'6f63;
  ContentId content_ = 0;
  uint64_t bytes_ = 0;
};

// What all of the boxes hold; empty when they hold different contents.
class OneContent {
 public:
  void add(ContentId content) {
    same_ = same_ && (!content_ || *content_ == content);
    content_ = content;
    any_unknown_ = any_unknown_ || content == 0;
  }
  bool any_unknown() const { return any_unknown_; }
  std::optional<ContentId> content() const { return same_ ? content_ : std::nullopt; }

 private:
  std::optional<ContentId> content_;
  bool same_ = true;
  bool any_unknown_ = false;
};

// The step with the given end on both sides, so that it can be decoded alone.
CopyStep mirrored(CopyStep step, StepEnd end) {
  if (end == StepEnd::kSource) {
    step.target_region = step.source_region;
    step.target_offset = step.source_offset;
    for (CopyAxis& axis : step.axis_list) axis.target_stride_bytes = axis.source_stride_bytes;
  } else {
    step.source_region = step.target_region;
    step.source_offset = step.target_offset;
    for (CopyAxis& axis : step.axis_list) axis.source_stride_bytes = axis.target_stride_bytes;
  }
  return step;
}

// The part of a step from an index of its outermost axis on, or from a byte on where it has none.
CopyStep part_of(CopyStep step, uint64_t begin, uint64_t size) {
  if (step.axis_count == 0) {
    step.source_offset += begin;
    step.target_offset += begin;
    step.bytes = size;
    return step;
  }
  step.source_offset += begin * step.axis_list[0].source_stride_bytes;
  step.target_offset += begin * step.axis_list[0].target_stride_bytes;
  step.axis_list[0].extent = size;
  if (size > 1) return step;
  std::copy(step.axis_list.begin() + 1, step.axis_list.end(), step.axis_list.begin());
  step.axis_list[--step.axis_count] = CopyAxis{};
  return step;
}

// Adds what one end of steps holds to a hash.
class ContentReader {
 public:
  ContentReader(const std::vector<RegionKey>& regions, const ShadowCells& cells)
      : cells_(cells), decoder_({regions, cells}, {regions, cells}) {}

  // False when some of it is unknown. The step is mirrored.
  bool add(const CopyStep& step) {
    if (!decoder_.decode(step, pieces_).empty()) return false;
    OneContent held;
    for (const Piece& piece : pieces_)
      cells_.cells()[piece.source_view].for_each(
          piece.source, piece.size, [&](uint64_t, const CellBox&, const Held& each) { held.add(each.content); });
    if (held.any_unknown()) return false;
    if (held.content()) {
      hash_.add(*held.content(), step.total_bytes());
      return true;
    }
    const uint64_t size = step.axis_count == 0 ? step.bytes : step.axis_list[0].extent;
    return add(part_of(step, 0, size / 2)) && add(part_of(step, size / 2, size - size / 2));
  }
  uint32_t finish() { return hash_.finish(); }

 private:
  const ShadowCells& cells_;
  StepDecoder decoder_;
  std::vector<Piece> pieces_;
  ContentHash hash_;
};

// What nobody knows looks like nothing else, and never the same.
uint32_t sum_of_unknown(ShadowCells& cells) {
  uint64_t state = cells.count_unknown();
  const RuntimeBinding& binding = cells.binding();
  for (const std::string& name : {binding.operation.text(), binding.participant.text(), binding.instance.text()})
    for (const char letter : name) {
      state ^= static_cast<uint8_t>(letter);
      state = splitmix64(state);
    }
  return static_cast<uint32_t>(state);
}

// Calls write(cells of the target, begin, size, content of the source) for all cells of the piece.
template <class Write>
void copy_piece(const Piece& piece, const ShadowCells& source, ShadowCells& target, Write write) {
  const Cells& from = source.cells()[piece.source_view];
  Cells& to = target.cells()[piece.target_view];
  from.for_each(piece.source, piece.size, [&](uint64_t row, const CellBox& box, const Held& held) {
    Corner begin = from.corner(row, box);
    Corner size = {};
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      begin[axis] += piece.target[axis] - piece.source[axis];
      size[axis] = box.end[axis] - box.begin[axis];
    }
    write(to, begin, size, held.content);
  });
}

}  // namespace

Shadow::Shadow(std::shared_ptr<const Valid<RuntimeBinding>> binding, std::shared_ptr<const Valid<CacheSchema>> schema,
               ContentId initial)
    : binding_(std::move(binding)), cells_(std::make_shared<ShadowCells>(binding_, std::move(schema), initial)) {}

void Shadow::overwrite_all(ContentId content) {
  for (Cells& cells : cells_->cells()) cells.set_all(content);
}

std::string Shadow::check(ContentId content, bool exactly_once) const {
  for (size_t i = 0; i < cells_->views().size(); ++i) {
    const StoredView& view = cells_->views()[i];
    const Cells& cells = cells_->cells()[i];
    std::optional<std::pair<Corner, Held>> first;
    cells.for_each([&](uint64_t row, const CellBox& box, const Held& held) {
      if (held.content == content && (!exactly_once || held.count == 1)) return;
      const Corner at = cells.corner(row, box);
      if (!first || at < first->first) first = {at, held};
    });
    if (!first) continue;
    const std::string place = view.text(view.meaning(first->first));
    const Held& held = first->second;
    if (held.count == 0) return fmt::format("{}: was never written", place);
    if (held.content == 0) return fmt::format("{}: holds nothing that anybody knows", place);
    if (held.content != content) return fmt::format("{}: holds content {}, not {}", place, held.content, content);
    return fmt::format("{}: was written {} times", place, held.count);
  }
  return "";
}

uint64_t Shadow::bytes_holding(ContentId content) const {
  uint64_t bytes = 0;
  for (const Cells& cells : cells_->cells())
    cells.for_each([&](uint64_t, const CellBox& box, const Held& held) {
      if (held.content == content) bytes += box.volume();
    });
  return bytes;
}

uint64_t Shadow::total_bytes() const {
  uint64_t bytes = 0;
  for (const StoredView& view : cells_->views()) {
    const Corner size = view.extents();
    bytes += size[kLayer] * size[kRow] * size[kHead] * size[kByte];
  }
  return bytes;
}

uint32_t Shadow::checksum(const StepSpan& steps, StepEnd end) const {
  if (steps.steps().empty()) return ContentHash().finish();
  const CopyWork& work = steps.work();
  ContentReader reader(end == StepEnd::kSource ? work.source_regions : work.target_regions, *cells_);
  for (const CopyStep& step : steps.steps())
    if (!reader.add(mirrored(step, end))) return sum_of_unknown(*cells_);
  return reader.finish();
}

std::string ShadowCopier::land(const CopyWork& work, size_t begin, size_t end, const Shadow& source, Shadow& target) {
  CHECK(begin <= end && end <= work.steps.size());
  StepDecoder decoder({work.source_regions, *source.cells_}, {work.target_regions, *target.cells_});
  std::vector<Piece> pieces;
  for (size_t i = begin; i < end; ++i) {
    const std::string fault = decoder.decode(work.steps[i], pieces);
    if (!fault.empty()) return fmt::format("step {}: {}", i, fault);
    for (const Piece& piece : pieces)
      copy_piece(piece, *source.cells_, *target.cells_,
                 [](Cells& cells, const Corner& at, const Corner& size, ContentId content) {
                   cells.change(at, size, [&](const Held& before) { return Held{content, before.count + 1}; });
                 });
  }
  return "";
}

std::string ShadowCopier::tear(const CopyWork& work, size_t step, const Shadow& source, Shadow& target) {
  CHECK(step < work.steps.size());
  StepDecoder decoder({work.source_regions, *source.cells_}, {work.target_regions, *target.cells_});
  std::vector<Piece> pieces;
  const std::string fault = decoder.decode(work.steps[step], pieces);
  if (!fault.empty()) return fmt::format("step {}: {}", step, fault);
  for (const Piece& piece : pieces)
    target.cells_->cells()[piece.target_view].change(piece.target, piece.size, [](const Held& before) {
      return Held{0, before.count + 1};
    });
  return "";
}

}  // namespace crossdock
