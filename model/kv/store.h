// Store layout and store manifest: how a snapshot lies in objects.
// Wire forms: docs/formats/store_layout.md and docs/formats/store_manifest.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/interval_set.h"
#include "model/diagnostics.h"
#include "model/ids.h"
#include "model/kv/cache_schema.h"
#include "model/kv/snapshot.h"
#include "model/kv/view.h"
#include "model/stored_object.h"
#include "model/valid.h"

namespace crossdock {

// The order of the axes in an object, outermost first: page (or token), layer, head, dim.
enum class ObjectOrder { kPlhd, kLphd, kHpld };

struct ObjectOrderName {
  std::string_view name;
  ObjectOrder order;
};

inline constexpr std::array<ObjectOrderName, 3> kObjectOrders = {
    {{"hpld", ObjectOrder::kHpld}, {"lphd", ObjectOrder::kLphd}, {"plhd", ObjectOrder::kPlhd}}};

// As in the wire form: "hpld", "lphd" or "plhd".
std::string_view object_order_name(ObjectOrder order);

// One object per page (or per snapshot) and part: layers x components x heads.
struct StorePart {
  ObjectKey key;
  IntervalSet layers;
  std::vector<ComponentName> components;  // sorted
  IntervalSet heads;

  friend bool operator==(const StorePart&, const StorePart&) = default;
};

// Independent of every topology: any placement can write it and any can read it.
struct StoreLayout {
  std::string name;
  CacheSchema cache_schema;
  ObjectOrder object_order = ObjectOrder::kPlhd;
  uint64_t page_tokens = 0;
  std::vector<StorePart> parts;  // sorted by key; together each (layer, component, head) exactly once

  friend bool operator==(const StoreLayout&, const StoreLayout&) = default;
};

// A binding whose regions are objects, complete for its snapshot.
// Published by one commit (I2). Every byte of its objects has a checksum (StoredObject).
struct StoreManifest {
  SnapshotDescriptor snapshot;
  CacheSchema cache_schema;
  std::vector<StoredObject> objects;   // sorted by id
  std::vector<PageTable> page_tables;  // sorted by id
  std::vector<View> views;             // sorted

  friend bool operator==(const StoreManifest&, const StoreManifest&) = default;
};

// See model/valid.h.
void canonicalize(StoreLayout& layout);
void validate(const StoreLayout& layout, Diagnostics& diagnostics);
void canonicalize(StoreManifest& manifest);
void validate(const StoreManifest& manifest, Diagnostics& diagnostics);

// What a store sees of a manifest: content id, type, tenant and objects, and nothing of KV cache.
ManifestEnvelope envelope_of(const Valid<StoreManifest>& manifest);

}  // namespace crossdock
