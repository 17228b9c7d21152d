// Transfer job: one plan with the bindings of both sides, lowered. What a coordinator hands out, and what writers and
// targets work by. It never changes once it is made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/copy_work.h"
#include "executor/ids.h"
#include "executor/message.h"
#include "executor/ports.h"
#include "model/diagnostics.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"

namespace crossdock {

// The documents of a transfer, which everybody who takes part in it knows from the start.
struct TransferDocuments {
  std::shared_ptr<const Valid<PlacementManifest>> source;
  std::shared_ptr<const Valid<PlacementManifest>> target;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
};

struct TransferJob {
  TransferDocuments documents;
  std::vector<BindingPointer> source_bindings;  // sorted by participant
  std::vector<BindingPointer> target_bindings;
  std::shared_ptr<const Valid<TransferPlan>> plan;
  std::shared_ptr<const LoweredPlan> lowered;
  std::map<ParticipantId, PeerId> source_peers;
  std::map<ParticipantId, PeerId> target_peers;
  bool checksum = false;  // writers and targets compare CRC-32C of what was sent and what has arrived
};

// What one source writes to one target.
struct JobPair {
  const LoweredPair* pair;
  PeerIdentity source;
  PeerIdentity target;
};

PeerIdentity identity_of(const RuntimeBinding& binding);

// Plans, proves, binds and lowers; who the peers are is for the caller to add. Null, and diagnostics are added, when
// documents or bindings do not fit together.
std::shared_ptr<TransferJob> make_job(const TransferDocuments& documents, std::vector<BindingPointer> source_bindings,
                                      std::vector<BindingPointer> target_bindings, const PlanOptions& options,
                                      const LowerLimits& limits, Diagnostics& diagnostics);

// The pairs of one source, or of one target; in the order of the plan's lists.
std::vector<JobPair> pairs_of(const TransferJob& job, Role role, const ParticipantId& participant);

// The keys of all regions of a binding.
std::vector<RegionKey> region_keys(const RuntimeBinding& binding);

// The steps of a pair as they are posted: cut by `split`, in consecutive batches.
struct PairWork {
  std::shared_ptr<const CopyWork> work;
  std::vector<StepSpan> batches;
  uint64_t bytes = 0;
};
std::optional<PairWork> pair_work(const LoweredPlan& lowered, const LoweredPair& pair, const StepSplit& split,
                                  const BatchLimits& batch, Diagnostics& diagnostics);

}  // namespace crossdock
