#include "planner/kv/plan_side.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/sorted.h"

// Three documents as one list of owners, so that one planner and one verifier serve all three paths. No element is
// copied or expanded: spans refer to the document, and only a store, which states no ownerships, gets some made here.
namespace crossdock {
namespace {

constexpr std::string_view kStoreEnd = "store";

// All layers of each group, a list for each head count among its components.
// A manifest is complete for its snapshot (rules of its views), so its one owner has every element of the schema.
std::vector<Ownership> own_everything(const CacheSchema& schema) {
  std::vector<Ownership> owns;
  for (const LayerGroup& group : schema.groups) {
    for (const Component& component : group.components)
      owns.push_back(Ownership{group.layers, {component.name}, {Range(0, component.head_count)}, AllTokens(), {}});
  }
  return owns;
}

}  // namespace

PlanSide::PlanSide(const Valid<PlacementManifest>& placement, const Sha256Digest& digest)
    : kind_(SideKind::kRuntime),
      digest_(digest),
      cache_schema_(&placement->cache_schema),
      tokens_(placement->tokens),
      resource_(&placement->resource),
      revision_(&placement->revision),
      name_(placement->name) {
  CHECK(placement->parts.size() == placement->topology.participants.size());
  owners_.reserve(placement->parts.size());
  for (size_t i = 0; i < placement->parts.size(); ++i) {  // both lists are sorted by participant
    const Part& part = placement->parts[i];
    const Participant& participant = placement->topology.participants[i];
    CHECK(part.participant == participant.id);
    owners_.push_back(PlanOwner{part.participant.text(), part.owns, participant.rank.dp});
  }
}

PlanSide::PlanSide(const Valid<StoreLayout>& layout, const Sha256Digest& digest)
    : kind_(SideKind::kStoreLayout), digest_(digest), cache_schema_(&layout->cache_schema), name_(layout->name) {
  owners_.reserve(layout->parts.size());
  for (const StorePart& part : layout->parts) {
    // A deque: the spans of earlier owners stay valid when it grows.
    own_ownerships_.push_back({Ownership{part.layers, part.components, part.heads, AllTokens(), {}}});
    owners_.push_back(PlanOwner{part.key.text(), own_ownerships_.back(), 0});
  }
}

PlanSide::PlanSide(const Valid<StoreManifest>& manifest, const Sha256Digest& digest)
    : kind_(SideKind::kStoreManifest),
      digest_(digest),
      cache_schema_(&manifest->cache_schema),
      tokens_(manifest->snapshot.tokens),
      resource_(&manifest->snapshot.resource),
      name_(manifest->snapshot.resource.text()) {
  own_ownerships_.push_back(own_everything(manifest->cache_schema));
  owners_.push_back(PlanOwner{kStoreEnd, own_ownerships_.back(), 0});
}

const PlanOwner* PlanSide::find(std::string_view end) const { return find_sorted(owners_, &PlanOwner::end, end); }

std::string PlanSide::label() const {
  switch (kind_) {
    case SideKind::kRuntime: return fmt::format("placement '{}'", name_);
    case SideKind::kStoreLayout: return fmt::format("store layout '{}'", name_);
    case SideKind::kStoreManifest: return fmt::format("store manifest '{}'", name_);
  }
  CHECK(false);
}

}  // namespace crossdock
