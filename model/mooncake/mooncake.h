// Placements, snapshots and resolved bindings in the JSON of Mooncake's mooncake.reshard.kv_cache, as of October 2026.
//
// Reading is strict: a field that is unknown, missing or of another type is a diagnostic, and every identity that a
// document states (topology_id, placement_id, placement_digest, snapshot_id, snapshot_digest, digest) is computed again
// from the content. Lists without an order may stand in any order; the identities are those of the sorted form. Writing
// gives that sorted form, the text that Mooncake itself would give. What it has no place for is a diagnostic
// (Rule::kForeignForm), never left out. The one exception is a device: Mooncake knows only its endpoint and addresses.
//
// What one form says and the other does not:
//   A part without layers still states heads in Mooncake. They are read only when they equal those of the same TP rank
//   in its own DP rank's first pipeline stage with layers (then in any DP rank's; then all heads, replica 0 of 1), and
//   they are written so.
//   A range of a Mooncake binding is one layer, has no pages, and keeps the heads of a token together. Writing gives
//   one range per layer, per page, and per head where a view is head-major.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/diagnostics.h"
#include "model/kv/binding.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"
#include "model/wire/json.h"

namespace crossdock::mooncake {

// Each is empty, and diagnostics are added, when the document is refused.

std::optional<Valid<PlacementManifest>> read_placement(std::string_view json, const JsonLimits& limits,
                                                       Diagnostics& diagnostics);
std::optional<std::string> write_placement(const Valid<PlacementManifest>& placement, Diagnostics& diagnostics);

// A Mooncake snapshot does not name its cache schema: the placement's is taken.
std::optional<Valid<SnapshotDescriptor>> read_snapshot(std::string_view json, const Valid<PlacementManifest>& placement,
                                                       const JsonLimits& limits, Diagnostics& diagnostics);
std::optional<std::string> write_snapshot(const Valid<SnapshotDescriptor>& snapshot, Diagnostics& diagnostics);

// A binding names a placement and a snapshot by their Mooncake identities: both must be the ones given.
// Whether ranges lie within what the participant owns is not looked at: see check_binding in model/kv/binding_rules.h.
std::optional<Valid<RuntimeBinding>> read_binding(std::string_view json, const Valid<PlacementManifest>& placement,
                                                  const Valid<SnapshotDescriptor>& snapshot, const JsonLimits& limits,
                                                  Diagnostics& diagnostics);
// The three must fit together (check_binding).
std::optional<std::string> write_binding(const Valid<RuntimeBinding>& binding,
                                         const Valid<PlacementManifest>& placement,
                                         const Valid<SnapshotDescriptor>& snapshot, Diagnostics& diagnostics);

}  // namespace crossdock::mooncake
