// The shadow of a random transfer against real bytes: steps are copied tag by tag, and the shadow has to know of each
// byte what its tag says.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "executor/kv/kv_transfer.h"
#include "model/wire/documents.h"
#include "tests/sim/shadow/shadow_world.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {
namespace {

Bindings share(const std::vector<Valid<RuntimeBinding>>& all) {
  Bindings bindings;
  for (const Valid<RuntimeBinding>& binding : all)
    bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(binding));
  return bindings;
}

// Null when the targets need nothing.
std::unique_ptr<World> random_world(const Draw& draw, Choices& choices) {
  Choices schema_choices(draw, Section::kSchema);
  Choices token_choices(draw, Section::kTokens);
  Choices source_choices(draw, Section::kSource);
  Choices target_choices(draw, Section::kTarget);
  Choices source_binding_choices(draw, Section::kSourceBinding);
  Choices target_binding_choices(draw, Section::kTargetBinding);
  const auto schema = std::make_shared<const Valid<CacheSchema>>(random_schema(schema_choices));
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(*schema, random_tokens(token_choices));
  TransferDocuments documents;
  documents.snapshot = std::make_shared<const Valid<SnapshotDescriptor>>(snapshot);
  documents.source = std::make_shared<const Valid<PlacementManifest>>(
      random_placement(*schema, snapshot->tokens, "source", source_choices));
  documents.target = std::make_shared<const Valid<PlacementManifest>>(
      random_placement(*schema, snapshot->tokens, "target", target_choices));
  const Bindings sources =
      share(random_bindings(*documents.source, snapshot, BindingStyle::kAny, source_binding_choices));
  const Bindings targets =
      share(random_bindings(*documents.target, snapshot, BindingStyle::kAny, target_binding_choices));
  if (sources.empty() || targets.empty()) return nullptr;
  RC_LOG() << fmt::format("source.json: {}\ntarget.json: {}\nsnapshot.json: {}\n", to_json(*documents.source),
                          to_json(*documents.target), to_json(snapshot));
  for (const BindingPointer& binding : sources) RC_LOG() << "source-binding.json: " << to_json(*binding) << "\n";
  for (const BindingPointer& binding : targets) RC_LOG() << "target-binding.json: " << to_json(*binding) << "\n";
  const auto made = KvTransferPlanner(KvTransfer{documents, PlanOptions(), LowerLimits()})
                        .make_job("job", any_bindings(sources), any_bindings(targets));
  if (!made.ok()) RC_LOG() << made.status().message();
  RC_ASSERT(made.ok() || made.status().message().find("[plan-empty]") != std::string::npos);
  if (!made.ok()) return nullptr;
  const std::shared_ptr<TransferJob>& job = made.value();
  StepSplit split;
  if (choices.chance(1, 3)) split.bytes_max = choices.between(1, 40);
  std::vector<ContentTag> contents = {7};
  if (choices.chance(1, 2)) contents = {7, 8, 9};
  return std::make_unique<World>(*job, schema, contents, split);
}

struct StepOfPair {
  size_t pair;
  size_t step;
};

std::vector<StepOfPair> all_steps(const World& world) {
  std::vector<StepOfPair> steps;
  for (size_t pair = 0; pair < world.pairs.size(); ++pair)
    for (size_t step = 0; step < world.pairs[pair].work->steps.size(); ++step) steps.push_back({pair, step});
  return steps;
}

void check_checksums(World& world, Rng& rng) {
  for (const Pair& pair : world.pairs) {
    const size_t begin = rng.below(pair.work->steps.size());
    const StepSpan span(pair.work, begin, begin + 1 + rng.below(std::min<size_t>(pair.work->steps.size() - begin, 6)));
    NaiveMemory& source = world.naive_sources[pair.source];
    NaiveMemory& target = world.naive_targets[pair.target];
    const std::vector<ContentTag> sent = contents_of(span, StepEnd::kSource, source, target);
    const std::vector<ContentTag> arrived = contents_of(span, StepEnd::kTarget, source, target);
    const bool equal = sent == arrived && std::ranges::count(sent, ContentTag{0}) == 0;
    RC_ASSERT((world.sources[pair.source].checksum(span, StepEnd::kSource) ==
               world.targets[pair.target].checksum(span, StepEnd::kTarget)) == equal);
  }
}

RC_GTEST_PROP(Shadow, KnowsOfEachByteWhatItsTagSays, (const Draw& draw, uint64_t seed)) {
  Choices choices(draw, Section::kOptions);
  const std::unique_ptr<World> world = random_world(draw, choices);
  RC_PRE(world != nullptr);
  Rng rng(seed);
  std::vector<StepOfPair> steps = all_steps(*world);
  rng.shuffle(steps);
  const bool with_faults = choices.chance(1, 2);
  const size_t look_at = rng.below(steps.size() + 1);
  bool clean = world->contents.size() == 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Pair& pair = world->pairs[steps[i].pair];
    if (i == look_at) {
      RC_ASSERT(world->difference() == "");
      check_checksums(*world, rng);
    }
    if (with_faults && rng.chance(1, 8)) {
      clean = false;
      RC_ASSERT(world->tear(pair, steps[i].step) == "");
      if (rng.chance(1, 2)) continue;
    }
    if (with_faults && rng.chance(1, 8)) {
      clean = false;
      RC_ASSERT(world->land(pair, steps[i].step) == "");
    }
    if (with_faults && rng.chance(1, 16)) {
      clean = false;
      world->overwrite(pair.source, rng.below(12));
    }
    if (with_faults && rng.chance(1, 32)) {
      clean = false;
      world->overwrite_target(pair.target, rng.below(12));
    }
    RC_ASSERT(world->land(pair, steps[i].step) == "");
  }
  RC_ASSERT(world->difference() == "");
  check_checksums(*world, rng);
  if (clean)
    for (const Shadow& target : world->targets) RC_ASSERT(target.check(7, true) == "");
  RC_CLASSIFY(clean, "clean");
  RC_CLASSIFY(with_faults, "with faults");
}

// Something about a step that a wrong lowering could have wrong.
CopyStep spoilt(CopyStep step, const CopyWork& work, Rng& rng) {
  const auto shifted = [&](uint64_t value) {
    uint64_t by = 1 + rng.below(4);
    if (rng.chance(1, 3)) by = step.bytes;
    if (step.axis_count > 0 && rng.chance(1, 2)) {
      const CopyAxis& axis = step.axis_list[rng.below(step.axis_count)];
      by = rng.chance(1, 2) ? axis.source_stride_bytes : axis.target_stride_bytes;
    }
    return rng.chance(1, 2) || value < by ? value + by : value - by;
  };
  switch (rng.below(step.axis_count > 0 ? 7 : 4)) {
    case 0: step.source_offset = shifted(step.source_offset); break;
    case 1: step.target_offset = shifted(step.target_offset); break;
    case 2: step.bytes += 1 + rng.below(step.bytes); break;
    case 3: {
      const CopyStep& other = work.steps[rng.below(work.steps.size())];
      if (rng.chance(1, 2))
        step.source_offset = other.source_offset;
      else
        step.target_region = other.target_region, step.target_offset = other.target_offset;
      break;
    }
    case 4: {
      uint64_t& stride = step.axis_list[rng.below(step.axis_count)].source_stride_bytes;
      stride = shifted(stride);
      break;
    }
    case 5: {
      uint64_t& stride = step.axis_list[rng.below(step.axis_count)].target_stride_bytes;
      stride = shifted(stride);
      break;
    }
    default: ++step.axis_list[rng.below(step.axis_count)].extent;
  }
  return step;
}

RC_GTEST_PROP(Shadow, NamesAStepExactlyWhenAByteOfItIsWrong, (const Draw& draw, uint64_t seed)) {
  Choices choices(draw, Section::kOptions);
  const std::unique_ptr<World> world = random_world(draw, choices);
  RC_PRE(world != nullptr);
  Rng rng(seed);
  size_t wrong_count = 0;
  for (int times = 0; times < 40; ++times) {
    Pair pair = world->pairs[rng.below(world->pairs.size())];
    auto work = std::make_shared<CopyWork>(*pair.work);
    const size_t step = rng.below(work->steps.size());
    work->steps[step] = spoilt(work->steps[step], *work, rng);
    pair.work = work;
    const bool right = is_right(world->bytes(pair, step));
    const std::string named = world->land(pair, step);
    RC_LOG() << fmt::format("step {} is {}: {}\n", step, right ? "right" : "wrong", named);
    RC_ASSERT(named.empty() == right);
    RC_ASSERT(right || named.starts_with(fmt::format("step {}: ", step)));
    wrong_count += !right;
  }
  RC_ASSERT(world->difference() == "");
  RC_CLASSIFY(wrong_count > 30, "most are wrong");
}

}  // namespace
}  // namespace crossdock::testing
