// What the tests of model/mooncake share. Identities are computed here from nlohmann::json's own canonical text, not by
// the code under test.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/sha256.h"
#include "model/mooncake/mooncake.h"
#include "tests/support/paths.h"

namespace crossdock::mooncake {

using Json = nlohmann::json;

inline std::string golden(const std::string& name) {
  return read_file(source_path("tests/golden/mooncake/") + name + ".json", uint64_t{1} << 20).value();
}

inline std::string canonical(const Json& value) { return value.dump(-1, ' ', true); }
inline std::string digest_of(const Json& value) { return sha256(canonical(value)).hex(); }

// Gives a placement the identities that follow from its content as it stands.
inline Json seal_placement(Json placement) {
  Json topology = placement["topology"];
  topology.erase("topology_id");
  topology["schema"] = "kv-cache-topology";
  const std::string topology_id = "sha256:" + digest_of(topology);
  placement["topology"]["topology_id"] = topology_id;
  for (Json& part : placement["parts"]) part["topology_id"] = topology_id;
  Json content = placement;
  content.erase("placement_id");
  content.erase("placement_digest");
  content["schema"] = "complete-kv-cache-placement";
  placement["placement_id"] = content["placement_id"] = "sha256:" + digest_of(content);
  placement["placement_digest"] = digest_of(content);
  return placement;
}

inline Json seal_snapshot(Json snapshot) {
  Json content = snapshot;
  content.erase("snapshot_id");
  content.erase("snapshot_digest");
  content["schema"] = "kv-cache-snapshot";
  snapshot["snapshot_id"] = content["snapshot_id"] = "sha256:" + digest_of(content);
  snapshot["snapshot_digest"] = digest_of(content);
  return snapshot;
}

inline Json seal_binding(const Json& content) {
  Json digested = content;
  digested["schema"] = "kv-cache-resolved-binding";
  return {{"binding", content}, {"digest", digest_of(digested)}, {"schema", "kv-cache-resolved-binding"}};
}

inline std::string first_diagnostic(const Diagnostics& diagnostics) {
  return diagnostics.empty() ? "" : diagnostics.kept().front().to_line();
}

inline Valid<PlacementManifest> placement_of(const std::string& json) {
  Diagnostics diagnostics;
  auto placement = read_placement(json, JsonLimits{}, diagnostics);
  EXPECT_TRUE(placement.has_value()) << first_diagnostic(diagnostics);
  return std::move(placement).value();
}

inline Valid<SnapshotDescriptor> snapshot_of(const std::string& json, const Valid<PlacementManifest>& placement) {
  Diagnostics diagnostics;
  auto snapshot = read_snapshot(json, placement, JsonLimits{}, diagnostics);
  EXPECT_TRUE(snapshot.has_value()) << first_diagnostic(diagnostics);
  return std::move(snapshot).value();
}

inline Valid<RuntimeBinding> binding_of(const std::string& json, const Valid<PlacementManifest>& placement,
                                        const Valid<SnapshotDescriptor>& snapshot) {
  Diagnostics diagnostics;
  auto binding = read_binding(json, placement, snapshot, JsonLimits{}, diagnostics);
  EXPECT_TRUE(binding.has_value()) << first_diagnostic(diagnostics);
  return std::move(binding).value();
}

}  // namespace crossdock::mooncake
