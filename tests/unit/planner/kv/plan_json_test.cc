// Transfer plans in JSON. The expected text is written out by hand once, and for plans that are made or drawn it is
// what nlohmann's library prints for the same values, with sorted fields and in ASCII.
#include "planner/kv/plan_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/made_plans.h"

namespace crossdock::testing {
namespace {

// ---- A plan by hand ----

// Of these bytes, by sha256sum.
constexpr std::string_view kDigest = "2d7f93a84c44c44a9eaf7b7a4719acdc43601ea0b2751a4927a7efdb1032b486";

// The same plan as values, its lists in another order.
TransferPlan plan_by_hand() {
  const Component key{ComponentName("key"), "bfloat16", "plain", 2, 2, 8, 1};
  const Component scale{ComponentName("scale"), "float32", "plain", 4, 1, 1, 4};
  const Component state{ComponentName("state"), "float32", "plain", 4, 2, 16, std::nullopt};
  TransferPlan plan;
  plan.kind = PlanKind::kLive;
  plan.source_digest = *Sha256Digest::from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  plan.target_digest = *Sha256Digest::from_hex(std::string(64, 'f'));
  plan.snapshot_tokens = Range(0, 10);
  plan.sources = {PlanEnd("p0"), PlanEnd("p1")};
  plan.targets = {PlanEnd("q0")};
  plan.tensors = {PlanTensor{key, {Range(0, 2)}, LiveTokens::all(), Range(0, 10)},
                  PlanTensor{scale, {Range(0, 2)}, LiveTokens::all(), Range(0, 10)},
                  PlanTensor{key, {Range(2, 3)}, LiveTokens::window(6), Range(4, 10)},
                  PlanTensor{state, {Range(3, 4)}, LiveTokens::all(), Range(0, 1)}};
  plan.layer_sets = {{Range(3, 4)}, {Range(2, 3)}, {Range(1, 2)}, {Range(0, 2)}, {Range(0, 1)}};
  plan.token_sets = {
      TokenSet{{Range(4, 10)}, std::nullopt}, TokenSet{{Range(0, 10)}, CyclicTokens{4, 2, {Range(1, 2)}}},
      TokenSet{{Range(0, 10)}, CyclicTokens{4, 2, {Range(0, 1)}}}, TokenSet{{Range(0, 1)}, std::nullopt}};
  const auto edge = [](uint32_t source, uint32_t tensor, uint32_t layer_set, Range heads, uint32_t token_set) {
    return Edge{.target = 0,
                .source = source,
                .tensor = tensor,
                .layer_set = layer_set,
                .heads = heads,
                .token_set = token_set};
  };
  plan.edges = {edge(1, 3, 0, Range(0, 2), 3), edge(1, 2, 1, Range(1, 2), 0), edge(1, 2, 1, Range(0, 1), 0),
                edge(1, 1, 3, Range(0, 1), 1), edge(1, 0, 2, Range(0, 2), 1), edge(1, 0, 4, Range(0, 2), 1),
                edge(0, 1, 3, Range(0, 1), 2), edge(0, 0, 3, Range(0, 2), 2)};
  return plan;
}

Valid<TransferPlan> valid_plan(TransferPlan plan) {
  Diagnostics diagnostics;
  std::optional<Valid<TransferPlan>> valid = Valid<TransferPlan>::make(std::move(plan), diagnostics);
  if (!valid) ADD_FAILURE() << diagnostic_lines(diagnostics);
  return valid.value();
}

// ---- Plans that are made, one of each kind and with each kind of tensor ----

const MadePlan& made_plan(std::string_view name) {
  const auto found = std::find_if(made_plans().begin(), made_plans().end(),
                                  [name](const MadePlan& made) { return made.name == name; });
  CHECK(found != made_plans().end());
  return *found;
}

// ---- The text, by another library ----

std::optional<PlanDocument> read(const json& document, Diagnostics& diagnostics) {
  return read_plan(document.dump(), JsonLimits(), diagnostics);
}

// ---- Writing and reading ----

TEST(PlanWire, TheTextByHandIsThatOfThePlanByHand) {
  const Valid<TransferPlan> plan = valid_plan(plan_by_hand());
  EXPECT_EQ(plan_to_json(plan), kPlanText);
  EXPECT_EQ(digest(plan).hex(), kDigest);
  Diagnostics diagnostics;
  const std::optional<PlanDocument> again = read_plan(kPlanText, JsonLimits(), diagnostics);
  ASSERT_TRUE(again) << diagnostic_lines(diagnostics);
  EXPECT_EQ(again->plan, plan);
  EXPECT_FALSE(again->source || again->target);
}

TEST(PlanWire, MadePlansReadBackAsTheyWereWithWhatTheyCarry) {
  std::set<PlanKind> kinds;
  for (const MadePlan& made : made_plans()) {
    kinds.insert(made.plan->kind);
    for (const bool carries_source : {false, true}) {
      for (const bool carries_target : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", made.name, carries_source, carries_target));
        const AnyDocument* source = carries_source ? &made.source : nullptr;
        const AnyDocument* target = carries_target ? &made.target : nullptr;
        const std::string text = plan_to_json(made.plan, source, target);
        EXPECT_EQ(text, rendered(*made.plan, source, target));
        Diagnostics diagnostics;
        const std::optional<PlanDocument> again = read_plan(text, JsonLimits(), diagnostics);
        ASSERT_TRUE(again) << diagnostic_lines(diagnostics);
        EXPECT_EQ(again->plan, made.plan);
        EXPECT_EQ(again->source, source == nullptr ? std::nullopt : std::optional(*source));
        EXPECT_EQ(again->target, target == nullptr ? std::nullopt : std::optional(*target));
      }
    }
  }
  EXPECT_EQ(kinds.size(), 3u);
}

TEST(PlanWire, TheIdentityIsOfTheTextWithoutDocuments) {
  for (const MadePlan& made : made_plans())
    EXPECT_EQ(digest(made.plan), sha256(rendered(*made.plan, nullptr, nullptr)));
}

TEST(PlanWire, APlanThatCarriesItsDocumentsCanBeProved) {
  for (const MadePlan& made : made_plans()) {
    SCOPED_TRACE(made.name);
    Diagnostics diagnostics;
    const auto again = read_plan(plan_to_json(made.plan, &made.source, &made.target), JsonLimits(), diagnostics);
    ASSERT_TRUE(again) << diagnostic_lines(diagnostics);
    verify_plan(again->plan, plan_side(*again->source).value(), plan_side(*again->target).value(), {}, diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << diagnostic_lines(diagnostics);
  }
}

TEST(PlanWireDeathTest, CarryingWhatThePlanDoesNotNameIsABug) {
  const MadePlan& made = made_plan("upload");
  EXPECT_DEATH(plan_to_json(made.plan, &made_plan("small cycles").source), "CHECK failed");
  EXPECT_DEATH(plan_to_json(made.plan, nullptr, &made.source), "CHECK failed");
  // Named, but no document of its kind belongs there.
  TransferPlan live = *made.plan;
  live.kind = PlanKind::kLive;
  EXPECT_DEATH(plan_to_json(valid_plan(live), nullptr, &made.target), "CHECK failed");
}

TEST(PlanWire, SidesAreLookedAtByTheirDigestAndOthersHaveNone) {
  EXPECT_EQ(plan_side(example_placement())->kind(), SideKind::kRuntime);
  EXPECT_EQ(plan_side(example_store_layout())->kind(), SideKind::kStoreLayout);
  const AnyDocument manifest = example_store_manifest();
  EXPECT_EQ(plan_side(manifest)->kind(), SideKind::kStoreManifest);
  EXPECT_EQ(plan_side(manifest)->digest(), sha256(to_json(manifest)));
  for (const AnyDocument& other : {AnyDocument(example_cache_schema()), AnyDocument(example_topology()),
                                   AnyDocument(example_snapshot()), AnyDocument(example_binding())})
    EXPECT_FALSE(plan_side(other)) << schema_name(other);
}

// ---- What is refused ----

// Each value in the document with where it stands, the root first.
std::vector<json::json_pointer> all_places(const json& document) {
  std::vector<json::json_pointer> places = {json::json_pointer()};
  for (size_t i = 0; i < places.size(); ++i) {
    const json& value = document[places[i]];
    const json::json_pointer at = places[i];
    if (value.is_object())
      for (const auto& [name, item] : value.items()) places.push_back(at / name);
    if (value.is_array())
      for (size_t item = 0; item < value.size(); ++item) places.push_back(at / item);
  }
  return places;
}

TEST(PlanReading, EachFieldIsRequiredButTheOptionalOnes) {
  const std::set<std::string> optional = {"/snapshot_tokens", "/token_sets/1/cycle", "/token_sets/2/cycle"};
  const json whole = json::parse(kPlanText);
  size_t field_count = 0;
  for (const json::json_pointer& at : all_places(whole)) {
    if (at.empty() || !whole[at.parent_pointer()].is_object() || optional.contains(at.to_string())) continue;
    SCOPED_TRACE(at.to_string());
    ++field_count;
    json document = whole;
    document[at.parent_pointer()].erase(at.back());
    Diagnostics diagnostics;
    EXPECT_FALSE(read(document, diagnostics));
    EXPECT_TRUE(diagnostics.has(Rule::kFieldMissing)) << diagnostic_lines(diagnostics);
  }
  EXPECT_GT(field_count, 60u);
  json without_snapshot = whole;
  without_snapshot.erase("snapshot_tokens");
  Diagnostics diagnostics;
  const auto plan = read(without_snapshot, diagnostics);
  ASSERT_TRUE(plan) << diagnostic_lines(diagnostics);
  EXPECT_EQ(plan->plan->snapshot_tokens, std::nullopt);
}

TEST(PlanReading, NoObjectHasAFieldThatTheFormatDoesNotHave) {
  const json whole = json::parse(kPlanText);
  for (const json::json_pointer& at : all_places(whole)) {
    if (!whole[at].is_object()) continue;
    SCOPED_TRACE(at.to_string());
    json document = whole;
    document[at]["colour"] = "red";
    Diagnostics diagnostics;
    EXPECT_FALSE(read(document, diagnostics));
    EXPECT_TRUE(diagnostics.has(Rule::kFieldUnknown)) << diagnostic_lines(diagnostics);
  }
}

TEST(PlanReading, NoValueHasAnotherType) {
  const json whole = json::parse(kPlanText);
  const std::vector<json> others = {nullptr, true, -1, 0.5, "x", 7u, json::array(), json::object()};
  for (const json::json_pointer& at : all_places(whole)) {
    for (const json& other : others) {
      if (other.type() == whole[at].type()) continue;
      SCOPED_TRACE(at.to_string() + " " + other.dump());
      json document = whole;
      document[at] = other;
      Diagnostics diagnostics;
      EXPECT_FALSE(read(document, diagnostics));
      EXPECT_TRUE(diagnostics.has(Rule::kFieldType) || diagnostics.has(Rule::kFieldInteger))
          << diagnostic_lines(diagnostics);
    }
  }
}

struct Broken {
  Rule rule;
  std::string line;
  std::function<void(json&)> mutate;
};

void expect_lines(const json& whole, const std::vector<Broken>& table) {
  for (const Broken& broken : table) {
    SCOPED_TRACE(broken.line);
    json document = whole;
    broken.mutate(document);
    Diagnostics diagnostics;
    EXPECT_FALSE(read(document, diagnostics));
    const std::string line = fmt::format("{} [{}]", broken.line, rule_name(broken.rule));
    EXPECT_NE(("\n" + diagnostic_lines(diagnostics)).find("\n" + line + "\n"), std::string::npos)
        << diagnostic_lines(diagnostics);
  }
}

TEST(PlanReading, AValueThatTheFormatDoesNotHaveGetsItsLine) {
  const std::vector<Broken> table = {
      {Rule::kSchemaName, "document schema: 'crossdock.placement' stands where 'crossdock.plan' is needed",
       [](json& d) { d["schema"] = "crossdock.placement"; }},
      {Rule::kSchemaVersion, "document version: version 2 of 'crossdock.plan' is unknown; this program reads version 1",
       [](json& d) { d["version"] = 2; }},
      {Rule::kFieldChoice, "plan kind: 'copy' is not one of live, restore, upload",
       [](json& d) { d["kind"] = "copy"; }},
      {Rule::kDigestText,
       "plan source.digest: 'sha256:00' is not 64 lower-case hexadecimal digits (and nothing before them)",
       [](json& d) { d["source"]["digest"] = "sha256:00"; }},
      {Rule::kName, "plan sources[1]: a name must not be empty", [](json& d) { d["sources"][1] = ""; }},
      {Rule::kName, "plan targets[0]: a name of 257 bytes is longer than 256",
       [](json& d) { d["targets"][0] = std::string(257, 'x'); }},
      {Rule::kName, "plan tensors[0].component.dtype: a name must not be empty",
       [](json& d) { d["tensors"][0]["component"]["dtype"] = ""; }},
      {Rule::kIntervals, "plan snapshot_tokens: one interval [begin,end] stands here, not 1 values",
       [](json& d) { d["snapshot_tokens"] = {1}; }},
      {Rule::kIntervals, "plan tokens: interval [2,1) ends before it begins",
       [](json& d) {
         d["tokens"] = {2, 1};
       }},
      {Rule::kIntervals, "plan layer_sets[0][0]: interval [1,1) is empty",
       [](json& d) {
         d["layer_sets"][0][0] = {1, 1};
       }},
      {Rule::kIntervals, "plan token_sets[3].intervals: intervals [0,5) and [4,6) overlap",
       [](json& d) {
         d["token_sets"][3]["intervals"] = {{4, 6}, {0, 5}};
       }},
      {Rule::kFieldMinimum, "plan tensors[2].live_tokens.tokens: 0 is below 1",
       [](json& d) { d["tensors"][2]["live_tokens"]["tokens"] = 0; }},
      {Rule::kFieldMinimum, "plan tensors[0].component.head_count: 0 is below 1",
       [](json& d) { d["tensors"][0]["component"]["head_count"] = 0; }},
      {Rule::kFieldMinimum, "plan token_sets[1].cycle.block_tokens: 0 is below 1",
       [](json& d) { d["token_sets"][1]["cycle"]["block_tokens"] = 0; }},
      {Rule::kFieldChoice, "plan tensors[0].live_tokens.kind: 'some' is not one of all, window, chunk",
       [](json& d) { d["tensors"][0]["live_tokens"]["kind"] = "some"; }},
      {Rule::kFieldChoice, "plan tensors[0].component.token_axis.kind: 'cols' is not one of rows, state",
       [](json& d) { d["tensors"][0]["component"]["token_axis"]["kind"] = "cols"; }},
      {Rule::kFieldType, "plan edges[2]: an edge has 7 numbers, not 6",
       [](json& d) { d["edges"][2] = {0, 1, 0, 0, 0, 2}; }},
      {Rule::kFieldType, "plan edges[2]: an edge has 7 numbers, not 8",
       [](json& d) { d["edges"][2] = {0, 1, 0, 0, 0, 2, 2, 0}; }},
      {Rule::kFieldType, "plan edges[7]: must be an array, not an object",
       [](json& d) {
         d["edges"][7] = {{"target", 0}};
       }},
      {Rule::kIntervals, "plan edges[0]: heads [2,0) end before they begin",
       [](json& d) { d["edges"][0] = {0, 0, 0, 1, 2, 0, 1}; }},
      {Rule::kFieldInteger, "plan edges[0][4]: -1 is not an integer from 0 to 18446744073709551615",
       [](json& d) { d["edges"][0][4] = -1; }},
  };
  expect_lines(json::parse(kPlanText), table);
}

TEST(PlanReading, AnIndexIsAnEntryOfItsList) {
  const json whole = json::parse(kPlanText);
  const std::map<size_t, size_t> list_sizes = {{0, 1}, {1, 2}, {2, 4}, {3, 5}, {6, 4}};
  for (const auto& [position, size] : list_sizes) {
    const std::vector<std::pair<uint64_t, Rule>> indices = {{size, Rule::kPlanIndex},
                                                            {UINT32_MAX, Rule::kPlanIndex},
                                                            {uint64_t{UINT32_MAX} + 1, Rule::kFieldInteger},
                                                            {UINT64_MAX, Rule::kFieldInteger}};
    for (const auto& [index, rule] : indices) {
      SCOPED_TRACE(fmt::format("edges[5][{}] = {}", position, index));
      json document = whole;
      document["edges"][5][position] = index;
      Diagnostics diagnostics;
      EXPECT_FALSE(read(document, diagnostics));
      const std::string line =
          rule == Rule::kPlanIndex
              ? "plan edge 5: names an entry that its list does not have [plan-index]\n"
              : fmt::format("plan edges[5][{}]: {} is not an integer from 0 to 4294967295 [field-integer]\n", position,
                            index);
      EXPECT_TRUE(diagnostic_lines(diagnostics).starts_with(line)) << diagnostic_lines(diagnostics);
    }
  }
}

TEST(PlanReading, AContentThatBreaksARuleGetsItsLine) {
  const std::vector<Broken> table = {
      {Rule::kPlanIndex, "plan: source 'p2' has no edge", [](json& d) { d["sources"].push_back("p2"); }},
      {Rule::kPlanEdge, "plan edge 1: is listed twice", [](json& d) { d["edges"].push_back(d["edges"][0]); }},
      {Rule::kPlanEdge, "plan edge 0: moves nothing", [](json& d) { d["edges"][0][5] = 0; }},
      {Rule::kPlanEdge, "plan edge 4: moves nothing",
       [](json& d) {
         d["token_sets"][2]["intervals"] = {{0, 4}};
       }},
      {Rule::kPlanTensor, "plan tensor 1: is listed twice", [](json& d) { d["tensors"].push_back(d["tensors"][0]); }},
      {Rule::kPlanTensor, "plan tensor 0: has no layer", [](json& d) { d["tensors"][0]["layers"] = json::array(); }},
      {Rule::kPlanTensor, "plan edge 1: heads [0,2) end past head count 1 (component scale)",
       [](json& d) { d["edges"][1][5] = 2; }},
      {Rule::kPlanTensor, "plan edge 5: tokens [3,10) are not within those of tensor 2, [4,10)",
       [](json& d) {
         d["token_sets"][3]["intervals"] = {{3, 10}};
       }},
      {Rule::kPlanTensor, "plan edge 5: layers 1-2 are not within those of tensor 2, 2",
       [](json& d) {
         d["layer_sets"][3] = {{1, 3}};
       }},
      {Rule::kPlanTensor, "plan tensor 0: 9223372036854775808 heads x 8 x 2 bytes is no size of a row",
       [](json& d) { d["tensors"][0]["component"]["head_count"] = uint64_t{1} << 63; }},
      {Rule::kCycleBounds, "plan token set 2: blocks 1-2 of 4 tokens do not fit a cycle of 2 blocks",
       [](json& d) {
         d["token_sets"][2]["cycle"]["blocks"] = {{1, 3}};
       }},
      {Rule::kCycleBounds, "plan token set 1: blocks none of 4 tokens do not fit a cycle of 2 blocks",
       [](json& d) { d["token_sets"][1]["cycle"]["blocks"] = json::array(); }},
      {Rule::kTokenAlignment, "plan edge 1: tokens within [0,10) cut a row of 4 tokens (component scale)",
       [](json& d) { d["token_sets"][1]["cycle"]["block_tokens"] = 2; }},
      {Rule::kTokenAlignment, "plan edge 4: tokens within [0,9) cut a row of 4 tokens (component scale)",
       [](json& d) {
         d["token_sets"][2]["intervals"] = {{0, 9}};
       }},
      {Rule::kStateTokens, "plan tensor 3: tokens [0,10) of a state component must be [0,1)",
       [](json& d) {
         d["tensors"][3]["tokens"] = {0, 10};
       }},
      {Rule::kPlanParticipant, "plan targets: a plan is for at least one target",
       [](json& d) { d["targets"] = json::array(); }},
      {Rule::kPlanParticipant, "plan targets: a target is listed twice",
       [](json& d) {
         d["targets"] = {"q0", "q0"};
       }},
      {Rule::kPlanParticipant, "plan sources: a source is listed twice",
       [](json& d) {
         d["sources"] = {"p0", "p0"};
       }},
      {Rule::kPlanEmpty, "plan tokens: a plan is about at least one token",
       [](json& d) {
         d["tokens"] = {5, 5};
       }},
      {Rule::kSnapshotEmpty, "plan snapshot_tokens: a snapshot holds at least one token",
       [](json& d) {
         d["snapshot_tokens"] = {5, 5};
       }},
  };
  expect_lines(json::parse(kPlanText), table);
}

TEST(PlanReading, OneReadingReportsSeveralDiagnostics) {
  json document = json::parse(kPlanText);
  document["edges"][0][1] = "p0";
  document["kind"] = "copy";
  document["source"]["document"] = 7;
  document["target"]["document"] = json::parse(to_json(example_snapshot()));
  document["tensors"][3].erase("tokens");
  document["colour"] = "red";
  Diagnostics diagnostics;
  EXPECT_FALSE(read(document, diagnostics));
  EXPECT_EQ(diagnostic_lines(diagnostics),
            "plan edges[0][1]: must be an integer, not a string [field-type]\n"
            "plan kind: 'copy' is not one of live, restore, upload [field-choice]\n"
            "plan source.document: must be an object, not an integer [field-type]\n"
            "plan target.document.schema: 'crossdock.snapshot' stands where 'crossdock.placement' or "
            "'crossdock.store_layout' or 'crossdock.store_manifest' is needed [schema-name]\n"
            "plan tensors[3]: field 'tokens' is missing [field-missing]\n"
            "plan: field 'colour' is unknown [field-unknown]\n");
}

// ---- What it carries ----

json carrying(const MadePlan& made) { return json::parse(plan_to_json(made.plan, &made.source, &made.target)); }

TEST(PlanReading, ADocumentThatIsCarriedIsTheOneThatThePlanNames) {
  const json other = json::parse(to_json(made_plan("small cycles").target));
  const std::string named = example_placement()->name;
  expect_lines(carrying(made_plan("upload")),
               {{Rule::kPlanIdentity,
                 fmt::format("plan source.document: the document's digest is {}, the plan names {}",
                             sha256(other.dump()).hex(), sha256(to_json(example_placement())).hex()),
                 [&](json& d) { d["source"]["document"] = other; }},
                {Rule::kPlanIdentity,
                 fmt::format("plan target.document: the document's digest is {}, the plan names {}",
                             sha256(to_json(example_store_layout())).hex(), std::string(64, '0')),
                 [](json& d) { d["target"]["digest"] = std::string(64, '0'); }}});
}

TEST(PlanReading, ADigestThatIsNoneIsNotAlsoAnotherOne) {
  json document = carrying(made_plan("upload"));
  document["source"]["digest"] = "none";
  Diagnostics diagnostics;
  EXPECT_FALSE(read(document, diagnostics));
  EXPECT_EQ(diagnostic_lines(diagnostics),
            "plan source.digest: 'none' is not 64 lower-case hexadecimal digits (and nothing before them) "
            "[digest-text]\n");
}

TEST(PlanReading, AnIdentityIsOfTheCarriedDocumentsContent) {
  json document = carrying(made_plan("upload"));
  json& parts = document["source"]["document"]["parts"];
  std::swap(parts[0], parts[3]);
  Diagnostics diagnostics;
  const auto plan = read_plan(backwards(document).dump(1), JsonLimits(), diagnostics);
  ASSERT_TRUE(plan) << diagnostic_lines(diagnostics);
  EXPECT_EQ(plan->source, AnyDocument(example_placement()));
}

// Whether the plan is refused, and only for that, when it carries and names the document there.
bool is_refused_by_name(json plan, const char* side, const AnyDocument& document) {
  plan[side] = {{"digest", digest(document).hex()}, {"document", json::parse(to_json(document))}};
  Diagnostics diagnostics;
  const bool is_read = read(plan, diagnostics).has_value();
  EXPECT_EQ(diagnostics.total(), is_read ? 0 : 1) << diagnostic_lines(diagnostics);
  EXPECT_EQ(is_read, !diagnostics.has(Rule::kSchemaName)) << diagnostic_lines(diagnostics);
  return !is_read;
}

TEST(PlanReading, ADocumentStandsOnlyOnASideOfItsKind) {
  const std::vector<AnyDocument> documents = {example_cache_schema(),  example_snapshot(), example_topology(),
                                              example_placement(),     example_binding(),  example_store_layout(),
                                              example_store_manifest()};
  const std::map<std::string, std::pair<std::set<std::string>, std::set<std::string>>> allowed = {
      {"small cycles", {{"crossdock.placement"}, {"crossdock.placement"}}},
      {"upload", {{"crossdock.placement"}, {"crossdock.store_layout"}}},
      {"restore", {{"crossdock.store_layout", "crossdock.store_manifest"}, {"crossdock.placement"}}}};
  for (const auto& [name, schemas] : allowed) {
    const json plan = carrying(made_plan(name));
    for (const AnyDocument& document : documents) {
      const std::string schema(schema_name(document));
      SCOPED_TRACE(name + " " + schema);
      EXPECT_EQ(is_refused_by_name(plan, "source", document), !schemas.first.contains(schema));
      EXPECT_EQ(is_refused_by_name(plan, "target", document), !schemas.second.contains(schema));
    }
  }
}

TEST(PlanReading, ACarriedDocumentIsReadAsStrictlyAsOneAlone) {
  expect_lines(
      carrying(made_plan("restore")),
      {{Rule::kFieldMissing, "plan source.document: field 'version' is missing",
        [](json& d) { d["source"]["document"].erase("version"); }},
       {Rule::kSchemaVersion,
        "plan source.document.version: version 3 of 'crossdock.store_manifest' is unknown; this program reads version "
        "1",
        [](json& d) { d["source"]["document"]["version"] = 3; }},
       {Rule::kFieldUnknown, "plan target.document.parts[0]: field 'colour' is unknown",
        [](json& d) { d["target"]["document"]["parts"][0]["colour"] = "red"; }},
       {Rule::kFieldType, "plan target.document: must be an object, not a string",
        [](json& d) { d["target"]["document"] = "placement.json"; }},
       {Rule::kSchemaName, "plan target.document.schema: 'crossdock.plan' stands where 'crossdock.placement' is needed",
        [](json& d) { d["target"]["document"] = json::parse(kPlanText); }},
       // Its own rules are told of under its own name, what follows under the plan's.
       {Rule::kPartMissing, "placement 'decode': participant 'p1-t1' has no part",
        [](json& d) { d["target"]["document"]["parts"].erase(3); }},
       {Rule::kName, "plan targets[0]: a name must not be empty", [](json& d) {
          d["target"]["document"]["parts"].erase(3);
          d["targets"][0] = "";
        }}});
}

uint32_t depth_of(const json& value) {
  if (!value.is_structured()) return 0;
  uint32_t inner = 0;
  for (const json& item : value) inner = std::max(inner, depth_of(item));
  return inner + 1;
}

TEST(PlanReading, LimitsHoldForAllThatIsCarried) {
  const MadePlan& made = made_plan("cycles into cycles");
  const std::string text = plan_to_json(made.plan, &made.source, &made.target);
  const auto reads = [&](const JsonLimits& limits, Rule rule) {
    Diagnostics diagnostics;
    const bool is_read = read_plan(text, limits, diagnostics).has_value();
    EXPECT_EQ(is_read, !diagnostics.has(rule)) << diagnostic_lines(diagnostics);
    return is_read;
  };
  const uint32_t depth = depth_of(json::parse(text));
  EXPECT_TRUE(reads({.depth_max = depth}, Rule::kJsonDepth));
  EXPECT_FALSE(reads({.depth_max = depth - 1}, Rule::kJsonDepth));
  EXPECT_TRUE(reads({.bytes_max = text.size()}, Rule::kJsonBytes));
  EXPECT_FALSE(reads({.bytes_max = text.size() - 1}, Rule::kJsonBytes));
  const auto values = static_cast<uint32_t>(all_places(json::parse(text)).size());
  EXPECT_TRUE(reads({.values_max = values}, Rule::kJsonValues));
  EXPECT_FALSE(reads({.values_max = values - 1}, Rule::kJsonValues));
}

// Plans in plans, each the other's source: refused by the limit before anybody looks for their kind.
TEST(PlanReading, DeepNestingIsRefusedByTheLimit) {
  std::string text = "7";
  for (int i = 0; i < 100; ++i) text = R"({"schema":"crossdock.plan","version":1,"source":{"document":)" + text + "}}";
  Diagnostics diagnostics;
  EXPECT_FALSE(read_plan(text, JsonLimits(), diagnostics));
  EXPECT_EQ(diagnostics.total(), 1u);
  EXPECT_TRUE(diagnostics.has(Rule::kJsonDepth)) << diagnostic_lines(diagnostics);
}

}  // namespace
}  // namespace crossdock::testing
