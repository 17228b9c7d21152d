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
#include "planner/kv/plan_side.h"

namespace crossdock {

// How a source is chosen among those that own the same elements.
enum class SourceSelection {
  kDeterministic,  // the source replica at index (target's replica ordinal mod their number)
  kBalanced,       // so that the most loaded source NIC carries the least; see planner/kv/balance.h
};

// Participants that share a network interface. One that is in no group has its own.
struct NicGroup {
  std::string name;
  std::vector<PlanEnd> participants;

  friend auto operator<=>(const NicGroup&, const NicGroup&) = default;
};

struct PlanOptions {
  std::optional<Range> snapshot_tokens;  // the snapshot's interval: windows keep their last tokens only
  Range tokens = Range::all();           // plan only these of it
  // The source's data-parallel rank. Without it the target's rank mod the number of available ranks, sorted, decides;
  // with kBalanced any rank may serve.
  std::optional<uint64_t> source_dp;
  std::optional<uint64_t> target_dp;  // only targets of this rank
  std::vector<PlanEnd> targets;       // only these; empty: all
  std::vector<PlanEnd> sources;       // take from these only ("explicit"); empty: from all. Without source_dp one of
                                      // their ranks serves a target, as above; kBalanced combines them
  SourceSelection selection = SourceSelection::kDeterministic;
  std::vector<NicGroup> nics;

  friend auto operator<=>(const PlanOptions&, const PlanOptions&) = default;
};

// Whether the snapshot is one that both sides are about: the same resource, and the source's cache schema, whose digest
// the caller gives. Adds diagnostics (plan-identity) when not.
void check_snapshot(const SnapshotDescriptor& snapshot, const PlanSide& source,
                    const Sha256Digest& source_schema_digest, const PlanSide& target, Diagnostics& diagnostics);

// What the most loaded source NIC sends, in bytes. Tokens without end are weighed as kWeighedTokens of them.
struct BalanceReport {
  uint64_t deterministic_bytes = 0;
  uint64_t balanced_bytes = 0;
  uint64_t bound_bytes = 0;  // no choice of sources can do with less
};

inline constexpr uint64_t kWeighedTokens = 32768;

// Empty, and diagnostics are added, when the documents do not fit together (plan-schema: which field of which
// component; plan-identity; plan-participant), something that is required has no source (plan-gap), the whole plan
// moves nothing although something is required (plan-empty), or a limit is passed (plan-limit). With kBalanced `report`
// gets the loads.
std::optional<Valid<TransferPlan>> make_plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                             const PlanLimits& limits, Diagnostics& diagnostics,
                                             BalanceReport* report = nullptr);

}  // namespace crossdock
