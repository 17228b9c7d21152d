#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model/kv/binding_rules.h"
#include "model/mooncake/form.h"
#include "model/mooncake/mooncake.h"

namespace crossdock::mooncake {
namespace {

// A descriptor and a part as they stand in the text, before they are compared with each other.
struct Descriptor {
  IntervalSet layers;
  std::string dtype;
  uint64_t item_bytes = 0;
  uint64_t head_count = 0;
  uint64_t key_head_dim = 0;
  uint64_t value_head_dim = 0;
  uint64_t page_tokens = 0;

  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

struct StatedPart {
  ParticipantId participant;
  ParallelAxes rank;
  std::string resource_id;
  std::string revision;
  std::string placement_set_id;
  std::string topology_id;
  Descriptor descriptor;
  IntervalSet layers;
  PartHeads heads;
};

struct StatedPlacement {
  std::string resource_id;
  std::string revision;
  std::string placement_set_id;
  std::string placement_id;
  std::string placement_digest;
  std::string topology_id;
  Topology topology;
  Descriptor descriptor;
  std::vector<StatedPart> parts;
};

IntervalSet read_layers(const JsonCursor& cursor) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  std::vector<Range> layers;
  cursor.for_each([&](const JsonCursor& item) {
    const uint64_t layer = item.unsigned_integer();
    if (const auto range = Range::make_sized(layer, 1))
      layers.push_back(*range);
    else
      item.refuse(Rule::kIntervals, fmt::format("layer {} leaves no room for an end", layer));
  });
  if (cursor.diagnostics.total() != diagnostics_before) return {};
  std::sort(layers.begin(), layers.end());
  if (const auto repeated = std::adjacent_find(layers.begin(), layers.end()); repeated != layers.end()) {
    cursor.refuse(Rule::kLayerRepeated, fmt::format("layer {} is listed twice", repeated->begin()));
    return {};
  }
  return IntervalSet::from_ranges(std::move(layers));
}

Descriptor read_descriptor(const JsonCursor& cursor) {
  ObjectReader reader(cursor);
  Descriptor descriptor;
  reader.required("global_layer_ids", [&](const JsonCursor& field) { descriptor.layers = read_layers(field); });
  descriptor.dtype = reader.name("dtype");
  descriptor.item_bytes = reader.number("itemsize", 1);
  descriptor.head_count = reader.number("total_kv_heads", 1);
  descriptor.key_head_dim = reader.number("key_head_dim", 1);
  descriptor.value_head_dim = reader.number("value_head_dim", 1);
  descriptor.page_tokens = reader.number("page_size", 1);
  read_constant(reader, "layout", kLayout, Rule::kFieldChoice);
  reader.finish();
  return descriptor;
}

ParallelAxes read_rank(const JsonCursor& cursor) {
  ObjectReader reader(cursor);
  ParallelAxes rank;
  rank.dp = reader.number("dp");
  rank.pp = reader.number("pp");
  rank.tp = reader.number("tp");
  reader.finish();
  return rank;
}

void read_topology(const JsonCursor& cursor, StatedPlacement& stated) {
  ObjectReader reader(cursor);
  stated.topology_id = reader.string("topology_id");
  stated.topology.sizes = {.dp = reader.number("dp_size", 1),
                           .pp = reader.number("pp_size", 1),
                           .tp = reader.number("tp_size", 1),
                           .cp = 1,
                           .ep = 1};
  reader.required("participants", [&](const JsonCursor& list) {
    list.for_each([&](const JsonCursor& item) {
      ObjectReader fields(item);
      Participant participant;
      participant.id = ParticipantId(fields.name("participant_id"));
      fields.required("rank", [&](const JsonCursor& field) { participant.rank = read_rank(field); });
      fields.finish();
      stated.topology.participants.push_back(std::move(participant));
    });
  });
  reader.finish();
}

StatedPart read_part(const JsonCursor& cursor) {
  ObjectReader reader(cursor);
  StatedPart part;
  part.participant = ParticipantId(reader.name("participant_id"));
  reader.required("rank", [&](const JsonCursor& field) { part.rank = read_rank(field); });
  part.resource_id = reader.string("resource_id");
  part.revision = reader.string("revision");
  part.placement_set_id = reader.string("placement_set_id");
  part.topology_id = reader.string("topology_id");
  reader.required("descriptor", [&](const JsonCursor& field) { part.descriptor = read_descriptor(field); });
  reader.required("layer_ids", [&](const JsonCursor& field) { part.layers = read_layers(field); });
  part.heads.heads = read_counted(reader, cursor, "head_start", "head_count");
  part.heads.replica.ordinal = reader.number("replica_ordinal");
  part.heads.replica.count = reader.number("replica_count", 1);
  reader.finish();
  return part;
}

std::optional<StatedPlacement> read_stated(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics) {
  StatedPlacement stated;
  const bool read = read_object(json, limits, diagnostics, [&](ObjectReader& reader, const JsonCursor&) {
    stated.placement_set_id = reader.name("placement_set_id");
    diagnostics.set_document(fmt::format("placement '{}'", stated.placement_set_id));
    read_constant(reader, "resource_kind", kResourceKind, Rule::kFieldChoice);
    stated.resource_id = reader.name("resource_id");
    stated.revision = reader.name("revision");
    stated.placement_id = reader.string("placement_id");
    stated.placement_digest = reader.string("placement_digest");
    reader.required("topology", [&](const JsonCursor& field) { read_topology(field, stated); });
    reader.required("descriptor", [&](const JsonCursor& field) { stated.descriptor = read_descriptor(field); });
    reader.required("parts", [&](const JsonCursor& list) {
      list.for_each([&](const JsonCursor& item) { stated.parts.push_back(read_part(item)); });
    });
  });
  if (!read) return std::nullopt;
  return stated;
}

// Mooncake repeats in each part what the placement says of all of them.
void check_repeated_fields(const StatedPlacement& stated, Diagnostics& diagnostics) {
  std::map<ParticipantId, ParallelAxes> ranks;
  for (const Participant& participant : stated.topology.participants) ranks.emplace(participant.id, participant.rank);
  for (const StatedPart& part : stated.parts) {
    const std::string place = fmt::format("part '{}'", part.participant.text());
    const auto require = [&](bool equal, std::string_view field) {
      if (!equal) diagnostics.add(Rule::kForeignDigest, place, fmt::format("{} differs from the placement's", field));
    };
    require(part.resource_id == stated.resource_id, "resource_id");
    require(part.revision == stated.revision, "revision");
    require(part.placement_set_id == stated.placement_set_id, "placement_set_id");
    require(part.topology_id == stated.topology_id, "topology_id");
    require(part.descriptor == stated.descriptor, "descriptor");
    const auto rank = ranks.find(part.participant);
    require(rank == ranks.end() || rank->second == part.rank, "rank");
  }
}

Component make_component(std::string_view name, const Descriptor& descriptor, uint64_t head_dim) {
  return Component{.name = ComponentName(std::string(name)),
                   .dtype = descriptor.dtype,
                   .encoding = std::string(kEncoding),
                   .item_bytes = descriptor.item_bytes,
                   .head_count = descriptor.head_count,
                   .head_dim = head_dim,
                   .tokens_per_row = 1};
}

PlacementManifest convert(const StatedPlacement& stated) {
  const Descriptor& descriptor = stated.descriptor;
  PlacementManifest placement;
  placement.name = stated.placement_set_id;
  placement.resource = ResourceId(stated.resource_id);
  placement.revision = RevisionId(stated.revision);
  placement.cache_schema.groups = {
      LayerGroup{.layers = descriptor.layers,
                 .live = LiveTokens::all(),
                 .components = {make_component(kKey, descriptor, descriptor.key_head_dim),
                                make_component(kValue, descriptor, descriptor.value_head_dim)}}};
  placement.topology = stated.topology;
  placement.paging = Paging{descriptor.page_tokens, AxisOrder::kNhd};
  for (const StatedPart& part : stated.parts) {
    placement.parts.push_back(Part{part.participant, {}});
    if (part.layers.empty()) continue;
    const std::vector<ComponentName> components = {ComponentName(std::string(kKey)),
                                                   ComponentName(std::string(kValue))};
    placement.parts.back().owns = {
        Ownership{part.layers, components, IntervalSet{part.heads.heads}, AllTokens(), part.heads.replica}};
  }
  return placement;
}

void check_layerless_parts(const StatedPlacement& stated, const PlacementManifest& placement,
                           Diagnostics& diagnostics) {
  const LayerlessHeads layerless(placement);
  for (const StatedPart& part : stated.parts) {
    if (!part.layers.empty()) continue;
    const PartHeads kept = layerless.at(part.rank);
    if (part.heads == kept) continue;
    const auto text = [](const PartHeads& heads) {
      return fmt::format("heads [{},{}) as replica {} of {}", heads.heads.begin(), heads.heads.end(),
                         heads.replica.ordinal, heads.replica.count);
    };
    diagnostics.add(Rule::kForeignForm, fmt::format("part '{}'", part.participant.text()),
                    fmt::format("without layers, {} cannot be kept; only {} can", text(part.heads), text(kept)));
  }
}

}  // namespace

void read_constant(ObjectReader& reader, std::string_view field, std::string_view text, Rule rule) {
  reader.required(field, [&](const JsonCursor& cursor) {
    if (cursor.require(JsonKind::kString) && cursor.value.text() != text)
      cursor.refuse(rule, fmt::format("must be '{}'", text));
  });
}

Range read_counted(ObjectReader& reader, const JsonCursor& object, std::string_view start_field,
                   std::string_view count_field, uint64_t start_minimum) {
  const uint64_t start = reader.number(start_field, start_minimum);
  const uint64_t count = reader.number(count_field, 1);
  if (const auto range = Range::make_sized(start, count)) return *range;
  object.refuse(Rule::kIntervals, fmt::format("{} {} + {} {} passes 2^64 - 1", start_field, start, count_field, count));
  return {};
}

void check_identity(std::string_view field, std::string_view stated, std::string_view computed,
                    Diagnostics& diagnostics) {
  if (stated == computed) return;
  diagnostics.add(Rule::kForeignDigest, std::string(field), fmt::format("the content gives {}", computed));
}

std::optional<Valid<PlacementManifest>> read_placement(std::string_view json, const JsonLimits& limits,
                                                       Diagnostics& diagnostics) {
  const uint64_t diagnostics_before = diagnostics.total();
  const std::optional<StatedPlacement> stated = read_stated(json, limits, diagnostics);
  if (!stated) return std::nullopt;
  check_repeated_fields(*stated, diagnostics);
  std::optional<Valid<PlacementManifest>> placement = Valid<PlacementManifest>::make(convert(*stated), diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;

  check_layerless_parts(*stated, **placement, diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  const std::optional<PlacementForm> form = to_form(*placement, diagnostics);
  if (!form) return std::nullopt;
  check_identity("topology_id", stated->topology_id, form->topology_id, diagnostics);
  check_identity("placement_id", stated->placement_id, form->placement_id, diagnostics);
  check_identity("placement_digest", stated->placement_digest, form->placement_digest, diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  return placement;
}

std::optional<Valid<SnapshotDescriptor>> read_snapshot(std::string_view json, const Valid<PlacementManifest>& placement,
                                                       const JsonLimits& limits, Diagnostics& diagnostics) {
  diagnostics.set_document("snapshot");
  const uint64_t diagnostics_before = diagnostics.total();
  SnapshotDescriptor snapshot;
  std::string stated_id;
  std::string stated_digest;
  const bool read = read_object(json, limits, diagnostics, [&](ObjectReader& reader, const JsonCursor& cursor) {
    read_constant(reader, "resource_kind", kResourceKind, Rule::kFieldChoice);
    snapshot.tenant = reader.name("namespace");
    snapshot.resource = ResourceId(reader.name("resource_id"));
    snapshot.model_id = reader.name("model_id");
    snapshot.model_revision = reader.name("model_revision");
    snapshot.semantic_fingerprint = reader.digest("semantic_fingerprint").hex();
    snapshot.token_fingerprint = reader.digest("token_fingerprint").hex();
    snapshot.tokens = read_counted(reader, cursor, "token_start", "token_count");
    stated_id = reader.string("snapshot_id");
    stated_digest = reader.string("snapshot_digest");
  });
  if (!read) return std::nullopt;
  snapshot.cache_schema_digest = cache_schema_digest(placement);
  std::optional<Valid<SnapshotDescriptor>> valid = Valid<SnapshotDescriptor>::make(std::move(snapshot), diagnostics);
  if (!valid) return std::nullopt;
  const std::optional<SnapshotForm> form = to_form(*valid, diagnostics);
  if (!form) return std::nullopt;
  check_identity("snapshot_id", stated_id, form->snapshot_id, diagnostics);
  check_identity("snapshot_digest", stated_digest, form->snapshot_digest, diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  return valid;
}

}  // namespace crossdock::mooncake
