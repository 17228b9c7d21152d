#include "model/wire/codec.h"

namespace crossdock {
namespace {

Adapter decode_adapter(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Adapter adapter;
  adapter.id = in.name("id");
  adapter.revision = in.name("revision");
  in.finish();
  return adapter;
}

}  // namespace

void DocumentCodec<SnapshotDescriptor>::encode(JsonWriter& out, const SnapshotDescriptor& snapshot, bool with_header) {
  out.begin_object();
  if (snapshot.adapter) {
    out.key("adapter").begin_object();
    out.key("id").string(snapshot.adapter->id);
    out.key("revision").string(snapshot.adapter->revision);
    out.end_object();
  }
  out.key("cache_schema_digest").string(snapshot.cache_schema_digest.hex());
  out.key("model_id").string(snapshot.model_id);
  out.key("model_revision").string(snapshot.model_revision);
  out.key("resource").string(snapshot.resource.text());
  out.key("salt").string(snapshot.salt);
  encode_schema(out, kSchema, with_header);
  out.key("semantic_fingerprint").string(snapshot.semantic_fingerprint);
  out.key("tenant").string(snapshot.tenant);
  out.key("token_fingerprint").string(snapshot.token_fingerprint);
  out.key("tokens");
  crossdock::encode(out, snapshot.tokens);
  encode_version(out, with_header);
  out.end_object();
}

SnapshotDescriptor DocumentCodec<SnapshotDescriptor>::decode_fields(ObjectReader& in) {
  SnapshotDescriptor snapshot;
  in.optional("adapter", [&](const JsonCursor& cursor) { snapshot.adapter = decode_adapter(cursor); });
  snapshot.cache_schema_digest = in.digest("cache_schema_digest");
  snapshot.model_id = in.name("model_id");
  snapshot.model_revision = in.name("model_revision");
  snapshot.resource = ResourceId(in.name("resource"));
  snapshot.salt = in.string("salt");
  snapshot.semantic_fingerprint = in.name("semantic_fingerprint");
  snapshot.tenant = in.name("tenant");
  snapshot.token_fingerprint = in.name("token_fingerprint");
  snapshot.tokens = in.range("tokens");
  return snapshot;
}

}  // namespace crossdock
