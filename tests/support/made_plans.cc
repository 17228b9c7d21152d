#include "tests/support/made_plans.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace crossdock::testing {

Valid<CacheSchema> wide_schema() {
  return schema_of({group(Range(0, 5), {rows("key", 8, 4), rows("latent", 1, 6), rows("scale", 8, 1, 4)}),
                    group({Range(5, 6), Range(7, 8)}, {rows("key", 8, 4)}, 6),
                    group(Range(6, 7), {state("state", 8, 16)})});
}

AnyDocument placed(const Valid<CacheSchema>& schema, const char* name, const PartitionSizes& sizes) {
  return placed(schema, sizes, name, "kv:request-17");
}

MadePlan make_named_plan(std::string name, AnyDocument source, AnyDocument target, const PlanOptions& options) {
  SCOPED_TRACE(name);
  Diagnostics diagnostics;
  const auto plan = make_plan(plan_side(source).value(), plan_side(target).value(), options, PlanLimits(), diagnostics);
  if (!plan) ADD_FAILURE() << diagnostic_lines(diagnostics);
  return MadePlan{std::move(name), std::move(source), std::move(target), plan.value()};
}

PlanOptions about_tokens(std::optional<Range> snapshot_tokens, Range tokens) {
  PlanOptions options;
  options.snapshot_tokens = snapshot_tokens;
  options.tokens = tokens;
  return options;
}

const std::vector<MadePlan>& made_plans() {
  static const std::vector<MadePlan> plans = [] {
    const Valid<CacheSchema> wide = wide_schema();
    const AnyDocument two_stages = placed(wide, "prefill", PartitionSizes{.pp = 2, .tp = 4});
    const AnyDocument replicas = placed(wide, "decode", PartitionSizes{.dp = 2, .pp = 3, .tp = 16});
    const AnyDocument turns_of_4 = placed(wide, "prefill", PartitionSizes{.tp = 2, .cp = 2, .cp_block_tokens = 4});
    const AnyDocument turns_of_8 = placed(wide, "decode", PartitionSizes{.cp = 3, .cp_block_tokens = 8});
    const Valid<CacheSchema> small = example_cache_schema();
    const Range ten = example_snapshot()->tokens;
    std::vector<MadePlan> made;
    made.push_back(make_named_plan("stages, heads and replicas", two_stages, replicas, about_tokens(Range(0, 21))));
    made.push_back(make_named_plan("without a snapshot", replicas, two_stages, about_tokens(std::nullopt)));
    made.push_back(
        make_named_plan("some of the tokens", two_stages, replicas, about_tokens(Range(0, 21), Range(8, 16))));
    made.push_back(make_named_plan("cycles into one", turns_of_4, two_stages, about_tokens(Range(3, 50))));
    made.push_back(make_named_plan("cycles into cycles", turns_of_4, turns_of_8, about_tokens(Range(0, 100))));
    made.push_back(make_named_plan("small cycles",
                                   placed(small, "prefill", PartitionSizes{.cp = 2, .cp_block_tokens = 3}),
                                   placed(small, "decode", PartitionSizes{.tp = 2}), about_tokens(ten)));
    made.push_back(make_named_plan("upload", example_placement(), example_store_layout(), about_tokens(ten)));
    made.push_back(
        make_named_plan("restore by a layout", example_store_layout(), example_placement(), about_tokens(ten)));
    made.push_back(make_named_plan("restore", example_store_manifest(), example_placement(), about_tokens(ten)));
    return made;
  }();
  return plans;
}

json rendered(Range range) { return {range.begin(), range.end()}; }

json rendered(const IntervalSet& set) {
  json list = json::array();
  for (const Range range : set.ranges()) list.push_back(rendered(range));
  return list;
}

json rendered(const TokenSet& tokens) {
  json set = {{"intervals", rendered(tokens.intervals)}};
  if (tokens.cycle)
    set["cycle"] = {{"block_tokens", tokens.cycle->block_tokens},
                    {"blocks", rendered(tokens.cycle->blocks)},
                    {"cycle_blocks", tokens.cycle->cycle_blocks}};
  return set;
}

json rendered(const PlanTensor& tensor) {
  const Component& c = tensor.component;
  json axis = {{"kind", "state"}};
  if (c.tokens_per_row) axis = {{"kind", "rows"}, {"tokens_per_row", *c.tokens_per_row}};
  json live = {{"kind", "all"}};
  if (const auto window = window_of(tensor.live)) live = {{"kind", "window"}, {"tokens", *window}};
  return {{"component",
           {{"dtype", c.dtype},
            {"encoding", c.encoding},
            {"head_count", c.head_count},
            {"head_dim", c.head_dim},
            {"item_bytes", c.item_bytes},
            {"name", c.name.text()},
            {"token_axis", axis}}},
          {"layers", rendered(tensor.layers)},
          {"live_tokens", live},
          {"tokens", rendered(tensor.tokens)}};
}

json rendered_side(const Sha256Digest& digest, const AnyDocument* document) {
  json side = {{"digest", digest.hex()}};
  if (document != nullptr) side["document"] = json::parse(to_json(*document));
  return side;
}

std::string rendered(const TransferPlan& plan, const AnyDocument* source, const AnyDocument* target) {
  json document = {{"schema", "crossdock.plan"}, {"version", 1}};
  const std::map<PlanKind, const char*> kinds = {
      {PlanKind::kLive, "live"}, {PlanKind::kUpload, "upload"}, {PlanKind::kRestore, "restore"}};
  document["kind"] = kinds.at(plan.kind);
  document["source"] = rendered_side(plan.source_digest, source);
  document["target"] = rendered_side(plan.target_digest, target);
  if (plan.snapshot_tokens) document["snapshot_tokens"] = rendered(*plan.snapshot_tokens);
  document["tokens"] = rendered(plan.tokens);
  for (const char* name : {"sources", "targets", "tensors", "layer_sets", "token_sets", "edges"})
    document[name] = json::array();
  for (const PlanEnd& end : plan.sources) document["sources"].push_back(end.text());
  for (const PlanEnd& end : plan.targets) document["targets"].push_back(end.text());
  for (const PlanTensor& tensor : plan.tensors) document["tensors"].push_back(rendered(tensor));
  for (const IntervalSet& layers : plan.layer_sets) document["layer_sets"].push_back(rendered(layers));
  for (const TokenSet& tokens : plan.token_sets) document["token_sets"].push_back(rendered(tokens));
  for (const Edge& e : plan.edges)
    document["edges"].push_back(
        {e.target, e.source, e.tensor, e.layer_set, e.heads.begin(), e.heads.end(), e.token_set});
  return document.dump(-1, ' ', true);
}

nlohmann::ordered_json backwards(const json& value) {
  if (value.is_array()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const json& item : value) list.push_back(backwards(item));
    return list;
  }
  if (!value.is_object()) return nlohmann::ordered_json::parse(value.dump());
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (auto field = value.rbegin(); field != value.rend(); ++field) object[field.key()] = backwards(field.value());
  return object;
}

}  // namespace crossdock::testing
