#include "model/wire/codec.h"
#include "model/wire/kv_forms.h"

namespace crossdock {
namespace {

// Wire form: docs/formats/binding.md. Rules between the fields are in model/kv/binding_rules.h.
constexpr auto kDevice = form::object([](auto& fields, auto& device) {
  fields.required("id", device.id, form::kName);
  fields.required("kind", device.kind, form::kName);
  fields.required("registration_bytes_max", device.registration_bytes_max, form::number(1));
});

constexpr auto kRegion = form::object([](auto& fields, auto& region) {
  fields.optional("address", region.address, form::number());
  fields.required("bytes", region.bytes, form::number());
  fields.required("device", region.device, form::kName);
  fields.optional("endpoint", region.endpoint, form::kName);
  fields.required("epoch", region.epoch, form::number());
  fields.required("id", region.id, form::kName);
});

constexpr auto kBinding = [](auto& fields, auto& binding) {
  fields.required("devices", binding.devices, form::list_of(kDevice));
  fields.required("generation", binding.generation, form::number());
  fields.required("instance", binding.instance, form::kName);
  fields.required("operation", binding.operation, form::kName);
  fields.required("page_tables", binding.page_tables, form::list_of(form::kPageTable));
  fields.required("participant", binding.participant, form::kName);
  fields.required("placement_digest", binding.placement_digest, form::kDigest);
  fields.required("regions", binding.regions, form::list_of(kRegion));
  fields.required("resource", binding.resource, form::kName);
  fields.required("revision", binding.revision, form::kName);
  fields.required("snapshot_digest", binding.snapshot_digest, form::kDigest);
  fields.required("tokens", binding.tokens, form::kInterval);
  fields.required("views", binding.views, form::list_of(form::kView));
};

}  // namespace

void DocumentCodec<RuntimeBinding>::encode(JsonWriter& out, const RuntimeBinding& binding, bool with_header) {
  write_document(out, binding, kBinding, with_header);
}

RuntimeBinding DocumentCodec<RuntimeBinding>::decode_fields(ObjectReader& in) {
  return take_document<RuntimeBinding>(in, kBinding);
}

}  // namespace crossdock
