// Bindings made for random placements, against the definition of what a participant owns, element by element.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/sha256.h"
#include "model/kv/binding_rules.h"
#include "model/kv/pool_binding.h"
#include "tests/support/builders.h"
#include "tests/support/naive.h"
#include "tests/support/pool_subject.h"

namespace crossdock::testing {
namespace {

// --- random placements

uint64_t pick(Rng& rng, uint64_t low, uint64_t high) { return rng.in(Range(low, high + 1)); }

// The numbers of `all`, each in one of at most `share_count_max` sets, none of them empty.
std::vector<IntervalSet> draw_shares(Rng& rng, const IntervalSet& all, uint64_t share_count_max) {
  std::vector<std::vector<Range>> shares(pick(rng, 1, share_count_max));
  for (const Range range : all.ranges())
    for (uint64_t number = range.begin(); number < range.end(); ++number)
      shares[rng.below(shares.size())].push_back(Range(number, number + 1));
  std::vector<IntervalSet> sets;
  for (std::vector<Range>& share : shares)
    if (!share.empty()) sets.push_back(IntervalSet::from_ranges(std::move(share)));
  return sets;
}

// `unit` is a whole number of rows of each component.
std::vector<TokenOwnership> draw_token_shares(Rng& rng, Range universe, uint64_t unit) {
  std::vector<TokenOwnership> shares;
  const uint64_t kind = rng.below(3);
  if (kind == 0) return {AllTokens()};
  if (kind == 1) {
    const CyclicTokens cycle{unit * pick(rng, 1, 3), pick(rng, 1, 5), {}};
    for (const IntervalSet& blocks : draw_shares(rng, {Range(0, cycle.cycle_blocks)}, 3))
      shares.push_back(CyclicTokens{cycle.block_tokens, cycle.cycle_blocks, blocks});
    return shares;
  }
  // Blocks of one unit and, as one of them, everything after the last.
  const uint64_t block_count = std::min<uint64_t>(8, (universe.size() - 1) / unit);
  for (const IntervalSet& blocks : draw_shares(rng, {Range(0, block_count + 1)}, 3)) {
    std::vector<Range> tokens;
    for (const Range range : blocks.ranges())
      tokens.push_back(Range(universe.begin() + range.begin() * unit,
                             range.end() > block_count ? universe.end() : universe.begin() + range.end() * unit));
    shares.push_back(TokenIntervals{IntervalSet::from_ranges(std::move(tokens))});
  }
  return shares;
}

LayerGroup draw_group(Rng& rng, IntervalSet layers, uint64_t unit) {
  LayerGroup drawn = group(std::move(layers), {});
  if (rng.chance(1, 2)) drawn.live = LiveTokens::window(pick(rng, 1, 12));
  const uint64_t component_count = pick(rng, 1, 3);
  for (uint64_t i = 0; i < component_count; ++i) {
    const std::string name(1, static_cast<char>('x' + i));
    drawn.components.push_back(rng.chance(1, 5)
                                   ? state(name, pick(rng, 1, 4), pick(rng, 1, 2))
                                   : rows(name, pick(rng, 1, 4), pick(rng, 1, 2), rng.chance(1, 2) ? unit : 1));
  }
  return drawn;
}

// Gives each (layers, component, heads, tokens) to one participant, or to two as replicas.
void give_out(Rng& rng, const Ownership& ownership, std::vector<Part>& parts) {
  const uint64_t first = rng.below(parts.size());
  if (parts.size() == 1 || !rng.chance(1, 4)) {
    parts[first].owns.push_back(ownership);
    return;
  }
  const uint64_t second = (first + pick(rng, 1, parts.size() - 1)) % parts.size();
  for (const auto& [part, ordinal] : {std::pair(first, uint64_t{0}), std::pair(second, uint64_t{1})}) {
    parts[part].owns.push_back(ownership);
    parts[part].owns.back().replica = ReplicaOrdinal{ordinal, 2};
  }
}

PlacementManifest draw_placement(Rng& rng, uint64_t unit) {
  std::vector<LayerGroup> groups;
  for (const IntervalSet& layers : draw_shares(rng, {Range(0, pick(rng, 1, 3)), Range(4, 7)}, 3))
    groups.push_back(draw_group(rng, layers, unit));
  PlacementManifest placement = placement_of(groups, std::vector<std::vector<Ownership>>(pick(rng, 1, 3)));
  if (rng.chance(1, 2)) placement.tokens = Range(unit * rng.below(3), 20 + rng.below(10));
  for (const LayerGroup& drawn : groups)
    for (const Component& component : drawn.components)
      for (const IntervalSet& layers : draw_shares(rng, drawn.layers, 2))
        for (const IntervalSet& heads : draw_shares(rng, {Range(0, component.head_count)}, 3)) {
          const auto shares = component.is_state() ? std::vector<TokenOwnership>{AllTokens()}
                                                   : draw_token_shares(rng, placement.tokens, unit);
          for (const TokenOwnership& tokens : shares)
            give_out(rng, owns(layers, {component.name.text()}, heads, tokens), placement.parts);
        }
  return placement;
}

PoolRequest draw_request(Rng& rng, uint64_t unit) {
  PoolRequest request = pages_of(unit * pick(rng, 1, 4));
  request.axis_order = rng.chance(1, 2) ? AxisOrder::kHnd : AxisOrder::kNhd;
  request.region_per_layer = rng.chance(1, 2);
  if (rng.chance(1, 2)) request.shuffle_seed = rng.next();
  request.spare_pages = rng.below(3);
  return request;
}

// Whether a snapshot of `tokens` holds the token for the component; a row lives as a whole.
bool is_live(const LayerGroup& group, const Component& component, Range tokens, uint64_t token) {
  if (component.is_state()) return token == 0;
  const uint64_t row_end = token / *component.tokens_per_row * *component.tokens_per_row + *component.tokens_per_row;
  return tokens.contains(token) && (!window_of(group) || row_end + *window_of(group) > tokens.end());
}

// Each element that the participant owns and that lives is in one view, no other is in any, and no byte belongs to two
// or lies outside its region. Tokens of one row have one element.
void check_elements(const PlacementManifest& placement, const RuntimeBinding& binding) {
  std::map<RegionId, uint64_t> region_bytes;
  for (const Region& region : binding.regions) region_bytes[region.id] = region.bytes;
  using Element = std::tuple<const Component*, uint64_t, uint64_t, uint64_t, uint64_t>;
  std::map<std::pair<RegionId, uint64_t>, Element> used;
  for (const LayerGroup& group : placement.cache_schema.groups)
    for (const Component& component : group.components)
      for (uint64_t layer = 0; layer < 8; ++layer)
        for (uint64_t head = 0; head < component.head_count; ++head)
          for (uint64_t token = 0; token < 32 && group.layers.contains(layer); ++token) {
            const auto owners = naive_owners(placement, 0, layer, component.name.text(), head, token);
            const bool is_owned = std::count(owners.begin(), owners.end(), binding.participant.text()) > 0;
            const bool is_required = is_owned && is_live(group, component, binding.tokens, token);
            for (uint64_t dim = 0; dim < component.head_dim; ++dim) {
              int times = 0;
              for (const View& view : binding.views) {
                if (view.component != component.name) continue;
                const auto address = naive_address(view, binding.page_tables, component, layer, token, head, dim);
                if (!address) continue;
                ++times;
                const Element element(&component, layer, head, token / component.tokens_per_row.value_or(1), dim);
                for (uint64_t byte = *address; byte < *address + component.item_bytes; ++byte) {
                  RC_ASSERT(byte < region_bytes.at(view.region));
                  RC_ASSERT(used.try_emplace({view.region, byte}, element).first->second == element);
                }
              }
              RC_ASSERT(times == (is_required ? 1 : 0));
            }
          }
}

uint64_t naive_count_below(const std::optional<CyclicTokens>& cycle, uint64_t token) {
  uint64_t count = 0;
  for (uint64_t t = 0; t < token; ++t) count += !cycle || naive_owns_token(TokenOwnership(*cycle), t);
  return count;
}

// No slot is given out twice, none is unused, and pages begin at multiples of their size.
void check_pages(const RuntimeBinding& binding, uint64_t spare_pages) {
  std::set<uint64_t> slots;
  size_t page_count = 0;
  for (const PageTable& table : binding.page_tables) {
    slots.insert(table.slots.begin(), table.slots.end());
    page_count += table.slots.size();
    std::set<uint64_t> used;  // pages of the table
    for (const View& view : binding.views) {
      if (!view.pages || view.pages->table != table.id) continue;
      const uint64_t before = naive_count_below(view.cycle, table.token_begin);
      RC_ASSERT(before % table.page_tokens == 0);
      for (uint64_t token = view.tokens.begin(); token < view.tokens.end(); ++token)
        if (!view.cycle || naive_owns_token(TokenOwnership(*view.cycle), token))
          used.insert((naive_count_below(view.cycle, token) - before) / table.page_tokens);
    }
    RC_ASSERT(used.size() == table.slots.size());
  }
  RC_ASSERT(slots.size() == page_count);
  if (!slots.empty()) RC_ASSERT(*slots.rbegin() < page_count + spare_pages);
}

// A region holds the layers and heads that its views show, in each slot of the pool, and nothing else.
void check_regions(const PlacementManifest& placement, const RuntimeBinding& binding, const PoolRequest& request) {
  uint64_t slot_count = request.spare_pages;
  for (const PageTable& table : binding.page_tables) slot_count += table.slots.size();
  for (const Region& region : binding.regions) {
    std::set<uint64_t> layers;
    std::set<uint64_t> heads;
    std::set<ComponentName> components;
    for (const View& view : binding.views) {
      if (view.region != region.id) continue;
      components.insert(view.component);
      for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) layers.insert(layer);
      for (uint64_t head = view.heads.begin(); head < view.heads.end(); ++head) heads.insert(head);
    }
    RC_ASSERT(components.size() == 1u);
    if (request.region_per_layer) RC_ASSERT(layers.size() == 1u);
    const LayerGroup& group = *placement.cache_schema.find_group(*layers.begin());
    for (const uint64_t layer : layers) RC_ASSERT(placement.cache_schema.find_group(layer) == &group);
    const Component& component = *group.find(*components.begin());
    const uint64_t rows = component.is_state() ? 1 : slot_count * (request.page_tokens / *component.tokens_per_row);
    RC_ASSERT(region.bytes == layers.size() * rows * heads.size() * component.head_dim * component.item_bytes);
  }
}

RC_GTEST_PROP(PoolBinding, HoldsExactlyWhatIsOwnedOfAnyPlacement, (uint64_t seed)) {
  Rng rng(seed);
  const uint64_t unit = uint64_t{1} << rng.below(3);
  PlacementManifest placement = draw_placement(rng, unit);
  const uint64_t begin = placement.tokens.begin() + rng.below(10);
  const uint64_t end_max = std::min(placement.tokens.end(), begin + 16);
  const PoolSubject subject(std::move(placement), Range(begin, pick(rng, begin + 1, end_max)));
  const PoolRequest request = draw_request(rng, unit);
  for (const Part& part : subject.placement->parts) {
    Diagnostics diagnostics;
    const auto binding = subject.bind(part.participant.text().c_str(), request, diagnostics);
    RC_ASSERT(binding.has_value());
    check_binding(*binding, subject.context, diagnostics);
    RC_ASSERT(diagnostics.empty());
    RC_CLASSIFY((*binding)->views.empty(), "nothing owned");
    RC_CLASSIFY((*binding)->page_tables.size() > 1, "several tables");
    check_elements(*subject.placement, **binding);
    check_pages(**binding, request.spare_pages);
    check_regions(*subject.placement, **binding, request);
  }
}

}  // namespace
}  // namespace crossdock::testing
