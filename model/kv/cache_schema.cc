#include "model/kv/cache_schema.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/sorted.h"

namespace crossdock {
namespace {

struct KnownDtype {
  std::string_view name;
  uint64_t item_bytes;
};

// A dtype that is missing here is legal and is compared by name; this table only catches a wrong item_bytes.
constexpr std::array kKnownDtypes = {
    KnownDtype{"float64", 8},        KnownDtype{"float32", 4},
    KnownDtype{"float16", 2},        KnownDtype{"bfloat16", 2},
    KnownDtype{"float8_e4m3fn", 1},  KnownDtype{"float8_e4m3fnuz", 1},
    KnownDtype{"float8_e5m2", 1},    KnownDtype{"float8_e5m2fnuz", 1},
    KnownDtype{"float8_e8m0fnu", 1}, KnownDtype{"float4_e2m1fn_x2", 1},
    KnownDtype{"int64", 8},          KnownDtype{"int32", 4},
    KnownDtype{"int16", 2},          KnownDtype{"int8", 1},
    KnownDtype{"uint8", 1},
};

}  // namespace

// Components are sorted by canonicalize().
const Component* LayerGroup::find(const ComponentName& name) const {
  return find_sorted(components, &Component::name, name);
}

const LiveTokens& LayerGroup::live_of(const ComponentName& name) const {
  const ComponentLife* own = find_sorted(component_life, &ComponentLife::component, name);
  return own == nullptr ? live : own->live;
}

IntervalSet CacheSchema::layers() const {
  std::vector<Range> ranges;
  for (const LayerGroup& group : groups)
    ranges.insert(ranges.end(), group.layers.ranges().begin(), group.layers.ranges().end());
  return IntervalSet::from_ranges(std::move(ranges));
}

// For single look-ups; LayerIndex (model/kv/schema_rules.h) answers many.
const LayerGroup* CacheSchema::find_group(uint64_t layer) const {
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const LayerGroup& group) { return group.layers.contains(layer); });
  return found == groups.end() ? nullptr : &*found;
}

// Live for one component. It begins at a row, because a row that is live in part is kept and copied as a whole.
Range live_tokens(const LiveTokens& live, const Component& component, Range tokens) {
  if (component.is_state()) return Range(0, 1);
  const Range kept = live.of(tokens);
  if (kept.empty()) return Range();
  return Range(std::max(tokens.begin(), kept.begin() - kept.begin() % *component.tokens_per_row), kept.end());
}

Range live_pages(const LiveTokens& live, const Component& component, Range tokens, uint64_t page_tokens) {
  const Range exact = live_tokens(live, component, tokens);
  if (component.is_state() || exact.empty()) return exact;
  return Range(std::max(tokens.begin(), exact.begin() - exact.begin() % page_tokens), exact.end());
}

Range live_tokens(const LayerGroup& group, const Component& component, Range tokens) {
  return live_tokens(group.live_of(component.name), component, tokens);
}

// A partial row at the end of a whole interval is legal: its missing tokens do not exist yet.
bool cuts_row(Range tokens, Range whole, uint64_t tokens_per_row) {
  const auto cuts = [tokens_per_row](uint64_t boundary, uint64_t outer) {
    return boundary % tokens_per_row != 0 && boundary != outer;
  };
  return cuts(tokens.begin(), whole.begin()) || cuts(tokens.end(), whole.end());
}

std::optional<uint64_t> known_item_bytes(const std::string& dtype) {
  for (const KnownDtype& known : kKnownDtypes)
    if (known.name == dtype) return known.item_bytes;
  return std::nullopt;
}

}  // namespace crossdock
