#include "model/wire/codec.h"
#include "model/wire/kv_forms.h"

namespace crossdock {
namespace {

// Wire form: docs/formats/placement.md. Rules between the fields are in model/kv/placement_rules.h.
constexpr auto kTokens = form::object([](auto& fields, auto& tokens) {
  describe_variant(
      fields, tokens, alternative<AllTokens>("all", [](auto&, auto&) {}),
      alternative<CyclicTokens>("cycle", [](auto& in, auto& cycle) { in.required("cycle", cycle, form::kCycle); }),
      alternative<TokenIntervals>("intervals", [](auto& in, auto& intervals) {
        in.required("intervals", intervals.tokens, form::kIntervals);
      }));
});

constexpr auto kReplica = form::object([](auto& fields, auto& replica) {
  fields.required("count", replica.count, form::number(1));
  fields.required("ordinal", replica.ordinal, form::number());
});

constexpr auto kOwnership = form::object([](auto& fields, auto& ownership) {
  fields.required("components", ownership.components, form::list_of(form::kName));
  fields.required("heads", ownership.heads, form::kIntervals);
  fields.required("layers", ownership.layers, form::kIntervals);
  fields.required("replica", ownership.replica, kReplica);
  fields.required("tokens", ownership.tokens, kTokens);
});

constexpr auto kPart = form::object([](auto& fields, auto& part) {
  fields.required("owns", part.owns, form::list_of(kOwnership));
  fields.required("participant", part.participant, form::kName);
});

constexpr auto kPaging = form::object([](auto& fields, auto& paging) {
  fields.required("axis_order", paging.axis_order, form::choice(kAxisOrders, &AxisOrderName::order));
  fields.required("page_tokens", paging.page_tokens, form::number(1));
});

constexpr auto kPlacement = [](auto& fields, auto& placement) {
  fields.required("cache_schema", placement.cache_schema, form::kEmbedded);
  fields.required("name", placement.name, form::kName);
  fields.optional("paging", placement.paging, kPaging);
  fields.required("parts", placement.parts, form::list_of(kPart));
  fields.required("resource", placement.resource, form::kName);
  fields.required("revision", placement.revision, form::kName);
  fields.required("tokens", placement.tokens, form::kInterval);
  fields.required("topology", placement.topology, form::kEmbedded);
};

}  // namespace

void DocumentCodec<PlacementManifest>::encode(JsonWriter& out, const PlacementManifest& placement, bool with_header) {
  write_document(out, placement, kPlacement, with_header);
}

PlacementManifest DocumentCodec<PlacementManifest>::decode_fields(ObjectReader& in) {
  return take_document<PlacementManifest>(in, kPlacement);
}

}  // namespace crossdock
