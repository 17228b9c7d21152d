// Transfer job: the copies between the bindings of both sides. What a coordinator hands out, and what writers and
// targets work by. It never changes once it is made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "executor/copy_work.h"
#include "executor/ids.h"
#include "executor/message.h"
#include "model/any_binding.h"
#include "model/diagnostics.h"
#include "model/erased.h"
#include "planner/copy/copy_plan.h"

namespace crossdock {

struct TransferJob {
  std::vector<AnyBinding> source_bindings;  // sorted by participant
  std::vector<AnyBinding> target_bindings;
  std::shared_ptr<const CopyPlan> copies;
  Erased plan;  // the proved plan document that the copies were lowered from
  std::map<ParticipantId, PeerId> source_peers;
  std::map<ParticipantId, PeerId> target_peers;
  bool checksum = false;  // writers and targets compare CRC-32C of what was sent and what has arrived
};

// What one source writes to one target.
struct JobPair {
  const CopyPair* pair;
  PeerIdentity source;
  PeerIdentity target;
};

PeerIdentity identity_of(const InstanceBinding& binding);

// The pairs of one source, or of one target; in the order of the plan's lists.
std::vector<JobPair> pairs_of(const TransferJob& job, Role role, const ParticipantId& participant);

// The keys of all regions of a binding.
std::vector<RegionKey> region_keys(const InstanceBinding& binding);

// The steps of a pair as they are posted: cut by `split`, in consecutive batches.
struct PairWork {
  std::shared_ptr<const CopyWork> work;
  std::vector<StepSpan> batches;
  // That the pair copies, as the plan counts them.
  uint64_t bytes = 0;
};
// Empty, with a diagnostic (plan-limit), when there would be more steps than split.step_count_max.
std::optional<PairWork> pair_work(const CopyPlan& plan, const CopyPair& pair, const StepSplit& split,
                                  const BatchLimits& batch, Diagnostics& diagnostics);

}  // namespace crossdock
