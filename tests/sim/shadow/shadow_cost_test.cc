// What the shadow costs at the size of a model.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/shadow/shadow_world.h"

namespace crossdock::testing {
namespace {

// Every second layer keeps a window only.
Valid<CacheSchema> with_windows(const Valid<CacheSchema>& model, uint64_t window_tokens) {
  LayerGroup full = model->groups.front();
  LayerGroup windowed = full;
  windowed.live = LiveTokens::window(window_tokens);
  std::vector<Range> even;
  std::vector<Range> odd;
  for (uint64_t layer = 0; layer < full.layers.count(); ++layer)
    (layer % 2 == 0 ? even : odd).push_back(Range(layer, layer + 1));
  full.layers = IntervalSet::from_ranges(even);
  windowed.layers = IntervalSet::from_ranges(odd);
  return valid_or_die(CacheSchema{{full, windowed}});
}

size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct Cost {
  size_t steps = 0;
  double land_us = 0;  // of a step
  double sum_us = 0;
  double bytes = 0;      // that the target's shadow grew, of a step
  double bytes_max = 0;  // and the most on the way
};

// All pairs of one target, and whether it has everything once at the end.
Cost cost_of(const Pools& source, const Pools& target, const Valid<CacheSchema>& schema, uint64_t tokens,
             bool step_by_step) {
  const auto job = job_between(schema, tokens, source, target);
  const auto shared = std::make_shared<const Valid<CacheSchema>>(schema);
  const BindingPointer binding = job->target_bindings.front().as<RuntimeBinding>();
  Shadow to(binding, shared, 0);
  Cost cost;
  double land_s = 0;
  double sum_s = 0;
  double grown = 0;
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  for (const CopyPair& pair : job->copies->pairs()) {
    if (job->copies->targets()[pair.target].text() != (*binding)->participant.text()) continue;
    const std::string& name = job->copies->sources()[pair.source].text();
    const auto of_source = std::ranges::find_if(
        job->source_bindings, [&](const AnyBinding& each) { return each->participant.text() == name; });
    Shadow from(of_source->as<RuntimeBinding>(), shared, 7);
    Diagnostics diagnostics;
    const auto work = pair_work(*job->copies, pair, StepSplit(), BatchLimits(), diagnostics)->work;
    const size_t count = work->steps.size();
    const size_t heap_before = heap_bytes();
    const Clock::time_point begin = Clock::now();
    for (size_t i = 0; i < count; i += step_by_step ? 1 : count)
      EXPECT_EQ(ShadowCopier::land(*work, i, step_by_step ? i + 1 : count, from, to), "");
    land_s += since(begin);
    grown += static_cast<double>(heap_bytes()) - static_cast<double>(heap_before);
    cost.steps += count;
    cost.bytes_max = std::max(cost.bytes_max, grown / static_cast<double>(cost.steps));
    const Clock::time_point sum_begin = Clock::now();
    EXPECT_EQ(from.checksum(StepSpan(work), StepEnd::kSource), to.checksum(StepSpan(work), StepEnd::kTarget));
    sum_s += since(sum_begin);
  }
  EXPECT_EQ(to.check(7, true), "");
  cost.land_us = land_s * 1e6 / static_cast<double>(cost.steps);
  cost.sum_us = sum_s * 1e6 / 2 / static_cast<double>(cost.steps);
  cost.bytes = grown / static_cast<double>(cost.steps);
  return cost;
}

TEST(Shadow, IsCheapAtTheSizeOfAModel) {
  const Valid<CacheSchema> model = keys_and_values(80, 8, 128);
  const PartitionSizes tp8 = {.tp = 8};
  const PartitionSizes tp4_pp2 = {.pp = 2, .tp = 4};
  const Valid<CacheSchema> hybrid = with_windows(model, 4096);
  const struct {
    const char* name;
    Pools source;
    Pools target;
    const Valid<CacheSchema>* schema = nullptr;  // of the model
  } cases[] = {
      {"tp8 to tp4 pp2, nhd", {tp8, 64}, {tp4_pp2, 64}},
      {"tp8 to tp4 pp2, nhd to hnd", {tp8, 64}, {tp4_pp2, 64, AxisOrder::kHnd}},
      {"tp8 to tp8", {tp8, 64}, {tp8, 64}},
      {"pages of 64 to 16", {tp8, 64}, {tp4_pp2, 16}},
      {"a region for each layer", {tp8, 64, AxisOrder::kNhd, true}, {tp4_pp2, 64, AxisOrder::kNhd, true}},
      {"tp8 to cp8", {tp8, 64}, {{.cp = 8, .cp_block_tokens = 16}, 64}},
      {"cp8 to tp4 pp2", {{.cp = 8, .cp_block_tokens = 1}, 64}, {tp4_pp2, 64}},
      {"windows in every second layer", {tp8, 64}, {tp4_pp2, 64}, &hybrid},
  };
  for (const auto& each : cases)
    for (const bool step_by_step : {false, true}) {
      const Cost cost =
          cost_of(each.source, each.target, each.schema == nullptr ? model : *each.schema, 131072, step_by_step);
      std::cout << fmt::format(
          "{}{}: {} steps, {:.2f} us to land one, {:.2f} us to sum one, {:.0f} bytes each, {:.0f} at most\n", each.name,
          step_by_step ? ", step by step" : "", cost.steps, cost.land_us, cost.sum_us, cost.bytes, cost.bytes_max);
      EXPECT_LT(cost.land_us, 200);
    }
}

}  // namespace
}  // namespace crossdock::testing
