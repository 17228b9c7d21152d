#include "planner/kv/store_geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "model/kv/schema_rules.h"
#include "model/text.h"

// Where a store layout puts things. In the objects of one part the arrays follow each other in the order of components
// and groups, without gaps but for alignment; an array is rows x layers x heads x dims in the layout's order. So the
// place of an item is a function of the layout alone: writers and readers that know only its digest agree on it.
namespace crossdock {
namespace {

constexpr size_t kArraysMax = size_t{1} << 20;

struct AxisSize {
  uint64_t extent;
  uint64_t ByteStrides::*stride;
};

// Gives each axis its stride, from the innermost (dim) outwards. Empty when the array passes 64 bits.
// Packed: the stride of an axis is the bytes of everything inside it.
std::optional<uint64_t> fill_strides(ObjectOrder order, const Component& component, uint64_t row_count,
                                     uint64_t layer_count, uint64_t head_count, ByteStrides& strides) {
  const AxisSize row{row_count, &ByteStrides::row};
  const AxisSize layer{layer_count, &ByteStrides::layer};
  const AxisSize head{head_count, &ByteStrides::head};
  const AxisSize dim{component.head_dim, &ByteStrides::dim};
  std::array<AxisSize, 4> inner_first = {dim, head, layer, row};  // plhd
  if (order == ObjectOrder::kLphd) inner_first = {dim, head, row, layer};
  if (order == ObjectOrder::kHpld) inner_first = {dim, layer, row, head};
  Checked bytes = component.item_bytes;
  for (const AxisSize& axis : inner_first) {
    if (!bytes.value()) return std::nullopt;
    strides.*axis.stride = *bytes.value();
    bytes = bytes * axis.extent;
  }
  return bytes.value();
}

class GeometryBuilder {
 public:
  GeometryBuilder(const StoreLayout& layout, Diagnostics& diagnostics)
      : layout_(layout), index_(layout.cache_schema), diagnostics_(diagnostics) {}

  std::optional<StoreGeometry> run() {
    geometry_.parts.resize(layout_.parts.size());
    for (uint32_t part = 0; part < layout_.parts.size(); ++part)
      if (!add_part(part)) return std::nullopt;
    return std::move(geometry_);
  }

 private:
  bool add_part(uint32_t number) {
    const StorePart& part = layout_.parts[number];
    std::map<size_t, std::vector<Range>> layers_of;  // by group
    index_.for_each_piece(part.layers, [&](Range layers, size_t group) { layers_of[group].push_back(layers); });
    for (const ComponentName& name : part.components)
      for (const auto& [group, layers] : layers_of)
        if (!add_array(number, group, IntervalSet::from_ranges(layers), name)) return false;
    return true;
  }

  // Offsets are multiples of the item size, as rule view-alignment asks of the views.
  bool add_array(uint32_t part, size_t group, IntervalSet layers, const ComponentName& name) {
    const std::vector<Component>& components = layout_.cache_schema.groups[group].components;
    const Component* component = layout_.cache_schema.groups[group].find(name);
    CHECK(component != nullptr);  // rules of a layout
    StoreArray array;
    array.part = part;
    array.group = static_cast<uint32_t>(group);
    array.component = static_cast<uint32_t>(component - components.data());
    array.row_count = component->is_state() ? 1 : layout_.page_tokens / *component->tokens_per_row;
    const std::optional<uint64_t> bytes =
        fill_strides(layout_.object_order, *component, array.row_count, layers.count(),
                     layout_.parts[part].heads.count(), array.strides);
    uint64_t& object_bytes = component->is_state() ? geometry_.parts[part].state : geometry_.parts[part].page;
    const std::optional<uint64_t> offset = checked_round_up(object_bytes, component->item_bytes);
    const std::optional<uint64_t> end = bytes && offset ? checked_add(*offset, *bytes) : std::nullopt;
    if (!end || geometry_.arrays.size() == kArraysMax) {
      diagnostics_.add(end ? Rule::kPlanLimit : Rule::kSizeOverflow,
                       fmt::format("part '{}'", layout_.parts[part].key.text()),
                       end ? fmt::format("the layout has more than {} arrays", kArraysMax)
                           : fmt::format("an object of {} tokens passes 2^64 bytes (component {})", layout_.page_tokens,
                                         name.text()));
      return false;
    }
    array.layers = std::move(layers);
    array.offset_bytes = *offset;
    object_bytes = *end;
    array.bytes = *bytes;
    geometry_.arrays.push_back(std::move(array));
    return true;
  }

  const StoreLayout& layout_;
  LayerIndex index_;
  Diagnostics& diagnostics_;
  StoreGeometry geometry_;
};

// "0-1,4", with as many digits in each number as the largest has, so that text sorts like numbers.
std::string padded_set(const IntervalSet& set, uint64_t largest) {
  const size_t digits = fmt::format("{}", largest).size();
  std::string text;
  for (const Range range : set.ranges()) {
    text += fmt::format("{}{:0{}}", text.empty() ? "" : ",", range.begin(), digits);
    if (range.size() > 1) text += fmt::format("-{:0{}}", range.end() - 1, digits);
  }
  return text;
}

// The key says layers and heads as long as it fits a name; a digest takes its place where it does not.
// Keys differ for different regions: either the text has all of it, or the digest does.
std::string part_key(const Ownership& owned, uint64_t layer_max, uint64_t head_max, bool with_components) {
  std::string key = fmt::format("l{}_h{}", padded_set(owned.layers, layer_max), padded_set(owned.heads, head_max));
  bool is_plain = true;  // with the separator in a name, two lists could look alike
  if (with_components)
    for (const ComponentName& name : owned.components) {
      is_plain &= name.text().find('+') == std::string::npos;
      key += fmt::format("+{}", name.text());
    }
  if (!is_plain)
    for (const ComponentName& name : owned.components) key += fmt::format("+{}", name.text().size());
  if (!is_plain || key.size() > kNameBytesMax / 2) key = "part-" + sha256(key).hex().substr(0, 32);
  return key;
}

class ObjectBuilder {
 public:
  ObjectBuilder(const StoreLayout& layout, const StoreGeometry& geometry, Range tokens, uint64_t live_page_tokens,
                SnapshotObjects& result)
      : layout_(layout), geometry_(geometry), tokens_(tokens), live_page_tokens_(live_page_tokens), result_(result) {}

  // False past the limit of views.
  bool run() {
    for (const StoreArray& array : geometry_.arrays) {
      const LayerGroup& group = layout_.cache_schema.groups[array.group];
      const Component& component = group.components[array.component];
      const Range live = live_pages(group.live_of(component.name), component, tokens_, live_page_tokens_);
      if (component.is_state()) {
        if (!add_views(array, component, live, kState)) return false;
        continue;
      }
      // A page ends at a multiple of page_tokens, counted from token 0, so equal pages of different snapshots have
      // equal shapes. The limit of views bounds this loop.
      for (uint64_t page = live.begin() / layout_.page_tokens; !live.empty(); ++page) {
        const Range of_page(page * layout_.page_tokens,
                            checked_mul(page + 1, layout_.page_tokens).value_or(Range::kUnbounded));
        const Range tokens = of_page.intersect(live);
        if (tokens.empty()) break;
        if (!add_views(array, component, tokens, page)) return false;
      }
    }
    std::sort(result_.views.begin(), result_.views.end());
    for (auto& [key, id] : ids_) {
      const StorePartBytes& bytes = geometry_.parts[key.first];
      result_.objects.push_back(ObjectShape{id, key.second == kState ? bytes.state : bytes.page, key.first});
    }
    std::sort(result_.objects.begin(), result_.objects.end(),
              [](const ObjectShape& a, const ObjectShape& b) { return a.id < b.id; });
    return true;
  }

 private:
  static constexpr uint64_t kState = UINT64_MAX;

  // One view for each run of layers and of heads, since these are packed.
  bool add_views(const StoreArray& array, const Component& component, Range tokens, uint64_t page) {
    const StorePart& part = layout_.parts[array.part];
    const RegionId& id = object_id(array.part, page);
    // A view counts rows from the one that holds its first token, which need not be the first of the page.
    const uint64_t first_row =
        component.is_state() ? 0 : tokens.begin() % layout_.page_tokens / *component.tokens_per_row;
    // The products below are offsets within an object, whose size was computed with checks (add_array()).
    uint64_t layers_before = 0;
    for (const Range layers : array.layers.ranges()) {
      uint64_t heads_before = 0;
      for (const Range heads : part.heads.ranges()) {
        if (result_.views.size() == kStoreViewsMax) return false;
        View view;
        view.component = component.name;
        view.layers = layers;
        view.tokens = tokens;
        view.heads = heads;
        view.dims = Range(0, component.head_dim);
        view.region = id;
        view.offset_bytes = array.offset_bytes + layers_before * array.strides.layer +
                            heads_before * array.strides.head + first_row * array.strides.row;
        view.strides = array.strides;
        result_.views.push_back(std::move(view));
        heads_before += heads.size();
      }
      layers_before += layers.size();
    }
    return true;
  }

  const RegionId& object_id(uint32_t part, uint64_t page) {
    const auto [entry, is_new] = ids_.try_emplace({part, page});
    if (is_new)
      entry->second = RegionId(page == kState ? fmt::format("{}/state", layout_.parts[part].key.text())
                                              : fmt::format("{}/{}", layout_.parts[part].key.text(), page));
    return entry->second;
  }

  const StoreLayout& layout_;
  const StoreGeometry& geometry_;
  Range tokens_;
  uint64_t live_page_tokens_;
  SnapshotObjects& result_;
  std::map<std::pair<uint32_t, uint64_t>, RegionId> ids_;
};

}  // namespace

std::optional<StoreGeometry> store_geometry(const Valid<StoreLayout>& layout, Diagnostics& diagnostics) {
  return GeometryBuilder(*layout, diagnostics).run();
}

namespace {

using PartRegion = std::tuple<IntervalSet, std::vector<ComponentName>, IntervalSet>;

// Cuts what a writer owns where rows live differently, because an object is whole or it is not stored: one that mixed
// rows of a window with rows that live for ever would be lost as soon as the window has left its page. States go with
// the first rows of their layers.
void add_regions(const CacheSchema& schema, const LayerIndex& index, const Ownership& owned,
                 std::set<PartRegion>& regions) {
  std::map<std::pair<LiveTokens, std::vector<ComponentName>>, std::vector<Range>> pieces;
  index.for_each_piece(owned.layers, [&](Range layers, size_t group) {
    std::map<LiveTokens, std::vector<ComponentName>> by_life;
    std::vector<ComponentName> states;
    for (const ComponentName& name : owned.components)
      if (schema.groups[group].find(name)->is_state())
        states.push_back(name);
      else
        by_life[schema.groups[group].live_of(name)].push_back(name);
    std::vector<ComponentName>& first = by_life.empty() ? by_life[LiveTokens::all()] : by_life.begin()->second;
    first.insert(first.end(), states.begin(), states.end());
    std::sort(first.begin(), first.end());
    for (const auto& [live, components] : by_life) pieces[{live, components}].push_back(layers);
  });
  for (auto& [key, layers] : pieces)
    regions.insert({IntervalSet::from_ranges(std::move(layers)), key.second, owned.heads});
}

}  // namespace

std::optional<Valid<StoreLayout>> layout_of(const Valid<PlacementManifest>& placement, std::optional<uint64_t> dp,
                                            ObjectOrder order, uint64_t page_tokens, const std::string& name,
                                            Diagnostics& diagnostics) {
  const std::vector<Participant>& participants = placement->topology.participants;
  uint64_t lowest = Range::kUnbounded;
  for (const Participant& participant : participants) lowest = std::min(lowest, participant.rank.dp);
  const uint64_t rank = dp.value_or(lowest);

  std::set<PartRegion> regions;
  const LayerIndex index(placement->cache_schema);
  bool found = false;
  for (size_t i = 0; i < participants.size(); ++i) {
    if (participants[i].rank.dp != rank) continue;
    found = true;
    // Replica 0 alone has all elements, since a replica set is complete (rule replica-set). Equal regions of ranks that
    // share tokens out become one part.
    for (const Ownership& owned : placement->parts[i].owns)
      if (owned.replica.ordinal == 0) add_regions(placement->cache_schema, index, owned, regions);
  }
  if (!found) {
    diagnostics.add(Rule::kPlanParticipant, fmt::format("placement '{}'", placement->name),
                    fmt::format("has no participant of data-parallel rank {}", rank));
    return std::nullopt;
  }
  StoreLayout layout;
  layout.name = name;
  layout.cache_schema = placement->cache_schema;
  layout.object_order = order;
  layout.page_tokens = page_tokens;
  const IntervalSet all_layers = placement->cache_schema.layers();
  uint64_t head_max = 0;
  for (const auto& [layers, components, heads] : regions) head_max = std::max(head_max, heads.hull().end() - 1);
  // Components go into the key where they do not all lie in one part.
  std::map<std::pair<IntervalSet, IntervalSet>, size_t> same_place;
  for (const auto& [layers, components, heads] : regions) ++same_place[{layers, heads}];
  for (const auto& [layers, components, heads] : regions) {
    const Ownership owned{layers, components, heads, AllTokens(), {}};
    layout.parts.push_back(
        StorePart{ObjectKey(part_key(owned, all_layers.hull().end() - 1, head_max, same_place[{layers, heads}] > 1)),
                  layers, components, heads});
  }
  return Valid<StoreLayout>::make(std::move(layout), diagnostics);
}

std::optional<SnapshotObjects> snapshot_objects(const Valid<StoreLayout>& layout, const Sha256Digest& layout_digest,
                                                Range tokens, Diagnostics& diagnostics, uint64_t live_page_tokens) {
  const std::optional<StoreGeometry> geometry = store_geometry(layout, diagnostics);
  if (!geometry) return std::nullopt;
  SnapshotObjects result;
  result.layout_digest = layout_digest;
  result.tokens = tokens;
  if (ObjectBuilder(*layout, *geometry, tokens, live_page_tokens, result).run()) return result;
  diagnostics.add(Rule::kPlanLimit, "",
                  fmt::format("tokens {} in pages of {} need more than {} views", range_text(tokens),
                              layout->page_tokens, kStoreViewsMax));
  return std::nullopt;
}

}  // namespace crossdock
