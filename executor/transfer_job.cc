#include "executor/transfer_job.h"

#include <algorithm>

#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/proved_plan.h"

namespace crossdock {
namespace {

const RuntimeBinding* find_binding(const std::vector<BindingPointer>& bindings, std::string_view participant) {
  for (const BindingPointer& binding : bindings)
    if ((*binding)->participant.text() == participant) return &**binding;
  return nullptr;
}

void sort_bindings(std::vector<BindingPointer>& bindings) {
  std::sort(bindings.begin(), bindings.end(),
            [](const BindingPointer& a, const BindingPointer& b) { return (*a)->participant < (*b)->participant; });
}

}  // namespace

PeerIdentity identity_of(const RuntimeBinding& binding) {
  return PeerIdentity{binding.participant, binding.instance, binding.generation};
}

std::shared_ptr<TransferJob> make_job(const TransferDocuments& documents, std::vector<BindingPointer> source_bindings,
                                      std::vector<BindingPointer> target_bindings, const PlanOptions& options,
                                      const LowerLimits& limits, Diagnostics& diagnostics) {
  auto job = std::make_shared<TransferJob>();
  job->documents = documents;
  sort_bindings(source_bindings);
  sort_bindings(target_bindings);
  job->source_bindings = std::move(source_bindings);
  job->target_bindings = std::move(target_bindings);

  const BindingContext source_context(*documents.source, documents.snapshot.get());
  const BindingContext target_context(*documents.target, documents.snapshot.get());
  const std::optional<BoundSide> source =
      BoundSide::bind(source_context, pointers_to(job->source_bindings), diagnostics);
  const std::optional<BoundSide> target =
      BoundSide::bind(target_context, pointers_to(job->target_bindings), diagnostics);
  if (!source || !target) return nullptr;

  const PlanSide source_side(*documents.source, source_context.placement_digest());
  const PlanSide target_side(*documents.target, target_context.placement_digest());
  PlanOptions plan_options = options;
  plan_options.snapshot_tokens = (*documents.snapshot)->tokens;
  std::optional<Valid<TransferPlan>> plan =
      make_proved_plan(source_side, target_side, plan_options, PlanLimits(), VerifyLimits(), diagnostics);
  if (!plan) return nullptr;
  std::optional<LoweredPlan> lowered = lower(**plan, *source, *target, LowerOptions(), limits, diagnostics);
  if (!lowered) return nullptr;
  job->plan = std::make_shared<const Valid<TransferPlan>>(std::move(*plan));
  job->lowered = std::make_shared<const LoweredPlan>(std::move(*lowered));
  return job;
}

std::vector<JobPair> pairs_of(const TransferJob& job, Role role, const ParticipantId& participant) {
  std::vector<JobPair> pairs;
  const TransferPlan& plan = **job.plan;
  for (const LoweredPair& pair : job.lowered->pairs()) {
    const PlanEnd& source = plan.sources[pair.source];
    const PlanEnd& target = plan.targets[pair.target];
    if ((role == Role::kSource ? source : target).text() != participant.text()) continue;
    const RuntimeBinding* source_binding = find_binding(job.source_bindings, source.text());
    const RuntimeBinding* target_binding = find_binding(job.target_bindings, target.text());
    CHECK(source_binding != nullptr && target_binding != nullptr);  // lower() made sure
    pairs.push_back(JobPair{&pair, identity_of(*source_binding), identity_of(*target_binding)});
  }
  return pairs;
}

std::vector<RegionKey> region_keys(const RuntimeBinding& binding) {
  std::vector<RegionKey> keys;
  for (const Region& region : binding.regions) keys.push_back(RegionKey::of(binding, region));
  return keys;
}

std::optional<PairWork> pair_work(const LoweredPlan& lowered, const LoweredPair& pair, const StepSplit& split,
                                  const BatchLimits& batch, Diagnostics& diagnostics) {
  std::optional<BatchedSteps> batched = batch_steps(lowered, pair, split, batch, diagnostics);
  if (!batched) return std::nullopt;
  auto work = std::make_shared<CopyWork>();
  RegionNumbers sources(lowered.source_regions());
  RegionNumbers targets(lowered.target_regions());
  work->steps = std::move(batched->steps);
  for (CopyStep& step : work->steps) {
    step.source_region = sources.number_of(step.source_region);
    step.target_region = targets.number_of(step.target_region);
  }
  work->source_regions = std::move(sources).keys();
  work->target_regions = std::move(targets).keys();
  PairWork result{work, {}, pair.counts.bytes};
  size_t begin = 0;
  for (const size_t end : batched->batch_ends) {
    result.batches.emplace_back(work, begin, end);
    begin = end;
  }
  return result;
}

}  // namespace crossdock
