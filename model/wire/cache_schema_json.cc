#include <fmt/format.h>

#include "model/wire/codec.h"

namespace crossdock {
namespace {

void encode_group(JsonWriter& out, const LayerGroup& group) {
  out.begin_object();
  out.key("components");
  encode_list(out, group.components, encode_component);
  out.key("layers");
  encode(out, group.layers);
  out.key("live_tokens");
  encode_live_tokens(out, group.window_tokens);
  out.end_object();
}

std::optional<uint64_t> decode_token_axis(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  std::optional<uint64_t> tokens_per_row;
  const std::string kind = in.choice("kind", {"rows", "state"});
  if (kind == "rows") tokens_per_row = in.number("tokens_per_row", 1);
  in.finish();
  return tokens_per_row;
}

LayerGroup decode_group(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  LayerGroup group;
  in.required("components", [&](const JsonCursor& list) { group.components = decode_list(list, decode_component); });
  group.layers = in.interval_set("layers");
  in.required("live_tokens", [&](const JsonCursor& live) { group.window_tokens = decode_live_tokens(live); });
  in.finish();
  return group;
}

}  // namespace

void encode_component(JsonWriter& out, const Component& component) {
  out.begin_object();
  out.key("dtype").string(component.dtype);
  out.key("encoding").string(component.encoding);
  out.key("head_count").number(component.head_count);
  out.key("head_dim").number(component.head_dim);
  out.key("item_bytes").number(component.item_bytes);
  out.key("name").string(component.name.text());
  out.key("token_axis").begin_object();
  out.key("kind").string(component.is_state() ? "state" : "rows");
  if (component.tokens_per_row) out.key("tokens_per_row").number(*component.tokens_per_row);
  out.end_object();
  out.end_object();
}

Component decode_component(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Component component;
  component.dtype = in.name("dtype");
  component.encoding = in.name("encoding");
  component.head_count = in.number("head_count", 1);
  component.head_dim = in.number("head_dim", 1);
  component.item_bytes = in.number("item_bytes", 1);
  component.name = ComponentName(in.name("name"));
  in.required("token_axis", [&](const JsonCursor& axis) { component.tokens_per_row = decode_token_axis(axis); });
  in.finish();
  return component;
}

void encode_live_tokens(JsonWriter& out, const std::optional<uint64_t>& window_tokens) {
  out.begin_object();
  out.key("kind").string(window_tokens ? "window" : "all");
  if (window_tokens) out.key("tokens").number(*window_tokens);
  out.end_object();
}

std::optional<uint64_t> decode_live_tokens(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  std::optional<uint64_t> window_tokens;
  const std::string kind = in.choice("kind", {"all", "window"});
  if (kind == "window") window_tokens = in.number("tokens", 1);
  in.finish();
  return window_tokens;
}

void DocumentCodec<CacheSchema>::encode(JsonWriter& out, const CacheSchema& schema, bool with_header) {
  out.begin_object();
  out.key("groups");
  encode_list(out, schema.groups, encode_group);
  encode_schema(out, kSchema, with_header);
  encode_version(out, with_header);
  out.end_object();
}

CacheSchema DocumentCodec<CacheSchema>::decode_fields(ObjectReader& in) {
  CacheSchema schema;
  in.required("groups", [&](const JsonCursor& list) { schema.groups = decode_list(list, decode_group); });
  return schema;
}

}  // namespace crossdock
