// Transfer job: the copies between the bindings of both sides. What a coordinator hands out, and what writers and
// targets work by. It never changes once it is made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/sha256.h"
#include "executor/copy_work.h"
#include "executor/grant.h"
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
  Erased plan;          // the proved plan document that the copies were lowered from
  Sha256Digest digest;  // of the plan and of all bindings; what receipts and reports of this job name
  std::map<ParticipantId, PeerId> source_peers;
  std::map<ParticipantId, PeerId> target_peers;
  bool checksum = true;  // writers and targets compare CRC-32C of what was sent and what has arrived
};

// The digest of a job: of its plan and its bindings, each by its own digest, in order.
Sha256Digest job_digest(const Sha256Digest& plan, const std::vector<Sha256Digest>& source_bindings,
                        const std::vector<Sha256Digest>& target_bindings);

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
// All bytes of all regions of a binding: what a target grants.
std::vector<GrantRange> grant_ranges(const InstanceBinding& binding);
// The grant of a hold in one life of a participant. No two have one name, whatever their parts are called.
GrantId grant_id(const HoldId& hold, const InstanceId& instance);

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
