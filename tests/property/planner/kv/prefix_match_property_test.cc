// The longest prefix that a store can restore, over random schemas, layouts and stores, against the definition written
// out token by token.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/wire/documents.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"
#include "tests/support/builders.h"
#include "tests/support/page_store.h"

namespace crossdock::testing {
namespace {

// Random schemas, layouts and stores.

constexpr uint64_t kPageTokens = 4;

Valid<CacheSchema> draw_schema(Rng& rng) {
  const uint64_t group_count = 1 + rng.below(3);
  const uint64_t layer_count = group_count + rng.below(3);
  std::vector<std::vector<Range>> layers(group_count);
  for (uint64_t layer = 0; layer < layer_count; ++layer)
    layers[layer < group_count ? layer : rng.below(group_count)].push_back(Range(layer, layer + 1));
  const uint64_t head_count = 1 + rng.below(2);
  // 0: windows. Chunks whose sizes divide each other, so that they reach back in one order.
  const uint64_t chunk = rng.chance(1, 3) ? 1 + rng.below(3 * kPageTokens) : 0;
  std::vector<LayerGroup> groups;
  for (const std::vector<Range>& of_group : layers) {
    LayerGroup drawn{IntervalSet::from_ranges(of_group), LiveTokens::all(), {}};
    if (rng.chance(1, 2))
      drawn.live = chunk == 0 ? LiveTokens::window(1 + rng.below(5 * kPageTokens))
                              : LiveTokens::chunk(chunk * (uint64_t{1} << rng.below(3)));
    for (const char* name : {"a", "b", "c"}) {
      if (rng.chance(1, 2) && !(drawn.components.empty() && *name == 'c')) continue;
      // A name may be rows in one group and a state in another.
      drawn.components.push_back(rng.chance(1, 4) ? state(name, head_count, 2) : rows(name, head_count, 2));
      if (!drawn.components.back().is_state()) drawn.components.back().tokens_per_row = uint64_t{1} << rng.below(3);
    }
    groups.push_back(drawn);
  }
  return schema_of(std::move(groups));
}

// Layers in buckets across the groups; in a bucket, the components that all its layers have together or one by one, the
// others where they are; heads together or one by one.
Valid<StoreLayout> draw_layout(Rng& rng, const Valid<CacheSchema>& schema, uint64_t number) {
  const uint64_t bucket_count = 1 + rng.below(3);
  std::map<uint64_t, std::vector<uint64_t>> buckets;
  const uint64_t layer_count = schema->layers().hull().end();
  for (uint64_t layer = 0; layer < layer_count; ++layer) buckets[rng.below(bucket_count)].push_back(layer);
  const uint64_t head_count = schema->groups[0].components[0].head_count;
  std::vector<StorePart> parts;
  const auto add = [&](const IntervalSet& layers, const std::vector<ComponentName>& components) {
    const bool by_head = rng.chance(1, 3);
    for (uint64_t head = 0; head < (by_head ? head_count : 1); ++head)
      parts.push_back(StorePart{ObjectKey(), layers, components,
                                IntervalSet{by_head ? Range(head, head + 1) : Range(0, head_count)}});
  };
  for (const auto& [bucket, layers] : buckets) {
    // Rows of one part live alike; a state goes with any.
    std::map<std::pair<ComponentName, LiveTokens>, std::vector<Range>> layers_of;
    for (const uint64_t layer : layers) {
      const LayerGroup& group = *schema->find_group(layer);
      for (const Component& component : group.components)
        layers_of[{component.name, component.is_state() ? LiveTokens::all() : group.live_of(component.name)}].push_back(
            Range(layer, layer + 1));
    }
    const bool together = rng.chance(2, 3);
    std::map<LiveTokens, std::vector<ComponentName>> in_all;
    for (const auto& [key, own] : layers_of) {
      if (together && own.size() == layers.size())
        in_all[key.second].push_back(key.first);
      else
        add(IntervalSet::from_ranges(own), {key.first});
    }
    std::vector<Range> all;
    for (const uint64_t layer : layers) all.push_back(Range(layer, layer + 1));
    for (const auto& [live, components] : in_all) add(IntervalSet::from_ranges(all), components);
  }
  std::vector<size_t> keys(parts.size());
  std::iota(keys.begin(), keys.end(), size_t{0});
  rng.shuffle(keys);
  for (size_t i = 0; i < parts.size(); ++i) parts[i].key = ObjectKey(fmt::format("p{:02}", keys[i]));
  return layout_with(fmt::format("layout-{}", number), schema, kPageTokens, std::move(parts));
}

struct DrawnStore {
  LayoutCatalog catalog;
  std::vector<PageKey> keys;
  MemoryInventory inventory;
};

DrawnStore draw_store(Rng& rng) {
  const Valid<CacheSchema> schema = draw_schema(rng);
  const PageDomain domain = domain_of(tenant_snapshot(schema), kPageTokens);
  std::vector<Valid<StoreLayout>> layouts;
  const uint64_t layout_count = 1 + rng.below(3);
  for (uint64_t i = 0; i < layout_count; ++i) layouts.push_back(draw_layout(rng, schema, i));
  DrawnStore store{catalog_of(domain, layouts), page_keys(domain, tokens_of(kPageTokens * rng.below(13))), {}};
  const uint64_t loss = std::array<uint64_t, 4>{1, 3, 8, 20}[rng.below(4)];  // of 100 objects
  const bool sparse_states = rng.chance(1, 2);
  const uint64_t written_count = rng.chance(1, 2) ? store.keys.size() : rng.below(store.keys.size() + 1);
  for (uint64_t page = 0; page < written_count; ++page) {
    const PageKey& key = store.keys[page];
    const bool saves_state = !sparse_states || rng.chance(1, 3);
    for (const Valid<StoreLayout>& layout : layouts)
      for (const StorePart& part : layout->parts)
        for (const PageObject object : {PageObject::kRows, PageObject::kState})
          if (has_object(*layout, part, object) && (object == PageObject::kRows || saves_state) &&
              !rng.chance(loss, 100))
            store.inventory.put(key, digest(layout), part.key, object);
  }
  return store;
}

// The definition, written out token by token.
class NaiveMatch {
 public:
  struct Source {
    Sha256Digest layout;
    std::vector<ObjectKey> parts;
    friend bool operator==(const Source&, const Source&) = default;
  };

  explicit NaiveMatch(const DrawnStore& store) : store_(store) {}

  std::vector<ObjectKey> needed(const StoreLayout& layout, uint64_t prefix, uint64_t page, PageObject object) const {
    std::set<ObjectKey> keys;
    for (const StorePart& part : layout.parts)
      for (const LayerGroup& group : layout.cache_schema.groups)
        if (part_holds(part, group, object) &&
            (object == PageObject::kState ? page + 1 == prefix : is_live(group, prefix, page)))
          keys.insert(part.key);
    return {keys.begin(), keys.end()};
  }

  std::vector<ObjectKey> missing(const CatalogedLayout& layout, uint64_t prefix, uint64_t page,
                                 PageObject object) const {
    std::vector<ObjectKey> keys;
    for (const ObjectKey& key : needed(*layout.layout, prefix, page, object))
      if (!store_.inventory.stored().contains({store_.keys[page], layout.digest, key, object})) keys.push_back(key);
    return keys;
  }

  bool is_served(uint64_t prefix, uint64_t page, PageObject object) const {
    for (const CatalogedLayout& layout : store_.catalog.layouts())
      if (missing(layout, prefix, page, object).empty()) return true;
    return false;
  }

  bool is_restorable(uint64_t prefix) const {
    for (uint64_t page = 0; page < prefix; ++page)
      for (const PageObject object : {PageObject::kRows, PageObject::kState})
        if (!is_served(prefix, page, object)) return false;
    return true;
  }

  uint64_t longest() const {
    for (uint64_t prefix = store_.keys.size();; --prefix)
      if (is_restorable(prefix)) return prefix;
  }

  // By sorting all complete layouts; empty when nothing is needed.
  std::optional<Source> source(uint64_t prefix, uint64_t page, PageObject object,
                               const std::optional<Source>& before) const {
    std::vector<std::tuple<size_t, bool, Sha256Digest>> candidates;
    std::map<Sha256Digest, std::vector<ObjectKey>> parts;
    for (const CatalogedLayout& layout : store_.catalog.layouts()) {
      parts[layout.digest] = needed(*layout.layout, prefix, page, object);
      if (parts[layout.digest].empty()) return std::nullopt;
      if (missing(layout, prefix, page, object).empty())
        candidates.emplace_back(parts[layout.digest].size(), !(before && before->layout == layout.digest),
                                layout.digest);
    }
    const Sha256Digest& chosen = std::get<2>(*std::min_element(candidates.begin(), candidates.end()));
    return Source{chosen, parts[chosen]};
  }

  PrefixStop stop(uint64_t page) const {
    const PageObject object = is_served(page + 1, page, PageObject::kRows) ? PageObject::kState : PageObject::kRows;
    std::vector<std::tuple<size_t, size_t, Sha256Digest>> candidates;
    for (const CatalogedLayout& layout : store_.catalog.layouts())
      candidates.emplace_back(missing(layout, page + 1, page, object).size(),
                              needed(*layout.layout, page + 1, page, object).size(), layout.digest);
    const CatalogedLayout& best =
        *store_.catalog.find(std::get<2>(*std::min_element(candidates.begin(), candidates.end())));
    return PrefixStop{page, object, best.digest, best.layout->name, missing(best, page + 1, page, object)};
  }

 private:
  static bool lives(const LiveTokens& live, uint64_t token, uint64_t end) {
    switch (live.kind) {
      case LiveTokens::Kind::kAll: return true;
      case LiveTokens::Kind::kWindow: return token + live.tokens >= end;
      case LiveTokens::Kind::kChunk: return token / live.tokens == end / live.tokens;  // the next token's chunk
    }
    return false;
  }
  static bool is_live(const LayerGroup& group, uint64_t prefix, uint64_t page) {
    for (uint64_t token = page * kPageTokens; token < (page + 1) * kPageTokens; ++token)
      if (lives(group.live, token, prefix * kPageTokens)) return true;
    return false;
  }

  const DrawnStore& store_;
};

RC_GTEST_PROP(PrefixMatch, IsWhatTheDefinitionSays, (uint64_t seed)) {
  Rng rng(seed);
  const DrawnStore store = draw_store(rng);
  const NaiveMatch naive(store);
  const PrefixMatch found = match_prefix(store.catalog, store.keys, store.inventory).value();
  const uint64_t count = naive.longest();
  RC_CLASSIFY(count > 0 && count < store.keys.size(), "a part of the pages");
  RC_CLASSIFY(found.rows.size() > 1, "several sources");
  RC_CLASSIFY(found.stop && found.stop->object == PageObject::kState, "stopped by a state");
  RC_ASSERT(found.page_count == count);
  RC_ASSERT(found.token_count == count * kPageTokens);

  // Sources, page by page.
  std::map<uint64_t, NaiveMatch::Source> sources;
  for (const RowSource& source : found.rows)
    for (uint64_t page = source.pages.begin(); page < source.pages.end(); ++page)
      RC_ASSERT(sources.emplace(page, NaiveMatch::Source{source.layout, source.parts}).second);
  for (size_t i = 1; i < found.rows.size(); ++i) {
    RC_ASSERT(found.rows[i].pages.begin() == found.rows[i - 1].pages.end());
    RC_ASSERT(found.rows[i].layout != found.rows[i - 1].layout || found.rows[i].parts != found.rows[i - 1].parts);
  }
  std::optional<NaiveMatch::Source> before;
  for (uint64_t page = 0; page < count; ++page) {
    const std::optional<NaiveMatch::Source> expected = naive.source(count, page, PageObject::kRows, before);
    RC_ASSERT(sources.contains(page) == expected.has_value());
    if (expected) RC_ASSERT(sources.at(page) == *expected);
    before = expected;
  }
  const std::optional<NaiveMatch::Source> state =
      count == 0 ? std::nullopt : naive.source(count, count - 1, PageObject::kState, before);
  RC_ASSERT(found.state.has_value() == state.has_value());
  if (state) RC_ASSERT(*found.state == (StateSource{count - 1, state->layout, state->parts}));

  RC_ASSERT(found.stop.has_value() == (count < store.keys.size()));
  if (found.stop) RC_ASSERT(*found.stop == naive.stop(count));

  // Each object is looked up once at most, and only objects that a writer would write.
  RC_ASSERT(!store.inventory.is_asked_twice());
  RC_ASSERT(found.lookup_count == store.inventory.asked_count());
  for (const auto& [key, layout, part_key, object] : store.inventory.asked()) {
    const CatalogedLayout* cataloged = store.catalog.find(layout);
    RC_ASSERT(cataloged != nullptr);
    const std::vector<StorePart>& parts = cataloged->layout->parts;
    const ObjectKey& wanted = part_key;
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const StorePart& p) { return p.key == wanted; });
    RC_ASSERT(part != parts.end());
    RC_ASSERT(has_object(*cataloged->layout, *part, object));
  }
}

RC_GTEST_PROP(PrefixMatch, MoreObjectsNeverMakeItShorter, (uint64_t seed)) {
  Rng rng(seed);
  DrawnStore store = draw_store(rng);
  const uint64_t before = match_prefix(store.catalog, store.keys, store.inventory).value().page_count;
  const CatalogedLayout& layout = store.catalog.layouts()[rng.below(store.catalog.layouts().size())];
  for (const PageKey& key : store.keys)
    for (const StorePart& part : layout.layout->parts)
      if (rng.chance(1, 2)) store.inventory.put(key, layout.digest, part.key, PageObject::kRows);
  RC_ASSERT(match_prefix(store.catalog, store.keys, store.inventory).value().page_count >= before);
}

}  // namespace
}  // namespace crossdock::testing
