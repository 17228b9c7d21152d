#include <fmt/format.h>

#include "base/sha256.h"
#include "model/mooncake/form.h"
#include "model/mooncake/mooncake.h"
#include "model/wire/json_writer.h"

namespace crossdock::mooncake {
namespace {

// Mooncake lists layers one by one, in the placement and again in each part. No more than the default reader takes.
constexpr uint64_t kListedLayersMax = uint64_t{8} << 20;

std::string identity(std::string_view text) { return "sha256:" + sha256(text).hex(); }

bool is_plain_row(const Component& component) {
  return component.encoding == kEncoding && component.tokens_per_row == uint64_t{1};
}

void check_schema(const CacheSchema& schema, Diagnostics& diagnostics) {
  const auto refuse = [&](std::string message) {
    diagnostics.add(Rule::kForeignForm, "cache_schema", std::move(message));
  };
  if (schema.groups.size() != 1) return refuse(fmt::format("{} layer groups, must be one", schema.groups.size()));
  const LayerGroup& group = schema.groups.front();
  if (group.live != LiveTokens::all() || !group.component_life.empty())
    refuse("rows that do not live for all tokens (a window or chunks) have no place");
  const std::vector<Component>& components = group.components;
  if (components.size() != 2 || components[0].name.text() != kKey || components[1].name.text() != kValue)
    return refuse("the components must be 'key' and 'value'");
  const Component& key = components[0];
  const Component& value = components[1];
  if (key.dtype != value.dtype || key.item_bytes != value.item_bytes || key.head_count != value.head_count)
    refuse("'key' and 'value' must have the same dtype, item size and head count");
  if (!is_plain_row(key) || !is_plain_row(value)) refuse("each component must be plain and have one row per token");
}

void check_part(const Part& part, Diagnostics& diagnostics) {
  const auto refuse = [&](std::string message) {
    diagnostics.add(Rule::kForeignForm, fmt::format("part '{}'", part.participant.text()), std::move(message));
  };
  if (part.owns.empty()) return;
  if (part.owns.size() != 1) return refuse(fmt::format("{} ownerships, must be one", part.owns.size()));
  const Ownership& ownership = part.owns.front();
  if (ownership.components.size() != 2) refuse("key and value must be owned together");
  if (ownership.heads.ranges().size() != 1) refuse("the heads must be one interval");
  if (!std::holds_alternative<AllTokens>(ownership.tokens)) refuse("all tokens must be owned");
}

bool check_placement(const PlacementManifest& placement, Diagnostics& diagnostics) {
  const uint64_t diagnostics_before = diagnostics.total();
  const auto refuse = [&](std::string_view place, std::string message) {
    diagnostics.add(Rule::kForeignForm, std::string(place), std::move(message));
  };
  check_schema(placement.cache_schema, diagnostics);
  const ParallelAxes& sizes = placement.topology.sizes;
  if (sizes.cp != 1 || sizes.ep != 1) refuse("topology", "context and expert parallelism have no place");
  if (placement.tokens != Range::all()) refuse("tokens", "a bounded token interval has no place");
  if (!placement.paging || placement.paging->axis_order != AxisOrder::kNhd)
    refuse("paging", fmt::format("a page size with axis order '{}' is required", kLayout));
  for (const Part& part : placement.parts) check_part(part, diagnostics);

  const uint64_t layer_count = placement.cache_schema.layers().count();
  if (layer_count > kListedLayersMax / (placement.parts.size() + 1))
    refuse("cache_schema", fmt::format("{} layers in each of {} parts are more than {} in all", layer_count,
                                       placement.parts.size(), kListedLayersMax));
  return diagnostics.total() == diagnostics_before;
}

void write_layers(const IntervalSet& layers, JsonWriter& writer) {
  writer.begin_array();
  for (const Range range : layers.ranges())
    for (uint64_t layer = range.begin(); layer < range.end(); ++layer) writer.number(layer);
  writer.end_array();
}

std::string descriptor_text(const PlacementManifest& placement) {
  const LayerGroup& group = placement.cache_schema.groups.front();
  const Component& key = group.components[0];
  const Component& value = group.components[1];
  JsonWriter writer;
  writer.begin_object().key("dtype").string(key.dtype).key("global_layer_ids");
  write_layers(group.layers, writer);
  writer.key("itemsize").number(key.item_bytes);
  writer.key("key_head_dim").number(key.head_dim);
  writer.key("layout").string(kLayout);
  writer.key("page_size").number(placement.paging->page_tokens);
  writer.key("total_kv_heads").number(key.head_count);
  writer.key("value_head_dim").number(value.head_dim);
  writer.end_object();
  return writer.take();
}

void write_rank(const ParallelAxes& rank, JsonWriter& writer) {
  writer.begin_object().key("dp").number(rank.dp).key("pp").number(rank.pp).key("tp").number(rank.tp).end_object();
}

// With the identity, as in a placement, or with the schema's name instead, as the text that the identity is taken of.
std::string topology_text(const Topology& topology, const std::string& topology_id) {
  JsonWriter writer;
  writer.begin_object().key("dp_size").number(topology.sizes.dp).key("participants").begin_array();
  for (const Participant& participant : topology.participants) {
    writer.begin_object().key("participant_id").string(participant.id.text()).key("rank");
    write_rank(participant.rank, writer);
    writer.end_object();
  }
  writer.end_array().key("pp_size").number(topology.sizes.pp);
  if (topology_id.empty())
    writer.key("schema").string("kv-cache-topology");
  else
    writer.key("topology_id").string(topology_id);
  writer.key("tp_size").number(topology.sizes.tp).end_object();
  return writer.take();
}

std::string parts_text(const PlacementManifest& placement, const std::string& descriptor,
                       const std::string& topology_id) {
  const LayerlessHeads layerless(placement);
  JsonWriter writer;
  writer.begin_array();
  for (const Part& part : placement.parts) {
    const ParallelAxes& rank = placement.topology.find(part.participant)->rank;
    const PartHeads heads =
        part.owns.empty() ? layerless.at(rank) : PartHeads{part.owns.front().heads.hull(), part.owns.front().replica};
    writer.begin_object().key("descriptor").raw(descriptor);
    writer.key("head_count").number(heads.heads.size()).key("head_start").number(heads.heads.begin());
    writer.key("layer_ids");
    write_layers(part.owns.empty() ? IntervalSet() : part.owns.front().layers, writer);
    writer.key("participant_id").string(part.participant.text());
    writer.key("placement_set_id").string(placement.name).key("rank");
    write_rank(rank, writer);
    writer.key("replica_count").number(heads.replica.count).key("replica_ordinal").number(heads.replica.ordinal);
    writer.key("resource_id").string(placement.resource.text()).key("revision").string(placement.revision.text());
    writer.key("topology_id").string(topology_id).end_object();
  }
  writer.end_array();
  return writer.take();
}

struct PlacementLists {
  std::string descriptor;
  std::string parts;
  std::string topology;
};

// The document, once it has its digest; before that the text that placement_id is taken of (no identity yet) or
// placement_digest (placement_id only).
std::string placement_text(const PlacementManifest& placement, const PlacementLists& lists, const PlacementForm& form) {
  JsonWriter writer;
  writer.begin_object().key("descriptor").raw(lists.descriptor).key("parts").raw(lists.parts);
  if (!form.placement_digest.empty()) writer.key("placement_digest").string(form.placement_digest);
  if (!form.placement_id.empty()) writer.key("placement_id").string(form.placement_id);
  writer.key("placement_set_id").string(placement.name);
  writer.key("resource_id").string(placement.resource.text());
  writer.key("resource_kind").string(kResourceKind);
  writer.key("revision").string(placement.revision.text());
  if (form.placement_digest.empty()) writer.key("schema").string("complete-kv-cache-placement");
  writer.key("topology").raw(lists.topology).end_object();
  return writer.take();
}

// The same three texts of a snapshot.
std::string snapshot_text(const SnapshotDescriptor& snapshot, const SnapshotForm& form) {
  JsonWriter writer;
  writer.begin_object();
  writer.key("model_id").string(snapshot.model_id).key("model_revision").string(snapshot.model_revision);
  writer.key("namespace").string(snapshot.tenant);
  writer.key("resource_id").string(snapshot.resource.text()).key("resource_kind").string(kResourceKind);
  if (form.snapshot_digest.empty()) writer.key("schema").string("kv-cache-snapshot");
  writer.key("semantic_fingerprint").string(snapshot.semantic_fingerprint);
  if (!form.snapshot_digest.empty()) writer.key("snapshot_digest").string(form.snapshot_digest);
  if (!form.snapshot_id.empty()) writer.key("snapshot_id").string(form.snapshot_id);
  writer.key("token_count").number(snapshot.tokens.size());
  writer.key("token_fingerprint").string(snapshot.token_fingerprint);
  writer.key("token_start").number(snapshot.tokens.begin());
  writer.end_object();
  return writer.take();
}

}  // namespace

LayerlessHeads::LayerlessHeads(const PlacementManifest& placement)
    : otherwise_{Range(0, placement.cache_schema.groups.front().components.front().head_count), {}} {
  for (const Part& part : placement.parts) {
    if (part.owns.empty()) continue;
    const ParallelAxes& rank = placement.topology.find(part.participant)->rank;
    const Ownership& ownership = part.owns.front();
    const Stage stage{rank.pp, {ownership.heads.hull(), ownership.replica}};
    const auto [known, is_new] = first_stages_.emplace(TpAndDp(rank.tp, rank.dp), stage);
    if (!is_new && stage.pp < known->second.pp) known->second = stage;
  }
}

PartHeads LayerlessHeads::at(const ParallelAxes& rank) const {
  if (const auto same = first_stages_.find(TpAndDp(rank.tp, rank.dp)); same != first_stages_.end())
    return same->second.heads;
  const auto any_dp = first_stages_.lower_bound(TpAndDp(rank.tp, 0));
  return any_dp != first_stages_.end() && any_dp->first.first == rank.tp ? any_dp->second.heads : otherwise_;
}

std::optional<PlacementForm> to_form(const Valid<PlacementManifest>& placement, Diagnostics& diagnostics) {
  diagnostics.set_document(fmt::format("placement '{}'", placement->name));
  if (!check_placement(*placement, diagnostics)) return std::nullopt;
  PlacementForm form;
  form.topology_id = identity(topology_text(placement->topology, ""));
  PlacementLists lists;
  lists.descriptor = descriptor_text(*placement);
  lists.parts = parts_text(*placement, lists.descriptor, form.topology_id);
  lists.topology = topology_text(placement->topology, form.topology_id);
  form.placement_id = identity(placement_text(*placement, lists, form));
  form.placement_digest = sha256(placement_text(*placement, lists, form)).hex();
  form.text = placement_text(*placement, lists, form);
  return form;
}

std::optional<SnapshotForm> to_form(const Valid<SnapshotDescriptor>& snapshot, Diagnostics& diagnostics) {
  diagnostics.set_document(fmt::format("snapshot of '{}'", snapshot->resource.text()));
  const uint64_t diagnostics_before = diagnostics.total();
  const auto refuse = [&](std::string_view place, std::string message) {
    diagnostics.add(Rule::kForeignForm, std::string(place), std::move(message));
  };
  if (snapshot->adapter) refuse("adapter", "an adapter has no place");
  if (!snapshot->salt.empty()) refuse("salt", "a salt has no place");
  if (!Sha256Digest::from_hex(snapshot->semantic_fingerprint)) refuse("semantic_fingerprint", "must be a SHA-256");
  if (!Sha256Digest::from_hex(snapshot->token_fingerprint)) refuse("token_fingerprint", "must be a SHA-256");
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  SnapshotForm form;
  form.snapshot_id = identity(snapshot_text(*snapshot, form));
  form.snapshot_digest = sha256(snapshot_text(*snapshot, form)).hex();
  form.text = snapshot_text(*snapshot, form);
  return form;
}

std::optional<std::string> write_placement(const Valid<PlacementManifest>& placement, Diagnostics& diagnostics) {
  std::optional<PlacementForm> form = to_form(placement, diagnostics);
  if (!form) return std::nullopt;
  return std::move(form->text);
}

std::optional<std::string> write_snapshot(const Valid<SnapshotDescriptor>& snapshot, Diagnostics& diagnostics) {
  std::optional<SnapshotForm> form = to_form(snapshot, diagnostics);
  if (!form) return std::nullopt;
  return std::move(form->text);
}

}  // namespace crossdock::mooncake
