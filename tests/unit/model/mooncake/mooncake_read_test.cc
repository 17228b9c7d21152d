// What model/mooncake refuses, and that the order of lists means nothing to it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tests/unit/model/mooncake/mooncake_fixture.h"

namespace crossdock::mooncake {
namespace {

// The golden documents of each kind, with a reader that needs the text only.
struct Kind {
  std::string name;
  std::function<Diagnostics(const std::string&)> read;
  Json document() const { return Json::parse(golden(name)); }
};

Diagnostics read_placement_only(const std::string& json) {
  Diagnostics diagnostics;
  const bool read = read_placement(json, JsonLimits{}, diagnostics).has_value();
  EXPECT_EQ(read, diagnostics.empty());
  return diagnostics;
}

Diagnostics read_snapshot_only(const std::string& json) {
  Diagnostics diagnostics;
  const auto placement = placement_of(golden("placement_gqa_pp2_tp2"));
  const bool read = read_snapshot(json, placement, JsonLimits{}, diagnostics).has_value();
  EXPECT_EQ(read, diagnostics.empty());
  return diagnostics;
}

Diagnostics read_binding_only(const std::string& json) {
  Diagnostics diagnostics;
  const auto placement = placement_of(golden("placement_gqa_pp2_tp2"));
  const auto snapshot = snapshot_of(golden("snapshot"), placement);
  const bool read = read_binding(json, placement, snapshot, JsonLimits{}, diagnostics).has_value();
  EXPECT_EQ(read, diagnostics.empty());
  return diagnostics;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{"placement_gqa_pp2_tp2", read_placement_only},
                                        {"placement_dp2", read_placement_only},
                                        {"snapshot", read_snapshot_only},
                                        {"binding", read_binding_only}};
  return all;
}

// Visits a value and everything below it.
void walk(const Json& value, const Json::json_pointer& at,
          const std::function<void(const Json&, const Json::json_pointer&)>& visit) {
  visit(value, at);
  if (value.is_object())
    for (const auto& [key, item] : value.items()) walk(item, at / key, visit);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) walk(value[i], at / i, visit);
}

void shuffle_lists(Json& value, Rng& rng) {
  if (value.is_array()) rng.shuffle(value);
  if (value.is_structured())
    for (Json& item : value) shuffle_lists(item, rng);
}

std::vector<Json> other_values(const Json& leaf) {
  if (leaf.is_string()) return {leaf.get<std::string>() + "x", "", nullptr, true, 1u, Json::array({leaf})};
  const auto number = leaf.get<uint64_t>();
  return {number + 1, number - 1, -1, static_cast<double>(number), number != 0, std::to_string(number), nullptr};
}

TEST(MooncakeReading, OrderOfListsMeansNothing) {
  for (const Kind& kind : kinds()) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Rng rng(seed);
      Json document = kind.document();
      shuffle_lists(document, rng);
      const Diagnostics diagnostics = kind.read(document.dump(2));
      EXPECT_TRUE(diagnostics.empty()) << kind.name << " seed " << seed << ": " << first_diagnostic(diagnostics);
    }
  }
  Rng rng(7);
  Json document = Json::parse(golden("placement_gqa_pp2_tp2"));
  shuffle_lists(document, rng);
  Diagnostics diagnostics;
  EXPECT_EQ(write_placement(placement_of(document.dump()), diagnostics), golden("placement_gqa_pp2_tp2"));
}

TEST(MooncakeReading, EachValueIsBoundByTypeOrIdentity) {
  for (const Kind& kind : kinds()) {
    const Json document = kind.document();
    walk(document, Json::json_pointer(), [&](const Json& value, const Json::json_pointer& at) {
      if (value.is_structured()) return;
      for (const Json& other : other_values(value)) {
        if (other == value && other.type() == value.type()) continue;
        Json changed = document;
        changed[at] = other;
        EXPECT_FALSE(kind.read(changed.dump()).empty()) << kind.name << at << " = " << other;
      }
    });
  }
}

TEST(MooncakeReading, EachFieldIsRequiredAndNoOtherIsAllowed) {
  for (const Kind& kind : kinds()) {
    const Json document = kind.document();
    walk(document, Json::json_pointer(), [&](const Json& value, const Json::json_pointer& at) {
      if (!value.is_object()) return;
      for (const auto& [key, item] : value.items()) {
        Json changed = document;
        changed[at].erase(key);
        EXPECT_TRUE(kind.read(changed.dump()).has(Rule::kFieldMissing)) << kind.name << at << " without " << key;
      }
      Json changed = document;
      changed[at]["extra"] = 1;
      EXPECT_TRUE(kind.read(changed.dump()).has(Rule::kFieldUnknown)) << kind.name << at;
    });
  }
}

struct Edit {
  std::string pointer;
  Json value;
  Rule rule;
};

TEST(MooncakeReading, PlacementsWithTrueIdentitiesAreStillCheckedByRule) {
  const uint64_t max = UINT64_MAX;
  const std::vector<Edit> edits = {{"/resource_kind", "weights", Rule::kFieldChoice},
                                   {"/revision", "other", Rule::kForeignDigest},
                                   {"/parts/0/rank/pp", 1u, Rule::kForeignDigest},
                                   {"/parts/0/descriptor/page_size", 8u, Rule::kForeignDigest},
                                   {"/parts/0/head_start", max, Rule::kIntervals},
                                   {"/parts/0/layer_ids/0", max, Rule::kIntervals},
                                   {"/parts/0/layer_ids/0", 7u, Rule::kLayerUnknown},
                                   {"/parts/0/layer_ids/0", 1u, Rule::kLayerRepeated},
                                   {"/parts/0/replica_ordinal", 1u, Rule::kReplicaOrdinal},
                                   {"/parts/0/participant_id", "ghost", Rule::kPartUnknown},
                                   {"/topology/tp_size", 1u, Rule::kRankBounds},
                                   {"/topology/participants", Json::array(), Rule::kTopologyEmpty}};
  for (const Edit& edit : edits) {
    Json placement = Json::parse(golden("placement_gqa_pp2_tp2"));
    placement[Json::json_pointer(edit.pointer)] = edit.value;
    const Diagnostics diagnostics = read_placement_only(canonical(seal_placement(placement)));
    EXPECT_TRUE(diagnostics.has(edit.rule)) << edit.pointer << ": " << first_diagnostic(diagnostics);
  }
}

TEST(MooncakeReading, SnapshotsWithTrueIdentitiesAreStillCheckedByRule) {
  const std::vector<Edit> edits = {{"/resource_kind", "weights", Rule::kFieldChoice},
                                   {"/token_count", 0u, Rule::kFieldMinimum},
                                   {"/token_count", UINT64_MAX, Rule::kIntervals},
                                   {"/token_fingerprint", "abc", Rule::kDigestText},
                                   {"/semantic_fingerprint", std::string(64, 'A'), Rule::kDigestText},
                                   {"/namespace", "", Rule::kName}};
  for (const Edit& edit : edits) {
    Json snapshot = Json::parse(golden("snapshot"));
    snapshot[Json::json_pointer(edit.pointer)] = edit.value;
    const Diagnostics diagnostics = read_snapshot_only(canonical(seal_snapshot(snapshot)));
    EXPECT_TRUE(diagnostics.has(edit.rule)) << edit.pointer << ": " << first_diagnostic(diagnostics);
  }
}

TEST(MooncakeReading, BindingsWithTrueDigestsAreStillCheckedByRule) {
  const std::string zeros(64, '0');
  const std::vector<Edit> edits = {{"/placement_id", "sha256:" + zeros, Rule::kForeignDigest},
                                   {"/placement_digest", zeros, Rule::kForeignDigest},
                                   {"/snapshot_id", "sha256:" + zeros, Rule::kForeignDigest},
                                   {"/snapshot_digest", zeros, Rule::kForeignDigest},
                                   {"/ranges", Json::array(), Rule::kForeignForm},
                                   {"/regions", Json::array(), Rule::kForeignForm},
                                   {"/regions/0/address", 0u, Rule::kFieldMinimum},
                                   {"/regions/0/nbytes", UINT64_MAX, Rule::kIntervals},
                                   {"/regions/0/region_id", "pool-v", Rule::kRegionRepeated},
                                   {"/regions/0/endpoint", "elsewhere", Rule::kInstanceEndpoint},
                                   {"/ranges/0/component", "latent", Rule::kFieldChoice},
                                   {"/ranges/0/global_layer_id", UINT64_MAX, Rule::kIntervals},
                                   {"/ranges/0/region_id", "absent", Rule::kViewRegion},
                                   {"/ranges/0/head_stride_bytes", 4u, Rule::kViewStrides},
                                   {"/ranges/0/token_stride_bytes", 10u, Rule::kViewStrides},
                                   {"/ranges/0/head_stride_bytes", UINT64_MAX, Rule::kViewStrides},
                                   {"/ranges/2/head_stride_bytes", 2u, Rule::kViewStrides}};
  for (const Edit& edit : edits) {
    Json content = Json::parse(golden("binding"))["binding"];
    content[Json::json_pointer(edit.pointer)] = edit.value;
    const Diagnostics diagnostics = read_binding_only(canonical(seal_binding(content)));
    EXPECT_TRUE(diagnostics.has(edit.rule)) << edit.pointer << ": " << first_diagnostic(diagnostics);
  }
  Json envelope = Json::parse(golden("binding"));
  envelope["schema"] = "other";
  EXPECT_TRUE(read_binding_only(canonical(envelope)).has(Rule::kSchemaName));
}

TEST(MooncakeReading, TextThatIsNoDocumentIsRefused) {
  for (const Kind& kind : kinds()) {
    EXPECT_TRUE(kind.read("").has(Rule::kJsonSyntax));
    EXPECT_TRUE(kind.read("[]").has(Rule::kFieldType));
    EXPECT_TRUE(kind.read(golden(kind.name) + "x").has(Rule::kJsonSyntax));
  }
  Diagnostics diagnostics;
  const JsonLimits limits{.bytes_max = 100};
  EXPECT_FALSE(read_placement(golden("placement_dp2"), limits, diagnostics).has_value());
  EXPECT_TRUE(diagnostics.has(Rule::kJsonBytes));
}

// Each part of `placement` without layers, in turn with all heads that it could state: which are read?
std::vector<std::pair<uint64_t, uint64_t>> heads_read(const Json& placement, size_t part, uint64_t head_count) {
  std::vector<std::pair<uint64_t, uint64_t>> read;
  for (uint64_t begin = 0; begin < head_count; ++begin) {
    for (uint64_t count = 1; begin + count <= head_count; ++count) {
      Json changed = placement;
      changed["parts"][part]["head_start"] = begin;
      changed["parts"][part]["head_count"] = count;
      const Diagnostics diagnostics = read_placement_only(canonical(seal_placement(changed)));
      if (diagnostics.empty())
        read.emplace_back(begin, count);
      else
        EXPECT_TRUE(diagnostics.has(Rule::kForeignForm)) << first_diagnostic(diagnostics);
    }
  }
  return read;
}

TEST(MooncakeReading, PartWithoutLayersHasTheHeadsOfItsTpRank) {
  using Heads = std::vector<std::pair<uint64_t, uint64_t>>;
  const Json placement = Json::parse(golden("placement_dp2"));  // parts: dp, then pp, then tp
  EXPECT_EQ(heads_read(placement, 2, 3), (Heads{{0, 2}}));      // d0-p1-t0, as d0-p0-t0
  EXPECT_EQ(heads_read(placement, 7, 3), (Heads{{1, 2}}));      // d1-p1-t1, as d1-p0-t1

  Json other = placement;  // d0-p0-t0 has all heads, d0-p0-t1 no layers, and so only DP rank 1 shows TP rank 1's heads
  other["parts"][0]["head_count"] = other["parts"][2]["head_count"] = 3;
  other["parts"][1]["layer_ids"] = Json::array();
  for (const size_t part : std::array<size_t, 2>{1, 3}) {
    other["parts"][part]["head_start"] = 1;
    other["parts"][part]["head_count"] = 2;
  }
  EXPECT_EQ(heads_read(other, 1, 3), (Heads{{1, 2}}));
  EXPECT_EQ(heads_read(other, 3, 3), (Heads{{1, 2}}));

  Json alone = other;  // no part of TP rank 1 has layers
  alone["parts"][4]["head_count"] = alone["parts"][6]["head_count"] = 3;
  alone["parts"][5]["layer_ids"] = Json::array();
  for (const size_t part : std::array<size_t, 4>{1, 3, 5, 7}) {
    alone["parts"][part]["head_start"] = 0;
    alone["parts"][part]["head_count"] = 3;
  }
  EXPECT_EQ(heads_read(alone, 5, 3), (Heads{{0, 3}}));
}

}  // namespace
}  // namespace crossdock::mooncake
