#include "model/wire/codec.h"
#include "model/wire/kv_forms.h"

namespace crossdock {
namespace {

constexpr auto kComponentLife = form::object([](auto& fields, auto& life) {
  fields.required("component", life.component, form::kName);
  fields.required("live_tokens", life.live, form::kLiveTokens);
});

constexpr auto kGroup = form::object([](auto& fields, auto& group) {
  fields.usual("component_live_tokens", group.component_life, std::vector<ComponentLife>{},
               form::list_of(kComponentLife));
  fields.required("components", group.components, form::list_of(form::kComponent));
  fields.required("layers", group.layers, form::kIntervals);
  fields.required("live_tokens", group.live, form::kLiveTokens);
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
