#include "model/kv/view_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "base/checked.h"
#include "base/sorted.h"
#include "model/geometry/box_cover.h"
#include "model/kv/schema_rules.h"
#include "model/kv/token_counter.h"
#include "model/kv/view_geometry.h"
#include "model/text.h"

// What is proved of the views V of one document: restricted to live tokens, the elements of the views are exactly what
// is required, each in one view; and no two views share a byte. Together the views are then a function from required
// elements to bytes without collisions, which lowering relies on (planner/kv/lower.cc).
// Elements are compared as boxes of (layer, head, dim, token), bytes as strided sets.
namespace crossdock {
namespace {

// Of all views and requirements together.
constexpr uint64_t kBoxesMax = uint64_t{1} << 20;

const PageTable* table_of(const ViewDocument& document, const View& view) {
  return view.pages ? find_sorted(document.page_tables, &PageTable::id, view.pages->table) : nullptr;
}

void check_page_table(const PageTable& table, Diagnostics& diagnostics) {
  const std::string place = fmt::format("page table '{}'", table.id.text());
  check_name(table.id.text(), place, "the page table's id", diagnostics);
  if (table.page_tokens == 0) diagnostics.add(Rule::kFieldMinimum, place, "page_tokens 0 is below 1");
  std::vector<uint64_t> slots = table.slots;
  std::sort(slots.begin(), slots.end());
  // Rule page-slots: two pages in one slot would overwrite each other.
  const auto repeated = std::adjacent_find(slots.begin(), slots.end());
  if (repeated != slots.end())
    diagnostics.add(Rule::kPageSlots, place, fmt::format("slot {} holds two pages", *repeated));
}

void check_view_alone(const ViewDocument& document, const View& view, const std::string& place,
                      Diagnostics& diagnostics) {
  check_name(view.component.text(), place, "component", diagnostics);
  for (const auto& [name, range] : {std::pair("layers", view.layers), std::pair("tokens", view.tokens),
                                    std::pair("heads", view.heads), std::pair("dims", view.dims)})
    if (range.empty()) diagnostics.add(Rule::kViewEmpty, place, fmt::format("the view has no {}", name));
  if (view.cycle) {
    if (view.cycle->block_tokens == 0 || view.cycle->cycle_blocks == 0)
      diagnostics.add(Rule::kFieldMinimum, place, "block_tokens and cycle_blocks must be at least 1");
    if (view.cycle->blocks.empty() || view.cycle->blocks.hull().end() > view.cycle->cycle_blocks)
      diagnostics.add(Rule::kCycleBounds, place,
                      fmt::format("blocks {} must be some of the {} blocks of the cycle",
                                  range_text(view.cycle->blocks.hull()), view.cycle->cycle_blocks));
  }
  if (find_sorted(document.spaces, &ByteSpace::id, view.region) == nullptr)
    diagnostics.add(Rule::kViewRegion, place, fmt::format("there is no region '{}'", view.region.text()));
  if (view.pages && table_of(document, view) == nullptr)
    diagnostics.add(Rule::kViewPages, place, fmt::format("there is no page table '{}'", view.pages->table.text()));
}

// The component that a view shows; diagnostics when its layers do not all have it, or have it in different shapes.
// Takes the groups that it looks at from `pieces_left`.
// One view may cross several groups when they have the component in one shape, as with alternating windows.
const Component* component_of(const View& view, const CacheSchema& schema, const LayerIndex& index,
                              uint64_t& pieces_left, const std::string& place, Diagnostics& diagnostics) {
  const Component* found = nullptr;
  const auto refuse = [&](Rule rule, std::string message) {
    diagnostics.add(rule, place, std::move(message));
    found = nullptr;
    return false;
  };
  index.for_each_piece(IntervalSet{view.layers}, [&](Range layers, size_t group) {
    if (pieces_left == 0)
      return refuse(Rule::kWorkLimit, fmt::format("the views cross more than {} layer groups", kViewPiecesMax));
    --pieces_left;
    const Component* component = group == LayerIndex::kNoGroup ? nullptr : schema.groups[group].find(view.component);
    if (component == nullptr)
      return refuse(Rule::kComponentUnknown, fmt::format("layers {} have no such component", set_text({layers})));
    if (found != nullptr && !(*found == *component))
      return refuse(Rule::kComponentUnknown, "the layers have the component in different shapes");
    found = component;
    return true;
  });
  return found;
}

// Collects what is required and what views give of (layer, head, dim, token) for each component of each group, and
// compares them as boxes.
// Tokens of a cycle are many intervals. Where all that is compared has one cycle, as a rank of context parallelism and
// its views have, a token counts as its number among those of the cycle, and an interval of the sequence is one range
// of numbers. Otherwise, and to say what is wrong, intervals are expanded.
class ViewCoverage {
 public:
  ViewCoverage(const ViewDocument& document, const CacheSchema& schema, const LayerIndex& index,
               Diagnostics& diagnostics)
      : document_(document), schema_(schema), index_(index), diagnostics_(diagnostics) {}

  // Live cut with what is owned: a view of tokens that no longer live is refused (view-not-owned), because nothing
  // would ever be copied there. The ownership outlives the coverage.
  void require(const Ownership& ownership, Range token_universe) {
    index_.for_each_piece(ownership.layers, [&](Range layers, size_t group_index) {
      const LayerGroup& group = schema_.groups[group_index];
      for (const ComponentName& name : ownership.components) {
        if (!take_boxes(ownership.heads.ranges().size())) return too_many();
        const Component& component = *group.find(name);
        Range tokens = live_tokens(group, component, document_.tokens);
        if (!component.is_state()) tokens = tokens.intersect(token_universe);
        for (const Range heads : ownership.heads.ranges())
          sides_[{group_index, name}].required.push_back(
              Claimed{layers, heads, Range(0, component.head_dim), tokens, &ownership.tokens, Range(), 0});
      }
      return true;
    });
  }

  void give(size_t view_index) {
    const View& view = document_.views[view_index];
    const TokenOwnership* selection = &all_tokens_;
    if (view.cycle) selection = &cycles_.emplace_back(*view.cycle);
    index_.for_each_piece(IntervalSet{view.layers}, [&](Range layers, size_t group_index) {
      if (!take_boxes(1)) return too_many();
      sides_[{group_index, view.component}].given.push_back(
          Claimed{layers, view.heads, view.dims, view.tokens, selection, ignored_rows(view, group_index), view_index});
      return true;
    });
  }

  // Each (group, component) is a space of its own, with one limit of work for all of them.
  void compare() {
    if (too_many_) return;
    BoxCoverLimits limits;
    for (const auto& [key, sides] : sides_) {
      const CyclicTokens* cycle = common_cycle(sides);
      if (cycle != nullptr) {
        const TokenCounter counter(*cycle);
        const BoxCover cover = check_box_cover(counted(sides.required, counter), counted(sides.given, counter), limits);
        limits.work_max -= std::min(limits.work_max, cover.work);
        if (cover.exact()) continue;
      }
      std::vector<Box> required;
      std::vector<Box> given;
      std::vector<size_t> view_of;  // given box -> view
      for (const Claimed& claimed : sides.required)
        if (!expand(claimed, required)) return;
      for (const Claimed& claimed : sides.given) {
        if (!expand(claimed, given)) return;
        view_of.resize(given.size(), claimed.view);
      }
      const BoxCover cover = check_box_cover(required, given, limits);
      for (const BoxCoverDiagnostic& diagnostic : cover.diagnostics) report(key.second, view_of, diagnostic);
      if (!cover.complete && cover.diagnostics.empty()) return void(too_many());
      limits.work_max -= std::min(limits.work_max, cover.work);
    }
  }

 private:
  // Heads of an ownership, or a view, in one layer group.
  struct Claimed {
    Range layers;
    Range heads;
    Range dims;
    Range tokens;
    const TokenOwnership* selection;  // of these tokens
    Range ignored;                    // where tokens of a view may begin without being compared
    size_t view;
  };
  struct Sides {
    std::vector<Claimed> required;
    std::vector<Claimed> given;
  };

  // The one cycle of all that is compared; null when there is none, or another selection too.
  static const CyclicTokens* common_cycle(const Sides& sides) {
    const CyclicTokens* common = nullptr;
    for (const std::vector<Claimed>* list : {&sides.required, &sides.given})
      for (const Claimed& claimed : *list) {
        const auto* cycle = std::get_if<CyclicTokens>(claimed.selection);
        if (cycle == nullptr || (common != nullptr && *cycle != *common)) return nullptr;
        common = cycle;
      }
    return common;
  }

  // With tokens as their numbers among those of the cycle.
  static std::vector<Box> counted(const std::vector<Claimed>& list, const TokenCounter& counter) {
    std::vector<Box> boxes;
    for (const Claimed& claimed : list) {
      uint64_t begin = claimed.tokens.begin();
      if (claimed.ignored.contains(begin)) begin = std::min(claimed.ignored.end(), claimed.tokens.end());
      const Range tokens(counter.count_below(begin), counter.count_below(claimed.tokens.end()));
      if (!tokens.empty()) boxes.push_back(Box{claimed.layers, claimed.heads, claimed.dims, tokens});
    }
    return boxes;
  }

  // A box for each interval. False, with a diagnostic, when there are too many.
  bool expand(const Claimed& claimed, std::vector<Box>& boxes) {
    const auto tokens = tokens_within(*claimed.selection, claimed.tokens, boxes_left_);
    if (!tokens || !take_boxes(tokens->ranges().size())) return too_many();
    for (const Range stated : tokens->ranges()) {
      // Only the begin of a view can lie there.
      const Range range = claimed.ignored.contains(stated.begin())
                              ? Range(std::min(stated.end(), claimed.ignored.end()), stated.end())
                              : stated;
      if (!range.empty()) boxes.push_back(Box{claimed.layers, claimed.heads, claimed.dims, range});
    }
    return true;
  }

  // Runtimes keep whole pages, so a view may begin at the page that holds the first live token: the rows before it are
  // left out of the comparison, and no plan reads them unless it is for stores of whole pages. Pages without a live
  // token may be those of another request by now, so they stay in it and are refused.
  Range ignored_rows(const View& view, size_t group_index) const {
    const LayerGroup& group = schema_.groups[group_index];
    const Component* component = group.find(view.component);
    if (component == nullptr || component->is_state()) return Range();
    const Range live = live_tokens(group, *component, document_.tokens);
    const PageTable* table = table_of(document_, view);
    if (table == nullptr || live.empty() || live.begin() < table->token_begin) return Range();
    // Pages hold the tokens that the view selects, which are all of them without a cycle.
    const TokenCounter counter(view.cycle);
    const uint64_t before = counter.count_below(live.begin());
    const uint64_t in_page = std::min((before - counter.count_below(table->token_begin)) % table->page_tokens,
                                      before - counter.count_below(document_.tokens.begin()));
    return Range(in_page == 0 ? live.begin() : counter.first_with(before - in_page, live.begin()), live.begin());
  }

  // False when that passes what is left.
  bool take_boxes(uint64_t count) {
    if (too_many_ || count > boxes_left_) return false;
    boxes_left_ -= count;
    return true;
  }

  // Returns false, for a walk to end.
  bool too_many() {
    boxes_left_ = 0;
    if (!std::exchange(too_many_, true))
      diagnostics_.add(
          Rule::kWorkLimit, "",
          fmt::format("comparing the views with what is required of them takes more than {} boxes or their steps",
                      kBoxesMax));
    return false;
  }

  void report(const ComponentName& component, const std::vector<size_t>& view_of,
              const BoxCoverDiagnostic& diagnostic) {
    const std::string box = fmt::format("component {} layers {} heads {} dims {} tokens {}", component.text(),
                                        set_text({diagnostic.box.axis(0)}), range_text(diagnostic.box.axis(1)),
                                        range_text(diagnostic.box.axis(2)), range_text(diagnostic.box.axis(3)));
    std::vector<size_t> views;
    for (const size_t given : diagnostic.given) views.push_back(view_of[given]);
    if (diagnostic.kind == BoxCoverDiagnostic::Kind::kGap)
      diagnostics_.add(Rule::kCoverageGap, "", fmt::format("{}: owned, but in no view", box));
    else if (diagnostic.kind == BoxCoverDiagnostic::Kind::kExtra)
      diagnostics_.add(Rule::kViewNotOwned, fmt::format("view {}", views[0]),
                       fmt::format("{}: not owned or not live", box));
    else
      diagnostics_.add(Rule::kCoverageOverlap, fmt::format("view {}", views[1]),
                       fmt::format("{}: also in view {}", box, views[0]));
  }

  const ViewDocument& document_;
  const CacheSchema& schema_;
  const LayerIndex& index_;
  Diagnostics& diagnostics_;
  std::map<std::pair<size_t, ComponentName>, Sides> sides_;
  const TokenOwnership all_tokens_;
  std::deque<TokenOwnership> cycles_;  // of views; they stay where they are
  uint64_t boxes_left_ = kBoxesMax;
  bool too_many_ = false;
};

}  // namespace

void canonicalize_views(std::vector<PageTable>& page_tables, std::vector<View>& views) {
  std::stable_sort(page_tables.begin(), page_tables.end(),
                   [](const PageTable& a, const PageTable& b) { return a.id < b.id; });
  std::sort(views.begin(), views.end());
}

std::string view_place(size_t index, const View& view) {
  return fmt::format("view {} (component {}, layers {}, tokens {}, heads {})", index, view.component.text(),
                     set_text({view.layers}), range_text(view.tokens), range_text(view.heads));
}

void check_views_alone(const ViewDocument& document, Diagnostics& diagnostics) {
  for (size_t i = 0; i < document.page_tables.size(); ++i) {
    check_page_table(document.page_tables[i], diagnostics);
    if (i > 0 && document.page_tables[i].id == document.page_tables[i - 1].id)
      diagnostics.add(Rule::kPageTableRepeated, fmt::format("page table '{}'", document.page_tables[i].id.text()),
                      "the page table is listed twice");
  }
  for (size_t i = 0; i < document.views.size(); ++i)
    check_view_alone(document, document.views[i], view_place(i, document.views[i]), diagnostics);
}

void check_views(const ViewDocument& document, const CacheSchema& schema, const std::vector<Ownership>& required,
                 Range token_universe, Diagnostics& diagnostics) {
  const LayerIndex index(schema);
  const uint64_t diagnostics_before = diagnostics.total();
  ViewCoverage coverage(document, schema, index, diagnostics);
  std::map<RegionId, std::vector<StridedBytes>> bytes;
  uint64_t piece_count = 0;
  uint64_t groups_left = kViewPiecesMax;
  bool all_resolved = true;  // a view that says nothing would only be told again as a gap
  for (size_t i = 0; i < document.views.size(); ++i) {
    const View& view = document.views[i];
    const std::string place = view_place(i, view);
    const Component* component = component_of(view, schema, index, groups_left, place, diagnostics);
    const auto rows = component == nullptr ? std::nullopt
                                           : resolve_rows(view, *component, table_of(document, view), document.tokens,
                                                          place, diagnostics);
    all_resolved = all_resolved && rows;
    if (!rows) continue;
    piece_count += rows->per_page == 0 ? 1 : rows->last_page() - rows->first_page() + 1;
    if (piece_count > kViewPiecesMax) {
      diagnostics.add(Rule::kWorkLimit, place, fmt::format("the views have more than {} pages", kViewPiecesMax));
      return;
    }
    coverage.give(i);
    const ByteSpace* space = find_sorted(document.spaces, &ByteSpace::id, view.region);
    if (check_view_bytes(view, *component, *rows, space->bytes, place, diagnostics))
      append_bytes(view, *component, *rows, i, bytes[view.region]);
  }
  // A diagnostic was added for each of them.
  if (!all_resolved) return;
  for (const Ownership& ownership : required) coverage.require(ownership, token_universe);
  coverage.compare();
  // Bytes are compared last: it costs most, and is of no use for views that are refused already.
  if (diagnostics.total() != diagnostics_before) return;
  for (auto& [region, sets] : bytes) {
    const StridedOverlap overlap = find_overlap(std::move(sets), kOverlapWorkMax);
    if (!overlap.complete)
      diagnostics.add(Rule::kWorkLimit, fmt::format("region '{}'", region.text()),
                      fmt::format("looking for shared bytes needs more than {} pieces", kOverlapWorkMax));
    else if (overlap.owners)
      diagnostics.add(Rule::kViewsOverlap, view_place(overlap.owners->second, document.views[overlap.owners->second]),
                      fmt::format("shares bytes of region '{}' with {}", region.text(),
                                  view_place(overlap.owners->first, document.views[overlap.owners->first])));
  }
}

// The CHECKs hold because check_views() accepted the document: this is the same computation again, which is cheaper
// than keeping its result with every document.
std::map<RegionId, std::vector<StridedBytes>> bytes_by_space(const ViewDocument& document, const CacheSchema& schema) {
  const LayerIndex index(schema);
  std::map<RegionId, std::vector<StridedBytes>> bytes;
  Diagnostics none;
  uint64_t groups_left = kViewPiecesMax;
  for (size_t i = 0; i < document.views.size(); ++i) {
    const View& view = document.views[i];
    const Component* component = component_of(view, schema, index, groups_left, "", none);
    CHECK(component != nullptr);
    const auto rows = resolve_rows(view, *component, table_of(document, view), document.tokens, "", none);
    CHECK(rows.has_value());
    append_bytes(view, *component, *rows, i, bytes[view.region]);
  }
  return bytes;
}

}  // namespace crossdock
