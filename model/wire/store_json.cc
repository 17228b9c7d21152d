#include <fmt/format.h>

#include <limits>
#include <vector>

#include "model/wire/codec.h"

namespace crossdock {
namespace {

void encode_part(JsonWriter& out, const StorePart& part) {
  out.begin_object();
  out.key("components");
  encode(out, part.components);
  out.key("heads");
  encode(out, part.heads);
  out.key("key").string(part.key.text());
  out.key("layers");
  encode(out, part.layers);
  out.end_object();
}

StorePart decode_part(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  StorePart part;
  in.required("components", [&](const JsonCursor& list) { part.components = decode_component_names(list); });
  part.heads = in.interval_set("heads");
  part.key = ObjectKey(in.name("key"));
  part.layers = in.interval_set("layers");
  in.finish();
  return part;
}

void encode_object(JsonWriter& out, const StoredObject& object) {
  out.begin_object();
  out.key("bytes").number(object.bytes);
  out.key("chunk_bytes").number(object.chunk_bytes);
  out.key("chunk_crc32c");
  encode_list(out, object.chunk_crc32c, [](JsonWriter& list, uint32_t checksum) { list.number(checksum); });
  out.key("id").string(object.id.text());
  out.end_object();
}

uint32_t decode_crc32c(const JsonCursor& cursor) {
  const uint64_t value = cursor.unsigned_integer();
  if (value > std::numeric_limits<uint32_t>::max())
    cursor.refuse(Rule::kFieldInteger, fmt::format("{} is not an integer from 0 to 4294967295", value));
  return static_cast<uint32_t>(value);
}

StoredObject decode_object(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  StoredObject object;
  object.bytes = in.number("bytes");
  object.chunk_bytes = in.number("chunk_bytes", 1);
  in.required("chunk_crc32c", [&](const JsonCursor& list) { object.chunk_crc32c = decode_list(list, decode_crc32c); });
  object.id = RegionId(in.name("id"));
  in.finish();
  return object;
}

ObjectOrder order_of(const std::string& name) {
  for (const ObjectOrderName& known : kObjectOrders)
    if (known.name == name) return known.order;
  return ObjectOrder::kPlhd;  // the reader has refused the name
}

}  // namespace

void DocumentCodec<StoreLayout>::encode(JsonWriter& out, const StoreLayout& layout, bool with_header) {
  out.begin_object();
  out.key("cache_schema");
  DocumentCodec<CacheSchema>::encode(out, layout.cache_schema, false);
  out.key("name").string(layout.name);
  out.key("object_order").string(object_order_name(layout.object_order));
  out.key("page_tokens").number(layout.page_tokens);
  out.key("parts");
  encode_list(out, layout.parts, encode_part);
  encode_schema(out, kSchema, with_header);
  encode_version(out, with_header);
  out.end_object();
}

StoreLayout DocumentCodec<StoreLayout>::decode_fields(ObjectReader& in) {
  StoreLayout layout;
  in.required("cache_schema",
              [&](const JsonCursor& cursor) { layout.cache_schema = decode_embedded<CacheSchema>(cursor); });
  layout.name = in.name("name");
  std::vector<std::string_view> names;
  names.reserve(kObjectOrders.size());
  for (const ObjectOrderName& known : kObjectOrders) names.push_back(known.name);
  layout.object_order = order_of(in.choice("object_order", names));
  layout.page_tokens = in.number("page_tokens", 1);
  in.required("parts", [&](const JsonCursor& list) { layout.parts = decode_list(list, decode_part); });
  return layout;
}

void DocumentCodec<StoreManifest>::encode(JsonWriter& out, const StoreManifest& manifest, bool with_header) {
  out.begin_object();
  out.key("cache_schema");
  DocumentCodec<CacheSchema>::encode(out, manifest.cache_schema, false);
  out.key("objects");
  encode_list(out, manifest.objects, encode_object);
  out.key("page_tables");
  crossdock::encode(out, manifest.page_tables);
  encode_schema(out, kSchema, with_header);
  out.key("snapshot");
  DocumentCodec<SnapshotDescriptor>::encode(out, manifest.snapshot, false);
  encode_version(out, with_header);
  out.key("views");
  crossdock::encode(out, manifest.views);
  out.end_object();
}

StoreManifest DocumentCodec<StoreManifest>::decode_fields(ObjectReader& in) {
  StoreManifest manifest;
  in.required("cache_schema",
              [&](const JsonCursor& cursor) { manifest.cache_schema = decode_embedded<CacheSchema>(cursor); });
  in.required("objects", [&](const JsonCursor& list) { manifest.objects = decode_list(list, decode_object); });
  in.required("page_tables", [&](const JsonCursor& list) { manifest.page_tables = decode_page_tables(list); });
  in.required("snapshot",
              [&](const JsonCursor& cursor) { manifest.snapshot = decode_embedded<SnapshotDescriptor>(cursor); });
  in.required("views", [&](const JsonCursor& list) { manifest.views = decode_views(list); });
  return manifest;
}

}  // namespace crossdock
