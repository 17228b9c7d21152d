#include "model/wire/codec.h"
#include "model/wire/kv_forms.h"

namespace crossdock {
namespace {

constexpr auto kGroup = form::object([](auto& fields, auto& group) {
  fields.required("components", group.components, form::list_of(form::kComponent));
  fields.required("layers", group.layers, form::kIntervals);
  fields.required("live_tokens", group.window_tokens, form::kLiveTokens);
});

constexpr auto kCacheSchema = [](auto& fields, auto& schema) {
  fields.required("groups", schema.groups, form::list_of(kGroup));
};

}  // namespace

void DocumentCodec<CacheSchema>::encode(JsonWriter& out, const CacheSchema& schema, bool with_header) {
  write_document(out, schema, kCacheSchema, with_header);
}

CacheSchema DocumentCodec<CacheSchema>::decode_fields(ObjectReader& in) {
  return take_document<CacheSchema>(in, kCacheSchema);
}

}  // namespace crossdock
