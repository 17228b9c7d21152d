#include "sim/shadow/stored_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace crossdock::shadow {

StoredView::StoredView(const View& like, const Component& component, std::vector<uint64_t> layers,
                       uint64_t layer_stride, uint64_t offset, const PageTable* table, const SlotIndex* slots)
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

// From the shortest stride up: `span` is how far all inner digits reach, plus one byte.
bool StoredView::is_nested() const {
  uint64_t span = 1;
  for (size_t i = radix_count_; i-- > 0;) {
    if (radices_[i].stride < span) return false;
    span += radices_[i].stride * (radices_[i].extent - 1);
  }
  return true;
}

std::string StoredView::text(const Corner& meaning) const {
  std::string text =
      fmt::format("component {} layer {} head {}", component_->name.text(), meaning[kLayer], meaning[kHead]);
  if (!component_->is_state())
    text += fmt::format(" token {}", std::max(meaning[kRow] * tokens_per_row_, view_->tokens.begin()));
  if (meaning[kByte] != 0) text += fmt::format(" byte {}", meaning[kByte]);
  return text;
}

void StoredView::set_rows(const PageTable* table) {
  const View& view = *view_;
  const auto below = [&view](uint64_t token) { return view.cycle ? view.cycle->count_below(token) : token; };
  const uint64_t base = table != nullptr ? table->token_begin : view.tokens.begin() / tokens_per_row_ * tokens_per_row_;
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
  // By check_binding: a view's tokens lie in its page table.
  CHECK(last_page < table->slots.size());
  const auto slots = std::span(table->slots).subspan(first_page, last_page - first_page + 1);
  // Slots are in any order, so the region's part is counted from the lowest one; the slot digit is mapped to a page
  // afterwards.
  low_slot_ = std::ranges::min(slots);
  slot_span_ = std::ranges::max(slots) - low_slot_ + 1;
  begin_ += low_slot_ * view.pages->page_stride_bytes;
  if (!many_pages_) begin_ += first_ % per_page_ * view.strides.row;
}

void StoredView::set_radices(uint64_t layer_stride) {
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
  // By stride and not by kind: NHD and HND, and layers inside or outside of pages, differ only in this order.
  std::sort(radices_.begin(), radices_.begin() + static_cast<ptrdiff_t>(radix_count_),
            [](const Radix& a, const Radix& b) { return a.stride > b.stride; });
}

// The inverse of CyclicTokens::count_below(), computed anew, so that an error there does not cancel out.
StoredView::Meaning StoredView::cyclic_row_meaning(uint64_t tokens_before) const {
  const CyclicTokens& cycle = *view_->cycle;
  const uint64_t of_cycle = cycle.blocks.count() * cycle.block_tokens;
  uint64_t number = tokens_before % of_cycle / cycle.block_tokens;  // of the block among those that are selected
  uint64_t block = 0;
  for (const Range blocks : cycle.blocks.ranges()) {
    block = blocks.begin() + number;
    if (number < blocks.size()) break;
    number -= blocks.size();
  }
  const uint64_t within = tokens_before % cycle.block_tokens;
  const uint64_t token = (tokens_before / of_cycle * cycle.cycle_blocks + block) * cycle.block_tokens + within;
  return {token / tokens_per_row_, (cycle.block_tokens - within) / tokens_per_row_};
}

}  // namespace crossdock::shadow
