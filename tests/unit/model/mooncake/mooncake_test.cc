// Golden documents and the conformance data of model/mooncake.
//
// The expected identities of tests/golden/mooncake were computed with Python, in this way: with
//   text = json.dumps(value, sort_keys=True, separators=(",", ":")); digest = hashlib.sha256(text.encode()).hexdigest()
// topology_id is "sha256:" + digest of the topology without its id, plus "schema": "kv-cache-topology"; placement_id
// the same of the placement without its two identities, plus "schema": "complete-kv-cache-placement"; placement_digest
// the digest of that with placement_id added. A snapshot likewise ("kv-cache-snapshot"); a binding's digest is that of
// its content plus "schema": "kv-cache-resolved-binding". Participants and parts are sorted by id, layers by number,
// regions by id, ranges by (layer, component, token_start, head_start, region_id, offset_bytes).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>

#include "model/kv/binding_rules.h"
#include "tests/support/paths.h"
#include "tests/unit/model/mooncake/mooncake_fixture.h"

namespace crossdock::mooncake {
namespace {

// Present in a checkout with the conformance data beside it; without it the golden documents are the test.
const std::filesystem::path kConformance = source_path("../shared/conformance/mooncake");

std::vector<Json> conformance_cases() {
  std::vector<Json> cases;
  if (!std::filesystem::exists(kConformance)) return cases;
  for (int i = 0; i < 30; ++i)
    cases.push_back(
        Json::parse(read_file(kConformance / fmt::format("case-{:03}.json", i), uint64_t{1} << 24).value()));
  return cases;
}

Json conformance_file(const std::string& name) {
  return Json::parse(read_file(kConformance / name, uint64_t{1} << 24).value());
}

template <class Document>
std::string written(const std::optional<Document>& text, const Diagnostics& diagnostics) {
  EXPECT_TRUE(text.has_value()) << first_diagnostic(diagnostics);
  return text.value_or("");
}

void expect_round_trip(const std::string& placement_text) {
  Diagnostics diagnostics;
  EXPECT_EQ(written(write_placement(placement_of(placement_text), diagnostics), diagnostics), placement_text);
}

// Reads a binding against its placement and snapshot and checks that they fit: what a planner does before it plans.
Diagnostics diagnostics_of_binding(const std::string& json, const Valid<PlacementManifest>& placement,
                                   const Valid<SnapshotDescriptor>& snapshot) {
  Diagnostics diagnostics;
  const auto binding = read_binding(json, placement, snapshot, JsonLimits{}, diagnostics);
  if (binding) check_binding(*binding, placement, snapshot, diagnostics);
  return diagnostics;
}

TEST(MooncakeGolden, PlacementsComeBackByteForByteWithTheirIdentities) {
  struct Golden {
    std::string name, topology_id, placement_id, placement_digest;
  };
  const std::array<Golden, 3> placements = {
      {{"placement_gqa_pp2_tp2", "sha256:b151b7e5bf957b0ad98d3bc583273d29df21e39ffc8b454ab8aff818b74fc031",
        "sha256:f2058aedcf7f2c31c839f25f7c8a86508aa37ede6cf3d8798161c9c2d373788a",
        "f10271271ddd7fc32f812379c43567405c4b05dafdb7a34d1917d202b90a2bc9"},
       {"placement_replicas", "sha256:44598de00caa6d8966f89b4c0c8e10e6e5580fef0d14666c8f0a39fcb1353588",
        "sha256:e64b3e1340f040c0e967b6f17ab910c772d7ea935e24181efa870ab6bd428956",
        "c7047ba3b3cffb87c52da621555ca2ea7c3b052d7eb6a66092e651fbb7e0cddb"},
       {"placement_dp2", "sha256:ec2f755bcd2a0e024267b270ee11053ea6f2cdbc3dae0a75212efd768d2b50e6",
        "sha256:a7c3763de4774e3339583e8e3fc2dca3ab1b26202438b36279c564bf6d9a93a6",
        "6f171cddbb909dcb587a87dd357bbabbceeb67548177d2750570eaf34fcccd0c"}}};
  for (const Golden& expected : placements) {
    SCOPED_TRACE(expected.name);
    const std::string text = golden(expected.name);
    expect_round_trip(text);
    const Json json = Json::parse(text);
    EXPECT_EQ(json["topology"]["topology_id"], expected.topology_id);
    EXPECT_EQ(json["placement_id"], expected.placement_id);
    EXPECT_EQ(json["placement_digest"], expected.placement_digest);
  }
}

TEST(MooncakeGolden, SnapshotAndBindingComeBackByteForByteWithTheirIdentities) {
  const auto placement = placement_of(golden("placement_gqa_pp2_tp2"));
  const auto snapshot = snapshot_of(golden("snapshot"), placement);
  Diagnostics diagnostics;
  EXPECT_EQ(written(write_snapshot(snapshot, diagnostics), diagnostics), golden("snapshot"));
  const Json snapshot_json = Json::parse(golden("snapshot"));
  EXPECT_EQ(snapshot_json["snapshot_id"], "sha256:d9516789464ecd3a5ad3e2e01cd992e894fb6decb8fc3b6a4ca943ecced77a13");
  EXPECT_EQ(snapshot_json["snapshot_digest"], "c5aa898d225bd15fcea1f67a2c0612694938effc1edd4219544e3b26ff868f0e");

  const auto binding = binding_of(golden("binding"), placement, snapshot);
  EXPECT_EQ(written(write_binding(binding, placement, snapshot, diagnostics), diagnostics), golden("binding"));
  EXPECT_EQ(Json::parse(golden("binding"))["digest"],
            "cf16fc7baf517b0d89f6a694769f00a25f2b1b12b3f2975c501d1badacde9f84");
  check_binding(binding, placement, snapshot, diagnostics);
  EXPECT_EQ(first_diagnostic(diagnostics), "");
}

TEST(MooncakeGolden, PlacementMeansWhatItsTextSays) {
  const auto placement = placement_of(golden("placement_gqa_pp2_tp2"));
  EXPECT_EQ(placement->name, "prefill");
  EXPECT_EQ(placement->resource, ResourceId("kv:session-7"));
  EXPECT_EQ(placement->revision, RevisionId("step-40"));
  EXPECT_EQ(placement->tokens, Range::all());
  EXPECT_EQ(placement->paging, (Paging{4, AxisOrder::kNhd}));
  EXPECT_EQ(placement->topology.sizes, (ParallelAxes{.dp = 1, .pp = 2, .tp = 2, .cp = 1, .ep = 1}));
  ASSERT_EQ(placement->cache_schema.groups.size(), 1u);
  const LayerGroup& group = placement->cache_schema.groups.front();
  EXPECT_EQ(group.layers, IntervalSet{Range(0, 3)});
  EXPECT_EQ(group.components, (std::vector<Component>{{ComponentName("key"), "bfloat16", "plain", 2, 4, 3, 1},
                                                      {ComponentName("value"), "bfloat16", "plain", 2, 4, 2, 1}}));
  ASSERT_EQ(placement->parts.size(), 4u);
  const Part& part = placement->parts[1];
  EXPECT_EQ(part.participant, ParticipantId("p0-t1"));
  EXPECT_EQ(placement->topology.find(part.participant)->rank, (ParallelAxes{.dp = 0, .pp = 0, .tp = 1}));
  EXPECT_EQ(part.owns, (std::vector<Ownership>{{IntervalSet{Range(0, 2)},
                                                {ComponentName("key"), ComponentName("value")},
                                                IntervalSet{Range(2, 4)},
                                                AllTokens(),
                                                ReplicaOrdinal{0, 1}}}));
}

TEST(MooncakeGolden, PartWithoutLayersOwnsNothing) {
  const auto placement = placement_of(golden("placement_dp2"));
  for (const Part& part : placement->parts)
    EXPECT_EQ(part.owns.empty(), placement->topology.find(part.participant)->rank.pp == 1) << part.participant.text();
}

TEST(MooncakeGolden, DiagnosticyPlacementsAreRefusedByTheirRule) {
  const std::array<std::pair<std::string, Rule>, 4> faulty = {{{"bad_digest", Rule::kForeignDigest},
                                                               {"bad_head_gap", Rule::kCoverageGap},
                                                               {"bad_layer_twice", Rule::kLayerRepeated},
                                                               {"bad_layout", Rule::kFieldChoice}}};
  for (const auto& [name, rule] : faulty) {
    Diagnostics diagnostics;
    EXPECT_FALSE(read_placement(golden(name), JsonLimits{}, diagnostics).has_value()) << name;
    EXPECT_TRUE(diagnostics.has(rule)) << name << ": " << first_diagnostic(diagnostics);
  }
}

TEST(MooncakeConformance, PlacementsComeBackByteForByte) {
  for (const Json& test_case : conformance_cases())
    for (const char* side : {"source", "target"}) expect_round_trip(test_case[side].get<std::string>());
}

TEST(MooncakeConformance, SnapshotsAndBindingsComeBackByteForByte) {
  for (const Json& test_case : conformance_cases()) {
    const Json& runtime = test_case["runtime"];
    if (!runtime.is_object()) continue;
    const std::string snapshot_text = runtime["snapshot"];
    for (const char* side : {"source", "target"}) {
      Diagnostics diagnostics;
      const auto placement = placement_of(test_case[side].get<std::string>());
      const auto snapshot = snapshot_of(snapshot_text, placement);
      EXPECT_EQ(written(write_snapshot(snapshot, diagnostics), diagnostics), snapshot_text);
      for (const std::string binding_text : runtime[std::string(side) + "_bindings"]) {
        const auto binding = binding_of(binding_text, placement, snapshot);
        EXPECT_EQ(written(write_binding(binding, placement, snapshot, diagnostics), diagnostics), binding_text);
        check_binding(binding, placement, snapshot, diagnostics);
        EXPECT_EQ(first_diagnostic(diagnostics), "");
      }
    }
  }
}

const std::map<std::string, Rule> kFaultyPlacements = {{"head gap", Rule::kCoverageGap},
                                                       {"head overlap", Rule::kCoverageOverlap},
                                                       {"head interval past total", Rule::kHeadBounds},
                                                       {"last head missing", Rule::kCoverageGap},
                                                       {"duplicate interval without replicas", Rule::kCoverageOverlap},
                                                       {"head_count zero", Rule::kFieldMinimum},
                                                       {"negative head_start", Rule::kFieldInteger},
                                                       {"head_start as bool", Rule::kFieldType},
                                                       {"head_start as float", Rule::kFieldInteger},
                                                       {"layer missing on one rank", Rule::kCoverageGap},
                                                       {"unknown layer", Rule::kLayerUnknown},
                                                       {"duplicate layer on a part", Rule::kLayerRepeated},
                                                       {"replica ordinals repeat", Rule::kReplicaSet},
                                                       {"replica count differs", Rule::kReplicaSet},
                                                       {"replica ordinal too large", Rule::kReplicaOrdinal},
                                                       {"lone part claims two replicas", Rule::kReplicaSet},
                                                       {"two owners claim one replica", Rule::kCoverageOverlap},
                                                       {"replica with another interval", Rule::kReplicaSet},
                                                       {"one DP replica incomplete", Rule::kCoverageGap},
                                                       {"part missing", Rule::kPartMissing},
                                                       {"part twice", Rule::kPartRepeated},
                                                       {"part unknown to the topology", Rule::kPartUnknown},
                                                       {"part rank differs", Rule::kForeignDigest},
                                                       {"part resource differs", Rule::kForeignDigest},
                                                       {"part revision differs", Rule::kForeignDigest},
                                                       {"part set differs", Rule::kForeignDigest},
                                                       {"part topology differs", Rule::kForeignDigest},
                                                       {"part descriptor differs", Rule::kForeignDigest},
                                                       {"rank out of range", Rule::kRankBounds},
                                                       {"topology id wrong", Rule::kForeignDigest},
                                                       {"topology rank twice", Rule::kRankRepeated},
                                                       {"topology participant twice", Rule::kParticipantRepeated},
                                                       {"topology empty", Rule::kTopologyEmpty},
                                                       {"placement id wrong", Rule::kForeignDigest},
                                                       {"digest wrong", Rule::kForeignDigest},
                                                       {"revision changed, ids kept", Rule::kForeignDigest},
                                                       {"no layers", Rule::kGroupEmpty},
                                                       {"layers repeat", Rule::kLayerRepeated},
                                                       {"itemsize zero", Rule::kFieldMinimum},
                                                       {"value_head_dim zero (MLA)", Rule::kFieldMinimum},
                                                       {"page_size zero", Rule::kFieldMinimum},
                                                       {"heads zero", Rule::kFieldMinimum},
                                                       {"layout hnd", Rule::kFieldChoice},
                                                       {"head bytes overflow 64 bits", Rule::kSizeOverflow},
                                                       {"layer id past 64 bits", Rule::kFieldInteger},
                                                       {"empty dtype", Rule::kName},
                                                       {"wrong resource_kind", Rule::kFieldChoice},
                                                       {"field missing", Rule::kFieldMissing},
                                                       {"field unknown", Rule::kFieldUnknown},
                                                       {"field twice", Rule::kFieldRepeated},
                                                       {"NaN", Rule::kJsonSyntax},
                                                       {"not JSON", Rule::kJsonSyntax},
                                                       {"not an object", Rule::kFieldType}};

TEST(MooncakeConformance, DiagnosticyPlacementsAreRefusedByTheirRule) {
  if (!std::filesystem::exists(kConformance)) return;
  size_t seen_count = 0;
  for (const Json& entry : conformance_file("negative-placements.json")) {
    if (!entry.contains("placement")) continue;  // a work limit of the reference
    const std::string name = entry["name"];
    Diagnostics diagnostics;
    EXPECT_FALSE(read_placement(entry["placement"].get<std::string>(), JsonLimits{}, diagnostics).has_value()) << name;
    EXPECT_TRUE(diagnostics.has(kFaultyPlacements.at(name))) << name << ": " << first_diagnostic(diagnostics);
    ++seen_count;
  }
  EXPECT_EQ(seen_count, kFaultyPlacements.size());
}

// Those cases of negative-runtime.json where a target binding is at fault by itself.
const std::map<std::string, Rule> kFaultyBindings = {{"revision differs", Rule::kBindingIdentity},
                                                     {"placement digest differs", Rule::kForeignDigest},
                                                     {"snapshot digest differs", Rule::kForeignDigest},
                                                     {"token before the snapshot", Rule::kViewNotOwned},
                                                     {"head not owned", Rule::kViewNotOwned},
                                                     {"layer not owned", Rule::kComponentUnknown},
                                                     {"unknown region", Rule::kViewRegion},
                                                     {"past the region", Rule::kViewBounds},
                                                     {"offset not item aligned", Rule::kViewAlignment},
                                                     {"token stride too small", Rule::kViewStrides},
                                                     {"head stride too small", Rule::kViewStrides},
                                                     {"range missing", Rule::kCoverageGap},
                                                     {"range twice", Rule::kCoverageOverlap},
                                                     {"same tokens twice", Rule::kCoverageOverlap},
                                                     {"two ranges on one place", Rule::kViewsOverlap}};

TEST(MooncakeConformance, DiagnosticyBindingsAreRefusedByTheirRule) {
  if (!std::filesystem::exists(kConformance)) return;
  const Json negative = conformance_file("negative-runtime.json");
  const auto target = placement_of(negative["target"].get<std::string>());
  const auto snapshot = snapshot_of(negative["snapshot"].get<std::string>(), target);
  size_t seen_count = 0;
  for (const Json& entry : negative["cases"]) {
    const std::string name = entry["name"];
    const Diagnostics diagnostics =
        diagnostics_of_binding(canonical(seal_binding(entry["target_bindings"][0])), target, snapshot);
    const auto expected = kFaultyBindings.find(name);
    if (expected == kFaultyBindings.end()) {
      EXPECT_TRUE(diagnostics.empty()) << name << ": " << first_diagnostic(diagnostics);
      continue;
    }
    EXPECT_TRUE(diagnostics.has(expected->second)) << name << ": " << first_diagnostic(diagnostics);
    ++seen_count;
  }
  EXPECT_EQ(seen_count, kFaultyBindings.size());
}

}  // namespace
}  // namespace crossdock::mooncake
