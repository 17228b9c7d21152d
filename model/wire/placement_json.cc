#include "model/wire/codec.h"

namespace crossdock {
namespace {

void encode_tokens(JsonWriter& out, const TokenOwnership& tokens) {
  out.begin_object();
  if (const auto* cyclic = std::get_if<CyclicTokens>(&tokens)) {
    out.key("cycle");
    encode(out, *cyclic);
    out.key("kind").string("cycle");
  } else if (const auto* intervals = std::get_if<TokenIntervals>(&tokens)) {
    out.key("intervals");
    encode(out, intervals->tokens);
    out.key("kind").string("intervals");
  } else {
    out.key("kind").string("all");
  }
  out.end_object();
}

TokenOwnership decode_tokens(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  TokenOwnership tokens;
  const std::string kind = in.choice("kind", {"all", "cycle", "intervals"});
  if (kind == "cycle") in.required("cycle", [&](const JsonCursor& cycle) { tokens = decode_cycle(cycle); });
  if (kind == "intervals") tokens = TokenIntervals{in.interval_set("intervals")};
  in.finish();
  return tokens;
}

void encode_ownership(JsonWriter& out, const Ownership& ownership) {
  out.begin_object();
  out.key("components");
  encode(out, ownership.components);
  out.key("heads");
  encode(out, ownership.heads);
  out.key("layers");
  encode(out, ownership.layers);
  out.key("replica").begin_object();
  out.key("count").number(ownership.replica.count);
  out.key("ordinal").number(ownership.replica.ordinal);
  out.end_object();
  out.key("tokens");
  encode_tokens(out, ownership.tokens);
  out.end_object();
}

ReplicaOrdinal decode_replica(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  ReplicaOrdinal replica;
  replica.count = in.number("count", 1);
  replica.ordinal = in.number("ordinal");
  in.finish();
  return replica;
}

Ownership decode_ownership(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Ownership ownership;
  in.required("components", [&](const JsonCursor& list) { ownership.components = decode_component_names(list); });
  ownership.heads = in.interval_set("heads");
  ownership.layers = in.interval_set("layers");
  in.required("replica", [&](const JsonCursor& replica) { ownership.replica = decode_replica(replica); });
  in.required("tokens", [&](const JsonCursor& tokens) { ownership.tokens = decode_tokens(tokens); });
  in.finish();
  return ownership;
}

void encode_part(JsonWriter& out, const Part& part) {
  out.begin_object();
  out.key("owns");
  encode_list(out, part.owns, encode_ownership);
  out.key("participant").string(part.participant.text());
  out.end_object();
}

Part decode_part(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Part part;
  in.required("owns", [&](const JsonCursor& list) { part.owns = decode_list(list, decode_ownership); });
  part.participant = ParticipantId(in.name("participant"));
  in.finish();
  return part;
}

Paging decode_paging(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Paging paging;
  paging.axis_order = in.name("axis_order");
  paging.page_tokens = in.number("page_tokens", 1);
  in.finish();
  return paging;
}

}  // namespace

void DocumentCodec<PlacementManifest>::encode(JsonWriter& out, const PlacementManifest& placement, bool with_header) {
  out.begin_object();
  out.key("cache_schema");
  DocumentCodec<CacheSchema>::encode(out, placement.cache_schema, false);
  out.key("name").string(placement.name);
  if (placement.paging) {
    out.key("paging").begin_object();
    out.key("axis_order").string(placement.paging->axis_order);
    out.key("page_tokens").number(placement.paging->page_tokens);
    out.end_object();
  }
  out.key("parts");
  encode_list(out, placement.parts, encode_part);
  out.key("resource").string(placement.resource.text());
  out.key("revision").string(placement.revision.text());
  encode_schema(out, kSchema, with_header);
  out.key("tokens");
  crossdock::encode(out, placement.tokens);
  out.key("topology");
  DocumentCodec<Topology>::encode(out, placement.topology, false);
  encode_version(out, with_header);
  out.end_object();
}

PlacementManifest DocumentCodec<PlacementManifest>::decode_fields(ObjectReader& in) {
  PlacementManifest placement;
  in.required("cache_schema",
              [&](const JsonCursor& cursor) { placement.cache_schema = decode_embedded<CacheSchema>(cursor); });
  placement.name = in.name("name");
  in.optional("paging", [&](const JsonCursor& cursor) { placement.paging = decode_paging(cursor); });
  in.required("parts", [&](const JsonCursor& list) { placement.parts = decode_list(list, decode_part); });
  placement.resource = ResourceId(in.name("resource"));
  placement.revision = RevisionId(in.name("revision"));
  placement.tokens = in.range("tokens");
  in.required("topology", [&](const JsonCursor& cursor) { placement.topology = decode_embedded<Topology>(cursor); });
  return placement;
}

}  // namespace crossdock
