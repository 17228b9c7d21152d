// Pool binding: a binding as serving engines lay out their cache, for plans that are lowered without a runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/range.h"
#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/ids.h"
#include "model/kv/axis_order.h"
#include "model/kv/binding.h"
#include "model/kv/placement.h"
#include "model/valid.h"

namespace crossdock {

struct PoolRequest {
  OperationId operation;
  AxisOrder axis_order = AxisOrder::kNhd;
  uint64_t page_tokens = 16;
  // True: a region for each component and layer ("key-007"). False: one for each component and layer group ("key-g0"),
  // its layers one after another. Names that leave no room for the number have their SHA-256 ("HEX~007") instead.
  bool region_per_layer = false;
  // True: the rows of a window or chunk begin at its page, as a serving engine keeps whole pages. False: at the first
  // live one.
  bool whole_pages = false;
  std::optional<uint64_t> shuffle_seed;  // pages lie in random slots of the pool; empty: in the first ones, in order
  uint64_t spare_pages = 0;              // slots of the pool that hold no page
  std::string device_kind = "host";
  // The instance is this and the participant's name, or the SHA-256 of both where that is too long. Two placements that
  // take part in one operation need different ones when they have participants of one name.
  std::string instance_prefix;
};

inline constexpr uint64_t kPoolViewsMax = uint64_t{1} << 20;  // of one binding
inline constexpr uint64_t kPoolSlotsMax = uint64_t{1} << 24;  // of one pool, spare ones included

// The binding of `participant` for the snapshot interval `tokens`. check_binding holds for it, as far as its limits on
// work go. Each participant is an instance of its own, with one device.
//
// A region is a pool of slots, and a slot holds one page of all heads that the participant owns in the region's layers,
// packed. Layers of a region are packed too. A state component has a region of its own and no pages.
//
// Tokens with equal live interval and equal ownership have page tables in common: one for each run of neighbouring
// pages. All tables of the binding number their slots together, so that no two pages lie in one slot. Page boundaries
// lie at multiples of page_tokens, counted from token 0 on, with a cycle in its tokens only. A table begins at such a
// boundary; with a cycle, at the begin of a cycle where one lies between the boundary and the first live token.
//
// Diagnostics: binding-identity (no such participant), token-bounds, field-minimum, token-alignment (a page cuts a row
// of a component), size-overflow, work-limit (more views or slots than above, or pages of all views together than the
// 2^22 of check_binding); and those of the binding itself.
std::optional<Valid<RuntimeBinding>> pool_binding(const Valid<PlacementManifest>& placement,
                                                  const Sha256Digest& placement_digest,
                                                  const ParticipantId& participant, Range tokens,
                                                  const Sha256Digest& snapshot_digest, const PoolRequest& request,
                                                  Diagnostics& diagnostics);

}  // namespace crossdock
