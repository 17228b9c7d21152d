#include "planner/kv/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr std::string_view kSchema = "crossdock.plan";

constexpr std::array kRuntime = {DocumentCodec<PlacementManifest>::kSchema};
constexpr std::array kObjects = {DocumentCodec<StoreLayout>::kSchema};
constexpr std::array kStored = {DocumentCodec<StoreLayout>::kSchema, DocumentCodec<StoreManifest>::kSchema};

struct KindForm {
  PlanKind kind;
  std::span<const std::string_view> sources;  // schemas of the documents that may stand there
  std::span<const std::string_view> targets;
};

constexpr std::array<KindForm, 3> kKindForms = {{{PlanKind::kLive, kRuntime, kRuntime},
                                                 {PlanKind::kRestore, kStored, kRuntime},
                                                 {PlanKind::kUpload, kRuntime, kObjects}}};

// Reads on after a kind that was refused.
constexpr std::array kAnySide = {kRuntime[0], kStored[0], kStored[1]};
constexpr KindForm kAnyKind = {PlanKind::kLive, kAnySide, kAnySide};

const KindForm& form_of(PlanKind kind) {
  const auto form =
      std::find_if(kKindForms.begin(), kKindForms.end(), [kind](const KindForm& f) { return f.kind == kind; });
  CHECK(form != kKindForms.end());
  return *form;
}

// kAnyKind, and a diagnostic, when there is none.
const KindForm& read_kind(ObjectReader& in) {
  std::vector<std::string_view> names;
  names.reserve(kPlanKinds.size());
  for (const PlanKindName& known : kPlanKinds) names.push_back(known.name);
  const std::string name = in.choice("kind", names);
  for (const PlanKindName& known : kPlanKinds)
    if (known.name == name) return form_of(known.kind);
  return kAnyKind;
}

void encode_side(JsonWriter& out, const Sha256Digest& named, const AnyDocument* document,
                 std::span<const std::string_view> schemas) {
  out.begin_object();
  out.key("digest").string(named.hex());
  if (document != nullptr) {
    CHECK(std::find(schemas.begin(), schemas.end(), schema_name(*document)) != schemas.end());
    const std::string text = to_json(*document);
    CHECK(sha256(text) == named);
    out.key("document").raw(text);
  }
  out.end_object();
}

void decode_side(const JsonCursor& cursor, std::span<const std::string_view> schemas, Sha256Digest& named,
                 std::optional<AnyDocument>& document) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  ObjectReader in(cursor);
  named = in.digest("digest");
  const bool has_name = cursor.diagnostics.total() == diagnostics_before;
  in.optional("document", [&](const JsonCursor& carried) {
    document = decode_document_of(carried, schemas);
    if (!document || !has_name) return;
    const Sha256Digest own = digest(*document);
    if (own != named)
      carried.refuse(Rule::kPlanIdentity,
                     fmt::format("the document's digest is {}, the plan names {}", own.hex(), named.hex()));
  });
  in.finish();
}

void encode_end(JsonWriter& out, const PlanEnd& end) { out.string(end.text()); }

PlanEnd decode_end(const JsonCursor& cursor) { return PlanEnd(cursor.name()); }

void encode_layer_set(JsonWriter& out, const IntervalSet& layers) { encode(out, layers); }

IntervalSet decode_layer_set(const JsonCursor& cursor) { return cursor.interval_set(); }

void encode_tensor(JsonWriter& out, const PlanTensor& tensor) {
  out.begin_object();
  out.key("component");
  encode_component(out, tensor.component);
  out.key("layers");
  encode(out, tensor.layers);
  out.key("live_tokens");
  encode_live_tokens(out, tensor.window_tokens);
  out.key("tokens");
  encode(out, tensor.tokens);
  out.end_object();
}

PlanTensor decode_tensor(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  PlanTensor tensor;
  in.required("component", [&](const JsonCursor& component) { tensor.component = decode_component(component); });
  tensor.layers = in.interval_set("layers");
  in.required("live_tokens", [&](const JsonCursor& live) { tensor.window_tokens = decode_live_tokens(live); });
  tensor.tokens = in.range("tokens");
  in.finish();
  return tensor;
}

void encode_token_set(JsonWriter& out, const TokenSet& tokens) {
  out.begin_object();
  if (tokens.cycle) {
    out.key("cycle");
    encode(out, *tokens.cycle);
  }
  out.key("intervals");
  encode(out, tokens.intervals);
  out.end_object();
}

TokenSet decode_token_set(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  TokenSet tokens;
  in.optional("cycle", [&](const JsonCursor& cycle) { tokens.cycle = decode_cycle(cycle); });
  tokens.intervals = in.interval_set("intervals");
  in.finish();
  return tokens;
}

void encode_edge(JsonWriter& out, const Edge& edge) {
  out.begin_array();
  out.number(edge.target).number(edge.source).number(edge.tensor).number(edge.layer_set);
  out.number(edge.heads.begin()).number(edge.heads.end()).number(edge.token_set);
  out.end_array();
}

// An index into a list. Larger ones than fit are no entry of any list.
uint32_t decode_index(const JsonCursor& cursor) {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  const uint64_t value = cursor.unsigned_integer();
  if (value > kMax) cursor.refuse(Rule::kFieldInteger, fmt::format("{} is not an integer from 0 to {}", value, kMax));
  return static_cast<uint32_t>(value);
}

Edge decode_edge(const JsonCursor& cursor) {
  std::array<uint64_t, 7> numbers = {};
  constexpr uint32_t kHeadBegin = 4;
  constexpr uint32_t kHeadEnd = 5;
  if (!cursor.require(JsonKind::kArray)) return {};
  if (cursor.value.size() != numbers.size()) {
    cursor.refuse(Rule::kFieldType, fmt::format("an edge has {} numbers, not {}", numbers.size(), cursor.value.size()));
    return {};
  }
  cursor.for_each([&](const JsonCursor& item) {
    const uint32_t i = item.path.index;
    numbers[i] = i == kHeadBegin || i == kHeadEnd ? item.unsigned_integer() : decode_index(item);
  });
  const std::optional<Range> heads = Range::make(numbers[kHeadBegin], numbers[kHeadEnd]);
  if (!heads)
    cursor.refuse(Rule::kIntervals,
                  fmt::format("heads [{},{}) end before they begin", numbers[kHeadBegin], numbers[kHeadEnd]));
  const auto index = [&](size_t i) { return static_cast<uint32_t>(numbers[i]); };
  return Edge{index(0), index(1), index(2), index(3), heads.value_or(Range()), index(6)};
}

// All fields but those of the header, which has been read.
void decode_fields(const JsonCursor& cursor, TransferPlan& plan, std::optional<AnyDocument>& source,
                   std::optional<AnyDocument>& target) {
  ObjectReader in(cursor);
  in.required("edges", [&](const JsonCursor& list) { plan.edges = decode_list(list, decode_edge); });
  const KindForm& form = read_kind(in);
  plan.kind = form.kind;
  in.required("layer_sets", [&](const JsonCursor& list) { plan.layer_sets = decode_list(list, decode_layer_set); });
  in.string("schema");
  in.optional("snapshot_tokens", [&](const JsonCursor& tokens) { plan.snapshot_tokens = tokens.range(); });
  in.required("source", [&](const JsonCursor& side) { decode_side(side, form.sources, plan.source_digest, source); });
  in.required("sources", [&](const JsonCursor& list) { plan.sources = decode_list(list, decode_end); });
  in.required("target", [&](const JsonCursor& side) { decode_side(side, form.targets, plan.target_digest, target); });
  in.required("targets", [&](const JsonCursor& list) { plan.targets = decode_list(list, decode_end); });
  in.required("tensors", [&](const JsonCursor& list) { plan.tensors = decode_list(list, decode_tensor); });
  in.required("token_sets", [&](const JsonCursor& list) { plan.token_sets = decode_list(list, decode_token_set); });
  plan.tokens = in.range("tokens");
  in.number("version");
  in.finish();
}

}  // namespace

std::optional<PlanDocument> read_plan(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics) {
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, diagnostics);
  if (!tree) return std::nullopt;
  const JsonPath path;
  const JsonCursor cursor{tree->root(), path, diagnostics};
  if (!check_header(cursor, kSchema)) return std::nullopt;
  diagnostics.set_document("plan");
  const uint64_t diagnostics_before = diagnostics.total();
  TransferPlan plan;
  std::optional<AnyDocument> source;
  std::optional<AnyDocument> target;
  decode_fields(cursor, plan, source, target);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  std::optional<Valid<TransferPlan>> valid = Valid<TransferPlan>::make(std::move(plan), diagnostics);
  if (!valid) return std::nullopt;
  return PlanDocument{std::move(*valid), std::move(source), std::move(target)};
}

std::string plan_to_json(const Valid<TransferPlan>& plan, const AnyDocument* source, const AnyDocument* target) {
  const KindForm& form = form_of(plan->kind);
  JsonWriter out;
  out.begin_object();
  out.key("edges");
  encode_list(out, plan->edges, encode_edge);
  out.key("kind").string(plan_kind_name(plan->kind));
  out.key("layer_sets");
  encode_list(out, plan->layer_sets, encode_layer_set);
  encode_schema(out, kSchema, true);
  if (plan->snapshot_tokens) {
    out.key("snapshot_tokens");
    encode(out, *plan->snapshot_tokens);
  }
  out.key("source");
  encode_side(out, plan->source_digest, source, form.sources);
  out.key("sources");
  encode_list(out, plan->sources, encode_end);
  out.key("target");
  encode_side(out, plan->target_digest, target, form.targets);
  out.key("targets");
  encode_list(out, plan->targets, encode_end);
  out.key("tensors");
  encode_list(out, plan->tensors, encode_tensor);
  out.key("token_sets");
  encode_list(out, plan->token_sets, encode_token_set);
  out.key("tokens");
  encode(out, plan->tokens);
  encode_version(out, true);
  out.end_object();
  return out.take();
}

Sha256Digest digest(const Valid<TransferPlan>& plan) { return sha256(plan_to_json(plan)); }

std::optional<PlanSide> plan_side(const AnyDocument& document) {
  return std::visit(
      []<class Document>(const Valid<Document>& valid) -> std::optional<PlanSide> {
        if constexpr (std::is_constructible_v<PlanSide, const Valid<Document>&, const Sha256Digest&>)
          return std::optional<PlanSide>(std::in_place, valid, digest(valid));
        else
          return std::nullopt;
      },
      document);
}

}  // namespace crossdock
