#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "model/geometry/box_cover.h"
#include "model/kv/schema_rules.h"
#include "model/kv/snapshot_rules.h"
#include "model/kv/store.h"
#include "model/kv/view_rules.h"
#include "model/text.h"
#include "model/wire/documents.h"

// Two documents of a store. A layout is right when its parts own each (layer, component, head) exactly once; tokens do
// not occur in it, because every page has the same parts. A manifest is right when its views cover everything that its
// snapshot holds (I2: a published snapshot is complete).
namespace crossdock {
namespace {

// Of all parts; bounds memory before coverage is compared.
constexpr uint64_t kBoxesMax = uint64_t{1} << 20;

// Coverage of a layout: each (layer, component, head) in exactly one part, boxes of (layer, head) per group and
// component.
class LayoutCoverage {
 public:
  LayoutCoverage(const StoreLayout& layout, Diagnostics& diagnostics)
      : layout_(layout), index_(layout.cache_schema), diagnostics_(diagnostics) {}

  void run() {
    for (const StorePart& part : layout_.parts) check_part(part);
    if (!diagnostics_.empty()) return;
    for (size_t group = 0; group < layout_.cache_schema.groups.size(); ++group)
      for (const Component& component : layout_.cache_schema.groups[group].components)
        if (!check_component(group, component)) return;
  }

 private:
  void check_part(const StorePart& part) {
    const std::string place = fmt::format("part '{}'", part.key.text());
    if (part.layers.empty() || part.components.empty() || part.heads.empty())
      diagnostics_.add(Rule::kOwnershipEmpty, place, "a part needs layers, components and heads");
    for (size_t i = 1; i < part.components.size(); ++i)
      if (part.components[i] == part.components[i - 1])
        diagnostics_.add(Rule::kComponentRepeated, place,
                         fmt::format("component '{}' is listed twice", part.components[i].text()));
    std::optional<Life> first;
    bool alike = true;
    index_.for_each_piece(part.layers, [&](Range layers, size_t group) {
      if (group == LayerIndex::kNoGroup)
        diagnostics_.add(Rule::kLayerUnknown, place,
                         fmt::format("layers {} are not in the cache schema", set_text({layers})));
      else
        for (const ComponentName& name : part.components) {
          check_piece(part, place, layers, group, name);
          alike = alike && check_life(place, layers, group, name, first);
        }
      // Ends the walk; check_component() then reports the limit.
      return box_count_ <= kBoxesMax;
    });
  }

  // The rows of a part that were seen first.
  struct Life {
    LiveTokens live;
    Range layers;
    const ComponentName* component;
  };

  // A page object is whole or it is not stored. One with rows of a window and rows that live for ever would be lost
  // once the window has left its page. False, with a diagnostic, when these rows live otherwise than the first.
  bool check_life(const std::string& place, Range layers, size_t group, const ComponentName& name,
                  std::optional<Life>& first) {
    const LayerGroup& of = layout_.cache_schema.groups[group];
    const Component* component = of.find(name);
    if (component == nullptr || component->is_state()) return true;
    const LiveTokens& live = of.live_of(name);
    if (!first) first = Life{live, layers, &name};
    if (first->live == live) return true;
    diagnostics_.add(
        Rule::kPartLife, place,
        fmt::format("keeps {} of component '{}' of layers {}, and {} of '{}' of layers {}; they need parts "
                    "of their own",
                    first->live.to_text(), first->component->text(), set_text({first->layers}), live.to_text(),
                    name.text(), set_text({layers})));
    return false;
  }

  void check_piece(const StorePart& part, const std::string& place, Range layers, size_t group,
                   const ComponentName& name) {
    const Component* component = layout_.cache_schema.groups[group].find(name);
    if (component == nullptr) {
      diagnostics_.add(Rule::kComponentUnknown, place,
                       fmt::format("layers {} have no component '{}'", set_text({layers}), name.text()));
      return;
    }
    if (part.heads.hull().end() > component->head_count) {
      diagnostics_.add(
          Rule::kHeadBounds, place,
          fmt::format("heads {} end past head count {} (component {}, layers {})", range_text(part.heads.hull()),
                      component->head_count, name.text(), set_text({layers})));
      return;
    }
    Given& given = given_[{group, name}];
    for (const Range heads : part.heads.ranges()) {
      if (++box_count_ > kBoxesMax) return;
      given.boxes.push_back(Box{layers, heads});
      given.part_of.push_back(&part);
    }
  }

  // False when looking further makes no sense.
  // The work limit is shared by all components: what one takes is missing for the others.
  bool check_component(size_t group, const Component& component) {
    std::vector<Box> required;
    for (const Range layers : layout_.cache_schema.groups[group].layers.ranges())
      required.push_back(Box{layers, Range(0, component.head_count)});
    const Given& given = given_[{group, component.name}];
    const BoxCover cover = check_box_cover(required, given.boxes, limits_);
    limits_.work_max -= std::min(limits_.work_max, cover.work);
    for (const BoxCoverDiagnostic& diagnostic : cover.diagnostics) {
      const std::string box = fmt::format("layers {} component {} heads {}", set_text({diagnostic.box.axis(0)}),
                                          component.name.text(), range_text(diagnostic.box.axis(1)));
      if (diagnostic.kind == BoxCoverDiagnostic::Kind::kGap)
        diagnostics_.add(Rule::kCoverageGap, "", fmt::format("{}: in no part", box));
      else
        diagnostics_.add(Rule::kCoverageOverlap,
                         fmt::format("part '{}'", given.part_of[diagnostic.given[1]]->key.text()),
                         fmt::format("{}: also in part '{}'", box, given.part_of[diagnostic.given[0]]->key.text()));
    }
    const bool stopped = box_count_ > kBoxesMax || !cover.complete;
    if (stopped && cover.diagnostics.empty())
      diagnostics_.add(Rule::kWorkLimit, "",
                       fmt::format("coverage takes more than {} boxes or their steps", kBoxesMax));
    return !stopped;
  }

  struct Given {
    std::vector<Box> boxes;
    std::vector<const StorePart*> part_of;  // of each box
  };

  const StoreLayout& layout_;
  const LayerIndex index_;
  Diagnostics& diagnostics_;
  std::map<std::pair<size_t, ComponentName>, Given> given_;  // by layer group and component
  uint64_t box_count_ = 0;
  BoxCoverLimits limits_;
};

void check_object(const StoredObject& object, Diagnostics& diagnostics) {
  const std::string place = fmt::format("object '{}'", object.id.text());
  check_name(object.id.text(), place, "the object's id", diagnostics);
  if (object.chunk_bytes == 0) {
    diagnostics.add(Rule::kFieldMinimum, place, "chunk_bytes 0 is below 1");
    return;
  }
  // Every byte of an object has a checksum, or a flipped one could be read as right.
  const uint64_t chunk_count = div_round_up(object.bytes, object.chunk_bytes);
  if (object.chunk_crc32c.size() != chunk_count)
    diagnostics.add(Rule::kObjectChunks, place,
                    fmt::format("{} bytes in chunks of {} need {} checksums, not {}", object.bytes, object.chunk_bytes,
                                chunk_count, object.chunk_crc32c.size()));
}

// Everything that the schema has: what a complete snapshot holds.
std::vector<Ownership> all_of(const CacheSchema& schema) {
  std::vector<Ownership> everything;
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components)
      everything.push_back(
          Ownership{group.layers, {component.name}, IntervalSet{Range(0, component.head_count)}, AllTokens(), {}});
  return everything;
}

}  // namespace

std::string_view object_order_name(ObjectOrder order) {
  for (const ObjectOrderName& known : kObjectOrders)
    if (known.order == order) return known.name;
  check_failed("a known object order", __FILE__, __LINE__);
}

void canonicalize(StoreLayout& layout) {
  canonicalize(layout.cache_schema);
  for (StorePart& part : layout.parts) std::sort(part.components.begin(), part.components.end());
  std::stable_sort(layout.parts.begin(), layout.parts.end(),
                   [](const StorePart& a, const StorePart& b) { return a.key < b.key; });
}

void validate(const StoreLayout& layout, Diagnostics& diagnostics) {
  diagnostics.set_document(fmt::format("store layout '{}'", layout.name));
  // Own diagnostics: whether later rules run must not depend on those of other documents.
  Diagnostics own(diagnostics.document());
  check_name(layout.name, "", "the layout's name", own);
  if (layout.page_tokens == 0) own.add(Rule::kFieldMinimum, "", "page_tokens 0 is below 1");
  check_cache_schema(layout.cache_schema, "cache schema", own);
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    const std::string place = fmt::format("part '{}'", layout.parts[i].key.text());
    check_name(layout.parts[i].key.text(), place, "the part's key", own);
    if (i > 0 && layout.parts[i].key == layout.parts[i - 1].key)
      own.add(Rule::kObjectKeyRepeated, place, "the key is listed twice");
  }
  for (const LayerGroup& group : layout.cache_schema.groups)
    for (const Component& component : group.components)
      if (component.tokens_per_row && *component.tokens_per_row != 0 &&
          layout.page_tokens % *component.tokens_per_row != 0)
        own.add(Rule::kTokenAlignment, "",
                fmt::format("pages of {} tokens cut a row of {} tokens (component {})", layout.page_tokens,
                            *component.tokens_per_row, component.name.text()));
  // Coverage relies on names, keys and the schema.
  if (own.empty()) LayoutCoverage(layout, own).run();
  diagnostics.take(own);
}

void canonicalize(StoreManifest& manifest) {
  canonicalize(manifest.snapshot);
  canonicalize(manifest.cache_schema);
  std::stable_sort(manifest.objects.begin(), manifest.objects.end(),
                   [](const StoredObject& a, const StoredObject& b) { return a.id < b.id; });
  canonicalize_views(manifest.page_tables, manifest.views);
}

void validate(const StoreManifest& manifest, Diagnostics& diagnostics) {
  diagnostics.set_document(fmt::format("store manifest of '{}'", manifest.snapshot.resource.text()));
  Diagnostics own(diagnostics.document());
  check_snapshot(manifest.snapshot, "snapshot", own);
  check_cache_schema(manifest.cache_schema, "cache schema", own);
  ViewDocument document{manifest.page_tables, manifest.views, {}, manifest.snapshot.tokens};
  for (size_t i = 0; i < manifest.objects.size(); ++i) {
    const StoredObject& object = manifest.objects[i];
    check_object(object, own);
    if (i > 0 && manifest.objects[i - 1].id == object.id)
      own.add(Rule::kObjectKeyRepeated, fmt::format("object '{}'", object.id.text()), "the object is listed twice");
    document.spaces.push_back(ByteSpace{object.id, object.bytes});
  }
  check_views_alone(document, own);
  if (own.empty()) {
    const Sha256Digest schema_digest = digest_of_part(manifest.cache_schema);
    if (schema_digest != manifest.snapshot.cache_schema_digest)
      own.add(Rule::kManifestIdentity, "snapshot",
              fmt::format("cache_schema_digest {} is not that of the manifest's cache schema ({})",
                          manifest.snapshot.cache_schema_digest.hex(), schema_digest.hex()));
    // The same rules as for a binding, with everything required and objects as regions.
    check_views(document, manifest.cache_schema, all_of(manifest.cache_schema), Range::all(), own);
  }
  diagnostics.take(own);
}

ManifestEnvelope envelope_of(const Valid<StoreManifest>& manifest) {
  return ManifestEnvelope{digest_of_part(manifest->snapshot), ObjectDataType::kKvCache, manifest->snapshot.tenant,
                          manifest->objects};
}

}  // namespace crossdock
