#include "planner/kv/plan_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/kv/pool_binding.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kTokens = 100;
constexpr uint64_t kPageTokens = 16;
constexpr uint64_t kPages = 7;
constexpr uint64_t kPoolSlots = 40;

Valid<PlacementManifest> three_layers(uint64_t tp) { return placed(attention(3, 4), {.tp = tp}); }

// A pool for keys and one for values, pages at random slots of it.
std::vector<BindingPointer> bindings_of(const BindingContext& context, uint64_t seed,
                                        const std::string& operation = "op") {
  std::vector<BindingPointer> list;
  const Valid<PlacementManifest> placement = valid_or_die(context.placement());
  for (const Part& part : placement->parts) {
    PoolRequest request;
    request.operation = OperationId(operation);
    request.page_tokens = kPageTokens;
    request.shuffle_seed = seed + list.size();
    request.spare_pages = kPoolSlots - kPages;
    request.instance_prefix = fmt::format("{}-participants-", placement->parts.size());
    Diagnostics diagnostics;
    auto binding = pool_binding(placement, context.placement_digest(), part.participant, Range(0, kTokens),
                                Sha256Digest(), request, diagnostics);
    EXPECT_TRUE(binding.has_value()) << diagnostic_lines(diagnostics);
    list.push_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*binding)));
  }
  return list;
}

std::vector<CopyStep> all_steps(const LoweredPlan& lowered) {
  std::vector<CopyStep> steps;
  for (const LoweredPair& pair : lowered.pairs())
    lowered.for_each_step(pair, [&](const CopyStep& step) { steps.push_back(step); });
  return steps;
}

class PlanCacheTest : public ::testing::Test {
 protected:
  PlanCache::PlanPointer plan(PlanCache& cache, const PlanOptions& options = {}) {
    const PlanSide from(source, source_context.placement_digest());
    const PlanSide to(target, target_context.placement_digest());
    PlanCache::PlanPointer made = cache.plan(from, to, options, diagnostics);
    EXPECT_NE(made, nullptr) << (diagnostics.empty() ? "" : diagnostics.kept().front().to_line());
    return made;
  }
  std::shared_ptr<const LoweredPlan> lower(PlanCache& cache, const PlanCache::PlanPointer& made,
                                           std::vector<BindingPointer> from, std::vector<BindingPointer> to) {
    return cache.lower(
        made, CachedSide{source_context, std::make_shared<const Valid<PlacementManifest>>(source), std::move(from)},
        CachedSide{target_context, std::make_shared<const Valid<PlacementManifest>>(target), std::move(to)},
        diagnostics);
  }
  // The same without a cache.
  std::vector<CopyStep> lowered_anew(const PlanCache::PlanPointer& made, const std::vector<BindingPointer>& from,
                                     const std::vector<BindingPointer>& to) {
    PlanCache fresh((PlanCacheLimits()));
    return all_steps(*lower(fresh, made, from, to));
  }

  Valid<PlacementManifest> source = three_layers(4);
  Valid<PlacementManifest> target = three_layers(2);
  BindingContext source_context = BindingContext(source);
  BindingContext target_context = BindingContext(target);
  Diagnostics diagnostics = Diagnostics("cache");
};

TEST_F(PlanCacheTest, GivesTheSamePlanForTheSameDocumentsAndOptions) {
  PlanCache cache((PlanCacheLimits()));
  const auto first = plan(cache);
  EXPECT_EQ(plan(cache), first);
  PlanOptions options;
  options.tokens = Range(0, 32);
  EXPECT_NE(plan(cache, options), first);
  EXPECT_EQ(cache.counts(), (PlanCacheCounts{2, 1, 0, 0}));
}

TEST_F(PlanCacheTest, HoldsNoMoreThanItsLimitAndForgetsWhatWasUsedLongestAgo) {
  PlanCacheLimits limits;
  limits.plan_count_max = 2;
  PlanCache cache(limits);
  std::vector<PlanOptions> options(3);
  for (size_t i = 0; i < options.size(); ++i) options[i].tokens = Range(0, 16 * (i + 1));
  const auto first = plan(cache, options[0]);
  plan(cache, options[1]);
  EXPECT_EQ(plan(cache, options[0]), first);
  plan(cache, options[2]);  // options[1] goes
  EXPECT_EQ(cache.plan_count(), 2u);
  EXPECT_EQ(plan(cache, options[0]), first);
  EXPECT_EQ(cache.counts().plans_made, 3u);
  plan(cache, options[1]);
  EXPECT_EQ(cache.counts().plans_made, 4u);
}

TEST_F(PlanCacheTest, DoesNotKeepAFailure) {
  PlanCache cache((PlanCacheLimits()));
  PlanOptions options;
  options.source_dp = 5;
  const PlanSide from(source, source_context.placement_digest());
  const PlanSide to(target, target_context.placement_digest());
  EXPECT_EQ(cache.plan(from, to, options, diagnostics), nullptr);
  EXPECT_TRUE(diagnostics.has(Rule::kPlanParticipant));
  EXPECT_EQ(cache.plan_count(), 0u);
}

TEST_F(PlanCacheTest, NewPagesAndOperationsReuseThePatternsAndGiveTheStepsOfALoweringAnew) {
  PlanCache cache((PlanCacheLimits()));
  const auto made = plan(cache);
  for (uint64_t round = 0; round < 20; ++round) {
    const std::string operation = "op-" + std::to_string(round);
    const auto from = bindings_of(source_context, 2 * round, operation);
    const auto to = bindings_of(target_context, 2 * round + 1, operation);
    const auto lowered = lower(cache, made, from, to);
    ASSERT_NE(lowered, nullptr) << diagnostics.kept().front().to_line();
    EXPECT_EQ(all_steps(*lowered), lowered_anew(made, from, to)) << "round " << round;
  }
  EXPECT_EQ(cache.counts().lowered_made, 1u);
  EXPECT_EQ(cache.counts().lowered_rebound, 19u);
}

TEST_F(PlanCacheTest, WhatItGaveOutBeforeStaysAsItWas) {
  PlanCache cache((PlanCacheLimits()));
  const auto made = plan(cache);
  const auto first = lower(cache, made, bindings_of(source_context, 1), bindings_of(target_context, 2));
  const std::vector<CopyStep> before = all_steps(*first);
  const auto second = lower(cache, made, bindings_of(source_context, 3), bindings_of(target_context, 4));
  EXPECT_EQ(all_steps(*first), before);
  EXPECT_NE(all_steps(*second), before);
}

TEST_F(PlanCacheTest, OtherViewsAreLoweredAnew) {
  PlanCache cache((PlanCacheLimits()));
  const auto made = plan(cache);
  lower(cache, made, bindings_of(source_context, 1), bindings_of(target_context, 2));
  auto from = bindings_of(source_context, 3);
  RuntimeBinding changed = **from[0];
  for (Region& region : changed.regions) region.bytes += 64;
  for (View& view : changed.views) view.offset_bytes = 64;
  Diagnostics none;
  from[0] = std::make_shared<const Valid<RuntimeBinding>>(*Valid<RuntimeBinding>::make(changed, none));
  const auto to = bindings_of(target_context, 4);
  const auto lowered = lower(cache, made, from, to);
  ASSERT_NE(lowered, nullptr);
  EXPECT_EQ(cache.counts().lowered_made, 2u);
  EXPECT_EQ(all_steps(*lowered), lowered_anew(made, from, to));
}

TEST_F(PlanCacheTest, RefusesPagesPastThePoolAsAFullCheckDoes) {
  PlanCache cache((PlanCacheLimits()));
  const auto made = plan(cache);
  lower(cache, made, bindings_of(source_context, 1), bindings_of(target_context, 2));
  auto from = bindings_of(source_context, 3);
  RuntimeBinding changed = **from[0];
  changed.page_tables[0].slots[3] = 3 * kPoolSlots;  // past the last layer's pages
  Diagnostics none;
  from[0] = std::make_shared<const Valid<RuntimeBinding>>(*Valid<RuntimeBinding>::make(changed, none));
  EXPECT_EQ(lower(cache, made, from, bindings_of(target_context, 4)), nullptr);
  EXPECT_FALSE(diagnostics.empty());
}

// Keys and values in one region, one pool behind the other in each layer, with room behind the last.
RuntimeBinding in_one_region(const Valid<RuntimeBinding>& binding) {
  RuntimeBinding one = *binding;
  const uint64_t pool = one.views[0].strides.layer;
  one.regions = {one.regions[0]};
  one.regions[0].bytes = pool * 8;
  for (size_t i = 0; i < one.views.size(); ++i) {
    one.views[i].region = one.regions[0].id;
    one.views[i].offset_bytes = i * pool;
    one.views[i].strides.layer = 2 * pool;
  }
  return one;
}

TEST_F(PlanCacheTest, APageThatWouldComeToLieOnAnotherPoolIsNotTaken) {
  const auto bound_with = [&](uint64_t slot) {
    RuntimeBinding one = in_one_region(*bindings_of(source_context, 1)[0]);
    one.page_tables[0].slots = {0, 1, 2, 3, 4, 5, slot};
    Diagnostics none;
    return std::make_shared<const Valid<RuntimeBinding>>(*Valid<RuntimeBinding>::make(one, none));
  };
  const auto first = bound_with(6);
  const Valid<RuntimeBinding>* list[] = {first.get()};
  std::optional<BoundSide> side = BoundSide::bind(source_context, list, diagnostics);
  ASSERT_TRUE(side.has_value()) << diagnostics.kept().front().to_line();
  const auto last_free = bound_with(kPoolSlots - 1);
  const auto on_the_values = bound_with(kPoolSlots + 1);  // the values' page 1
  const Valid<RuntimeBinding>* good[] = {last_free.get()};
  const Valid<RuntimeBinding>* bad[] = {on_the_values.get()};
  EXPECT_FALSE(side->rebind(bad));
  EXPECT_TRUE(side->rebind(good));
  EXPECT_FALSE(BoundSide::bind(source_context, bad, diagnostics).has_value());
  EXPECT_TRUE(BoundSide::bind(source_context, good, diagnostics).has_value());
}

TEST_F(PlanCacheTest, RefusesSidesOfTwoOperations) {
  PlanCache cache((PlanCacheLimits()));
  const auto made = plan(cache);
  lower(cache, made, bindings_of(source_context, 1), bindings_of(target_context, 2));
  EXPECT_EQ(lower(cache, made, bindings_of(source_context, 1, "a"), bindings_of(target_context, 2, "b")), nullptr);
  EXPECT_TRUE(diagnostics.has(Rule::kPlanIdentity));
}

// Placements that are read anew for each operation, in one process that is source and target.
TEST_F(PlanCacheTest, ARebindTakesTheNewPlacementsForThoseThatAreGone) {
  PlanCache cache((PlanCacheLimits()));
  PlanCache::PlanPointer made;
  for (uint64_t round = 0; round < 3; ++round) {
    const auto from_placement = std::make_shared<const Valid<PlacementManifest>>(three_layers(4));
    const auto to_placement = std::make_shared<const Valid<PlacementManifest>>(three_layers(2));
    const BindingContext from_context(*from_placement);
    const BindingContext to_context(*to_placement);
    made = cache.plan(PlanSide(*from_placement, from_context.placement_digest()),
                      PlanSide(*to_placement, to_context.placement_digest()), {}, diagnostics);
    ASSERT_NE(made, nullptr);
    const auto in_one_process = [&](const BindingContext& context, const std::string& prefix) {
      std::vector<BindingPointer> list;
      for (const BindingPointer& binding : bindings_of(context, round)) {
        RuntimeBinding changed = **binding;
        changed.instance = InstanceId("one");
        for (Region& region : changed.regions)
          region.id = RegionId(prefix + changed.participant.text() + region.id.text());
        for (View& view : changed.views)
          view.region = RegionId(prefix + changed.participant.text() + view.region.text());
        Diagnostics none;
        list.push_back(std::make_shared<const Valid<RuntimeBinding>>(*Valid<RuntimeBinding>::make(changed, none)));
      }
      return list;
    };
    const auto lowered =
        cache.lower(made, CachedSide{from_context, from_placement, in_one_process(from_context, "s-")},
                    CachedSide{to_context, to_placement, in_one_process(to_context, "t-")}, diagnostics);
    ASSERT_NE(lowered, nullptr) << diagnostics.kept().front().to_line();
  }
  EXPECT_EQ(cache.counts(), (PlanCacheCounts{1, 2, 1, 2}));
}

TEST_F(PlanCacheTest, BatchesHoldTheStepsOfAPairCutToTheirLimits) {
  PlanCache cache((PlanCacheLimits()));
  const auto lowered = lower(cache, plan(cache), bindings_of(source_context, 1), bindings_of(target_context, 2));
  const LoweredPair& pair = lowered->pairs().front();
  // One head of 16 bytes, 100 tokens, 3 layers, keys and values: 9,600 bytes.
  ASSERT_EQ(pair.counts.bytes, 9'600u);
  StepSplit split;
  split.source_registration_bytes = 1000;
  BatchLimits limits;
  limits.step_count_max = 4;
  limits.bytes_max = 100;
  const std::optional<BatchedSteps> batched = batch_steps(*lowered, pair, split, limits, diagnostics);
  ASSERT_TRUE(batched.has_value());
  EXPECT_EQ(batched->steps_before, pair.counts.steps);
  EXPECT_GE(batched->steps.size(), 96u);
  uint64_t bytes = 0;
  size_t begin = 0;
  for (const size_t end : batched->batch_ends) {
    uint64_t in_batch = 0;
    for (size_t i = begin; i < end; ++i) {
      const CopyStep& step = batched->steps[i];
      in_batch += step.total_bytes();
      EXPECT_EQ(step.source_offset / 1000, (step.source_offset + step.source_span() - 1) / 1000);
    }
    EXPECT_LE(end - begin, 4u);
    EXPECT_LE(in_batch, 100u);
    bytes += in_batch;
    begin = end;
  }
  EXPECT_EQ(begin, batched->steps.size());
  EXPECT_EQ(bytes, 9'600u);
  split.step_count_max = 10;
  EXPECT_FALSE(batch_steps(*lowered, pair, split, limits, diagnostics).has_value());
  EXPECT_TRUE(diagnostics.has(Rule::kPlanLimit));
}

}  // namespace
}  // namespace crossdock::testing
