// Random placements, right and spoiled, against the element-by-element definition of coverage; and their wire form.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/rng.h"
#include "model/kv/partition.h"
#include "model/kv/placement_coverage.h"
#include "model/wire/documents.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kTokens = 24;  // a common multiple of all cycles drawn here

// Layers in one to three groups; heads that tp can share out.
CacheSchema draw_schema(Rng& rng) {
  const uint64_t layer_count = 1 + rng.below(6);
  const uint64_t group_count = 1 + rng.below(std::min<uint64_t>(3, layer_count));
  std::vector<std::vector<Range>> layers(group_count);
  for (uint64_t layer = 0; layer < layer_count; ++layer)
    layers[layer < group_count ? layer : rng.below(group_count)].push_back(Range(layer, layer + 1));
  CacheSchema schema;
  for (const std::vector<Range>& of_group : layers) {
    LayerGroup group{IntervalSet::from_ranges(of_group), LiveTokens::all(), {}};
    const uint64_t component_count = 1 + rng.below(2);
    for (uint64_t i = 0; i < component_count; ++i) {
      Component component{ComponentName(i == 0 ? "key" : "value"),
                          "float16",
                          "plain",
                          2,
                          uint64_t{1} << rng.below(3),
                          1 + rng.below(3),
                          1};
      if (rng.chance(1, 6)) component.tokens_per_row = std::nullopt;
      group.components.push_back(component);
    }
    schema.groups.push_back(group);
  }
  return schema;
}

Valid<PlacementManifest> draw_placement(Rng& rng) {
  PartitionRequest request;
  request.name = "drawn";
  request.resource = ResourceId("r");
  request.revision = RevisionId("1");
  request.engine = rng.chance(1, 2) ? Engine::kVllm : Engine::kSglang;
  request.tp = uint64_t{1} << rng.below(4);
  request.pp = 1 + rng.below(3);
  request.dp = 1 + rng.below(2);
  request.cp = 1 + rng.below(3);
  request.cp_block_tokens = 1 + rng.below(4);
  const Valid<CacheSchema> schema = valid_or_die(draw_schema(rng));
  request.layer_count = schema->layers().hull().end();
  Diagnostics diagnostics;
  std::optional<Valid<PlacementManifest>> placement = partition(schema, request, diagnostics);
  RC_ASSERT(placement.has_value());
  return *placement;
}

// One small change somewhere in the ownerships; it may or may not break the coverage.
void spoil(PlacementManifest& placement, Rng& rng) {
  std::vector<Ownership*> ownerships;
  for (Part& part : placement.parts)
    for (Ownership& ownership : part.owns) ownerships.push_back(&ownership);
  Ownership& ownership = *ownerships[rng.below(ownerships.size())];
  switch (rng.below(6)) {
    case 0: ownership.heads = IntervalSet{Range(0, ownership.heads.hull().end())}; break;
    case 1: ownership.replica = {rng.below(2), 2}; break;
    case 2:
      ownership.layers = IntervalSet{Range(ownership.layers.hull().begin(), ownership.layers.hull().begin() + 1)};
      break;
    case 3:
      ownership.tokens =
          *ownerships[rng.below(ownerships.size())] == ownership ? ownership.tokens : TokenOwnership(AllTokens());
      break;
    case 4: ownership = *ownerships[rng.below(ownerships.size())]; break;
    default:
      if (auto* cyclic = std::get_if<CyclicTokens>(&ownership.tokens))
        cyclic->blocks = IntervalSet{Range(0, 1 + rng.below(cyclic->cycle_blocks))};
      break;
  }
}

RC_GTEST_PROP(PlacementCoverage, AgreesWithLookingAtEachElement, (uint64_t seed)) {
  Rng rng(seed);
  PlacementManifest placement = *draw_placement(rng);
  if (rng.chance(1, 3)) {
    const uint64_t begin = rng.below(kTokens);
    placement.tokens = Range(begin, begin + 1 + rng.below(kTokens - begin));
  }
  const uint64_t spoil_count = rng.below(3);
  for (uint64_t i = 0; i < spoil_count; ++i) spoil(placement, rng);
  Diagnostics diagnostics;
  const bool is_valid = Valid<PlacementManifest>::make(placement, diagnostics).has_value();
  // Other rules than coverage may be broken too; then nothing is said about coverage.
  const bool about_coverage =
      std::all_of(diagnostics.kept().begin(), diagnostics.kept().end(), [](const Diagnostic& diagnostic) {
        return diagnostic.rule == Rule::kCoverageGap || diagnostic.rule == Rule::kCoverageOverlap ||
               diagnostic.rule == Rule::kReplicaSet;
      });
  RC_PRE(about_coverage);
  RC_CLASSIFY(is_valid, "covered");
  canonicalize(placement);
  const bool is_covered = naive_is_covered(placement, placement.tokens.intersect(Range(0, kTokens)));
  if (is_valid) RC_ASSERT(is_covered);
  // Over bounded tokens two ownerships may come to the same although they say it differently; replicas must not.
  if (placement.tokens == Range::all()) RC_ASSERT(is_valid == is_covered);
}

RC_GTEST_PROP(PlacementWire, ReadingGivesBackWhatWasWritten, (uint64_t seed)) {
  Rng rng(seed);
  const Valid<PlacementManifest> placement = draw_placement(rng);
  Diagnostics diagnostics;
  const auto again = read_document<PlacementManifest>(to_json(placement), JsonLimits(), diagnostics);
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == placement);
  RC_ASSERT(to_json(*again) == to_json(placement));
}

// Arrays whose order means nothing, in another order; the others (an interval's two ends) as they are.
void shuffle_lists(nlohmann::json& value, const std::string& key, Rng& rng) {
  if (!value.is_structured()) return;
  if (value.is_array() && !value.empty() && (value[0].is_structured() || key == "components")) rng.shuffle(value);
  for (auto& [name, item] : value.items()) shuffle_lists(item, value.is_array() ? key : name, rng);
}

RC_GTEST_PROP(PlacementWire, TheOrderOfListsAndTheSpacingDoNotChangeTheDigest, (uint64_t seed)) {
  Rng rng(seed);
  const Valid<PlacementManifest> placement = draw_placement(rng);
  nlohmann::json json = nlohmann::json::parse(to_json(placement));
  shuffle_lists(json, "", rng);
  Diagnostics diagnostics;
  const auto again = read_document<PlacementManifest>(json.dump(2), JsonLimits(), diagnostics);
  RC_ASSERT(again.has_value());
  RC_ASSERT(digest(*again) == digest(placement));
}

// Steps of the coverage check of a placement of the given size.
uint64_t coverage_work(uint64_t dp) {
  CacheSchema schema{{LayerGroup{IntervalSet{Range(0, 128)}, LiveTokens::all(), {}}}};
  for (const char* name : {"key", "value"})
    schema.groups[0].components.push_back(Component{ComponentName(name), "bfloat16", "plain", 2, 128, 128, 1});
  PartitionRequest request;
  request.name = "large";
  request.resource = ResourceId("r");
  request.revision = RevisionId("1");
  request.tp = 64;
  request.pp = 8;
  request.dp = dp;
  request.layer_count = 128;
  Diagnostics diagnostics;
  const auto placement = partition(valid_or_die(schema), request, diagnostics);
  return check_placement_coverage(**placement, kPlacementWorkMax, diagnostics);
}

TEST(PlacementCoverage, NeedsStepsInProportionToTheParticipants) {
  // Per participant and component one step as a claim of a slab of layers, one as an owner of a cell of heads, and four
  // for its token interval.
  EXPECT_EQ(coverage_work(1), 512u * 2 * 6);
  EXPECT_EQ(coverage_work(20), 10240u * 2 * 6);
}

}  // namespace
}  // namespace crossdock::testing
