// The planner: two sides in, an exact and compact copy plan out. Pure: no I/O, no clock, no threads.
//
// For each (tensor, layer set) of the targets the overlapping layer sets of the sources are found once. A target's
// region then finds the sources of its heads by binary search in lists that are sorted by heads, one list for each
// (tensor, layer set, replica ordinal). With T target regions, S source regions and E edges:
// O((S + T + E) log(S + E) + distinct pairs of overlapping layer sets).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/diagnostics.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_options.h"
#include "planner/kv/plan_side.h"

namespace crossdock {

// Whether the snapshot is one that both sides are about: the same resource, and the source's cache schema, whose digest
// the caller gives. Adds diagnostics (plan-identity) when not.
void check_snapshot(const SnapshotDescriptor& snapshot, const PlanSide& source,
                    const Sha256Digest& source_schema_digest, const PlanSide& target, Diagnostics& diagnostics);

// Empty, and diagnostics are added, when the documents do not fit together (plan-schema: which field of which
// component; plan-identity; plan-participant), something that is required has no source (plan-gap), the whole plan
// moves nothing although something is required (plan-empty), or a limit is passed (plan-limit). With kBalanced `report`
// gets the loads. The plan does not refer to the sides. Equal documents, options and limits give an equal plan (I7). It
// is not proved; callers go through make_proved_plan() (planner/kv/prepare.h).
std::optional<Valid<TransferPlan>> make_plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                             const PlanLimits& limits, Diagnostics& diagnostics,
                                             BalanceReport* report = nullptr);

}  // namespace crossdock
