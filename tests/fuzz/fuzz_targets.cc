#include "tests/fuzz/fuzz_targets.h"

#include <algorithm>

#include "executor/recording/recorder.h"
#include "model/hf/config.h"
#include "model/kv/binding_rules.h"
#include "model/mooncake/mooncake.h"
#include "model/wire/documents.h"
#include "planner/kv/plan_json.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

constexpr JsonLimits kLimits = {.bytes_max = 1 << 20, .depth_max = 32, .values_max = 1 << 16};

template <class Document>
void expect_fixed_point(const Valid<Document>& document) {
  const std::string text = to_json(document);
  Diagnostics diagnostics;
  const std::optional<Valid<Document>> again = read_document<Document>(text, JsonLimits(), diagnostics);
  CHECK(again.has_value());
  CHECK(*again == document);
  CHECK(to_json(*again) == text);
}

template <class Document>
void fuzz_document(std::string_view input) {
  Diagnostics diagnostics;
  const std::optional<Valid<Document>> document = read_document<Document>(input, kLimits, diagnostics);
  CHECK(document.has_value() == diagnostics.empty());
  if (document) expect_fixed_point(*document);
}

template <>
void fuzz_document<RuntimeBinding>(std::string_view input) {
  Diagnostics diagnostics;
  const std::optional<Valid<RuntimeBinding>> binding = read_document<RuntimeBinding>(input, kLimits, diagnostics);
  CHECK(binding.has_value() == diagnostics.empty());
  if (!binding) return;
  expect_fixed_point(*binding);
  // Against the example's placement, as if it named it.
  static const Valid<PlacementManifest> placement = example_placement();
  static const BindingContext context(placement);
  RuntimeBinding named = **binding;
  named.placement_digest = context.placement_digest();
  named.resource = placement->resource;
  named.revision = placement->revision;
  named.participant = ParticipantId("p0-t0");
  const std::optional<Valid<RuntimeBinding>> valid = Valid<RuntimeBinding>::make(std::move(named), diagnostics);
  if (!valid) return;
  check_binding(*valid, context, diagnostics);
  if (!diagnostics.empty()) return;
  const BoundParticipant bound{&*valid, &context};
  check_instances(std::span(&bound, 1), diagnostics);
  CHECK(diagnostics.empty());  // alone in its instance, and its views are disjoint
}

void fuzz_plan(std::string_view input) {
  Diagnostics diagnostics;
  const std::optional<PlanDocument> read = read_plan(input, kLimits, diagnostics);
  CHECK(read.has_value() == diagnostics.empty());
  if (!read) return;
  const AnyDocument* source = read->source ? &*read->source : nullptr;
  const AnyDocument* target = read->target ? &*read->target : nullptr;
  const std::string text = plan_to_json(read->plan, source, target);
  const std::optional<PlanDocument> again = read_plan(text, JsonLimits(), diagnostics);
  CHECK(again.has_value());
  CHECK(again->plan == read->plan && again->source == read->source && again->target == read->target);
  CHECK(plan_to_json(again->plan, source, target) == text);
  for (const Edge& edge : read->plan->edges) CHECK(edge_bytes(*read->plan, edge) > 0);
  if (!read->source || !read->target) return;
  // Whatever it claims about them, it is compared with the documents that it carries within the limits.
  const VerifyLimits limits{.work_max = 1 << 16, .token_range_count_max = 1 << 10};
  const PlanProof proof =
      verify_plan(read->plan, *plan_side(*read->source), *plan_side(*read->target), limits, diagnostics);
  CHECK(!diagnostics.empty() || (proof.complete && proof.diagnostic_count == 0));
}

void fuzz_hf_config(std::string_view input) {
  HfOptions others;
  others.engine = Engine::kSglang;
  others.kv_dtype = "nvfp4";
  HfOptions scales;
  scales.kv_dtype = "fp8_e4m3";
  scales.kv_scales = true;
  HfOptions draft_layers;
  draft_layers.draft_layers = true;
  for (const HfOptions& options : {HfOptions(), draft_layers, scales, others}) {
    Diagnostics diagnostics;
    const std::optional<HfModel> model = read_hf_config(input, options, kLimits, diagnostics);
    CHECK(model.has_value() == diagnostics.empty());
    if (model) expect_fixed_point(model->cache_schema);
  }
}

void fuzz_mooncake_placement(std::string_view input) {
  Diagnostics diagnostics;
  const auto placement = mooncake::read_placement(input, kLimits, diagnostics);
  CHECK(placement.has_value() == diagnostics.empty());
  if (!placement) return;
  expect_fixed_point(*placement);
  const std::optional<std::string> text = mooncake::write_placement(*placement, diagnostics);
  CHECK(text.has_value());
  CHECK(mooncake::read_placement(*text, JsonLimits(), diagnostics) == placement);
}

// The example's placement in a form that Mooncake's documents can refer to.
const Valid<PlacementManifest>& mooncake_like_placement() {
  static const Valid<PlacementManifest> placement = [] {
    PlacementManifest changed = *example_placement();
    changed.cache_schema.groups = {changed.cache_schema.groups[1]};
    changed.cache_schema.groups[0].live = LiveTokens::all();
    for (Part& part : changed.parts) {
      const bool has_layers = part.participant.text().starts_with("p1");
      if (has_layers) part.owns.erase(part.owns.begin() + 1, part.owns.end());
      if (!has_layers) part.owns.clear();
    }
    return valid_or_die(changed);
  }();
  return placement;
}

void fuzz_mooncake_snapshot(std::string_view input) {
  Diagnostics diagnostics;
  const auto snapshot = mooncake::read_snapshot(input, mooncake_like_placement(), kLimits, diagnostics);
  CHECK(snapshot.has_value() == diagnostics.empty());
  if (!snapshot) return;
  expect_fixed_point(*snapshot);
  CHECK(mooncake::write_snapshot(*snapshot, diagnostics).has_value());
}

void fuzz_mooncake_binding(std::string_view input) {
  static const Valid<SnapshotDescriptor> snapshot = [] {
    SnapshotDescriptor changed = *example_snapshot();
    changed.adapter = std::nullopt;
    changed.cache_schema_digest = cache_schema_digest(mooncake_like_placement());
    return valid_or_die(changed);
  }();
  Diagnostics diagnostics;
  const auto binding = mooncake::read_binding(input, mooncake_like_placement(), snapshot, kLimits, diagnostics);
  CHECK(binding.has_value() == diagnostics.empty());
  if (binding) expect_fixed_point(*binding);
}

// Whatever it says, it is replayed within the limits, and twice in the same way.
void fuzz_recording(std::string_view input) {
  ReplayLimits limits;
  limits.line = kLimits;
  limits.lower = {.work_max = 1 << 16,
                  .pattern_count_max = 1 << 12,
                  .page_piece_count_max = 1 << 14,
                  .step_count_max = 1 << 12,
                  .bytes_max = uint64_t{1} << 40};
  limits.split_step_count_max = 1 << 12;
  limits.prefix_object_count_max = 1 << 12;
  const Result<ReplayReport> report = replay(input, limits);
  const Result<ReplayReport> again = replay(input, limits);
  CHECK(report.status() == again.status());
  if (!report.ok()) return;
  CHECK(report.value().difference == again.value().difference);
  CHECK(report.value().states == again.value().states && report.value().post_count == again.value().post_count);
  CHECK(!report.value().finished || report.value().round_count > 0);
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> targets = [] {
#define CROSSDOCK_TARGET(Document, schema) {std::string_view(schema).substr(kPrefix.size()), fuzz_document<Document>},
    constexpr std::string_view kPrefix = "crossdock.";
    std::vector<FuzzTarget> all = {CROSSDOCK_FOR_EACH_DOCUMENT(CROSSDOCK_TARGET)  //
                                   {"hf_config", fuzz_hf_config},
                                   {"mooncake_binding", fuzz_mooncake_binding},
                                   {"mooncake_placement", fuzz_mooncake_placement},
                                   {"mooncake_snapshot", fuzz_mooncake_snapshot},
                                   {"plan", fuzz_plan},
                                   {"recording", fuzz_recording}};
#undef CROSSDOCK_TARGET
    std::sort(all.begin(), all.end(), [](const FuzzTarget& a, const FuzzTarget& b) { return a.name < b.name; });
    return all;
  }();
  return targets;
}

}  // namespace crossdock::testing
