#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/number_text.h"
#include "base/utf8.h"
#include "cli/table.h"
#include "model/kv/schema_rules.h"
#include "model/kv/volume.h"
#include "model/text.h"
#include "model/wire/json_writer.h"

namespace crossdock::cli {
namespace {

constexpr size_t kRangesShownMax = 3;  // of a set in one cell of a table

std::string cell(const IntervalSet& set) { return set_text(set, kRangesShownMax); }
std::string cell(Range range) { return range.empty() ? "none" : set_text({range}); }

std::string names_text(const std::vector<ComponentName>& names) {
  std::string text;
  for (const ComponentName& name : names) text += (text.empty() ? "" : ",") + name.text();
  return text;
}

std::string cycle_text(const CyclicTokens& cycle) {
  return fmt::format("block {} of {} x {}", cell(cycle.blocks), cycle.cycle_blocks, cycle.block_tokens);
}

std::string tokens_text(const TokenOwnership& tokens) {
  if (const auto* cyclic = std::get_if<CyclicTokens>(&tokens)) return cycle_text(*cyclic);
  if (const auto* intervals = std::get_if<TokenIntervals>(&tokens)) return cell(intervals->tokens);
  return "all";
}

std::string life_text(const LiveTokens& live) {
  switch (live.kind) {
    case LiveTokens::Kind::kAll: return "all";
    case LiveTokens::Kind::kWindow: return fmt::format("last {}", grouped(live.tokens));
    case LiveTokens::Kind::kChunk: return fmt::format("chunk of {}", grouped(live.tokens));
  }
  return {};
}

std::string row_text(const Component& component) {
  if (component.is_state()) return "state";
  return *component.tokens_per_row == 1 ? "token" : fmt::format("{} tokens", *component.tokens_per_row);
}

std::string schema_table(const CacheSchema& schema, uint64_t row_count_max) {
  const CacheVolume volume = volume_of(schema);
  std::string text = fmt::format("{} layers with a cache, {} bytes per token", grouped(schema.layers().count()),
                                 amount(volume.bytes_per_token));
  if (volume.state_bytes > 0) text += fmt::format(", {} bytes of state", amount(volume.state_bytes));
  LimitedTable table({"layers", "live tokens", "component", "dtype", "encoding", "heads", "dim", "row"}, row_count_max);
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components)
      table.add({cell(group.layers), life_text(group.live_of(component.name)), component.name.text(), component.dtype,
                 component.encoding, grouped(component.head_count), grouped(component.head_dim), row_text(component)});
  return text + "\n" + table.text();
}

std::string topology_text(const Topology& topology) {
  const ParallelAxes& sizes = topology.sizes;
  return fmt::format("topology: dp {} pp {} tp {} cp {} ep {}, {} participants", sizes.dp, sizes.pp, sizes.tp, sizes.cp,
                     sizes.ep, grouped(topology.participants.size()));
}

// Participants in rank order: t2 before t10.
std::vector<const Participant*> by_rank(const Topology& topology) {
  std::vector<const Participant*> sorted;
  for (const Participant& participant : topology.participants) sorted.push_back(&participant);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Participant* a, const Participant* b) { return a->rank < b->rank; });
  return sorted;
}

std::string text_of(const CacheSchema& schema, uint64_t row_count_max) {
  return "cache schema: " + schema_table(schema, row_count_max);
}

std::string text_of(const Topology& topology, uint64_t row_count_max) {
  LimitedTable table({"participant", "dp", "pp", "tp", "cp", "ep"}, row_count_max);
  for (const Participant* participant : by_rank(topology)) {
    const ParallelAxes& rank = participant->rank;
    table.add({participant->id.text(), fmt::to_string(rank.dp), fmt::to_string(rank.pp), fmt::to_string(rank.tp),
               fmt::to_string(rank.cp), fmt::to_string(rank.ep)});
  }
  return topology_text(topology) + "\n" + table.text();
}

std::string text_of(const PlacementManifest& placement, uint64_t row_count_max) {
  std::string title = fmt::format("placement '{}': resource {}, revision {}", placement.name, placement.resource.text(),
                                  placement.revision.text());
  if (placement.paging)
    title += fmt::format(", pages of {} tokens ({})", placement.paging->page_tokens,
                         axis_order_name(placement.paging->axis_order));
  if (placement.tokens != Range::all()) title += fmt::format(", tokens {}", range_text(placement.tokens));
  LimitedTable table(
      {"participant", "layers", "components", "heads", "tokens", "replica", "bytes/token", "state bytes"},
      row_count_max);
  const LayerIndex index(placement.cache_schema);
  for (const Participant* participant : by_rank(placement.topology)) {
    // Every participant of the topology has a part, by the rules of placements.
    const Part* part = placement.find_part(participant->id);
    if (part->owns.empty()) table.add({part->participant.text(), "none"});
    for (const Ownership& ownership : part->owns)
      table.add_row([&]() -> std::vector<std::string> {
        const CacheVolume volume = volume_of(placement.cache_schema, index, {ownership});
        return {part->participant.text(),
                cell(ownership.layers),
                names_text(ownership.components),
                cell(ownership.heads),
                tokens_text(ownership.tokens),
                fmt::format("{} of {}", ownership.replica.ordinal, ownership.replica.count),
                amount(volume.bytes_per_token),
                amount(volume.state_bytes)};
      });
  }
  return printable(title) + "\n" + topology_text(placement.topology) +
         "\ncache: " + schema_table(placement.cache_schema, row_count_max) + "\n" + table.text();
}

std::string snapshot_lines(const SnapshotDescriptor& snapshot) {
  const std::string adapter = snapshot.adapter ? snapshot.adapter->id + " at " + snapshot.adapter->revision : "none";
  return printable(fmt::format("tenant {}, model {} at {}, adapter {}, salt '{}', tokens {}", snapshot.tenant,
                               snapshot.model_id, snapshot.model_revision, adapter, snapshot.salt,
                               range_text(snapshot.tokens))) +
         "\n" +
         printable(fmt::format("semantic fingerprint {}, token fingerprint {}", snapshot.semantic_fingerprint,
                               snapshot.token_fingerprint)) +
         "\ncache schema sha256:" + snapshot.cache_schema_digest.hex() + "\n";
}

std::string text_of(const SnapshotDescriptor& snapshot, uint64_t) {
  return printable(fmt::format("snapshot of '{}'", snapshot.resource.text())) + "\n" + snapshot_lines(snapshot);
}

std::string page_tables_text(const std::vector<PageTable>& tables, uint64_t row_count_max) {
  if (tables.empty()) return "";
  LimitedTable table({"page table", "page tokens", "first token", "pages"}, row_count_max);
  for (const PageTable& pages : tables)
    table.add({pages.id.text(), grouped(pages.page_tokens), grouped(pages.token_begin), grouped(pages.slots.size())});
  return "\n" + table.text();
}

std::string views_text(const std::vector<View>& views, std::string region_word, uint64_t row_count_max) {
  LimitedTable table({"component", "layers", "tokens", "heads", "dims", std::move(region_word), "offset",
                      "layer stride", "row stride", "head stride", "dim stride", "pages"},
                     row_count_max);
  for (const View& view : views) {
    const std::string cycle = view.cycle ? ", " + cycle_text(*view.cycle) : "";
    const std::string pages =
        view.pages ? fmt::format("{} x {}", view.pages->table.text(), grouped(view.pages->page_stride_bytes)) : "-";
    table.add({view.component.text(), cell(view.layers), range_text(view.tokens) + cycle, cell(view.heads),
               cell(view.dims), view.region.text(), grouped(view.offset_bytes), grouped(view.strides.layer),
               grouped(view.strides.row), grouped(view.strides.head), grouped(view.strides.dim), pages});
  }
  return "\n" + table.text();
}

std::string text_of(const RuntimeBinding& binding, uint64_t row_count_max) {
  std::string text = printable(
      fmt::format("binding of '{}' for operation '{}': resource {}, revision {}, instance {} generation {}, tokens {}",
                  binding.participant.text(), binding.operation.text(), binding.resource.text(),
                  binding.revision.text(), binding.instance.text(), binding.generation, range_text(binding.tokens)));
  text += fmt::format("\nplacement sha256:{}\nsnapshot sha256:{}\n", binding.placement_digest.hex(),
                      binding.snapshot_digest.hex());
  LimitedTable devices({"device", "kind", "registers at most"}, row_count_max);
  for (const Device& device : binding.devices)
    devices.add({device.id.text(), device.kind, grouped(device.registration_bytes_max)});
  LimitedTable regions({"region", "epoch", "bytes", "device", "address", "endpoint"}, row_count_max);
  for (const Region& region : binding.regions)
    regions.add({region.id.text(), fmt::to_string(region.epoch), grouped(region.bytes), region.device.text(),
                 region.address ? fmt::format("{:#x}", *region.address) : "-", region.endpoint.value_or("-")});
  return text + "\n" + devices.text() + "\n" + regions.text() + page_tables_text(binding.page_tables, row_count_max) +
         views_text(binding.views, "region", row_count_max);
}

std::string text_of(const StoreLayout& layout, uint64_t row_count_max) {
  LimitedTable table({"part", "layers", "components", "heads"}, row_count_max);
  for (const StorePart& part : layout.parts)
    table.add({part.key.text(), cell(part.layers), names_text(part.components), cell(part.heads)});
  return printable(fmt::format("store layout '{}': object order {}, pages of {} tokens", layout.name,
                               object_order_name(layout.object_order), grouped(layout.page_tokens))) +
         "\ncache: " + schema_table(layout.cache_schema, row_count_max) + "\n" + table.text();
}

std::string text_of(const StoreManifest& manifest, uint64_t row_count_max) {
  LimitedTable table({"object", "bytes", "chunk bytes", "chunks"}, row_count_max);
  for (const StoredObject& object : manifest.objects)
    table.add(
        {object.id.text(), grouped(object.bytes), grouped(object.chunk_bytes), grouped(object.chunk_crc32c.size())});
  return printable(fmt::format("store manifest of '{}'", manifest.snapshot.resource.text())) + "\n" +
         snapshot_lines(manifest.snapshot) + "\n" + table.text() +
         page_tables_text(manifest.page_tables, row_count_max) + views_text(manifest.views, "object", row_count_max);
}

void encode_volume(JsonWriter& out, const CacheVolume& volume) {
  out.begin_object();
  out.key("bytes_per_token").raw(fmt::format("{}", volume.bytes_per_token));
  out.key("state_bytes").raw(fmt::format("{}", volume.state_bytes));
  out.end_object();
}

// Volumes, which are derived from the document. Empty for kinds of documents without volumes.
void encode_volumes(JsonWriter& out, const PlacementManifest& placement) {
  out.begin_object().key("cache");
  encode_volume(out, volume_of(placement.cache_schema));
  out.key("parts").begin_array();
  const LayerIndex index(placement.cache_schema);
  for (const Part& part : placement.parts) {
    out.begin_object();
    out.key("participant").string(part.participant.text());
    out.key("volume");
    encode_volume(out, volume_of(placement.cache_schema, index, part.owns));
    out.end_object();
  }
  out.end_array().end_object();
}
void encode_volumes(JsonWriter& out, const CacheSchema& schema) {
  out.begin_object().key("cache");
  encode_volume(out, volume_of(schema));
  out.end_object();
}
template <class Other>
void encode_volumes(JsonWriter& out, const Other&) {
  out.begin_object().end_object();
}

}  // namespace

std::string inspect_text(const AnyDocument& document, uint64_t row_count_max) {
  return std::visit([&](const auto& valid) { return text_of(*valid, row_count_max); }, document) +
         fmt::format("digest sha256:{}\n", digest(document).hex());
}

std::string inspect_json(const AnyDocument& document) {
  JsonWriter out;
  out.begin_object();
  out.key("digest").string(digest(document).hex());
  out.key("document").raw(to_json(document));
  out.key("volume");
  std::visit([&](const auto& valid) { encode_volumes(out, *valid); }, document);
  out.end_object();
  return out.take();
}

}  // namespace crossdock::cli
