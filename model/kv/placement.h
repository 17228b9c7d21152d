// Placement manifest: which participant owns which part of a cache, without addresses.
// Wire form: docs/formats/placement.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/interval_set.h"
#include "model/diagnostics.h"
#include "model/ids.h"
#include "model/kv/axis_order.h"
#include "model/kv/cache_schema.h"
#include "model/kv/token_ownership.h"
#include "model/topology.h"

namespace crossdock {

// This owner's place in the declared set of those that own the same elements. 0 of 1: the only owner.
struct ReplicaOrdinal {
  uint64_t ordinal = 0;
  uint64_t count = 1;

  friend auto operator<=>(const ReplicaOrdinal&, const ReplicaOrdinal&) = default;
};

// Owns every element of layers x components x heads x tokens, in each row all dims.
struct Ownership {
  IntervalSet layers;                     // global layer ids
  std::vector<ComponentName> components;  // sorted; each exists in every one of the layers
  IntervalSet heads;                      // global head indices
  TokenOwnership tokens;
  ReplicaOrdinal replica;

  friend bool operator==(const Ownership&, const Ownership&) = default;
  friend auto operator<=>(const Ownership&, const Ownership&) = default;
};

// What one participant owns. Nothing at all is legal, for example a pipeline stage without attention layers.
struct Part {
  ParticipantId participant;
  std::vector<Ownership> owns;  // sorted

  friend bool operator==(const Part&, const Part&) = default;
};

// The page size that the runtime uses by default, and the axis order of its pages. Views, not this, say where bytes
// lie.
struct Paging {
  uint64_t page_tokens = 0;                // usual for page tables, which state their own
  AxisOrder axis_order = AxisOrder::kNhd;  // of every page (rule axis-order)

  friend bool operator==(const Paging&, const Paging&) = default;
};

struct PlacementManifest {
  std::string name;
  ResourceId resource;
  RevisionId revision;
  CacheSchema cache_schema;
  Topology topology;
  Range tokens = Range::all();  // what token ownership has to cover
  std::optional<Paging> paging;
  std::vector<Part> parts;  // sorted by participant, one for each of the topology

  // Null when there is none. O(log n).
  const Part* find_part(const ParticipantId& participant) const;

  friend bool operator==(const PlacementManifest&, const PlacementManifest&) = default;
};

// See model/valid.h. Coverage: each DP rank owns every (layer, component, head, token) exactly once, or as a declared
// replica set. O(n log n) in the intervals of all ownerships.
void canonicalize(PlacementManifest& placement);
void validate(const PlacementManifest& placement, Diagnostics& diagnostics);

}  // namespace crossdock
