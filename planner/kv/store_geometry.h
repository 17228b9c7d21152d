// Where a store layout puts things: the objects of each part, and the arrays in them. docs/formats/store_layout.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/range.h"
#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/kv/store.h"
#include "model/kv/view.h"
#include "model/valid.h"
#include "planner/kv/plan_side.h"

namespace crossdock {

// One component of one layer group in the objects of one part: rows x layers x heads x dims in the layout's order,
// layers and heads packed. It begins at a multiple of its item size.
struct StoreArray {
  uint32_t part = 0;
  uint32_t group = 0;      // of the cache schema
  uint32_t component = 0;  // of the group
  IntervalSet layers;
  // From the begin of the page object, or of the state object.
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
  uint64_t row_count = 0;  // of a page; 1 for a state
  ByteStrides strides;
};

struct StorePartBytes {
  uint64_t page = 0;   // of the object of each page: all components with a token axis
  uint64_t state = 0;  // of the part's one state object: all components without; 0: there is none
};

struct StoreGeometry {
  std::vector<StoreArray> arrays;  // sorted by (part, component name, group)
  std::vector<StorePartBytes> parts;
};

// Empty when a size passes 64 bits (size-overflow) or there are more than 2^20 arrays (plan-limit).
std::optional<StoreGeometry> store_geometry(const Valid<StoreLayout>& layout, Diagnostics& diagnostics);

// A layout in which each distinct region of the source becomes a part, so that each writer puts whole objects: the
// regions of replica 0 of the data-parallel rank (the lowest one when not given). Keys say which layers and heads:
// "l00-39_h0-1". Diagnostics: plan-participant (no such rank), and those of a layout, when regions of several writers
// overlap (context parallelism with different head splits, for instance).
std::optional<Valid<StoreLayout>> layout_of(const Valid<PlacementManifest>& placement, std::optional<uint64_t> dp,
                                            ObjectOrder order, uint64_t page_tokens, const std::string& name,
                                            Diagnostics& diagnostics);

// One object that an upload writes.
struct ObjectShape {
  RegionId id;  // "<part key>/<page number>" or "<part key>/state"; page n holds the tokens from n * page_tokens on
  uint64_t bytes = 0;
  uint32_t part = 0;
};

// The objects of one snapshot and where everything lies in them: what a store manifest will say, before there are
// checksums. Pages without a live token, and objects without a part that lives, are left out.
struct SnapshotObjects {
  Sha256Digest layout_digest;
  Range tokens;
  std::vector<ObjectShape> objects;  // sorted by id
  std::vector<View> views;           // sorted
};

// Of one snapshot.
inline constexpr uint64_t kStoreViewsMax = uint64_t{1} << 22;

// Empty, and a diagnostic is added: size-overflow, or plan-limit past kStoreViewsMax views. `tokens` is the snapshot's
// interval.
// `live_page_tokens`: as of the plan (planner/kv/plan.h).
std::optional<SnapshotObjects> snapshot_objects(const Valid<StoreLayout>& layout, const Sha256Digest& layout_digest,
                                                Range tokens, Diagnostics& diagnostics, uint64_t live_page_tokens = 1);

}  // namespace crossdock
