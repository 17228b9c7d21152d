#include "model/wire/codec.h"

namespace crossdock {
namespace {

// Identity is typed: a field that is absent (`adapter`) and one that is empty (`salt`) have different texts, so no two
// descriptors share a digest by accident.
constexpr auto kAdapter = form::object([](auto& fields, auto& adapter) {
  fields.required("id", adapter.id, form::kName);
  fields.required("revision", adapter.revision, form::kName);
});

constexpr auto kSnapshot = [](auto& fields, auto& snapshot) {
  fields.optional("adapter", snapshot.adapter, kAdapter);
  fields.required("cache_schema_digest", snapshot.cache_schema_digest, form::kDigest);
  fields.required("model_id", snapshot.model_id, form::kName);
  fields.required("model_revision", snapshot.model_revision, form::kName);
  fields.required("resource", snapshot.resource, form::kName);
  fields.required("salt", snapshot.salt, form::kString);
  fields.required("semantic_fingerprint", snapshot.semantic_fingerprint, form::kName);
  fields.required("tenant", snapshot.tenant, form::kName);
  fields.required("token_fingerprint", snapshot.token_fingerprint, form::kName);
  fields.required("tokens", snapshot.tokens, form::kInterval);
};

}  // namespace

void DocumentCodec<SnapshotDescriptor>::encode(JsonWriter& out, const SnapshotDescriptor& snapshot, bool with_header) {
  write_document(out, snapshot, kSnapshot, with_header);
}

SnapshotDescriptor DocumentCodec<SnapshotDescriptor>::decode_fields(ObjectReader& in) {
  return take_document<SnapshotDescriptor>(in, kSnapshot);
}

}  // namespace crossdock
