// Proof that a placement covers a cache: per DP rank, group and component a sweep over layers, in each slab a sweep
// over heads, in each cell of heads a comparison of token ownerships and replicas.
#pragma once

#include <cstdint>

#include "model/diagnostics.h"
#include "model/kv/placement.h"

namespace crossdock {

inline constexpr uint64_t kPlacementWorkMax = uint64_t{1} << 26;
// Runs of layers within one group times components times stated token intervals, of all ownerships together. Each run
// becomes a claim.
inline constexpr uint64_t kPlacementPiecesMax = uint64_t{1} << 23;

// Adds a diagnostic with its coordinates for each gap, overlap and wrong replica set. The other rules of the placement
// must hold. Returns the work done in steps (one for each active claim of each slab), at most about `work_max`: past it
// the diagnostic is "work-limit". A placement whose stages do not interleave needs O(n) steps after sorting.
uint64_t check_placement_coverage(const PlacementManifest& placement, uint64_t work_max, Diagnostics& diagnostics);

}  // namespace crossdock
