#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/checked.h"
#include "base/sha256.h"
#include "base/sorted.h"
#include "model/kv/binding_rules.h"
#include "model/mooncake/form.h"
#include "model/mooncake/mooncake.h"
#include "model/text.h"
#include "model/wire/documents.h"
#include "model/wire/json_writer.h"

namespace crossdock::mooncake {
namespace {

constexpr size_t kRangesMax = size_t{1} << 20;

struct ResolvedRange {
  uint64_t layer = 0;
  std::string_view component;
  Range tokens;
  Range heads;
  std::string_view region;
  uint64_t offset_bytes = 0;
  uint64_t token_stride_bytes = 0;
  uint64_t head_stride_bytes = 0;

  // Mooncake's order of ranges.
  auto order() const { return std::tuple(layer, component, tokens.begin(), heads.begin(), region, offset_bytes); }
};

// Takes views apart into ranges. Every piece of a view goes through add_rows(), with the offset of its first element.
class RangeList {
 public:
  RangeList(const RuntimeBinding& binding, const LayerGroup& group, Diagnostics& diagnostics)
      : binding_(binding), group_(group), diagnostics_(diagnostics) {}

  bool add(const View& view) {
    const Component* component = group_.find(view.component);
    if (component == nullptr) return refuse(fmt::format("component '{}' is unknown", view.component.text()));
    if (view.cycle) return refuse("a view of a cycle of tokens has no place");
    if (view.dims != Range(0, component->head_dim) || view.strides.dim != component->item_bytes)
      return refuse(fmt::format("a view must hold each head in one piece of {} bytes", component->head_bytes()));
    for (uint64_t layer = view.layers.begin(); layer < view.layers.end(); ++layer) {
      const Checked offset = Checked(layer - view.layers.begin()) * view.strides.layer + view.offset_bytes;
      const ResolvedRange whole{layer, view.component.text(), view.tokens, view.heads, view.region.text(), 0, 0, 0};
      if (!(view.pages ? add_pages(view, whole, offset) : add_rows(view, whole, offset))) return false;
    }
    return true;
  }

  std::vector<ResolvedRange> take_sorted() {
    std::stable_sort(ranges_.begin(), ranges_.end(),
                     [](const ResolvedRange& a, const ResolvedRange& b) { return a.order() < b.order(); });
    return std::move(ranges_);
  }

 private:
  bool refuse(std::string message) {
    diagnostics_.add(Rule::kForeignForm, "views", std::move(message));
    return false;
  }

  bool add_pages(const View& view, const ResolvedRange& whole, Checked offset) {
    const PageTable* table = find_sorted(binding_.page_tables, &PageTable::id, view.pages->table);
    CHECK(table != nullptr);  // that there is one is a binding's own rule; what it holds is not
    if (view.tokens.begin() < table->token_begin)
      return refuse(fmt::format("page table '{}' begins after tokens {}", table->id.text(), range_text(view.tokens)));
    for (uint64_t token = view.tokens.begin(); token < view.tokens.end();) {
      const uint64_t page = (token - table->token_begin) / table->page_tokens;
      const uint64_t row = (token - table->token_begin) % table->page_tokens;
      const uint64_t end = token + std::min(table->page_tokens - row, view.tokens.end() - token);
      if (page >= table->slots.size())
        return refuse(fmt::format("page table '{}' ends before tokens {}", table->id.text(), range_text(view.tokens)));
      ResolvedRange part = whole;
      part.tokens = Range(token, end);
      const Checked page_offset = Checked(table->slots[page]) * view.pages->page_stride_bytes;
      if (!add_rows(view, part, offset + page_offset + Checked(row) * view.strides.row)) return false;
      token = end;
    }
    return true;
  }

  // A range steps from token to token over whole rows of heads. Heads that lie further apart become ranges of their
  // own, with the stride of packed heads: Mooncake then copies all tokens of one in a single piece.
  bool add_rows(const View& view, ResolvedRange part, Checked offset) {
    const uint64_t head_bytes = group_.find(view.component)->head_bytes();
    const auto row_bytes = (Checked(part.heads.size() - 1) * view.strides.head + head_bytes).value();
    if (row_bytes && (part.tokens.size() == 1 || *row_bytes <= view.strides.row)) {
      // Nothing steps along an axis with one index, but Mooncake wants its stride to be no less than a packed one's.
      part.head_stride_bytes = part.heads.size() == 1 ? std::max(view.strides.head, head_bytes) : view.strides.head;
      part.token_stride_bytes = part.tokens.size() == 1 ? std::max(view.strides.row, *row_bytes) : view.strides.row;
      return push(part, offset);
    }
    part.head_stride_bytes = head_bytes;
    part.token_stride_bytes = view.strides.row;
    for (uint64_t head = view.heads.begin(); head < view.heads.end(); ++head) {
      part.heads = Range(head, head + 1);
      if (!push(part, offset + Checked(head - view.heads.begin()) * view.strides.head)) return false;
    }
    return true;
  }

  bool push(ResolvedRange range, Checked offset) {
    if (!offset.value()) return refuse("an offset passes 2^64 - 1");
    if (ranges_.size() == kRangesMax) return refuse(fmt::format("more than {} ranges", kRangesMax));
    range.offset_bytes = *offset.value();
    ranges_.push_back(range);
    return true;
  }

  const RuntimeBinding& binding_;
  const LayerGroup& group_;
  Diagnostics& diagnostics_;
  std::vector<ResolvedRange> ranges_;
};

bool check_region(const Region& region, Diagnostics& diagnostics) {
  const auto refuse = [&](std::string message) {
    diagnostics.add(Rule::kForeignForm, fmt::format("region '{}'", region.id.text()), std::move(message));
    return false;
  };
  if (region.epoch != 0) return refuse(fmt::format("epoch {} has no place", region.epoch));
  if (region.bytes == 0) return refuse("a region must have bytes");
  if (!region.address || *region.address == 0) return refuse("a region must have an address");
  if (!checked_add(*region.address, region.bytes)) return refuse("a region must end within 64 bits");
  if (!region.endpoint) return refuse("a region must have an endpoint");
  return true;
}

bool check_binding_form(const RuntimeBinding& binding, Diagnostics& diagnostics) {
  const uint64_t diagnostics_before = diagnostics.total();
  if (binding.generation != 0)
    diagnostics.add(Rule::kForeignForm, "generation", fmt::format("generation {} has no place", binding.generation));
  if (binding.regions.empty() || binding.views.empty())
    diagnostics.add(Rule::kForeignForm, "", "a binding without regions and views has no place");
  for (const Region& region : binding.regions) check_region(region, diagnostics);
  return diagnostics.total() == diagnostics_before;
}

void write_ranges(const std::vector<ResolvedRange>& ranges, JsonWriter& writer) {
  writer.begin_array();
  for (const ResolvedRange& range : ranges) {
    writer.begin_object().key("component").string(range.component).key("global_layer_id").number(range.layer);
    writer.key("head_count").number(range.heads.size()).key("head_start").number(range.heads.begin());
    writer.key("head_stride_bytes").number(range.head_stride_bytes);
    writer.key("offset_bytes").number(range.offset_bytes).key("region_id").string(range.region);
    writer.key("token_count").number(range.tokens.size()).key("token_start").number(range.tokens.begin());
    writer.key("token_stride_bytes").number(range.token_stride_bytes).end_object();
  }
  writer.end_array();
}

void write_regions(const std::vector<Region>& regions, JsonWriter& writer) {
  writer.begin_array();
  for (const Region& region : regions) {
    writer.begin_object().key("address").number(*region.address).key("endpoint").string(*region.endpoint);
    writer.key("nbytes").number(region.bytes).key("region_id").string(region.id.text()).end_object();
  }
  writer.end_array();
}

// In an envelope as it is; with the schema's name, the text that the digest is taken of.
std::string content_text(const RuntimeBinding& binding, const std::vector<ResolvedRange>& ranges,
                         const PlacementForm& placement, const SnapshotForm& snapshot, bool with_schema) {
  JsonWriter writer;
  writer.begin_object().key("instance_id").string(binding.instance.text());
  writer.key("operation_id").string(binding.operation.text());
  writer.key("participant_id").string(binding.participant.text());
  writer.key("placement_digest").string(placement.placement_digest);
  writer.key("placement_id").string(placement.placement_id).key("ranges");
  write_ranges(ranges, writer);
  writer.key("regions");
  write_regions(binding.regions, writer);
  writer.key("resource_id").string(binding.resource.text()).key("revision").string(binding.revision.text());
  if (with_schema) writer.key("schema").string(kBindingSchema);
  writer.key("snapshot_digest").string(snapshot.snapshot_digest);
  writer.key("snapshot_id").string(snapshot.snapshot_id).end_object();
  return writer.take();
}

}  // namespace

std::optional<BindingForm> to_form(const Valid<RuntimeBinding>& binding, const LayerGroup& group,
                                   const PlacementForm& placement, const SnapshotForm& snapshot,
                                   Diagnostics& diagnostics) {
  diagnostics.set_document(binding_label(*binding));
  if (!check_binding_form(*binding, diagnostics)) return std::nullopt;
  RangeList list(*binding, group, diagnostics);
  for (const View& view : binding->views)
    if (!list.add(view)) return std::nullopt;
  const std::vector<ResolvedRange> ranges = list.take_sorted();
  BindingForm form;
  form.digest = sha256(content_text(*binding, ranges, placement, snapshot, true)).hex();
  JsonWriter writer;
  writer.begin_object().key("binding").raw(content_text(*binding, ranges, placement, snapshot, false));
  writer.key("digest").string(form.digest).key("schema").string(kBindingSchema).end_object();
  form.text = writer.take();
  return form;
}

std::optional<std::string> write_binding(const Valid<RuntimeBinding>& binding,
                                         const Valid<PlacementManifest>& placement,
                                         const Valid<SnapshotDescriptor>& snapshot, Diagnostics& diagnostics) {
  const uint64_t diagnostics_before = diagnostics.total();
  diagnostics.set_document(binding_label(*binding));
  if (binding->placement_digest != digest(placement))
    diagnostics.add(Rule::kBindingIdentity, "placement_digest", "the placement is another one");
  if (binding->snapshot_digest != digest(snapshot))
    diagnostics.add(Rule::kBindingIdentity, "snapshot_digest", "the snapshot is another one");
  if (binding->tokens != snapshot->tokens)  // they are not written: reading takes the snapshot's
    diagnostics.add(
        Rule::kBindingIdentity, "tokens",
        fmt::format("{} are not the snapshot's {}", range_text(binding->tokens), range_text(snapshot->tokens)));
  if (binding->resource != placement->resource || binding->resource != snapshot->resource)
    diagnostics.add(Rule::kBindingIdentity, "resource",
                    fmt::format("'{}' is not that of the placement and the snapshot", binding->resource.text()));
  const std::optional<PlacementForm> placement_form = to_form(placement, diagnostics);
  const std::optional<SnapshotForm> snapshot_form = to_form(snapshot, diagnostics);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  std::optional<BindingForm> form =
      to_form(binding, placement->cache_schema.groups.front(), *placement_form, *snapshot_form, diagnostics);
  if (!form) return std::nullopt;
  return std::move(form->text);
}

}  // namespace crossdock::mooncake
