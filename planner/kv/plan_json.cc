#include "planner/kv/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "model/wire/codec.h"
#include "model/wire/kv_forms.h"

// One description of the form serves reading and writing (model/wire/describe.h), so both cannot drift apart. A plan
// from outside is data: what is read here has only kept the form and its own rules.
namespace crossdock {
namespace {

constexpr std::string_view kSchema = "crossdock.plan";

constexpr std::array kRuntime = {DocumentCodec<PlacementManifest>::kSchema};
constexpr std::array kObjects = {DocumentCodec<StoreLayout>::kSchema};
constexpr std::array kStored = {DocumentCodec<StoreLayout>::kSchema, DocumentCodec<StoreManifest>::kSchema};

struct KindForm {
  PlanKind kind;
  std::span<const std::string_view> sources;  // schemas of the documents that this side may have
  std::span<const std::string_view> targets;
};

constexpr std::array<KindForm, 3> kKindForms = {{{PlanKind::kLive, kRuntime, kRuntime},
                                                 {PlanKind::kRestore, kStored, kRuntime},
                                                 {PlanKind::kUpload, kRuntime, kObjects}}};

// Reads on after a kind that was refused.
constexpr std::array kAnySide = {kRuntime[0], kStored[0], kStored[1]};
constexpr KindForm kAnyKind = {PlanKind::kLive, kAnySide, kAnySide};

// A kind decides which documents its sides may be of; a layout as the target of a live plan is refused by its name.
const KindForm& form_of(PlanKind kind) {
  const auto form =
      std::find_if(kKindForms.begin(), kKindForms.end(), [kind](const KindForm& f) { return f.kind == kind; });
  CHECK(form != kKindForms.end());
  return *form;
}

constexpr auto kKindNames = [] {
  std::array<std::string_view, kPlanKinds.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kPlanKinds[i].name;
  return names;
}();

// In the list of names, which is sorted by name for messages and not by kind.
size_t index_of(PlanKind kind) {
  size_t i = 0;
  while (kPlanKinds[i].kind != kind) CHECK(++i < kPlanKinds.size());
  return i;
}

// A side names its document, and may carry it.
struct ReadSide {
  Sha256Digest named;
  std::optional<AnyDocument> document;
};
struct WrittenSide {
  const Sha256Digest& named;
  const AnyDocument* document;
};

// A document that is carried must have the digest that the plan names, or the plan could be proved against a document
// that the other side does not have.
struct SideForm {
  std::span<const std::string_view> schemas;

  void read(const JsonCursor& cursor, ReadSide& side) const {
    const uint64_t diagnostics_before = cursor.diagnostics.total();
    ObjectReader in(cursor);
    side.named = in.digest("digest");
    const bool has_name = cursor.diagnostics.total() == diagnostics_before;
    in.optional("document", [&](const JsonCursor& carried) {
      side.document = decode_document_of(carried, schemas);
      if (!side.document || !has_name) return;
      const Sha256Digest own = digest(*side.document);
      if (own != side.named)
        carried.refuse(Rule::kPlanIdentity,
                       fmt::format("the document's digest is {}, the plan names {}", own.hex(), side.named.hex()));
    });
    in.finish();
  }
  void write(JsonWriter& out, const WrittenSide& side) const {
    out.begin_object();
    out.key("digest").string(side.named.hex());
    if (side.document != nullptr) {
      CHECK(std::find(schemas.begin(), schemas.end(), schema_name(*side.document)) != schemas.end());
      const std::string text = to_json(*side.document);
      CHECK(sha256(text) == side.named);
      out.key("document").raw(text);
    }
    out.end_object();
  }
};

constexpr auto kTensor = form::object([](auto& fields, auto& tensor) {
  fields.required("component", tensor.component, form::kComponent);
  fields.required("layers", tensor.layers, form::kIntervals);
  fields.required("live_tokens", tensor.live, form::kLiveTokens);
  fields.required("tokens", tensor.tokens, form::kInterval);
});

constexpr auto kTokenSet = form::object([](auto& fields, auto& tokens) {
  fields.optional("cycle", tokens.cycle, form::kCycle);
  fields.required("intervals", tokens.intervals, form::kIntervals);
});

// An edge is an array of numbers and not an object with names: a plan may have 10^6 of them.
struct EdgeForm {
  void read(const JsonCursor& cursor, Edge& edge) const {
    std::array<uint64_t, 7> numbers = {};
    constexpr uint32_t kHeadBegin = 4;
    constexpr uint32_t kHeadEnd = 5;
    if (!cursor.require(JsonKind::kArray)) return;
    if (cursor.value.size() != numbers.size())
      return cursor.refuse(Rule::kFieldType,
                           fmt::format("an edge has {} numbers, not {}", numbers.size(), cursor.value.size()));
    cursor.for_each([&](const JsonCursor& item) {
      const uint32_t i = item.path.index;
      numbers[i] = i == kHeadBegin || i == kHeadEnd ? item.unsigned_integer() : read_index(item);
    });
    const std::optional<Range> heads = Range::make(numbers[kHeadBegin], numbers[kHeadEnd]);
    if (!heads)
      cursor.refuse(Rule::kIntervals,
                    fmt::format("heads [{},{}) end before they begin", numbers[kHeadBegin], numbers[kHeadEnd]));
    const auto index = [&](size_t i) { return static_cast<uint32_t>(numbers[i]); };
    edge = Edge{index(0), index(1), index(2), index(3), heads.value_or(Range()), index(6)};
  }
  void write(JsonWriter& out, const Edge& edge) const {
    out.begin_array();
    out.number(edge.target).number(edge.source).number(edge.tensor).number(edge.layer_set);
    out.number(edge.heads.begin()).number(edge.heads.end()).number(edge.token_set);
    out.end_array();
  }

 private:
  // An index into a list. Larger ones than fit are no entry of any list.
  static uint64_t read_index(const JsonCursor& cursor) {
    uint32_t index = 0;
    form::kUint32.read(cursor, index);
    return index;
  }
};

struct ReadPlan {
  TransferPlan plan;
  ReadSide source;
  ReadSide target;
};
struct WrittenPlan {
  const TransferPlan& plan;
  WrittenSide source;
  WrittenSide target;
};

constexpr auto kPlan = form::object([](auto& fields, auto& document) {
  auto& plan = document.plan;
  fields.header(kSchema);
  fields.required("edges", plan.edges, form::list_of(EdgeForm()));
  const size_t kind = fields.kind(kKindNames, index_of(plan.kind));
  const KindForm& form = kind < kPlanKinds.size() ? form_of(kPlanKinds[kind].kind) : kAnyKind;
  if constexpr (std::remove_reference_t<decltype(fields)>::kReads) plan.kind = form.kind;
  fields.required("layer_sets", plan.layer_sets, form::list_of(form::kIntervals));
  fields.usual("live_page_tokens", plan.live_page_tokens, uint64_t{1}, form::number(1));
  fields.optional("snapshot_tokens", plan.snapshot_tokens, form::kInterval);
  fields.required("source", document.source, SideForm{form.sources});
  fields.required("sources", plan.sources, form::list_of(form::kName));
  fields.required("target", document.target, SideForm{form.targets});
  fields.required("targets", plan.targets, form::list_of(form::kName));
  fields.required("tensors", plan.tensors, form::list_of(kTensor));
  fields.required("token_sets", plan.token_sets, form::list_of(kTokenSet));
  fields.required("tokens", plan.tokens, form::kInterval);
});

}  // namespace

std::optional<PlanDocument> read_plan(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics) {
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, diagnostics);
  if (!tree) return std::nullopt;
  const JsonPath path;
  const JsonCursor cursor{tree->root(), path, diagnostics};
  if (!check_header(cursor, kSchema)) return std::nullopt;
  diagnostics.set_document("plan");
  const uint64_t diagnostics_before = diagnostics.total();
  ReadPlan read;
  kPlan.read(cursor, read);
  read.plan.source_digest = read.source.named;
  read.plan.target_digest = read.target.named;
  // With a wrong field the values below would be defaults, and rules about them would only confuse.
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  std::optional<Valid<TransferPlan>> valid = Valid<TransferPlan>::make(std::move(read.plan), diagnostics);
  if (!valid) return std::nullopt;
  return PlanDocument{std::move(*valid), std::move(read.source.document), std::move(read.target.document)};
}

std::string plan_to_json(const Valid<TransferPlan>& plan, const AnyDocument* source, const AnyDocument* target) {
  JsonWriter out;
  kPlan.write(out, WrittenPlan{*plan, {plan->source_digest, source}, {plan->target_digest, target}});
  return out.take();
}

// Without documents, so carrying them or not does not change a plan's identity.
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
