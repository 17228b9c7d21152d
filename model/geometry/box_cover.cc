#include "model/geometry/box_cover.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/sweep.h"

// With R the union of the required boxes and G_1 ... G_n the given ones, found are R minus the union of all G (gap),
// G_i minus R (extra) and G_i cut with G_j (overlap). A slab of one axis is a maximal interval in which the same boxes
// are active; after the last axis all elements of the product of slabs are in the same boxes, and one look at the
// active boxes decides for all of them.
// Why not pair by pair: overlaps alone would cost n^2 comparisons, and a gap cannot be seen in any pair.
namespace crossdock {
namespace {

struct Item {
  const Box* box;
  std::optional<size_t> given;  // its index; empty: a required box
};

class CoverCheck {
 public:
  CoverCheck(size_t rank, const BoxCoverLimits& limits) : rank_(rank), limits_(limits) {}

  // Recursion is as deep as the rank, at most kRankMax. The work is counted before a slab is entered, so a hostile set
  // of boxes stops within one slab of the limit.
  void sweep_axis(size_t axis, std::vector<Item> items) {
    sweep(
        std::move(items), [axis](const Item& item) { return item.box->axis(axis); },
        [&](Range slab, std::span<const Item> active) {
          cover_.work += active.size();
          if (cover_.work > limits_.work_max) cover_.complete = false;
          if (!cover_.complete) return false;
          slab_[axis] = slab;
          if (axis + 1 < rank_)
            sweep_axis(axis + 1, std::vector<Item>(active.begin(), active.end()));
          else
            check_slab(active);
          return cover_.complete;
        });
  }

  BoxCover take() { return std::move(cover_); }

 private:
  // The active items of a slab of the last axis all hold the whole box `slab_`.
  void check_slab(std::span<const Item> active) {
    bool is_required = false;
    std::vector<size_t> given;
    for (const Item& item : active) {
      // Two are enough to name an overlap; more would only make the message longer.
      if (!item.given)
        is_required = true;
      else if (given.size() < 2)
        given.push_back(*item.given);
    }
    // By index: the order of active items depends on where they begin, and messages must not (I7).
    std::sort(given.begin(), given.end());
    if (given.size() == 2)
      note(BoxCoverDiagnostic::Kind::kOverlap, std::move(given));
    else if (given.empty())
      note(BoxCoverDiagnostic::Kind::kGap, {});
    else if (!is_required)
      note(BoxCoverDiagnostic::Kind::kExtra, std::move(given));
  }

  void note(BoxCoverDiagnostic::Kind kind, std::vector<size_t> given) {
    const Box box(std::span<const Range>(slab_.data(), rank_));
    // Diagnostics are found slab by slab, so the one to grow along the first axis is among the last few.
    for (auto diagnostic = cover_.diagnostics.rbegin(); diagnostic != cover_.diagnostics.rend(); ++diagnostic) {
      if (diagnostic->kind != kind || diagnostic->given != given) continue;
      if (diagnostic->box.axis(0).end() != box.axis(0).begin()) continue;
      if (rank_ > 1 && diagnostic->box.with_axis(0, box.axis(0)) != box) continue;
      diagnostic->box = box.with_axis(0, Range(diagnostic->box.axis(0).begin(), box.axis(0).end()));
      return;
    }
    // Not complete from here on: a caller must not take the missing diagnostics for their absence.
    if (cover_.diagnostics.size() >= limits_.diagnostic_count_max)
      cover_.complete = false;
    else
      cover_.diagnostics.push_back(BoxCoverDiagnostic{kind, box, std::move(given)});
  }

  const size_t rank_;
  const BoxCoverLimits& limits_;
  std::array<Range, Box::kRankMax> slab_;
  BoxCover cover_;
};

}  // namespace

BoxCover check_box_cover(std::span<const Box> required, std::span<const Box> given, const BoxCoverLimits& limits) {
  std::vector<Item> items;
  items.reserve(required.size() + given.size());
  for (const Box& box : required) items.push_back(Item{&box, std::nullopt});
  for (size_t i = 0; i < given.size(); ++i) items.push_back(Item{&given[i], i});
  if (items.empty()) return BoxCover();
  const size_t rank = items.front().box->rank();
  for (const Item& item : items) CHECK(item.box->rank() == rank);
  // A box that is empty in a later axis must not take part in earlier ones.
  std::erase_if(items, [](const Item& item) { return item.box->empty(); });
  CoverCheck check(rank, limits);
  check.sweep_axis(0, std::move(items));
  return check.take();
}

}  // namespace crossdock
