#include "planner/kv/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/sorted.h"

// The opposite of what plans are for: everything is enumerated, under a stated limit, for tools that compare row by
// row.
namespace crossdock {
namespace {

// Returns false, for a walk to end.
bool refuse(uint64_t row_count_max, Diagnostics& diagnostics) {
  diagnostics.add(Rule::kPlanLimit, "", fmt::format("more than {} rows", row_count_max));
  return false;
}

// Charged before a row is made: each layer of an edge is one at least.
bool has_few_layers(const TransferPlan& plan, uint64_t row_count_max, Diagnostics& diagnostics) {
  uint64_t rows = 0;
  for (const Edge& edge : plan.edges) {
    rows = saturating_add(rows, plan.layer_sets[edge.layer_set].count());
    if (rows > row_count_max) return refuse(row_count_max, diagnostics);
  }
  return true;
}

// The heads that an owner has of one component of one layer, counted from the lowest.
// Cached for each (end, component, layer): each edge asks for it again.
class HeadOffsets {
 public:
  explicit HeadOffsets(const PlanSide& side) : side_(side) {}

  uint64_t offset_of(std::string_view end, const ComponentName& component, uint64_t layer, uint64_t head) {
    const auto [entry, is_new] = heads_.try_emplace(std::tuple(end, std::string_view(component.text()), layer));
    if (is_new) entry->second = find_heads(end, component, layer);
    return entry->second.count_below(head);
  }

 private:
  IntervalSet find_heads(std::string_view end, const ComponentName& component, uint64_t layer) const {
    const PlanOwner* owner = side_.find(end);
    CHECK(owner != nullptr);
    IntervalSet heads;
    for (const Ownership& owned : owner->owns)
      if (owned.layers.contains(layer) &&
          std::binary_search(owned.components.begin(), owned.components.end(), component))
        heads = heads.unite(owned.heads);
    return heads;
  }

  const PlanSide& side_;
  std::map<std::tuple<std::string_view, std::string_view, uint64_t>, IntervalSet> heads_;
};

// Calls visit(layer) for each layer; false when visit does.
template <class Visit>
bool for_each_layer(const IntervalSet& layers, Visit visit) {
  for (const Range range : layers.ranges())
    for (uint64_t layer = range.begin(); layer < range.end(); ++layer)
      if (!visit(layer)) return false;
  return true;
}

// Different edges, or steps, may continue each other; how a plan was cut must not show in the comparison.
void merge_neighbours(std::vector<ByteRow>& rows) {
  const auto place = [](const ByteRow& row) {
    return std::tie(row.source, row.target, row.source_region, row.target_region);
  };
  std::sort(rows.begin(), rows.end(), [&](const ByteRow& a, const ByteRow& b) {
    return std::tuple_cat(place(a), std::tie(a.source_offset, a.target_offset)) <
           std::tuple_cat(place(b), std::tie(b.source_offset, b.target_offset));
  });
  size_t kept = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    ByteRow& last = rows[kept];
    if (place(last) == place(rows[i]) && last.source_offset + last.bytes == rows[i].source_offset &&
        last.target_offset + last.bytes == rows[i].target_offset)
      last.bytes += rows[i].bytes;
    else if (++kept != i)
      rows[kept] = std::move(rows[i]);
  }
  if (!rows.empty()) rows.resize(kept + 1);
  std::sort(rows.begin(), rows.end());
}

}  // namespace

std::optional<std::vector<LogicalRow>> logical_rows(const TransferPlan& plan, const PlanSide& source,
                                                    const PlanSide& target, uint64_t row_count_max,
                                                    Diagnostics& diagnostics) {
  if (!has_few_layers(plan, row_count_max, diagnostics)) return std::nullopt;
  std::vector<LogicalRow> rows;
  HeadOffsets source_heads(source);
  HeadOffsets target_heads(target);
  std::map<uint32_t, IntervalSet> stretches_of;
  for (const Edge& edge : plan.edges) {
    const Component& component = plan.tensors[edge.tensor].component;
    const std::string& from = plan.sources[edge.source].text();
    const std::string& to = plan.targets[edge.target].text();
    if (!stretches_of.contains(edge.token_set)) {
      std::optional<IntervalSet> stretches = expand_tokens(plan.token_sets[edge.token_set], row_count_max);
      if (!stretches) {
        diagnostics.add(Rule::kPlanLimit, "",
                        fmt::format("the tokens of '{}' are more than {} stretches; name the snapshot or its tokens",
                                    to, row_count_max));
        return std::nullopt;
      }
      stretches_of.emplace(edge.token_set, std::move(*stretches));
    }
    const IntervalSet& stretches = stretches_of.at(edge.token_set);
    const bool fits = for_each_layer(plan.layer_sets[edge.layer_set], [&](uint64_t layer) {
      const uint64_t source_offset = source_heads.offset_of(from, component.name, layer, edge.heads.begin());
      const uint64_t target_offset = target_heads.offset_of(to, component.name, layer, edge.heads.begin());
      for (const Range tokens : stretches.ranges()) {
        if (rows.size() == row_count_max) return refuse(row_count_max, diagnostics);
        rows.push_back(LogicalRow{from, to, layer, component.name.text(), edge.heads, tokens, source_offset,
                                  target_offset, component.head_dim, component.item_bytes});
      }
      return true;
    });
    if (!fits) return std::nullopt;
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::optional<std::vector<StoreRow>> store_rows(const TransferPlan& plan, const StoreLayout& layout,
                                                const StoreGeometry& geometry, uint64_t row_count_max,
                                                Diagnostics& diagnostics) {
  CHECK(plan.kind != PlanKind::kLive);
  // Arrays are sorted by part, then by component, then by group.
  const auto key_of = [&](const StoreArray& array) {
    // The order of StoreGeometry::arrays.
    return std::tie(array.part, layout.cache_schema.groups[array.group].components[array.component].name);
  };
  const auto find_array = [&](uint32_t part, const ComponentName& name, uint64_t layer) -> const StoreArray& {
    auto array = std::lower_bound(geometry.arrays.begin(), geometry.arrays.end(), std::tie(part, name),
                                  [&](const StoreArray& a, const auto& wanted) { return key_of(a) < wanted; });
    // A part may have the component in several groups, whose arrays follow each other; the layer tells which. The CHECK
    // after it makes sure that the walk did not leave them.
    while (array != geometry.arrays.end() && !array->layers.contains(layer)) ++array;
    CHECK(array != geometry.arrays.end() && key_of(*array) == std::tie(part, name));
    return *array;
  };
  if (!has_few_layers(plan, row_count_max, diagnostics)) return std::nullopt;
  std::vector<StoreRow> rows;
  for (const Edge& edge : plan.edges) {
    const ComponentName& name = plan.tensors[edge.tensor].component.name;
    const PlanEnd& part_end = plan.kind == PlanKind::kUpload ? plan.targets[edge.target] : plan.sources[edge.source];
    const PlanEnd& runtime = plan.kind == PlanKind::kUpload ? plan.sources[edge.source] : plan.targets[edge.target];
    const StorePart* part = find_sorted(layout.parts, &StorePart::key, ObjectKey(part_end.text()));
    CHECK(part != nullptr);
    const uint32_t part_index = static_cast<uint32_t>(part - layout.parts.data());
    const bool fits = for_each_layer(plan.layer_sets[edge.layer_set], [&](uint64_t layer) {
      if (rows.size() == row_count_max) return refuse(row_count_max, diagnostics);
      const StoreArray& array = find_array(part_index, name, layer);
      rows.push_back(StoreRow{runtime.text(), layer, name.text(), edge.heads, part_index,
                              array.offset_bytes + array.layers.count_below(layer) * array.strides.layer +
                                  part->heads.count_below(edge.heads.begin()) * array.strides.head,
                              array.strides.row, array.strides.head});
      return true;
    });
    if (!fits) return std::nullopt;
  }
  std::sort(rows.begin(), rows.end());
  // Several edges of one writer may differ in their tokens only, which rows of a layout do not tell.
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::optional<std::vector<ByteRow>> byte_rows(const TransferPlan& plan, const LoweredPlan& lowered,
                                              uint64_t row_count_max, Diagnostics& diagnostics) {
  // Counted before anything is made; the count of ranges is exact, unless it saturates, and then it is refused.
  if (lowered.counts().ranges > row_count_max) {
    refuse(row_count_max, diagnostics);
    return std::nullopt;
  }
  std::vector<ByteRow> rows;
  rows.reserve(lowered.counts().ranges);
  for (const LoweredPair& pair : lowered.pairs())
    lowered.for_each_step(pair, [&](const CopyStep& step) {
      ByteRanges pieces(step);
      for (ByteCopy piece; pieces.next(piece);)
        rows.push_back(ByteRow{plan.sources[pair.source].text(), plan.targets[pair.target].text(),
                               lowered.source_regions()[step.source_region].id.text(), piece.source_offset,
                               lowered.target_regions()[step.target_region].id.text(), piece.target_offset,
                               piece.bytes});
    });
  merge_neighbours(rows);
  return rows;
}

}  // namespace crossdock
