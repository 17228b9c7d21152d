// Cache schema: what a model keeps per layer. Layers with the same components form a group.
// Wire form: docs/formats/cache_schema.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/interval_set.h"
#include "model/diagnostics.h"
#include "model/ids.h"
#include "model/kv/live_tokens.h"

namespace crossdock {

// One tensor family of a layer: rows over tokens, each row head_count x head_dim items.
struct Component {
  ComponentName name;
  std::string dtype;     // a name that must match between source and target; known names fix item_bytes
  std::string encoding;  // how the items are to be read ("plain", or a quantised packing); must match as well
  uint64_t item_bytes = 0;
  uint64_t head_count = 0;
  uint64_t head_dim = 0;  // items of one head in one row
  // 1: one row per token; n: one row per n tokens, as block scales. Empty: a state without a token axis, one row in
  // all.
  std::optional<uint64_t> tokens_per_row = 1;

  bool is_state() const { return !tokens_per_row.has_value(); }
  // Bytes of one head in one row; validation makes sure that it fits.
  uint64_t head_bytes() const { return head_dim * item_bytes; }

  friend bool operator==(const Component&, const Component&) = default;
};

// A component whose rows live differently from those of its group.
struct ComponentLife {
  ComponentName component;
  LiveTokens live;

  friend bool operator==(const ComponentLife&, const ComponentLife&) = default;
};

struct LayerGroup {
  IntervalSet layers;                              // global layer ids
  LiveTokens live = {};                            // of the rows of each component that component_life does not list
  std::vector<Component> components;               // sorted by name
  std::vector<ComponentLife> component_life = {};  // sorted by component

  // Null when there is none. O(log n).
  const Component* find(const ComponentName& name) const;
  // Of the rows of a component of this group. O(log n).
  const LiveTokens& live_of(const ComponentName& name) const;

  friend bool operator==(const LayerGroup&, const LayerGroup&) = default;
};

struct CacheSchema {
  std::vector<LayerGroup> groups;  // sorted by layers; a layer is in one group at most

  IntervalSet layers() const;
  // The group that holds the layer, or null. O(groups).
  const LayerGroup* find_group(uint64_t layer) const;

  friend bool operator==(const CacheSchema&, const CacheSchema&) = default;
};

// The part of a snapshot's interval `tokens` for which rows of the component live by the rule, begun at the row that
// holds the first live token; empty where none lives. [0, 1) for a state component.
Range live_tokens(const LiveTokens& live, const Component& component, Range tokens);
// The same by the rule that the group has for the component.
Range live_tokens(const LayerGroup& group, const Component& component, Range tokens);

// The same, begun at the page of `page_tokens` that holds the first live token: what is kept where whole pages are.
Range live_pages(const LiveTokens& live, const Component& component, Range tokens, uint64_t page_tokens);

// Whether `tokens` begin or end within a row other than where `whole`, which holds them, begins or ends.
bool cuts_row(Range tokens, Range whole, uint64_t tokens_per_row);

// Bytes of one item of a dtype with a fixed size, or empty for a name that is not known here. Sub-byte types are named
// by their packed form (float4_e2m1fn_x2). Source of the names: PyTorch's torch.dtype.
std::optional<uint64_t> known_item_bytes(const std::string& dtype);

// See model/valid.h.
void canonicalize(CacheSchema& schema);
void validate(const CacheSchema& schema, Diagnostics& diagnostics);

}  // namespace crossdock
