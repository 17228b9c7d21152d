#include "model/wire/codec.h"

namespace crossdock {
namespace {

void encode_device(JsonWriter& out, const Device& device) {
  out.begin_object();
  out.key("id").string(device.id.text());
  out.key("kind").string(device.kind);
  out.key("registration_bytes_max").number(device.registration_bytes_max);
  out.end_object();
}

Device decode_device(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Device device;
  device.id = DeviceId(in.name("id"));
  device.kind = in.name("kind");
  device.registration_bytes_max = in.number("registration_bytes_max", 1);
  in.finish();
  return device;
}

void encode_region(JsonWriter& out, const Region& region) {
  out.begin_object();
  if (region.address) out.key("address").number(*region.address);
  out.key("bytes").number(region.bytes);
  out.key("device").string(region.device.text());
  if (region.endpoint) out.key("endpoint").string(*region.endpoint);
  out.key("epoch").number(region.epoch);
  out.key("id").string(region.id.text());
  out.end_object();
}

Region decode_region(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Region region;
  region.address = in.optional_number("address");
  region.bytes = in.number("bytes");
  region.device = DeviceId(in.name("device"));
  in.optional("endpoint", [&](const JsonCursor& endpoint) { region.endpoint = endpoint.name(); });
  region.epoch = in.number("epoch");
  region.id = RegionId(in.name("id"));
  in.finish();
  return region;
}

}  // namespace

void DocumentCodec<RuntimeBinding>::encode(JsonWriter& out, const RuntimeBinding& binding, bool with_header) {
  out.begin_object();
  out.key("devices");
  encode_list(out, binding.devices, encode_device);
  out.key("generation").number(binding.generation);
  out.key("instance").string(binding.instance.text());
  out.key("operation").string(binding.operation.text());
  out.key("page_tables");
  crossdock::encode(out, binding.page_tables);
  out.key("participant").string(binding.participant.text());
  out.key("placement_digest").string(binding.placement_digest.hex());
  out.key("regions");
  encode_list(out, binding.regions, encode_region);
  out.key("resource").string(binding.resource.text());
  out.key("revision").string(binding.revision.text());
  encode_schema(out, kSchema, with_header);
  out.key("snapshot_digest").string(binding.snapshot_digest.hex());
  out.key("tokens");
  crossdock::encode(out, binding.tokens);
  encode_version(out, with_header);
  out.key("views");
  crossdock::encode(out, binding.views);
  out.end_object();
}

RuntimeBinding DocumentCodec<RuntimeBinding>::decode_fields(ObjectReader& in) {
  RuntimeBinding binding;
  in.required("devices", [&](const JsonCursor& list) { binding.devices = decode_list(list, decode_device); });
  binding.generation = in.number("generation");
  binding.instance = InstanceId(in.name("instance"));
  binding.operation = OperationId(in.name("operation"));
  in.required("page_tables", [&](const JsonCursor& list) { binding.page_tables = decode_page_tables(list); });
  binding.participant = ParticipantId(in.name("participant"));
  binding.placement_digest = in.digest("placement_digest");
  in.required("regions", [&](const JsonCursor& list) { binding.regions = decode_list(list, decode_region); });
  binding.resource = ResourceId(in.name("resource"));
  binding.revision = RevisionId(in.name("revision"));
  binding.snapshot_digest = in.digest("snapshot_digest");
  binding.tokens = in.range("tokens");
  in.required("views", [&](const JsonCursor& list) { binding.views = decode_views(list); });
  return binding;
}

}  // namespace crossdock
