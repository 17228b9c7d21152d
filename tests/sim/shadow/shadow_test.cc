// What the shadow says of small transfers, of which each cell is known.
#include "sim/shadow/shadow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "executor/kv/kv_transfer.h"
#include "tests/sim/shadow/shadow_world.h"

namespace crossdock::testing {
namespace {

// Keys and values of two layers with 4 heads of 2 items of 2 bytes, 5 tokens: from two ranks, which share the heads,
// into one; pages of 2 tokens. So the first step of the first pair is a page of keys: in each of 2 layers 2 tokens, 8
// bytes of a source's row of 8 into a target's row of 16.
struct SmallWorld {
  SchemaPointer schema = std::make_shared<const Valid<CacheSchema>>(keys_and_values(2, 4, 2));
  std::shared_ptr<TransferJob> job = job_between(*schema, 5, {{.tp = 2}, 2}, {{}, 2});
  World world{*job, schema, {7}, StepSplit()};

  Shadow& target() { return world.targets.front(); }
  const Shadow& source(size_t pair) { return world.sources[world.pairs[pair].source]; }
  const CopyWork& work(size_t pair) { return *world.pairs[pair].work; }
  StepSpan span(size_t pair) { return StepSpan(world.pairs[pair].work); }
  std::string land(size_t pair) {
    return ShadowCopier::land(work(pair), 0, work(pair).steps.size(), source(pair), target());
  }

  // What the shadow says of the first step after a change.
  template <class Spoil>
  std::string say(Spoil spoil) {
    auto spoilt_work = std::make_shared<CopyWork>(work(0));
    spoil(spoilt_work->steps.at(0), *spoilt_work);
    return world.land(Pair{spoilt_work, world.pairs[0].source, world.pairs[0].target}, 0);
  }
};

std::string moved(uint64_t bytes, const std::string& from, const std::string& to) {
  return fmt::format("step 0: writes {} bytes from component key {} of 'p0-t0' to component key {} of 'p0-t0'", bytes,
                     from, to);
}

TEST(Shadow, NamesTheFirstCellThatAShiftedStepGetsWrong) {
  SmallWorld small;
  const std::string first = "layer 0 head 0 token 0";
  EXPECT_EQ(small.say([](CopyStep&, CopyWork&) {}), "");
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.target_offset += 2; }),
            moved(8, first, "layer 0 head 0 token 0 byte 2"));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.source_offset += 1; }),
            moved(8, "layer 0 head 0 token 0 byte 1", first));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.target_offset += 4; }),
            moved(8, first, "layer 0 head 1 token 0"));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.target_offset += 16; }),
            moved(8, first, "layer 0 head 0 token 1"));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.source_offset += 8; }),
            moved(8, "layer 0 head 0 token 1", first));
}

TEST(Shadow, NamesTheFirstCellThatAWrongStrideGetsWrong) {
  SmallWorld small;
  const auto rows = [](CopyStep& step) -> CopyAxis& { return step.axis_list[1]; };
  ASSERT_EQ(small.work(0).steps[0].axis_count, 2u);
  ASSERT_EQ(small.work(0).steps[0].axis_list[1], (CopyAxis{2, 8, 16}));
  EXPECT_EQ(small.say([](CopyStep& step, CopyWork&) { step.axis_list[0].target_stride_bytes += 16; }),
            moved(8, "layer 1 head 0 token 0", "layer 1 head 0 token 1"));
  EXPECT_EQ(small.say([&](CopyStep& step, CopyWork&) { rows(step).target_stride_bytes = 8; }),
            moved(8, "layer 0 head 0 token 1", "layer 0 head 2 token 0"));
  EXPECT_EQ(small.say([&](CopyStep& step, CopyWork&) { std::swap(step.axis_list[0], step.axis_list[1]); }), "")
      << "the order of axes is free";
}

TEST(Shadow, NamesSwappedPages) {
  SmallWorld small;
  EXPECT_EQ(
      small.say([](CopyStep& step, CopyWork& work) { std::swap(step.source_offset, work.steps[1].source_offset); }),
      moved(8, "layer 0 head 0 token 2", "layer 0 head 0 token 0"));
}

TEST(Shadow, NamesBytesThatBelongToNoView) {
  SmallWorld small;
  const RuntimeBinding& binding = small.target().binding();
  const std::set<uint64_t> used(binding.page_tables.at(0).slots.begin(), binding.page_tables.at(0).slots.end());
  uint64_t spare = 0;
  while (used.contains(spare)) ++spare;
  const std::string region = binding.regions[0].id.text();
  EXPECT_EQ(
      small.say([&](CopyStep& step, CopyWork&) { step.target_offset = spare * 32; }),
      fmt::format("step 0: writes byte {} of region '{}' of 'p0-t0', which belongs to no view", spare * 32, region))
      << "a page of somebody else";
  EXPECT_EQ(small.say([&](CopyStep& step, CopyWork&) { step.target_offset += uint64_t{1} << 40; }).substr(0, 19),
            "step 0: writes byte");
  // The last page holds the one token 4; there is no cell behind it.
  const uint64_t last = binding.page_tables.at(0).slots.at(2) * 32;
  const CopyWork& work = small.work(0);
  for (size_t i = 0; i < work.steps.size(); ++i) {
    if (work.steps[i].target_offset != last || work.steps[i].target_region != 0) continue;
    auto longer = std::make_shared<CopyWork>(work);
    longer->steps[i].push_axis(CopyAxis{2, 8, 16});
    const std::string named = ShadowCopier::land(*longer, i, i + 1, small.source(0), small.target());
    EXPECT_TRUE(named.starts_with(fmt::format("step {}: reads byte", i)) && named.ends_with("belongs to no view"))
        << named;
  }
}

TEST(Shadow, NamesARegionOfAnotherGrantOrInstance) {
  SmallWorld small;
  EXPECT_EQ(small.say([](CopyStep&, CopyWork& work) { work.target_regions[0].epoch = 9; }),
            "step 0: writes region 'target/p0-t0/key-g0' epoch 9, which 'p0-t0' does not have");
  EXPECT_NE(small.say([](CopyStep&, CopyWork& work) { work.source_regions[0].owner = InstanceId("other"); }), "");
  CopyWork work = small.work(0);
  work.steps[0].source_region = 17;
  EXPECT_EQ(ShadowCopier::land(work, 0, 1, small.source(0), small.target()),
            "step 0: reads region 17, which has no name");
}

TEST(Shadow, NamesWhatWasNeverWrittenAndWhatWasWrittenTwice) {
  SmallWorld small;
  const std::string first = "component key layer 0 head 0 token 0";
  EXPECT_EQ(small.target().check(7, false), first + ": was never written");
  EXPECT_EQ(small.target().bytes_holding(7), 0u);
  EXPECT_EQ(small.target().total_bytes(), 2u * 2 * 4 * 5 * 4);
  EXPECT_EQ(small.land(0), "");
  EXPECT_EQ(small.target().check(7, true), "component key layer 0 head 2 token 0: was never written");
  EXPECT_EQ(small.target().bytes_holding(7), small.target().total_bytes() / 2);
  EXPECT_EQ(small.land(1), "");
  EXPECT_EQ(small.target().check(7, true), "");
  EXPECT_EQ(small.target().check(8, false), first + ": holds content 7, not 8");
  EXPECT_EQ(ShadowCopier::land(small.work(0), 0, 1, small.source(0), small.target()), "");
  EXPECT_EQ(small.target().check(7, false), "");
  EXPECT_EQ(small.target().check(7, true), first + ": was written 2 times");
}

TEST(Shadow, OfATornStepHoldsNothingThatAnybodyKnowsUntilItLands) {
  SmallWorld small;
  EXPECT_EQ(small.land(0) + small.land(1), "");
  EXPECT_EQ(ShadowCopier::tear(small.work(0), 0, small.source(0), small.target()), "");
  EXPECT_EQ(small.target().check(7, false), "component key layer 0 head 0 token 0: holds nothing that anybody knows");
  EXPECT_EQ(small.target().bytes_holding(0), small.work(0).steps[0].total_bytes());
  EXPECT_EQ(small.land(0), "");
  EXPECT_EQ(small.target().check(7, false), "");
}

TEST(Shadow, TakesWhatTheSourceHoldsWhenAStepLands) {
  SmallWorld small;
  EXPECT_EQ(small.land(0), "");
  small.world.sources[small.world.pairs[1].source].overwrite_all(8);
  EXPECT_EQ(small.land(1), "");
  EXPECT_EQ(small.target().check(7, true), "component key layer 0 head 2 token 0: holds content 8, not 7");
  EXPECT_EQ(small.target().bytes_holding(8), small.target().total_bytes() / 2);
}

TEST(Shadow, SumsAreEqualForEqualContentAndDifferOtherwise) {
  SmallWorld small;
  Shadow& source = small.world.sources[small.world.pairs[0].source];
  const auto sent = [&] { return source.checksum(small.span(0), StepEnd::kSource); };
  const auto arrived = [&] { return small.target().checksum(small.span(0), StepEnd::kTarget); };
  EXPECT_NE(sent(), arrived()) << "nothing has arrived";
  EXPECT_NE(arrived(), arrived()) << "and what lies there is anybody's guess";
  EXPECT_EQ(small.land(0), "");
  EXPECT_EQ(sent(), arrived());
  EXPECT_EQ(arrived(), arrived());
  source.overwrite_all(8);
  EXPECT_NE(sent(), arrived());
  EXPECT_EQ(ShadowCopier::land(small.work(0), 0, 1, source, small.target()), "");
  const uint32_t mixed = arrived();
  EXPECT_NE(sent(), mixed);
  EXPECT_EQ(arrived(), mixed);
  EXPECT_EQ(small.land(0), "");
  EXPECT_EQ(sent(), arrived());
  EXPECT_EQ(ShadowCopier::tear(small.work(0), 0, source, small.target()), "");
  EXPECT_NE(arrived(), sent());
  EXPECT_NE(arrived(), arrived());
  source.overwrite_all(0);
  EXPECT_NE(sent(), sent());
}

TEST(Shadow, SumsDoNotDependOnHowStepsAreCut) {
  const auto schema = std::make_shared<const Valid<CacheSchema>>(keys_and_values(2, 4, 2));
  const auto job = job_between(*schema, 5, {{.tp = 2}, 2}, {{}, 4});
  Rng rng(1);
  for (uint64_t bytes_max = 1; bytes_max <= 32; ++bytes_max) {
    World whole(*job, schema, {7}, StepSplit());
    StepSplit split;
    split.bytes_max = bytes_max;
    World parts(*job, schema, {7}, split);
    // Half of one pair's small steps bring another content.
    const Pair& pair = parts.pairs[0];
    const Pair& same = whole.pairs[0];
    Shadow other(parts.source_bindings[pair.source], schema, 8);
    for (size_t i = 0; i < pair.work->steps.size(); ++i) {
      const Shadow& from = rng.chance(1, 2) ? other : parts.sources[pair.source];
      ASSERT_EQ(ShadowCopier::land(*pair.work, i, i + 1, from, parts.targets[pair.target]), "");
    }
    const Shadow& target = parts.targets[pair.target];
    EXPECT_EQ(target.checksum(StepSpan(same.work), StepEnd::kTarget),
              target.checksum(StepSpan(pair.work), StepEnd::kTarget))
        << bytes_max;
  }
}

// A binding of one participant whose views lie as `offset(layer)` says, one for each layer, in one region.
template <class Offset>
BindingPointer with_layers_at(const BindingPointer& pool, uint64_t region_bytes, std::vector<uint64_t> slots,
                              Offset offset) {
  RuntimeBinding binding = **pool;
  View view = binding.views.at(0);
  const Range layers = view.layers;
  binding.views.clear();
  binding.regions.at(0).bytes = region_bytes;
  binding.page_tables.at(0).slots = std::move(slots);
  for (uint64_t layer = layers.begin(); layer < layers.end(); ++layer) {
    view.layers = Range(layer, layer + 1);
    view.offset_bytes = offset(layer);
    binding.views.push_back(view);
  }
  return std::make_shared<const Valid<RuntimeBinding>>(valid_or_die(std::move(binding)));
}

// Four layers of one component with one head of 2 items of 2 bytes; 4 tokens in pages of one.
struct LayersWorld {
  template <class Offset>
  LayersWorld(uint64_t region_bytes, const std::vector<uint64_t>& slots, Offset offset) {
    CacheSchema one = *keys_and_values(4, 1, 2);
    one.groups[0].components.pop_back();
    schema = std::make_shared<const Valid<CacheSchema>>(valid_or_die(one));
    TransferDocuments documents;
    documents.snapshot = std::make_shared<const Valid<SnapshotDescriptor>>(snapshot_of(*schema, Range(0, 4)));
    documents.source = std::make_shared<const Valid<PlacementManifest>>(placed(*schema, {}, "source"));
    documents.target = std::make_shared<const Valid<PlacementManifest>>(placed(*schema, {}, "target"));
    const Pools pools{{}, 1};
    Bindings sources = pools_of(*documents.source, *documents.snapshot, pools, 1);
    Bindings targets = pools_of(*documents.target, *documents.snapshot, pools, 2);
    targets[0] = with_layers_at(targets[0], region_bytes, slots, offset);
    auto made = KvTransferPlanner(KvTransfer{documents, PlanOptions(), LowerLimits()})
                    .make_job("job", any_bindings(sources), any_bindings(targets));
    EXPECT_TRUE(made.ok()) << made.status().message();
    job = std::move(made).value();
    world = std::make_unique<World>(*job, schema, std::vector<ContentTag>{7}, StepSplit());
  }

  void land_all() {
    for (size_t i = 0; i < world->pairs[0].work->steps.size(); ++i) EXPECT_EQ(world->land(world->pairs[0], i), "");
    EXPECT_EQ(world->difference(), "");
    EXPECT_EQ(world->targets[0].check(7, true), "");
  }

  SchemaPointer schema;
  std::shared_ptr<TransferJob> job;
  std::unique_ptr<World> world;
};

TEST(Shadow, KnowsLayersThatLieInAnyOrder) {
  constexpr uint64_t kPlaces[] = {0, 2, 1, 3};
  LayersWorld layers(64, {0, 1, 2, 3}, [&](uint64_t layer) { return kPlaces[layer] * 16; });
  layers.land_all();
  // The whole pool at once, as if the layers lay in their order.
  auto work = std::make_shared<CopyWork>(*layers.world->pairs[0].work);
  CopyStep& step = work->steps[0];
  const std::vector<uint64_t>& slots = (*layers.job->source_bindings[0].as<RuntimeBinding>())->page_tables[0].slots;
  step = CopyStep{};
  step.source_offset = slots[0] * 4;
  step.bytes = 4;
  step.push_axis(CopyAxis{4, 6 * 4, 16});
  EXPECT_EQ(
      layers.world->land(Pair{work, 0, 0}, 0),
      "step 0: writes 4 bytes from component key layer 1 head 0 token 0 of 'p0-t0' to component key layer 2 head 0 "
      "token 0 of 'p0-t0'");
}

TEST(Shadow, KnowsLayersThatLieBetweenPagesOfOthers) {
  // Two pages of each layer, one layer after the other, and so once more: no layer has a stride that passes over all of
  // its pages.
  LayersWorld layers(64, {0, 1, 8, 9}, [&](uint64_t layer) { return layer * 8; });
  layers.land_all();
}

}  // namespace
}  // namespace crossdock::testing
