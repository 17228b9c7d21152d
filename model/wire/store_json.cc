#include "model/wire/codec.h"
#include "model/wire/kv_forms.h"

namespace crossdock {
namespace {

constexpr auto kPart = form::object([](auto& fields, auto& part) {
  fields.required("components", part.components, form::list_of(form::kName));
  fields.required("heads", part.heads, form::kIntervals);
  fields.required("key", part.key, form::kName);
  fields.required("layers", part.layers, form::kIntervals);
});

constexpr auto kObject = form::object([](auto& fields, auto& stored) {
  fields.required("bytes", stored.bytes, form::number());
  fields.required("chunk_bytes", stored.chunk_bytes, form::number(1));
  fields.required("chunk_crc32c", stored.chunk_crc32c, form::list_of(form::kUint32));
  fields.required("id", stored.id, form::kName);
});

constexpr auto kLayout = [](auto& fields, auto& layout) {
  fields.required("cache_schema", layout.cache_schema, form::kEmbedded);
  fields.required("name", layout.name, form::kName);
  fields.required("object_order", layout.object_order, form::choice(kObjectOrders, &ObjectOrderName::order));
  fields.required("page_tokens", layout.page_tokens, form::number(1));
  fields.required("parts", layout.parts, form::list_of(kPart));
};

constexpr auto kManifest = [](auto& fields, auto& manifest) {
  fields.required("cache_schema", manifest.cache_schema, form::kEmbedded);
  fields.required("objects", manifest.objects, form::list_of(kObject));
  fields.required("page_tables", manifest.page_tables, form::list_of(form::kPageTable));
  fields.required("snapshot", manifest.snapshot, form::kEmbedded);
  fields.required("views", manifest.views, form::list_of(form::kView));
};

}  // namespace

void DocumentCodec<StoreLayout>::encode(JsonWriter& out, const StoreLayout& layout, bool with_header) {
  write_document(out, layout, kLayout, with_header);
}

StoreLayout DocumentCodec<StoreLayout>::decode_fields(ObjectReader& in) {
  return take_document<StoreLayout>(in, kLayout);
}

void DocumentCodec<StoreManifest>::encode(JsonWriter& out, const StoreManifest& manifest, bool with_header) {
  write_document(out, manifest, kManifest, with_header);
}

StoreManifest DocumentCodec<StoreManifest>::decode_fields(ObjectReader& in) {
  return take_document<StoreManifest>(in, kManifest);
}

}  // namespace crossdock
