#include "planner/kv/prefix_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "base/checked.h"
#include "model/kv/schema_rules.h"

// Let Restorable be the set of n such that n leading pages can be restored (planner/kv/prefix_match.h). It need not be
// downward closed: with windows, fewer pages may need a page that more pages do not. So a binary search would be wrong,
// and the longest prefix is sought from above.
// From above, each lost page rules out many lengths at once: a page that is lost at its distance from the end is lost
// in every prefix that is shorter but still holds it. So the next candidate is the number of pages before it, and no
// page is looked at twice for the same answer.
namespace crossdock {
namespace {

// A rule of life, in pages: which of the n pages of a prefix have rows that live by it, the last reach(n) of them.
class Reach {
 public:
  Reach(const LiveTokens& live, uint64_t page_tokens) : live_(live), page_tokens_(page_tokens) {}

  uint64_t operator()(uint64_t count) const {
    const Range tokens = live_.of(Range(0, count * page_tokens_));  // the whole request fits in 64 bits
    return tokens.empty() ? 0 : count - tokens.begin() / page_tokens_;
  }
  // Whether no page lives by `other` in any prefix of up to `count_max` pages that does not live by this rule too.
  bool covers(const Reach& other, uint64_t count_max) const {
    if (live_.covers(other.live_) || keeps_all(count_max)) return true;
    return live_.kind == LiveTokens::Kind::kWindow && most(count_max) >= other.most(count_max);
  }
  // Two rules that no prefix tells apart: a window that reaches back over all pages is as good as none.
  bool equals(const Reach& other, uint64_t count_max) const {
    return covers(other, count_max) && other.covers(*this, count_max);
  }

 private:
  // Whether all pages live, in each prefix of up to `count_max` pages. At a multiple of its size a chunk keeps none.
  bool keeps_all(uint64_t count_max) const {
    if (live_.kind == LiveTokens::Kind::kChunk) return live_.tokens > count_max * page_tokens_;
    return most(count_max) == count_max;
  }
  // The largest reach in prefixes of up to `count_max` pages.
  uint64_t most(uint64_t count_max) const {
    if (live_.kind == LiveTokens::Kind::kAll) return count_max;
    // A chunk may begin within a page, and ends before the next multiple.
    const uint64_t pages = live_.kind == LiveTokens::Kind::kWindow
                               ? div_round_up(live_.tokens, page_tokens_)
                               : saturating_add(div_round_up(live_.tokens, page_tokens_), 1);
    return std::min(pages, count_max);
  }

  LiveTokens live_;
  uint64_t page_tokens_;
};

// How many parts of what a page needs depends on how far it lies from the end of the prefix: the nearer, the more
// rules of life reach it. Rules that reach equally far make up a level; level l needs the parts of levels 1 to l, and
// level 0 needs none. Each level covers those after it. Levels turn "what lives in this page" into one number, so that
// presence is remembered as one count for each page and layout.
class Levels {
 public:
  Levels(const CacheSchema& schema, uint64_t page_tokens, uint64_t page_count)
      : page_tokens_(page_tokens), page_count_(page_count) {
    for (const LayerGroup& group : schema.groups)
      for (const Component& component : group.components) {
        if (component.is_state()) continue;
        const Reach reach(group.live_of(component.name), page_tokens);
        auto at = reach_.begin();
        while (at != reach_.end() && !at->equals(reach, page_count) && at->covers(reach, page_count)) ++at;
        if (at == reach_.end() || !at->equals(reach, page_count)) at = reach_.insert(at, reach);
      }
    for (size_t i = 1; i < reach_.size(); ++i) nested_ &= reach_[i - 1].covers(reach_[i], page_count);
  }

  // False when two rules reach back further than each other, a window and chunks for example: there are no levels then.
  bool nested() const { return nested_; }
  size_t count() const { return reach_.size(); }
  // Of the rule that reaches furthest back in a prefix of `count` pages; 0 when no component has rows.
  uint64_t longest_reach(uint64_t count) const { return reach_.empty() ? 0 : reach_.front()(count); }
  // Of rows that live by this rule.
  size_t of(const LiveTokens& live) const {
    const Reach reach(live, page_tokens_);
    size_t level = 0;
    while (!reach_[level].equals(reach, page_count_)) ++level;
    return level + 1;
  }
  // Of the page with `distance` pages between it and the end of a prefix of `count` pages.
  size_t at(uint64_t distance, uint64_t count) const {
    const auto end =
        std::partition_point(reach_.begin(), reach_.end(), [&](const Reach& reach) { return reach(count) > distance; });
    return static_cast<size_t>(end - reach_.begin());
  }

 private:
  uint64_t page_tokens_;
  uint64_t page_count_;
  std::vector<Reach> reach_;
  bool nested_ = true;
};

// The parts of one layout that have objects of one kind.
struct LayoutParts {
  const CatalogedLayout* layout;
  std::vector<const ObjectKey*> parts;  // by level, then by key: what a level needs are the first of them
  std::vector<size_t> counts;           // at [level]: how many
};

// The lowest level at which a page needs the part's object of this kind; empty when there is no such object. States
// have one level.
std::optional<size_t> part_level(const StorePart& part, PageObject object, const CacheSchema& schema,
                                 const LayerIndex& index, const Levels& levels) {
  std::optional<size_t> lowest;
  index.for_each_piece(part.layers, [&](Range, size_t group) {
    for (const ComponentName& name : part.components) {
      if (schema.groups[group].find(name)->is_state() != (object == PageObject::kState)) continue;
      const size_t level = object == PageObject::kState ? 1 : levels.of(schema.groups[group].live_of(name));
      if (!lowest || level < *lowest) lowest = level;
    }
  });
  return lowest;
}

// Sorted by level, the parts that a level needs are a prefix of the list; a prefix of known answers then serves all
// levels.
LayoutParts layout_parts(const CatalogedLayout& cataloged, PageObject object, const Levels& levels) {
  const StoreLayout& layout = *cataloged.layout;
  const LayerIndex index(layout.cache_schema);
  std::vector<std::vector<const ObjectKey*>> by_level(object == PageObject::kState ? 2 : levels.count() + 1);
  for (const StorePart& part : layout.parts)
    if (const auto level = part_level(part, object, layout.cache_schema, index, levels))
      by_level[*level].push_back(&part.key);
  LayoutParts result{&cataloged, {}, {}};
  for (const std::vector<const ObjectKey*>& parts : by_level) {
    result.parts.insert(result.parts.end(), parts.begin(), parts.end());
    result.counts.push_back(result.parts.size());
  }
  return result;
}

// The objects of one kind: what the inventory has of them, each looked up once and only when it matters. The parts of a
// layout are looked up in order and up to the first that is missing, so that one number is all that is kept of them.
class Presence {
 public:
  Presence(PageObject object, const LayoutCatalog& catalog, const Levels& levels, std::span<const PageKey> pages,
           const PageInventory& inventory)
      : object_(object), pages_(pages), inventory_(inventory) {
    for (const CatalogedLayout& layout : catalog.layouts()) layouts_.push_back(layout_parts(layout, object, levels));
    for (size_t level = 0; !layouts_.empty() && level < layouts_.front().counts.size(); ++level) {
      std::vector<size_t>& order = preference_.emplace_back(layouts_.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return layouts_[a].counts[level] < layouts_[b].counts[level]; });
    }
  }

  // Makes room for the answers; before any look-up.
  // Only after the caller has compared the worst case with the limit, so that memory is bounded by it.
  void reserve() { known_.resize(pages_.size() * layouts_.size()); }

  // Whether any layout has objects of this kind; then all have.
  bool exist() const { return !layouts_.empty() && !layouts_.front().parts.empty(); }
  size_t part_count() const {
    return std::accumulate(layouts_.begin(), layouts_.end(), size_t{0},
                           [](size_t sum, const LayoutParts& layout) { return sum + layout.parts.size(); });
  }
  uint64_t lookup_count() const { return lookup_count_; }

  size_t needed_count(size_t layout, size_t level) const { return layouts_[layout].counts[level]; }
  const Sha256Digest& digest(size_t layout) const { return layouts_[layout].layout->digest; }
  std::vector<ObjectKey> needed(size_t layout, size_t level) const {
    std::vector<ObjectKey> keys;
    for (size_t i = 0; i < needed_count(layout, level); ++i) keys.push_back(*layouts_[layout].parts[i]);
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  // The layout that serves the page at this level with the fewest objects: `preferred` if it is one of several, else
  // the one with the lowest digest. Empty when none has all that is needed.
  // The layout of the page before is preferred, so that a match has few runs of pages with one source.
  std::optional<size_t> choose(uint64_t page, size_t level, std::optional<size_t> preferred = std::nullopt) {
    for (const size_t layout : preference_[level]) {
      if (preferred && needed_count(*preferred, level) == needed_count(layout, level) &&
          is_complete(page, *preferred, level))
        return preferred;
      if (is_complete(page, layout, level)) return layout;
    }
    return std::nullopt;
  }

  // Why no layout serves the page at this level. Looks up all parts that are needed; call it once, last.
  PrefixStop stop(uint64_t page, size_t level) {
    PrefixStop stop;
    for (const size_t layout : preference_[level]) {
      std::vector<ObjectKey> missing = missing_parts(page, layout, level);
      if (stop.layout && missing.size() >= stop.missing.size()) continue;
      const CatalogedLayout& cataloged = *layouts_[layout].layout;
      stop = PrefixStop{page, object_, cataloged.digest, cataloged.layout->name, std::move(missing)};
    }
    return stop;
  }

 private:
  struct Known {
    uint32_t present_count = 0;  // that many leading parts are there
    bool next_missing = false;   // and the one after them is not
  };

  bool has(uint64_t page, const LayoutParts& layout, size_t part) {
    ++lookup_count_;
    return inventory_.has(pages_[page], layout.layout->digest, *layout.parts[part], object_);
  }

  // Goes on where an earlier question stopped: an object is looked up once at most.
  bool is_complete(uint64_t page, size_t layout, size_t level) {
    const LayoutParts& parts = layouts_[layout];
    Known& known = known_[page * layouts_.size() + layout];
    while (known.present_count < parts.counts[level] && !known.next_missing) {
      if (has(page, parts, known.present_count))
        ++known.present_count;
      else
        known.next_missing = true;
    }
    return known.present_count >= parts.counts[level];
  }

  std::vector<ObjectKey> missing_parts(uint64_t page, size_t layout, size_t level) {
    const LayoutParts& parts = layouts_[layout];
    std::vector<ObjectKey> missing;
    if (is_complete(page, layout, level)) return missing;
    const size_t first = known_[page * layouts_.size() + layout].present_count;
    missing.push_back(*parts.parts[first]);
    for (size_t part = first + 1; part < parts.counts[level]; ++part)
      if (!has(page, parts, part)) missing.push_back(*parts.parts[part]);
    std::sort(missing.begin(), missing.end());
    return missing;
  }

  PageObject object_;
  std::span<const PageKey> pages_;
  const PageInventory& inventory_;
  std::vector<LayoutParts> layouts_;             // in the catalog's order: by digest
  std::vector<std::vector<size_t>> preference_;  // at [level]: layouts by objects needed, then by digest
  std::vector<Known> known_;                     // at [page * layouts + layout]
  uint64_t lookup_count_ = 0;
};

class Matcher {
 public:
  // The catalog has a layout.
  Matcher(const LayoutCatalog& catalog, std::span<const PageKey> pages, const PageInventory& inventory)
      : page_tokens_(catalog.domain().page_tokens),
        page_count_(pages.size()),
        levels_(catalog.layouts().front().layout->cache_schema, page_tokens_, page_count_),
        rows_(PageObject::kRows, catalog, levels_, pages, inventory),
        state_(PageObject::kState, catalog, levels_, pages, inventory) {}

  bool nested() const { return levels_.nested(); }
  std::optional<uint64_t> lookup_count_worst() const {
    return checked_mul(page_count_, rows_.part_count() + state_.part_count());
  }

  PrefixMatch run() {
    rows_.reserve();
    state_.reserve();
    PrefixMatch match;
    match.page_count = longest();
    match.token_count = match.page_count * page_tokens_;
    choose_sources(match);
    if (match.page_count < page_count_) {
      // What the prefix of one page more lacks: it is in its last page, since all others served a shorter one.
      const size_t level = levels_.at(0, match.page_count + 1);
      match.stop =
          is_lost(match.page_count, level) ? rows_.stop(match.page_count, level) : state_.stop(match.page_count, 1);
    }
    match.lookup_count = rows_.lookup_count() + state_.lookup_count();
    return match;
  }

 private:
  bool is_lost(uint64_t page, size_t level) { return level > 0 && !rows_.choose(page, level); }

  // No prefix is longer: the pages before the first that a group lacks which is live in all pages.
  uint64_t upper_bound() {
    uint64_t page = 0;
    // No rule keeps all pages, so no first page limits all prefixes.
    if (levels_.longest_reach(page_count_) < page_count_) return page_count_;
    while (page < page_count_ && !is_lost(page, 1)) ++page;
    return page;
  }

  // A page such that no prefix longer than it and up to `count` pages is restorable; empty when one of `count` pages
  // is. A page that is lost at its distance from the end is lost at each smaller one, where more groups are live.
  // The state first: it is one look-up for the whole prefix, and needs no rows.
  std::optional<uint64_t> lost_page(uint64_t count) {
    if (state_.exist() && !state_.choose(count - 1, 1)) return count - 1;
    const uint64_t live = levels_.longest_reach(count);
    for (uint64_t distance = 0; distance < live; ++distance)
      if (is_lost(count - 1 - distance, levels_.at(distance, count))) return count - 1 - distance;
    return std::nullopt;
  }

  // Each page is passed once on the way down, and once more by the last, successful look at the live pages.
  uint64_t longest() {
    uint64_t count = upper_bound();
    while (count > 0) {
      const std::optional<uint64_t> lost = lost_page(count);
      if (!lost) break;
      count = *lost;
    }
    return count;
  }

  // Pages without a live group are left out: nothing of them is restored.
  void choose_sources(PrefixMatch& match) {
    const uint64_t count = match.page_count;
    std::optional<size_t> layout;  // of the page before
    size_t needed_count = 0;
    for (uint64_t page = count - levels_.longest_reach(count); page < count; ++page) {
      const size_t level = levels_.at(count - 1 - page, count);
      const std::optional<size_t> chosen = rows_.choose(page, level, layout);
      CHECK(chosen.has_value());  // longest() found it restorable
      if (chosen == layout && rows_.needed_count(*chosen, level) == needed_count) {
        match.rows.back().pages = Range(match.rows.back().pages.begin(), page + 1);
        continue;
      }
      layout = chosen;
      needed_count = rows_.needed_count(*chosen, level);
      match.rows.push_back(RowSource{Range(page, page + 1), rows_.digest(*chosen), rows_.needed(*chosen, level)});
    }
    if (count == 0 || !state_.exist()) return;
    const std::optional<size_t> chosen = state_.choose(count - 1, 1, layout);
    CHECK(chosen.has_value());
    match.state = StateSource{count - 1, state_.digest(*chosen), state_.needed(*chosen, 1)};
  }

  uint64_t page_tokens_;
  uint64_t page_count_;
  Levels levels_;
  Presence rows_;
  Presence state_;
};

}  // namespace

std::string PrefixStop::to_text() const {
  if (!layout) return fmt::format("page {}: the catalog has no layout", page);
  const std::string more = missing.size() > 1 ? fmt::format(", and {} more", missing.size() - 1) : "";
  return fmt::format("page {}: layout '{}': {}part '{}' is missing{}", page, layout_name,
                     object == PageObject::kState ? "the state of " : "", missing.front().text(), more);
}

Result<PrefixMatch> match_prefix(const LayoutCatalog& catalog, std::span<const PageKey> pages,
                                 const PageInventory& inventory, const PrefixLimits& limits) {
  const uint64_t page_tokens = catalog.domain().page_tokens;
  // Checked before any look-up; later products of pages and tokens then fit.
  if (!checked_mul(pages.size(), page_tokens))
    return Status(Code::kInvalidArgument,
                  fmt::format("prefix match: {} pages of {} tokens pass 2^64 - 1 tokens", pages.size(), page_tokens));
  if (pages.empty()) return PrefixMatch();
  if (catalog.layouts().empty()) {
    PrefixMatch match;
    match.stop = PrefixStop();
    return match;
  }
  Matcher matcher(catalog, pages, inventory);
  if (!matcher.nested())
    return Status(Code::kInvalidArgument,
                  "prefix match: a window and chunks of the cache schema reach back further than each other by turns");
  const std::optional<uint64_t> worst = matcher.lookup_count_worst();
  if (!worst || *worst > limits.lookup_count_max)
    return Status(Code::kResourceExhausted, fmt::format("prefix match: {} pages may take more look-ups than {}",
                                                        pages.size(), limits.lookup_count_max));
  return matcher.run();
}

}  // namespace crossdock
