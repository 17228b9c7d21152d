#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "model/text.h"
#include "model/volume.h"
#include "model/wire/json_writer.h"

namespace crossdock::cli {
namespace {

// "1,234" for whole numbers, else with two decimals.
std::string amount(double number) {
  if (number == std::floor(number) && number < 1e18) return grouped(static_cast<uint64_t>(number));
  return fmt::format("{:.2f}", number);
}

std::string names_text(const std::vector<ComponentName>& names) {
  std::string text;
  for (const ComponentName& name : names) text += (text.empty() ? "" : ",") + printable(name.text());
  return text;
}

std::string tokens_text(const TokenOwnership& tokens) {
  if (const auto* cyclic = std::get_if<CyclicTokens>(&tokens))
    return fmt::format("block {} of {} x {}", set_text(cyclic->blocks), cyclic->cycle_blocks, cyclic->block_tokens);
  if (const auto* intervals = std::get_if<TokenIntervals>(&tokens)) return set_text(intervals->tokens);
  return "all";
}

// Rows up to a limit, then a line that says how many are left out.
class LimitedTable {
 public:
  LimitedTable(std::vector<std::string> header, uint64_t row_count_max)
      : table_(std::move(header)), left_(row_count_max) {}

  void add(std::vector<std::string> row) {
    if (left_ == 0) {
      ++left_out_;
      return;
    }
    --left_;
    table_.add(std::move(row));
  }
  std::string text() const {
    return table_.text() + (left_out_ == 0 ? "" : fmt::format("... and {} more rows (--rows)\n", grouped(left_out_)));
  }

 private:
  Table table_;
  uint64_t left_;
  uint64_t left_out_ = 0;
};

std::string schema_table(const CacheSchema& schema, uint64_t row_count_max) {
  const CacheVolume volume = volume_of(schema);
  std::string text = fmt::format("{} layers with a cache, {} bytes per token", grouped(schema.layers().count()),
                                 amount(volume.bytes_per_token));
  if (volume.state_bytes > 0) text += fmt::format(", {} bytes of state", amount(volume.state_bytes));
  LimitedTable table({"layers", "live tokens", "component", "dtype", "encoding", "heads", "dim", "row"}, row_count_max);
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components)
      table.add({set_text(group.layers),
                 group.window_tokens ? fmt::format("last {}", grouped(*group.window_tokens)) : "all",
                 printable(component.name.text()), component.dtype, component.encoding, grouped(component.head_count),
                 grouped(component.head_dim),
                 component.is_state()             ? "state"
                 : *component.tokens_per_row == 1 ? "token"
                                                  : fmt::format("{} tokens", *component.tokens_per_row)});
  return text + "\n" + table.text();
}

std::string topology_text(const Topology& topology) {
  const ParallelAxes& sizes = topology.sizes;
  return fmt::format("topology: dp {} pp {} tp {} cp {} ep {}, {} participants", sizes.dp, sizes.pp, sizes.tp, sizes.cp,
                     sizes.ep, grouped(topology.participants.size()));
}

std::string text_of(const CacheSchema& schema, uint64_t row_count_max) {
  return "cache schema: " + schema_table(schema, row_count_max);
}

std::string text_of(const Topology& topology, uint64_t row_count_max) {
  LimitedTable table({"participant", "dp", "pp", "tp", "cp", "ep"}, row_count_max);
  for (const auto& [id, rank] : topology.participants)
    table.add({printable(id.text()), fmt::to_string(rank.dp), fmt::to_string(rank.pp), fmt::to_string(rank.tp),
               fmt::to_string(rank.cp), fmt::to_string(rank.ep)});
  return topology_text(topology) + "\n" + table.text();
}

std::string text_of(const PlacementManifest& placement, uint64_t row_count_max) {
  std::string text = fmt::format("placement '{}': resource {}, revision {}", placement.name, placement.resource.text(),
                                 placement.revision.text());
  if (placement.paging)
    text += fmt::format(", pages of {} tokens ({})", placement.paging->page_tokens, placement.paging->axis_order);
  text = printable(text) + "\n" + topology_text(placement.topology) +
         "\ncache: " + schema_table(placement.cache_schema, row_count_max) + "\n";
  LimitedTable table(
      {"participant", "layers", "components", "heads", "tokens", "replica", "bytes/token", "state bytes"},
      row_count_max);
  for (const Part& part : placement.parts) {
    if (part.owns.empty()) table.add({printable(part.participant.text()), "none"});
    for (const Ownership& ownership : part.owns) {
      const CacheVolume volume = volume_of(placement.cache_schema, {ownership});
      table.add({printable(part.participant.text()), set_text(ownership.layers), names_text(ownership.components),
                 set_text(ownership.heads), tokens_text(ownership.tokens),
                 fmt::format("{} of {}", ownership.replica.ordinal, ownership.replica.count),
                 amount(volume.bytes_per_token), amount(volume.state_bytes)});
    }
  }
  return text + table.text();
}

std::string text_of(const SnapshotDescriptor& snapshot, uint64_t) {
  return fmt::format(
      "snapshot of '{}': tenant {}, model {} at {}, adapter {}, tokens {}\ncache schema sha256:{}\nsemantics {}, "
      "tokens {}\n",
      printable(snapshot.resource.text()), printable(snapshot.tenant), printable(snapshot.model_id),
      printable(snapshot.model_revision),
      snapshot.adapter ? printable(snapshot.adapter->id + " at " + snapshot.adapter->revision) : "none",
      range_text(snapshot.tokens), snapshot.cache_schema_digest.hex(), printable(snapshot.semantic_fingerprint),
      printable(snapshot.token_fingerprint));
}

std::string views_table(const std::vector<View>& views, std::string region_word, uint64_t row_count_max) {
  LimitedTable table({"component", "layers", "tokens", "heads", "dims", std::move(region_word), "offset", "row stride",
                      "head stride", "pages"},
                     row_count_max);
  for (const View& view : views)
    table.add({printable(view.component.text()), set_text({view.layers}), range_text(view.tokens),
               range_text(view.heads), range_text(view.dims), printable(view.region.text()), grouped(view.offset_bytes),
               grouped(view.strides.row), grouped(view.strides.head),
               view.pages
                   ? fmt::format("{} x {}", printable(view.pages->table.text()), grouped(view.pages->page_stride_bytes))
                   : "-"});
  return table.text();
}

std::string text_of(const RuntimeBinding& binding, uint64_t row_count_max) {
  std::string text = printable(
      fmt::format("binding of '{}' for operation '{}': resource {}, revision {}, instance {} generation {}, tokens {}",
                  binding.participant.text(), binding.operation.text(), binding.resource.text(),
                  binding.revision.text(), binding.instance.text(), binding.generation, range_text(binding.tokens)));
  text += fmt::format("\nplacement sha256:{}\nsnapshot sha256:{}\n", binding.placement_digest.hex(),
                      binding.snapshot_digest.hex());
  LimitedTable regions({"region", "epoch", "bytes", "device", "endpoint"}, row_count_max);
  for (const Region& region : binding.regions)
    regions.add({printable(region.id.text()), fmt::to_string(region.epoch), grouped(region.bytes),
                 printable(region.device.text()), printable(region.endpoint.value_or("-"))});
  return text + "\n" + regions.text() + "\n" + views_table(binding.views, "region", row_count_max);
}

std::string text_of(const StoreLayout& layout, uint64_t row_count_max) {
  LimitedTable table({"part", "layers", "components", "heads"}, row_count_max);
  for (const StorePart& part : layout.parts)
    table.add({printable(part.key.text()), set_text(part.layers), names_text(part.components), set_text(part.heads)});
  return fmt::format("store layout '{}': pages of {} tokens\ncache: {}\n{}", printable(layout.name),
                     grouped(layout.page_tokens), schema_table(layout.cache_schema, row_count_max), table.text());
}

std::string text_of(const StoreManifest& manifest, uint64_t row_count_max) {
  LimitedTable table({"object", "bytes", "chunk bytes", "chunks"}, row_count_max);
  for (const StoredObject& object : manifest.objects)
    table.add({printable(object.id.text()), grouped(object.bytes), grouped(object.chunk_bytes),
               grouped(object.chunk_crc32c.size())});
  return text_of(manifest.snapshot, row_count_max) + "\n" + table.text() + "\n" +
         views_table(manifest.views, "object", row_count_max);
}

void encode_volume(JsonWriter& out, const CacheVolume& volume) {
  out.begin_object();
  out.key("bytes_per_token").raw(fmt::format("{}", volume.bytes_per_token));
  out.key("state_bytes").raw(fmt::format("{}", volume.state_bytes));
  out.end_object();
}

// What the document itself does not say: volumes. Empty for documents without any.
void encode_volumes(JsonWriter& out, const PlacementManifest& placement) {
  out.begin_object().key("cache");
  encode_volume(out, volume_of(placement.cache_schema));
  out.key("parts").begin_array();
  for (const Part& part : placement.parts) {
    out.begin_object();
    out.key("participant").string(part.participant.text());
    out.key("volume");
    encode_volume(out, volume_of(placement.cache_schema, part.owns));
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
