#include "executor/kv/kv_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"
#include "planner/kv/plan_json.h"
#include "planner/kv/plan_side.h"

namespace crossdock {
namespace {

// A job lists bindings by participant, in whatever order they were exported (I7).
void sort_by_participant(std::vector<AnyBinding>& bindings) {
  std::sort(bindings.begin(), bindings.end(),
            [](const AnyBinding& a, const AnyBinding& b) { return a->participant < b->participant; });
}

// All are of KV cache: kv_bindings() made sure.
std::vector<Sha256Digest> digests_of(const std::vector<AnyBinding>& bindings) {
  std::vector<Sha256Digest> digests;
  digests.reserve(bindings.size());
  for (const AnyBinding& binding : bindings) digests.push_back(digest(*binding.as<RuntimeBinding>()));
  return digests;
}

PlanCacheLimits limits_of(const KvTransfer& transfer) {
  PlanCacheLimits limits;
  limits.lower = transfer.lower;
  return limits;
}

}  // namespace

// A binding comes from another process and may be of any resource; as() is null when it is not this one.
std::optional<std::vector<BindingPointer>> kv_bindings(std::span<const AnyBinding> bindings, Diagnostics& diagnostics) {
  std::vector<BindingPointer> all;
  for (const AnyBinding& binding : bindings) {
    all.push_back(binding.as<RuntimeBinding>());
    if (all.back() != nullptr) continue;
    diagnostics.add(Rule::kBindingIdentity, "",
                    fmt::format("the binding of participant '{}' is not of a KV cache", binding->participant.text()));
    return std::nullopt;
  }
  return all;
}

std::vector<AnyBinding> any_bindings(const std::vector<BindingPointer>& bindings) {
  return {bindings.begin(), bindings.end()};
}

std::shared_ptr<const Valid<TransferPlan>> kv_plan(const Erased& plan) { return plan.as<Valid<TransferPlan>>(); }

KvTransferPlanner::KvTransferPlanner(KvTransfer transfer, std::shared_ptr<SharedPlanCache> cache)
    : transfer_(std::move(transfer)),
      cache_(cache != nullptr ? std::move(cache) : std::make_shared<SharedPlanCache>(limits_of(transfer_))) {}

Result<std::shared_ptr<TransferJob>> KvTransferPlanner::make_job(const std::string& name,
                                                                 std::vector<AnyBinding> sources,
                                                                 std::vector<AnyBinding> targets) const {
  Diagnostics diagnostics(name);
  sort_by_participant(sources);
  sort_by_participant(targets);
  std::optional<std::vector<BindingPointer>> source_bindings = kv_bindings(sources, diagnostics);
  std::optional<std::vector<BindingPointer>> target_bindings = kv_bindings(targets, diagnostics);
  if (!source_bindings || !target_bindings) return diagnostics.to_status();

  const TransferDocuments& documents = transfer_.documents;
  const BindingContext source(*documents.source, documents.snapshot.get());
  const BindingContext target(*documents.target, documents.snapshot.get());
  PlanOptions options = transfer_.plan;
  // All participants know the snapshot, so the plan is one for its tokens and not for all tokens.
  options.snapshot_tokens = (*documents.snapshot)->tokens;
  auto job = std::make_shared<TransferJob>();
  // Planning under the lock of the cache: two coordinators of equal documents would otherwise plan twice. What comes
  // out is shared and never changes, so it is used outside the lock.
  cache_->with([&](PlanCache& cache) {
    const PlanCache::PlanPointer plan =
        cache.plan(PlanSide(*documents.source, source.placement_digest()),
                   PlanSide(*documents.target, target.placement_digest()), options, diagnostics);
    // `diagnostics` says why; the caller below finds no copies.
    if (plan == nullptr) return;
    job->plan = Erased(plan);
    job->copies = cache.lower(plan, CachedSide{source, documents.source, std::move(*source_bindings)},
                              CachedSide{target, documents.target, std::move(*target_bindings)}, diagnostics);
  });
  if (job->copies == nullptr) return diagnostics.to_status();
  job->digest = job_digest(digest(*kv_plan(job->plan)), digests_of(sources), digests_of(targets));
  job->source_bindings = std::move(sources);
  job->target_bindings = std::move(targets);
  return job;
}

}  // namespace crossdock
