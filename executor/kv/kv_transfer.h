// Live transfers of KV cache: the planner that a coordinator is given.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/planners.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/plan_cache.h"

namespace crossdock {

// The documents of a transfer, which all participants know from the start. None is null.
struct TransferDocuments {
  std::shared_ptr<const Valid<PlacementManifest>> source;
  std::shared_ptr<const Valid<PlacementManifest>> target;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
};

// Values only: a recording writes them, and a replay makes an equal planner from them.
struct KvTransfer {
  TransferDocuments documents;
  PlanOptions plan;
  LowerLimits lower;
};

// Plans and lowerings of earlier transfers, for planners on several threads. Serving moves snapshot after snapshot
// between the same placements: given one cache, their coordinators plan once and compute pages only afterwards. What a
// job holds does not depend on the cache.
class SharedPlanCache {
 public:
  explicit SharedPlanCache(const PlanCacheLimits& limits = {}) : cache_(limits) {}

  // Calls use(PlanCache&), one call at a time.
  template <class Use>
  auto with(Use use) {
    const std::lock_guard lock(mutex_);
    return use(cache_);
  }
  PlanCacheCounts counts() {
    return with([](const PlanCache& cache) { return cache.counts(); });
  }

 private:
  std::mutex mutex_;
  PlanCache cache_;
};

class KvTransferPlanner : public TransferPlanner {
 public:
  // Without a cache it keeps one of its own.
  explicit KvTransferPlanner(KvTransfer transfer, std::shared_ptr<SharedPlanCache> cache = nullptr);

  Result<std::shared_ptr<TransferJob>> make_job(const std::string& name, std::vector<AnyBinding> sources,
                                                std::vector<AnyBinding> targets) const override;

  const KvTransfer& transfer() const { return transfer_; }

 private:
  KvTransfer transfer_;
  std::shared_ptr<SharedPlanCache> cache_;
};

// The KV bindings behind them, in their order. Empty, with a diagnostic (binding-identity), when one is of another
// resource.
std::optional<std::vector<BindingPointer>> kv_bindings(std::span<const AnyBinding> bindings, Diagnostics& diagnostics);

// The same bindings as protocols and runtimes take them.
std::vector<AnyBinding> any_bindings(const std::vector<BindingPointer>& bindings);

// The plan that a job of KV cache was made of; null when the job is of another resource.
std::shared_ptr<const Valid<TransferPlan>> kv_plan(const Erased& plan);

}  // namespace crossdock
