#include "planner/kv/plan_cache.h"

#include <algorithm>

#include "planner/kv/prepare.h"

// Why the key of a plan is complete: a plan depends on the two documents, which their digests name, and on the options
// (I7). Limits are those of the cache. Why the key of a lowering has names and not bindings: what may differ under
// equal names is exactly what rebind() checks.
namespace crossdock {
namespace {

// Sorted: the order in which bindings arrive does not matter.
std::vector<std::pair<ParticipantId, InstanceId>> names_of(const std::vector<BindingPointer>& bindings) {
  std::vector<std::pair<ParticipantId, InstanceId>> names;
  names.reserve(bindings.size());
  for (const BindingPointer& binding : bindings) names.emplace_back((*binding)->participant, (*binding)->instance);
  std::sort(names.begin(), names.end());
  return names;
}

// Takes new pages; false when they cannot be taken, or the bindings are not about this placement and snapshot.
bool rebind(BoundSide& side, const BindingContext& context, const std::vector<const Valid<RuntimeBinding>*>& bindings) {
  Diagnostics none;
  for (const Valid<RuntimeBinding>* binding : bindings) check_binding_identity(**binding, context, none);
  return none.empty() && side.rebind(bindings, &context);
}

}  // namespace

PlanCache::PlanCache(const PlanCacheLimits& limits)
    : limits_(limits), plans_(limits.plan_count_max), lowered_(limits.lowered_count_max) {}

PlanCache::PlanPointer PlanCache::plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                       Diagnostics& diagnostics) {
  const PlanKey key(source.digest(), target.digest(), options);
  if (const PlanPointer* known = plans_.find(key)) {
    ++counts_.plans_reused;
    return *known;
  }
  // Proved once, when it is made; what comes from the cache has been proved (I1).
  std::optional<ProvedPlan> made = make_proved_plan(source, target, options, limits_.plan, limits_.verify, diagnostics);
  if (!made) return nullptr;
  ++counts_.plans_made;
  return plans_.put(key, std::make_shared<const Valid<TransferPlan>>(std::move(made->plan)));
}

std::shared_ptr<const LoweredPlan> PlanCache::lower(const PlanPointer& plan, CachedSide source, CachedSide target,
                                                    Diagnostics& diagnostics) {
  const std::vector<const Valid<RuntimeBinding>*> source_list = pointers_to(source.bindings);
  const std::vector<const Valid<RuntimeBinding>*> target_list = pointers_to(target.bindings);
  const auto make_template = [&](BoundSide new_source, BoundSide new_target, LoweredPlan lowered) {
    return Template{plan,
                    std::move(source.bindings),
                    std::move(target.bindings),
                    std::move(source.placement),
                    std::move(target.placement),
                    std::move(new_source),
                    std::move(new_target),
                    std::make_shared<const LoweredPlan>(std::move(lowered))};
  };
  const LoweredKey key(plan.get(), names_of(source.bindings), names_of(target.bindings));
  if (Template* known = lowered_.find(key)) {
    // Copies: when the second side cannot be rebound, the template keeps both old ones. The diagnostics of a failed
    // rebind are dropped, because the full bind below finds and reports the same.
    BoundSide new_source = known->source;
    BoundSide new_target = known->target;
    Diagnostics none;
    const bool takes_pages = rebind(new_source, source.context, source_list) &&
                             rebind(new_target, target.context, target_list) &&
                             check_sides(**plan, new_source, new_target, none);
    if (takes_pages) {
      ++counts_.lowered_rebound;
      LoweredPlan lowered = known->lowered->rebound(**plan, new_source, new_target);
      // The template refers to the newest bindings from here on, so the older ones are free to go.
      *known = make_template(std::move(new_source), std::move(new_target), std::move(lowered));
      return known->lowered;
    }
  }
  std::optional<BoundSide> new_source = BoundSide::bind(source.context, source_list, diagnostics);
  std::optional<BoundSide> new_target = BoundSide::bind(target.context, target_list, diagnostics);
  if (!new_source || !new_target) return nullptr;
  std::optional<LoweredPlan> lowered =
      crossdock::lower(**plan, *new_source, *new_target, LowerOptions{}, limits_.lower, diagnostics);
  if (!lowered) return nullptr;
  ++counts_.lowered_made;
  return lowered_.put(key, make_template(std::move(*new_source), std::move(*new_target), std::move(*lowered))).lowered;
}

}  // namespace crossdock
