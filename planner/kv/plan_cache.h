// Plan cache: plans by the identities of both documents and the options, and lowered plans by plan and runtime
// instances. Serving moves snapshot after snapshot between the same placements; then the plan is there already, and of
// a lowering only the pages are computed again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/lru_map.h"
#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/kv/binding.h"
#include "model/kv/binding_rules.h"
#include "model/valid.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/verify_plan.h"

namespace crossdock {

// Counts are of entries; the least recently used one is dropped. The other limits are those of each plan that is made.
struct PlanCacheLimits {
  size_t plan_count_max = 64;
  size_t lowered_count_max = 64;
  PlanLimits plan = {};
  VerifyLimits verify = {};
  LowerLimits lower = {};
};

// Since the cache was made; failures are not counted.
struct PlanCacheCounts {
  uint64_t plans_made = 0;
  uint64_t plans_reused = 0;
  uint64_t lowered_made = 0;
  uint64_t lowered_rebound = 0;

  friend bool operator==(const PlanCacheCounts&, const PlanCacheCounts&) = default;
};

// The bindings of one side, and the placement that their context is of.
struct CachedSide {
  const BindingContext& context;
  std::shared_ptr<const Valid<PlacementManifest>> placement;
  std::vector<BindingPointer> bindings;
};

// Not for use by several threads at once; what it returns may be shared.
class PlanCache {
 public:
  using PlanPointer = std::shared_ptr<const Valid<TransferPlan>>;

  explicit PlanCache(const PlanCacheLimits& limits);

  // The plan for these documents and options, made and proved (verify_plan) when it is not there. Null, and diagnostics
  // are added, when it cannot be; failures are not kept.
  PlanPointer plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                   Diagnostics& diagnostics);

  // A live plan with its bindings. When the last bindings between the same instances differ in their pages only
  // (BoundSide::rebind), patterns are reused and nothing but page runs is computed; else the bindings are checked in
  // full (BoundSide::bind) and lowered. Bindings and placements are kept while they serve as the template.
  std::shared_ptr<const LoweredPlan> lower(const PlanPointer& plan, CachedSide source, CachedSide target,
                                           Diagnostics& diagnostics);

  const PlanCacheCounts& counts() const { return counts_; }
  size_t plan_count() const { return plans_.size(); }
  size_t lowered_count() const { return lowered_.size(); }

 private:
  using PlanKey = std::tuple<Sha256Digest, Sha256Digest, PlanOptions>;
  using Names = std::vector<std::pair<ParticipantId, InstanceId>>;
  using LoweredKey = std::tuple<const void*, Names, Names>;  // the plan, which the entry keeps alive

  struct Template {
    PlanPointer plan;
    // What the bound sides refer to.
    std::vector<BindingPointer> source_bindings;
    std::vector<BindingPointer> target_bindings;
    std::shared_ptr<const Valid<PlacementManifest>> source_placement;
    std::shared_ptr<const Valid<PlacementManifest>> target_placement;
    BoundSide source;
    BoundSide target;
    std::shared_ptr<const LoweredPlan> lowered;
  };

  PlanCacheLimits limits_;
  PlanCacheCounts counts_;
  LruMap<PlanKey, PlanPointer> plans_;
  LruMap<LoweredKey, Template> lowered_;
};

}  // namespace crossdock
