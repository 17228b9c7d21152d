// What Mooncake's readers and writers share: the text of a document together with the identities in it. The readers
// compare what a document states with what writing it again gives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/range.h"
#include "model/kv/binding.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"
#include "model/wire/decode.h"

namespace crossdock::mooncake {

inline constexpr std::string_view kResourceKind = "kv_cache";
inline constexpr std::string_view kLayout = "nhd";  // the only one that Mooncake takes
inline constexpr std::string_view kEncoding = "plain";
inline constexpr std::string_view kBindingSchema = "kv-cache-resolved-binding";
inline constexpr std::string_view kKey = "key";
inline constexpr std::string_view kValue = "value";

struct PlacementForm {
  std::string topology_id;
  std::string placement_id;
  std::string placement_digest;
  std::string text;
};

struct SnapshotForm {
  std::string snapshot_id;
  std::string snapshot_digest;
  std::string text;
};

struct BindingForm {
  std::string digest;
  std::string text;
};

// Empty, and diagnostics are added, when the document cannot be expressed.
std::optional<PlacementForm> to_form(const Valid<PlacementManifest>& placement, Diagnostics& diagnostics);
std::optional<SnapshotForm> to_form(const Valid<SnapshotDescriptor>& snapshot, Diagnostics& diagnostics);
// `group` is the placement's only layer group.
std::optional<BindingForm> to_form(const Valid<RuntimeBinding>& binding, const LayerGroup& group,
                                   const PlacementForm& placement, const SnapshotForm& snapshot,
                                   Diagnostics& diagnostics);

struct PartHeads {
  Range heads;
  ReplicaOrdinal replica;

  friend bool operator==(const PartHeads&, const PartHeads&) = default;
};

// The heads that a part without layers states. The rule is in mooncake.h.
class LayerlessHeads {
 public:
  // Each ownership of the placement must have heads.
  explicit LayerlessHeads(const PlacementManifest& placement);

  PartHeads at(const ParallelAxes& rank) const;

 private:
  struct Stage {
    uint64_t pp = 0;
    PartHeads heads;
  };
  using TpAndDp = std::pair<uint64_t, uint64_t>;
  std::map<TpAndDp, Stage> first_stages_;
  PartHeads otherwise_;
};

// Reads the root object of a document by read(ObjectReader&, const JsonCursor&). False, and diagnostics are added, when
// the text is refused or `read` adds a diagnostic.
template <class Read>
bool read_object(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics, Read read) {
  const uint64_t diagnostics_before = diagnostics.total();
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, diagnostics);
  if (!tree) return false;
  const JsonPath path;
  const JsonCursor cursor{tree->root(), path, diagnostics};
  ObjectReader reader(cursor);
  read(reader, cursor);
  reader.finish();
  return diagnostics.total() == diagnostics_before;
}

// A required field that must hold this text.
void read_constant(ObjectReader& reader, std::string_view field, std::string_view text, Rule rule);
// [start, start + count), from two required fields; count is at least 1.
Range read_counted(ObjectReader& reader, const JsonCursor& object, std::string_view start_field,
                   std::string_view count_field, uint64_t start_minimum = 0);
// A diagnostic when a stated identity is not the computed one.
void check_identity(std::string_view field, std::string_view stated, std::string_view computed,
                    Diagnostics& diagnostics);

}  // namespace crossdock::mooncake
