#include "executor/transfer_job.h"

#include <fmt/format.h>

#include <algorithm>

namespace crossdock {
namespace {

const InstanceBinding* find_binding(const std::vector<AnyBinding>& bindings, std::string_view participant) {
  for (const AnyBinding& binding : bindings)
    if (binding->participant.text() == participant) return &*binding;
  return nullptr;
}

}  // namespace

PeerIdentity identity_of(const InstanceBinding& binding) {
  return PeerIdentity{binding.participant, binding.instance, binding.generation};
}

// Each list begins with its length, so no two jobs have one text.
Sha256Digest job_digest(const Sha256Digest& plan, const std::vector<Sha256Digest>& source_bindings,
                        const std::vector<Sha256Digest>& target_bindings) {
  Sha256 sha;
  sha.update("crossdock.job " + plan.hex());
  for (const std::vector<Sha256Digest>* list : {&source_bindings, &target_bindings}) {
    sha.update(fmt::format(" {}", list->size()));
    for (const Sha256Digest& each : *list) sha.update(" " + each.hex());
  }
  return sha.finish();
}

// O(pairs * bindings); a job has one binding for each participant.
std::vector<JobPair> pairs_of(const TransferJob& job, Role role, const ParticipantId& participant) {
  std::vector<JobPair> pairs;
  const CopyPlan& plan = *job.copies;
  for (const CopyPair& pair : plan.pairs()) {
    const PlanEnd& source = plan.sources()[pair.source];
    const PlanEnd& target = plan.targets()[pair.target];
    if ((role == Role::kSource ? source : target).text() != participant.text()) continue;
    const InstanceBinding* source_binding = find_binding(job.source_bindings, source.text());
    const InstanceBinding* target_binding = find_binding(job.target_bindings, target.text());
    CHECK(source_binding != nullptr && target_binding != nullptr);  // the planner made sure
    pairs.push_back(JobPair{&pair, identity_of(*source_binding), identity_of(*target_binding)});
  }
  return pairs;
}

std::vector<RegionKey> region_keys(const InstanceBinding& binding) {
  std::vector<RegionKey> keys;
  for (const Region& region : binding.regions) keys.push_back(RegionKey::of(binding, region));
  return keys;
}

// Not only what the plan writes: what is granted and fenced off must not depend on the plan (I3). The runtime has
// reserved these regions for this operation alone.
std::vector<GrantRange> grant_ranges(const InstanceBinding& binding) {
  std::vector<GrantRange> ranges;
  for (const Region& region : binding.regions)
    ranges.push_back(GrantRange{RegionKey::of(binding, region), Range(0, region.bytes)});
  return ranges;
}

// With the lengths of the parts, since a part may have any text.
GrantId grant_id(const HoldId& hold, const InstanceId& instance) {
  return GrantId(fmt::format("{}/{}/{}/{} {}.{}.{}", hold.operation.text(), hold.attempt.text(),
                             hold.participant.text(), instance.text(), hold.operation.text().size(),
                             hold.attempt.text().size(), hold.participant.text().size()));
}

// Writer and target make the steps of a pair from the same plan, each with its own limits. A checksum over the pieces
// in order does not depend on where steps were cut, as long as their order is that of the plan.
std::optional<PairWork> pair_work(const CopyPlan& plan, const CopyPair& pair, const StepSplit& split,
                                  const BatchLimits& batch, Diagnostics& diagnostics) {
  std::optional<BatchedSteps> batched = batch_steps(plan, pair, split, batch, diagnostics);
  if (!batched) return std::nullopt;
  auto work = std::make_shared<CopyWork>();
  RegionNumbers sources(plan.source_regions());
  RegionNumbers targets(plan.target_regions());
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
