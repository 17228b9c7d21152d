// Where the bytes of a view lie: from a byte of its region to the cell it belongs to, and what that cell means.
//
// A byte is found by division: its distance from the view's first byte is a number whose digits count layers, slots,
// rows, heads, dims and bytes, each digit worth its stride.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"
#include "sim/shadow/slot_index.h"

namespace crossdock::shadow {

// A byte of a view by the numbers that the strides multiply. A row counts within its page; without dim padding the dim
// stays 0 and the byte counts through all dims of the head.
enum Digit : size_t { kLayerDigit, kSlotDigit, kRowDigit, kHeadDigit, kDimDigit, kByteDigit, kDigitCount };
using Digits = std::array<uint64_t, kDigitCount>;

// The axes of a cell, as stored: layers and heads count from the view's first, rows from the first that it holds, bytes
// from the begin of its first dim.
enum Axis : size_t { kLayer, kRow, kHead, kByte, kAxisCount };
using Corner = std::array<uint64_t, kAxisCount>;

constexpr std::array<Axis, kDigitCount> kAxisOfDigit = {kLayer, kRow, kRow, kHead, kByte, kByte};

// A view, or several that differ in their layers only and lie at equal distances: one for each layer of a pool.
class StoredView {
 public:
  // `layers` in the order in which they lie, `layer_stride` apart. Their view is one layer of `like`, at `offset`.
  // The view, its component, the page table and its slots outlive it.
  StoredView(const View& like, const Component& component, std::vector<uint64_t> layers, uint64_t layer_stride,
             uint64_t offset, const PageTable* table, const SlotIndex* slots);

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
  bool is_nested() const;

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
  std::string text(const Corner& meaning) const;

 private:
  struct Radix {
    Digit digit;
    uint64_t stride;
    uint64_t extent;  // at least 2
  };

  void set_rows(const PageTable* table);
  void set_radices(uint64_t layer_stride);

  Meaning row_meaning(uint64_t index) const {
    const uint64_t before = tokens_before_ + (first_ + index) * tokens_per_row_;  // selected tokens below the row
    if (view_->cycle) return cyclic_row_meaning(before);
    return {before / tokens_per_row_, row_count_ - index};
  }
  Meaning cyclic_row_meaning(uint64_t tokens_before) const;

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

}  // namespace crossdock::shadow
