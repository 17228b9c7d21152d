// Plans, store ranges and byte writes of a reference planner, computed from the same documents
// (the conformance data beside a checkout, see its README). Its edges are one for each layer and component; ours are
// expanded before they are compared.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/file.h"
#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/expand.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/store_geometry.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/paths.h"
#include "tests/unit/model/mooncake/mooncake_fixture.h"

namespace crossdock::mooncake {
namespace {

const std::filesystem::path kConformance = source_path("../shared/conformance/mooncake");

Json load(const std::string& name) { return Json::parse(read_file(kConformance / name, uint64_t{1} << 26).value()); }

PlanSide side_of(const Valid<PlacementManifest>& placement) { return PlanSide(placement, digest(placement)); }

std::optional<uint64_t> optional_number(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<uint64_t>());
}

// (source, target, layer, component, head start, head count, source offset, target offset, head dim, itemsize)
using EdgeRow = std::tuple<std::string, std::string, uint64_t, std::string, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t>;

std::set<EdgeRow> expected_edges(const Json& wire) {
  std::set<EdgeRow> rows;
  for (const Json& e : wire["edges"])
    rows.emplace(e["source_participant_id"], e["target_participant_id"], e["global_layer_id"], e["component"],
                 e["global_head_start"], e["head_count"], e["source_head_offset"], e["target_head_offset"],
                 e["head_dim"], e["itemsize"]);
  return rows;
}

std::optional<Valid<TransferPlan>> plan_and_prove(const PlanSide& source, const PlanSide& target,
                                                  const PlanOptions& options, Diagnostics& diagnostics) {
  auto plan = make_plan(source, target, options, PlanLimits{}, diagnostics);
  if (plan) {
    const PlanProof proof = verify_plan(*plan, source, target, VerifyLimits{}, diagnostics);
    EXPECT_TRUE(proof.complete);
  }
  return plan;
}

// Without the conformance data there is nothing to compare with, and each test passes at once.
class PlannerConformanceCase : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (std::filesystem::exists(kConformance)) json = load(fmt::format("case-{:03}.json", GetParam()));
  }
  Json json = {};
};

TEST_P(PlannerConformanceCase, EachTargetHasTheReferencesEdges) {
  if (json.is_null()) return;
  const auto source = placement_of(json["source"]);
  const auto target = placement_of(json["target"]);
  const PlanSide source_side = side_of(source);
  const PlanSide target_side = side_of(target);
  for (const Json& entry : json["plans"]) {
    const std::string participant = entry["target_participant_id"];
    SCOPED_TRACE(participant);
    PlanOptions options;
    options.source_dp = optional_number(json["source_dp_request"]);
    options.targets = {PlanEnd(participant)};
    Diagnostics diagnostics;
    const auto plan = plan_and_prove(source_side, target_side, options, diagnostics);
    ASSERT_TRUE(plan && diagnostics.empty()) << first_diagnostic(diagnostics);
    if (entry.contains("error")) {
      // The reference refuses to plan for a participant without layers; such a plan is right, and has no edge.
      EXPECT_EQ(entry["error"], "logical transfer plan must contain transfer edges");
      EXPECT_TRUE((*plan)->edges.empty());
      continue;
    }
    const auto rows = logical_rows(**plan, source_side, target_side, kRowsMax, diagnostics);
    ASSERT_TRUE(rows.has_value()) << first_diagnostic(diagnostics);
    std::set<EdgeRow> edges;
    for (const LogicalRow& row : *rows) {
      EXPECT_EQ(row.tokens, Range::all());
      edges.emplace(row.source, row.target, row.layer, row.component, row.heads.begin(), row.heads.size(),
                    row.source_head_offset, row.target_head_offset, row.head_dim, row.item_bytes);
    }
    EXPECT_EQ(edges, expected_edges(entry["wire"]));
  }
}

ObjectOrder order_of(const std::string& format) {
  if (format == "PLHD") return ObjectOrder::kPlhd;
  return format == "LPHD" ? ObjectOrder::kLphd : ObjectOrder::kHpld;
}

// The reference's layout in our words: a part for each of its shards, with keys that keep their order, or its own keys.
std::optional<Valid<StoreLayout>> layout_from(const Json& json, const CacheSchema& schema, bool own_keys,
                                              Diagnostics& diagnostics) {
  StoreLayout layout;
  layout.name = "reference";
  layout.cache_schema = schema;
  layout.object_order = order_of(json["object_format"]);
  layout.page_tokens = json["descriptor"]["page_size"];
  for (size_t i = 0; i < json["shards"].size(); ++i) {
    const Json& shard = json["shards"][i];
    std::vector<Range> layers;
    for (const Json& layer : shard["layer_ids"]) layers.emplace_back(layer.get<uint64_t>(), layer.get<uint64_t>() + 1);
    const uint64_t head = shard["head_start"];
    const std::string key = own_keys ? shard["key_suffix"].get<std::string>() : fmt::format("{:06}", i);
    layout.parts.push_back(StorePart{ObjectKey(key),
                                     IntervalSet::from_ranges(layers),
                                     {ComponentName("key"), ComponentName("value")},
                                     {Range(head, head + shard["head_count"].get<uint64_t>())}});
  }
  return Valid<StoreLayout>::make(std::move(layout), diagnostics);
}

// A layout that need not be right, with the schema that its descriptor states.
std::optional<Valid<StoreLayout>> foreign_layout(const Json& json, Diagnostics& diagnostics) {
  const Json& d = json["descriptor"];
  std::vector<Range> layers;
  for (const Json& layer : d["global_layer_ids"]) layers.emplace_back(layer.get<uint64_t>(), layer.get<uint64_t>() + 1);
  CacheSchema schema{{LayerGroup{IntervalSet::from_ranges(layers), LiveTokens::all(), {}}}};
  for (const char* name : {"key", "value"})
    schema.groups[0].components.push_back(Component{ComponentName(name), d["dtype"], "plain", d["itemsize"],
                                                    d["total_kv_heads"], d[std::string(name) + "_head_dim"], 1});
  return layout_from(json, schema, true, diagnostics);
}

// Where the reference's shards lie, in any order.
std::set<std::pair<std::vector<Range>, Range>> regions_of(const StoreLayout& layout) {
  std::set<std::pair<std::vector<Range>, Range>> regions;
  for (const StorePart& part : layout.parts) regions.emplace(part.layers.ranges(), part.heads.hull());
  return regions;
}

TEST_P(PlannerConformanceCase, StoreLayoutsSizesWritersAndRangesAreTheReferences) {
  if (json.is_null()) return;
  const auto source = placement_of(json["source"]);
  const auto target = placement_of(json["target"]);
  const PlanSide source_side = side_of(source);
  const PlanSide target_side = side_of(target);
  for (const Json& entry : json["store"]) {
    SCOPED_TRACE(entry["object_format"].get<std::string>());
    Diagnostics diagnostics;
    const auto made =
        layout_from(Json::parse(entry["layout"].get<std::string>()), source->cache_schema, false, diagnostics);
    ASSERT_TRUE(made.has_value()) << first_diagnostic(diagnostics);
    const Valid<StoreLayout>& layout = *made;
    // Our own layout for this source has the same parts.
    const auto own = layout_of(source, optional_number(entry["source_dp_request"]), layout->object_order,
                               layout->page_tokens, "own", diagnostics);
    ASSERT_TRUE(own.has_value()) << first_diagnostic(diagnostics);
    EXPECT_EQ(regions_of(**own), regions_of(*layout));

    const auto geometry = store_geometry(layout, diagnostics);
    ASSERT_TRUE(geometry.has_value()) << first_diagnostic(diagnostics);
    std::vector<uint64_t> sizes;
    for (const StorePartBytes& part : geometry->parts) sizes.push_back(part.page);
    EXPECT_EQ(sizes, entry["part_sizes"].get<std::vector<uint64_t>>());

    const PlanSide store(layout, digest(layout));
    PlanOptions upload;
    upload.source_dp = optional_number(entry["source_dp_request"]);
    const auto upload_plan = plan_and_prove(source_side, store, upload, diagnostics);
    ASSERT_TRUE(upload_plan && diagnostics.empty()) << first_diagnostic(diagnostics);
    std::map<std::string, std::set<std::string>> writers;  // by part
    for (const Edge& edge : (*upload_plan)->edges)
      writers[(*upload_plan)->targets[edge.target].text()].insert((*upload_plan)->sources[edge.source].text());
    std::vector<std::string> writer_list;
    for (const auto& [part, names] : writers) {
      ASSERT_EQ(names.size(), 1u);
      writer_list.push_back(*names.begin());
    }
    EXPECT_EQ(writer_list, entry["writers"].get<std::vector<std::string>>());

    PlanOptions restore;
    restore.target_dp = optional_number(entry["target_dp_request"]);
    if (!restore.target_dp) restore.target_dp = optional_number(entry["target_dp_rank"]);
    const auto restore_plan = plan_and_prove(store, target_side, restore, diagnostics);
    ASSERT_TRUE(restore_plan && diagnostics.empty()) << first_diagnostic(diagnostics);
    const auto rows = store_rows(**restore_plan, *layout, *geometry, kRowsMax, diagnostics);
    ASSERT_TRUE(rows.has_value()) << first_diagnostic(diagnostics);
    std::set<Json> ours;
    for (const StoreRow& row : *rows)
      ours.insert(Json::array({row.participant, row.layer, row.component, row.heads.begin(), row.heads.size(),
                               row.part_index, row.part_offset, row.row_stride_bytes, row.head_stride_bytes}));
    const auto expected = entry["ranges"].get<std::set<Json>>();
    EXPECT_EQ(ours, expected);
  }
}

// (source, target, source address, target address, bytes), neighbours merged
using WriteRow = std::tuple<std::string, std::string, uint64_t, uint64_t, uint64_t>;

std::set<WriteRow> merged(std::vector<WriteRow> rows) {
  std::sort(rows.begin(), rows.end());
  std::set<WriteRow> result;
  std::vector<WriteRow> open;
  for (const WriteRow& row : rows) {
    if (!open.empty()) {
      auto& [source, target, from, to, bytes] = open.back();
      if (source == std::get<0>(row) && target == std::get<1>(row) && from + bytes == std::get<2>(row) &&
          to + bytes == std::get<3>(row)) {
        bytes += std::get<4>(row);
        continue;
      }
    }
    open.push_back(row);
  }
  return {open.begin(), open.end()};
}

std::map<std::string, uint64_t> addresses_of(const std::vector<Valid<RuntimeBinding>>& bindings) {
  std::map<std::string, uint64_t> addresses;  // by participant and region
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const Region& region : binding->regions)
      addresses[binding->participant.text() + "\n" + region.id.text()] = region.address.value();
  return addresses;
}

TEST_P(PlannerConformanceCase, LoweredWritesAreTheReferences) {
  if (json.is_null() || !json.contains("runtime") || json["runtime"].is_null()) return;
  const Json& runtime = json["runtime"];
  const auto source = placement_of(json["source"]);
  const auto target = placement_of(json["target"]);
  const auto snapshot = snapshot_of(runtime["snapshot"], source);
  const auto read_all = [&](const Json& texts, const Valid<PlacementManifest>& placement) {
    std::vector<Valid<RuntimeBinding>> bindings;
    for (const Json& text : texts) bindings.push_back(binding_of(text, placement, snapshot));
    return bindings;
  };
  const std::vector<Valid<RuntimeBinding>> source_bindings = read_all(runtime["source_bindings"], source);
  const std::vector<Valid<RuntimeBinding>> target_bindings = read_all(runtime["target_bindings"], target);
  const auto pointers = [](const std::vector<Valid<RuntimeBinding>>& bindings) {
    std::vector<const Valid<RuntimeBinding>*> list;
    for (const auto& binding : bindings) list.push_back(&binding);
    return list;
  };
  Diagnostics diagnostics;
  PlanOptions options;
  options.source_dp = optional_number(json["source_dp_request"]);
  options.snapshot_tokens = snapshot->tokens;
  const auto plan = plan_and_prove(side_of(source), side_of(target), options, diagnostics);
  ASSERT_TRUE(plan && diagnostics.empty()) << first_diagnostic(diagnostics);
  const BindingContext source_context(source, &snapshot);
  const BindingContext target_context(target, &snapshot);
  const auto source_side = BoundSide::bind(source_context, pointers(source_bindings), diagnostics);
  const auto target_side = BoundSide::bind(target_context, pointers(target_bindings), diagnostics);
  ASSERT_TRUE(source_side && target_side) << first_diagnostic(diagnostics);
  const auto lowered = lower(**plan, *source_side, *target_side, LowerOptions{}, LowerLimits{}, diagnostics);
  ASSERT_TRUE(lowered.has_value()) << first_diagnostic(diagnostics);
  const auto rows = byte_rows(**plan, *lowered, kRowsMax, diagnostics);
  ASSERT_TRUE(rows.has_value()) << first_diagnostic(diagnostics);

  const std::map<std::string, uint64_t> from = addresses_of(source_bindings);
  const std::map<std::string, uint64_t> to = addresses_of(target_bindings);
  std::vector<WriteRow> ours;
  for (const ByteRow& row : *rows)
    ours.emplace_back(row.source, row.target, from.at(row.source + "\n" + row.source_region) + row.source_offset,
                      to.at(row.target + "\n" + row.target_region) + row.target_offset, row.bytes);
  std::vector<WriteRow> expected;
  for (const Json& write : runtime["writes"]) expected.emplace_back(write[0], write[1], write[3], write[4], write[5]);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(merged(ours), merged(expected));
}

std::string rule_of(const Diagnostics& diagnostics) {
  return diagnostics.empty() ? "none" : std::string(rule_name(diagnostics.kept().front().rule));
}

TEST(PlannerConformance, WhatTheReferenceRefusesToPlanIsRefusedByItsRuleOrPlanned) {
  if (!std::filesystem::exists(kConformance)) return;
  // "none": ours is right to plan it. Pages of different sizes are views, a target may want some of the layers, and a
  // stage without layers needs an empty plan.
  const std::map<std::string, std::string> rules = {{"page size differs", "none"},
                                                    {"target has a layer subset", "none"},
                                                    {"target has other layers", "plan-schema"},
                                                    {"heads differ", "plan-schema"},
                                                    {"unknown target participant", "plan-participant"},
                                                    {"source DP absent", "plan-participant"},
                                                    {"snapshot of another resource", "plan-identity"},
                                                    {"target resource differs from snapshot", "plan-identity"},
                                                    {"target stage without layers", "none"}};
  std::set<std::string> seen;
  for (const Json& entry : load("negative-plans.json")) {
    const std::string name = entry["name"];
    SCOPED_TRACE(name);
    seen.insert(name);
    if (name == "source DP negative") continue;  // a rank of ours is unsigned; the program refuses -1 as usage
    const auto source = placement_of(entry["source"]);
    const auto target = placement_of(entry["target"]);
    const PlanSide source_side = side_of(source);
    const PlanSide target_side = side_of(target);
    Diagnostics diagnostics;
    if (!entry["snapshot"].is_null()) {
      Diagnostics none;
      const auto snapshot = read_snapshot(entry["snapshot"].get<std::string>(), source, JsonLimits{}, none);
      if (snapshot) check_snapshot(**snapshot, source_side, cache_schema_digest(source), target_side, diagnostics);
      diagnostics.take(none);
    }
    PlanOptions options;
    options.source_dp = optional_number(entry["source_dp_rank"]);
    options.targets = {PlanEnd(entry["target_participant_id"])};
    if (diagnostics.empty()) plan_and_prove(source_side, target_side, options, diagnostics);
    EXPECT_EQ(rule_of(diagnostics), rules.at(name)) << first_diagnostic(diagnostics);
  }
  EXPECT_EQ(seen.size(), rules.size() + 1);
}

TEST(PlannerConformance, WhatTheReferenceRefusesInAStoreIsRefusedByItsRuleOrPlanned) {
  if (!std::filesystem::exists(kConformance)) return;
  // "none" as above. Its limits count parts and fragments; ours count edges. Bytes are limited where tokens are known:
  // in a lowering.
  const std::map<std::string, std::string> rules = {{"source DP absent", "plan-participant"},
                                                    {"target DP absent", "plan-participant"},
                                                    {"part limit", "plan-limit"},
                                                    {"fragment limit", "plan-limit"},
                                                    {"runtime fragment limit", "plan-limit"},
                                                    {"page size differs", "none"},
                                                    {"layer subset", "none"},
                                                    {"shard gap", "coverage-gap"},
                                                    {"shard overlap", "coverage-overlap"},
                                                    {"shard replicas", "coverage-overlap"},
                                                    {"suffix twice", "object-key-repeated"},
                                                    {"shard without layers", "ownership-empty"}};
  // Ours has no such thing: an order of axes is a choice, a layout states no identity, and unknown fields are the
  // reader's (tests/unit/model/wire/wire_test.cc). The byte limits: see above.
  const std::set<std::string> elsewhere = {"unknown format", "digest wrong", "layout id wrong",
                                           "unknown field",  "byte limit",   "replicas pass the byte limit"};
  std::set<std::string> seen;
  for (const Json& entry : load("negative-store.json")) {
    const std::string name = entry["name"];
    SCOPED_TRACE(name);
    seen.insert(name);
    if (elsewhere.contains(name)) continue;
    Diagnostics diagnostics;
    PlanLimits limits;
    if (name.ends_with("limit")) limits.edge_count_max = 1;
    if (entry["call"] == "upload") {
      const auto source = placement_of(entry["source"]);
      PlanOptions options;
      options.source_dp = optional_number(entry["source_dp_rank"]);
      const auto layout = layout_of(source, options.source_dp, ObjectOrder::kPlhd, 16, "store", diagnostics);
      if (layout) {
        const PlanSide store(*layout, digest(*layout));
        make_plan(side_of(source), store, options, limits, diagnostics);
      }
    } else {
      const auto layout = foreign_layout(Json::parse(entry["layout"].get<std::string>()), diagnostics);
      if (layout && entry["call"] == "load") {
        const auto target = placement_of(entry["target"]);
        const PlanSide store(*layout, digest(*layout));
        PlanOptions options;
        options.target_dp = optional_number(entry["target_dp_rank"]);
        make_plan(store, side_of(target), options, limits, diagnostics);
      }
    }
    EXPECT_EQ(rule_of(diagnostics), rules.at(name)) << first_diagnostic(diagnostics);
  }
  std::set<std::string> known = elsewhere;
  for (const auto& [name, rule] : rules) known.insert(name);
  EXPECT_EQ(seen, known);
}

TEST(PlannerConformance, WhatTheReferenceRefusesAmongSeveralBindingsIsRefused) {
  if (!std::filesystem::exists(kConformance)) return;
  const std::map<std::string, std::string> rules = {{"source binding missing", "plan-participant"},
                                                    {"source binding twice", "binding-identity"},
                                                    {"endpoint of two instances", "instance-endpoint"},
                                                    {"instance with two endpoints", "instance-endpoint"}};
  const Json file = load("negative-runtime.json");
  const auto source = placement_of(file["source"]);
  const auto target = placement_of(file["target"]);
  const auto snapshot = snapshot_of(file["snapshot"], source);
  PlanOptions options;
  options.snapshot_tokens = snapshot->tokens;
  Diagnostics none;
  const auto plan = plan_and_prove(side_of(source), side_of(target), options, none);
  ASSERT_TRUE(plan && none.empty());
  size_t seen = 0;
  for (const Json& entry : file["cases"]) {
    const auto rule = rules.find(entry["name"]);
    if (rule == rules.end()) continue;
    ++seen;
    SCOPED_TRACE(rule->first);
    std::vector<Valid<RuntimeBinding>> bindings;
    std::vector<const Valid<RuntimeBinding>*> from;
    std::vector<const Valid<RuntimeBinding>*> to;
    const size_t source_count = entry["source_bindings"].size();
    for (const Json& content : entry["source_bindings"])
      bindings.push_back(binding_of(canonical(seal_binding(content)), source, snapshot));
    for (const Json& content : entry["target_bindings"])
      bindings.push_back(binding_of(canonical(seal_binding(content)), target, snapshot));
    for (size_t i = 0; i < bindings.size(); ++i) (i < source_count ? from : to).push_back(&bindings[i]);
    Diagnostics diagnostics;
    const auto source_side = BoundSide::bind(BindingContext(source, &snapshot), from, diagnostics);
    const auto target_side = BoundSide::bind(BindingContext(target, &snapshot), to, diagnostics);
    if (source_side && target_side)
      lower(**plan, *source_side, *target_side, LowerOptions{}, LowerLimits{}, diagnostics);
    EXPECT_EQ(rule_of(diagnostics), rule->second) << first_diagnostic(diagnostics);
  }
  EXPECT_EQ(seen, rules.size());
}

INSTANTIATE_TEST_SUITE_P(Cases, PlannerConformanceCase, ::testing::Range(0, 30),
                         [](const auto& each) { return fmt::format("{:03}", each.param); });

}  // namespace
}  // namespace crossdock::mooncake
