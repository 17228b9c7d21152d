#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "model/mooncake/form.h"
#include "model/mooncake/mooncake.h"
#include "model/wire/documents.h"

namespace crossdock::mooncake {
namespace {

// Mooncake does not say on which device a region lies.
Device host() { return Device{DeviceId("host"), "host", std::numeric_limits<uint64_t>::max()}; }

struct StatedBinding {
  RuntimeBinding binding;
  std::string placement_id;
  std::string placement_digest;
  std::string snapshot_id;
  std::string snapshot_digest;
  std::string digest;
};

Region read_region(const JsonCursor& cursor) {
  ObjectReader reader(cursor);
  Region region;
  region.id = RegionId(reader.name("region_id"));
  region.device = host().id;
  const Range bytes = read_counted(reader, cursor, "address", "nbytes", 1);
  region.bytes = bytes.size();
  region.address = bytes.begin();
  region.endpoint = reader.name("endpoint");
  reader.finish();
  return region;
}

// Stricter than a view: also the stride of an axis with one index is not shorter than the index itself.
void check_strides(const View& view, const Component& component, const JsonCursor& cursor) {
  const uint64_t head_bytes = component.head_bytes();
  const auto row_bytes = (Checked(view.heads.size() - 1) * view.strides.head + head_bytes).value();
  if (view.strides.head < head_bytes)
    cursor.refuse(Rule::kViewStrides,
                  fmt::format("head stride {} is below a head's {} bytes", view.strides.head, head_bytes));
  else if (!row_bytes || view.strides.row < *row_bytes)
    cursor.refuse(Rule::kViewStrides, fmt::format("token stride {} is below a token's bytes", view.strides.row));
}

View read_range(const JsonCursor& cursor, const LayerGroup& group) {
  ObjectReader reader(cursor);
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  View view;
  const Component* component = nullptr;
  reader.required("component", [&](const JsonCursor& field) {
    view.component = ComponentName(field.string());
    component = group.find(view.component);
    if (field.value.kind() == JsonKind::kString && component == nullptr)
      field.refuse(Rule::kFieldChoice, fmt::format("must be '{}' or '{}'", kKey, kValue));
  });
  reader.required("global_layer_id", [&](const JsonCursor& field) {
    const uint64_t layer = field.unsigned_integer();
    if (const auto layers = Range::make_sized(layer, 1))
      view.layers = *layers;
    else
      field.refuse(Rule::kIntervals, fmt::format("layer {} leaves no room for an end", layer));
  });
  view.tokens = read_counted(reader, cursor, "token_start", "token_count");
  view.heads = read_counted(reader, cursor, "head_start", "head_count");
  view.region = RegionId(reader.name("region_id"));
  view.offset_bytes = reader.number("offset_bytes");
  view.strides.row = reader.number("token_stride_bytes", 1);
  view.strides.head = reader.number("head_stride_bytes", 1);
  reader.finish();
  if (cursor.diagnostics.total() != diagnostics_before) return view;
  CHECK(component != nullptr);  // else the field is missing or unknown, and there is a diagnostic
  view.dims = Range(0, component->head_dim);
  view.strides.dim = component->item_bytes;
  check_strides(view, *component, cursor);
  return view;
}

// A binding without regions and ranges is none in Mooncake.
template <class Read>
void read_list(ObjectReader& reader, std::string_view field, Read read) {
  reader.required(field, [&](const JsonCursor& list) {
    list.for_each(read);
    if (list.value.kind() == JsonKind::kArray && list.value.size() == 0)
      list.refuse(Rule::kForeignForm, "must not be empty");
  });
}

void read_content(const JsonCursor& cursor, const LayerGroup& group, StatedBinding& stated) {
  ObjectReader reader(cursor);
  RuntimeBinding& binding = stated.binding;
  binding.operation = OperationId(reader.name("operation_id"));
  binding.participant = ParticipantId(reader.name("participant_id"));
  cursor.diagnostics.set_document(
      fmt::format("binding '{}' of '{}'", binding.operation.text(), binding.participant.text()));
  binding.resource = ResourceId(reader.name("resource_id"));
  binding.revision = RevisionId(reader.name("revision"));
  binding.instance = InstanceId(reader.name("instance_id"));
  stated.placement_id = reader.string("placement_id");
  stated.placement_digest = reader.string("placement_digest");
  stated.snapshot_id = reader.string("snapshot_id");
  stated.snapshot_digest = reader.string("snapshot_digest");
  read_list(reader, "regions", [&](const JsonCursor& item) { binding.regions.push_back(read_region(item)); });
  read_list(reader, "ranges", [&](const JsonCursor& item) { binding.views.push_back(read_range(item, group)); });
  reader.finish();
}

std::optional<StatedBinding> read_stated(std::string_view json, const LayerGroup& group, const JsonLimits& limits,
                                         Diagnostics& diagnostics) {
  StatedBinding stated;
  const bool read = read_object(json, limits, diagnostics, [&](ObjectReader& reader, const JsonCursor&) {
    read_constant(reader, "schema", kBindingSchema, Rule::kSchemaName);
    stated.digest = reader.string("digest");
    reader.required("binding", [&](const JsonCursor& field) { read_content(field, group, stated); });
  });
  if (!read) return std::nullopt;
  return stated;
}

}  // namespace

std::optional<Valid<RuntimeBinding>> read_binding(std::string_view json, const Valid<PlacementManifest>& placement,
                                                  const Valid<SnapshotDescriptor>& snapshot, const JsonLimits& limits,
                                                  Diagnostics& diagnostics) {
  const uint64_t diagnostics_before = diagnostics.total();
  const std::optional<PlacementForm> placement_form = to_form(placement, diagnostics);
  const std::optional<SnapshotForm> snapshot_form = to_form(snapshot, diagnostics);
  if (!placement_form || !snapshot_form) return std::nullopt;
  diagnostics.set_document("binding");
  std::optional<StatedBinding> stated = read_stated(json, placement->cache_schema.groups.front(), limits, diagnostics);
  if (!stated) return std::nullopt;
  check_identity("placement_id", stated->placement_id, placement_form->placement_id, diagnostics);
  check_identity("placement_digest", stated->placement_digest, placement_form->placement_digest, diagnostics);
  check_identity("snapshot_id", stated->snapshot_id, snapshot_form->snapshot_id, diagnostics);
  check_identity("snapshot_digest", stated->snapshot_digest, snapshot_form->snapshot_digest, diagnostics);

  RuntimeBinding& binding = stated->binding;
  binding.placement_digest = digest(placement);
  binding.snapshot_digest = digest(snapshot);
  binding.tokens = snapshot->tokens;
  binding.devices = {host()};
  std::optional<Valid<RuntimeBinding>> valid = Valid<RuntimeBinding>::make(std::move(binding), diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  const std::optional<BindingForm> form =
      to_form(*valid, placement->cache_schema.groups.front(), *placement_form, *snapshot_form, diagnostics);
  if (!form) return std::nullopt;
  check_identity("digest", stated->digest, form->digest, diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  return valid;
}

}  // namespace crossdock::mooncake
