// Plans of random placements, against a planner that looks at each element: who sends what to whom.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <compare>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/store_geometry.h"
#include "tests/support/naive.h"
#include "tests/support/plan_cases.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {
namespace {

// ---- (c) stores

using ObjectMemory = std::map<RegionId, PlanBytes>;

// Where a store layout puts an element: docs/formats/store_layout.md, "Store layout", written out.
class NaiveLayout {
 public:
  explicit NaiveLayout(const StoreLayout& layout) : layout_(layout) {}

  // The object, and the offset of the element's first byte in it.
  std::pair<RegionId, uint64_t> place_of(const PlanElement& element) const {
    for (const StorePart& part : layout_.parts) {
      if (!part.layers.contains(element.layer) || !part.heads.contains(element.head) ||
          std::count(part.components.begin(), part.components.end(), element.component.name) == 0)
        continue;
      std::optional<uint64_t> offset;
      for_each_array(part, element.component.is_state(), [&](const LayerGroup& group, const Component& each, Range at) {
        if (each.name == element.component.name && group.layers.contains(element.layer))
          offset = at.begin() + offset_in_array(part, group, element);
      });
      RC_ASSERT(offset.has_value());
      return {object_of(part, element), *offset};
    }
    RC_FAIL("an element is in no part");
  }

  // The objects that the elements lie in, all bytes zero.
  ObjectMemory objects_for(const std::vector<PlanElement>& elements) const {
    ObjectMemory objects;
    for (const PlanElement& element : elements) {
      const RegionId id = place_of(element).first;
      for (const StorePart& part : layout_.parts)
        if (id.text().substr(0, id.text().rfind('/')) == part.key.text())
          for_each_array(part, element.component.is_state(),
                         [&](const LayerGroup&, const Component&, Range at) { objects[id] = PlanBytes(at.end()); });
    }
    return objects;
  }

 private:
  // Calls visit(group, component, its bytes) for each array in the part's objects of states, or of pages. An array
  // begins at a multiple of its item size.
  template <class Visit>
  void for_each_array(const StorePart& part, bool of_states, Visit visit) const {
    uint64_t end = 0;
    for (const ComponentName& name : part.components)
      for (const LayerGroup& group : layout_.cache_schema.groups) {
        const Component* component = group.find(name);
        if (component == nullptr || component->is_state() != of_states || layer_count(part, group) == 0) continue;
        while (end % component->item_bytes != 0) ++end;
        const Range bytes(end, end + array_bytes(part, group, *component));
        visit(group, *component, bytes);
        end = bytes.end();
      }
  }
  RegionId object_of(const StorePart& part, const PlanElement& element) const {
    if (element.component.is_state()) return RegionId(part.key.text() + "/state");
    return RegionId(fmt::format("{}/{}", part.key.text(), element.token / layout_.page_tokens));
  }
  static uint64_t rank_in(const IntervalSet& set, uint64_t value) {
    uint64_t rank = 0;
    for (uint64_t i = 0; i < value; ++i) rank += set.contains(i);
    return rank;
  }
  static uint64_t layer_count(const StorePart& part, const LayerGroup& group) {
    return rank_in(part.layers.intersect(group.layers), kLayersLooked);
  }
  uint64_t row_count(const Component& component) const {
    return component.is_state() ? 1 : layout_.page_tokens / *component.tokens_per_row;
  }
  uint64_t array_bytes(const StorePart& part, const LayerGroup& group, const Component& component) const {
    return row_count(component) * layer_count(part, group) * part.heads.count() * component.head_dim *
           component.item_bytes;
  }
  uint64_t offset_in_array(const StorePart& part, const LayerGroup& group, const PlanElement& element) const {
    const Component& component = element.component;
    const uint64_t rows = row_count(component);
    const uint64_t row = element.row() % rows;
    const uint64_t layers = layer_count(part, group);
    const uint64_t layer = rank_in(part.layers.intersect(group.layers), element.layer);
    const uint64_t heads = part.heads.count();
    const uint64_t head = rank_in(part.heads, element.head);
    uint64_t cell = (row * layers + layer) * heads + head;
    if (layout_.object_order == ObjectOrder::kLphd) cell = (layer * rows + row) * heads + head;
    if (layout_.object_order == ObjectOrder::kHpld) cell = (head * rows + row) * layers + layer;
    return (cell * component.head_dim + element.dim) * component.item_bytes;
  }

  const StoreLayout& layout_;
};

// All that a snapshot holds.
std::vector<PlanElement> elements_of(const CacheSchema& schema, Range snapshot) {
  std::vector<PlanElement> elements;
  for (const LayerGroup& group : schema.groups)
    for (uint64_t layer = 0; layer < kLayersLooked; ++layer)
      for (const Component& component : group.components)
        for (uint64_t token = 0; token < kTokensLooked && group.layers.contains(layer); ++token)
          for (uint64_t head = 0; head < component.head_count && is_live_token(group, component, snapshot, token);
               ++head)
            for (uint64_t dim = 0; dim < component.head_dim; ++dim)
              elements.push_back(PlanElement{component, layer, head, token, dim});
  return elements;
}

struct StoreCase {
  BoundCase bound;
  Valid<StoreLayout> layout;
  bool of_source;  // the layout was made from the source's placement
};

// Whether no element lies in two different regions of the first replicas of a data-parallel rank.
bool regions_are_disjoint(const PlacementManifest& placement, uint64_t dp) {
  // Cut where rows live differently: a component goes by its rule, a state with the first rule of the layer's rows.
  const auto rule_of = [&](const Ownership& own, uint64_t layer, const ComponentName& name) {
    const LayerGroup& group = *placement.cache_schema.find_group(layer);
    if (!group.find(name)->is_state()) return group.live_of(name);
    std::optional<LiveTokens> first;
    for (const ComponentName& other : own.components)
      if (!group.find(other)->is_state() && (!first || group.live_of(other) < *first)) first = group.live_of(other);
    return first.value_or(LiveTokens::all());
  };
  const auto alike = [&](const Ownership& own, uint64_t layer, const ComponentName& name) {
    std::vector<ComponentName> components;
    for (const ComponentName& other : own.components)
      if (rule_of(own, layer, other) == rule_of(own, layer, name)) components.push_back(other);
    return components;
  };
  std::map<std::tuple<uint64_t, ComponentName, uint64_t>,
           std::set<std::tuple<std::vector<uint64_t>, std::vector<ComponentName>, IntervalSet>>>
      regions;
  for (const Part& part : placement.parts) {
    if (placement.topology.find(part.participant)->rank.dp != dp) continue;
    for (const Ownership& own : part.owns)
      for (uint64_t layer = 0; layer < kLayersLooked; ++layer)
        for (const ComponentName& name : own.components) {
          if (own.replica.ordinal != 0 || !own.layers.contains(layer)) continue;
          const std::vector<ComponentName> components = alike(own, layer, name);
          std::vector<uint64_t> layers;
          for (uint64_t other = 0; other < kLayersLooked; ++other)
            if (own.layers.contains(other) && rule_of(own, other, name) == rule_of(own, layer, name) &&
                alike(own, other, name) == components)
              layers.push_back(other);
          for (uint64_t head = 0; head < own.heads.hull().end(); ++head)
            if (own.heads.contains(head)) regions[{layer, name, head}].emplace(layers, components, own.heads);
        }
  }
  return std::all_of(regions.begin(), regions.end(), [](const auto& entry) { return entry.second.size() == 1; });
}

StoreCase random_store_case(const Draw& draw) {
  BoundCase bound = random_bound_case(draw, BindingStyle::kAny);
  Choices choices(draw, Section::kStore);
  const Valid<CacheSchema>& schema = bound.documents.schema;
  if (choices.chance(1, 2)) {
    const std::optional<uint64_t> dp = random_dp(bound.source, {}, choices);
    const ObjectOrder order = kObjectOrders[choices.below(kObjectOrders.size())].order;
    Diagnostics diagnostics;
    std::optional<Valid<StoreLayout>> layout =
        layout_of(bound.source, dp, order, row_unit(*schema) * choices.between(1, 4), "layout", diagnostics);
    log_diagnostics(diagnostics);
    RC_ASSERT(layout.has_value() == regions_are_disjoint(*bound.source, dp.value_or(0)));
    if (layout) return StoreCase{std::move(bound), std::move(*layout), true};
  }
  Valid<StoreLayout> layout = random_layout(schema, choices);
  return StoreCase{std::move(bound), std::move(layout), false};
}

PlanMemory as_memory(const ObjectMemory& objects) {
  PlanMemory memory;
  for (const auto& [id, bytes] : objects) memory[{InstanceId(), id}] = bytes;
  return memory;
}

// What a store would publish for the objects; the checksums are not looked at here.
Valid<StoreManifest> manifest_of(const SnapshotObjects& objects, const DrawnDocuments& documents) {
  StoreManifest manifest;
  manifest.snapshot = *documents.snapshot;
  manifest.cache_schema = *documents.schema;
  for (const ObjectShape& object : objects.objects)
    manifest.objects.push_back(StoredObject{object.id, object.bytes, 8, std::vector<uint32_t>((object.bytes + 7) / 8)});
  manifest.views = objects.views;
  Diagnostics diagnostics;
  std::optional<Valid<StoreManifest>> valid = Valid<StoreManifest>::make(std::move(manifest), diagnostics);
  log_diagnostics(diagnostics);
  RC_ASSERT(valid.has_value());
  return *valid;
}

// Objects full of a snapshot, and a look at them.
struct Stored {
  SnapshotObjects objects;
  PlanMemory memory;
};

// Plans, lowers and runs an upload, and checks each byte of each object.
Stored upload(const StoreCase& drawn) {
  const BoundCase& bound = drawn.bound;
  const Range tokens = bound.documents.snapshot->tokens;
  const Sha256Digest layout_digest = digest(drawn.layout);
  PlanOptions options = bound.options;
  options.tokens = Range::all();
  options.targets = {};
  options.target_dp = std::nullopt;
  const Valid<TransferPlan> plan = plan_or_fail(side_of(bound.source), PlanSide(drawn.layout, layout_digest), options);
  Diagnostics diagnostics;
  const std::optional<SnapshotObjects> objects = snapshot_objects(drawn.layout, layout_digest, tokens, diagnostics);
  RC_ASSERT(objects.has_value());
  const BindingContext context(bound.source, &bound.documents.snapshot);
  const BoundSide source = bind_or_fail(context, bound.source_bindings);
  const BoundSide target(*objects);
  const LoweredPlan lowered = lower_or_fail(*plan, source, target);

  const NaiveLayout naive(*drawn.layout);
  const std::vector<PlanElement> elements = elements_of(*bound.documents.schema, tokens);
  ObjectMemory expected = naive.objects_for(elements);
  NaiveCopier copier;
  copier.target = as_memory(expected);
  RC_ASSERT(objects->objects.size() == expected.size());
  for (const ObjectShape& object : objects->objects) RC_ASSERT(expected.at(object.id).size() == object.bytes);
  add_regions(bound.source_bindings, copier.source);
  fill_with(copier.source, 1);
  fill_with(copier.target, 2);
  write_elements(bound.source_bindings, bound.source->cache_schema, kEverything, copier.source);
  PlanMemory wanted = copier.target;
  for (auto& [key, bytes] : wanted) std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  PlanMemory expected_memory = copier.target;
  for (const PlanElement& element : elements) {
    const auto [id, offset] = naive.place_of(element);
    write_element(element, offset, expected_memory.at({InstanceId(), id}));
    for (uint64_t i = 0; i < element.component.item_bytes; ++i) wanted.at({InstanceId(), id}).at(offset + i) = 1;
  }
  copier.run(lowered);
  check_target(copier, expected_memory, wanted);
  return Stored{*objects, std::move(copier.target)};
}

// Runs a plan from the stored objects to the target's bindings, and checks each byte there.
void restore(const StoreCase& drawn, const Stored& stored, const PlanSide& side, const BoundSide& source) {
  const BoundCase& bound = drawn.bound;
  PlanOptions options = bound.options;
  options.source_dp = std::nullopt;
  options.nics = {};
  const Valid<TransferPlan> plan = plan_or_fail(side, side_of(bound.target), options);
  const BindingContext context = context_of(bound.target, bound.documents);
  const BoundSide target = bind_or_fail(context, bound.target_bindings);
  const LoweredPlan lowered = lower_or_fail(*plan, source, target);
  NaiveCopier copier;
  copier.source = stored.memory;
  add_regions(bound.target_bindings, copier.target);
  fill_with(copier.target, 3);
  const AskedElements asked{bound.target, options};
  PlanMemory expected = copier.target;
  write_elements(bound.target_bindings, bound.target->cache_schema, asked, expected);
  const PlanMemory wanted = marked(bound.target_bindings, bound.target->cache_schema, asked, expected);
  copier.run(lowered);
  check_target(copier, expected, wanted);
}

RC_GTEST_PROP(Store, WhatWasUploadedThroughAnyLayoutIsRestoredIntoAnyPlacement, (const Draw& draw)) {
  const StoreCase drawn = random_store_case(draw);
  Witness witness;
  add_to(witness, drawn.bound);
  witness.add("layout", drawn.layout);
  witness.add_text("upload", [] {
    return "crossdock plan --upload --source source.json --layout layout.json --snapshot snapshot.json";
  });
  witness.add_text("restore", [] {
    return "crossdock plan --restore --layout layout.json --target target.json --snapshot snapshot.json";
  });
  const Stored stored = upload(drawn);
  RC_CLASSIFY(drawn.of_source, "layout of the source");
  const Sha256Digest layout_digest = digest(drawn.layout);
  restore(drawn, stored, PlanSide(drawn.layout, layout_digest), BoundSide(stored.objects));
  const Valid<StoreManifest> manifest = manifest_of(stored.objects, drawn.bound.documents);
  const Sha256Digest manifest_digest = digest(manifest);
  restore(drawn, stored, PlanSide(manifest, manifest_digest), BoundSide(manifest, manifest_digest));
}

RC_GTEST_PROP(Store, InALayoutOfThePlacementEachWriterPutsWholeObjects, (const Draw& draw)) {
  const DrawnDocuments documents = draw_documents(draw);
  Choices source_choices(draw, Section::kSource);
  Choices choices(draw, Section::kStore);
  const Placement source = random_placement(documents.schema, documents.snapshot->tokens, "source", source_choices);
  Witness witness;
  witness.add("source", source);
  PlanOptions options;
  options.snapshot_tokens = documents.snapshot->tokens;
  options.source_dp = random_dp(source, {}, choices);
  for (const Part& part : source->parts)
    for (const Ownership& own : part.owns) RC_PRE(own.tokens == TokenOwnership(AllTokens()));
  RC_PRE(regions_are_disjoint(*source, options.source_dp.value_or(0)));
  Diagnostics diagnostics;
  const auto layout = layout_of(source, options.source_dp, ObjectOrder::kPlhd, 12, "layout", diagnostics);
  log_diagnostics(diagnostics);
  RC_ASSERT(layout.has_value());
  const Valid<TransferPlan> plan = plan_or_fail(side_of(source), PlanSide(*layout, digest(*layout)), options);
  std::map<uint32_t, std::set<uint32_t>> writers;
  for (const Edge& edge : plan->edges) writers[edge.target].insert(edge.source);
  for (const auto& [part, sources] : writers) RC_ASSERT(sources.size() == 1u);
}

}  // namespace
}  // namespace crossdock::testing
