// One side of a plan: who owns what. A runtime's placement, a store layout and a store manifest have the same form for
// the planner.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "base/strong_id.h"
#include "model/kv/placement.h"
#include "model/kv/store.h"
#include "model/valid.h"
#include "planner/copy/plan_end.h"

namespace crossdock {

enum class SideKind { kRuntime, kStoreLayout, kStoreManifest };

// Both refer to the document or to the side.
struct PlanOwner {
  std::string_view end;  // the text of its PlanEnd
  std::span<const Ownership> owns;
  uint64_t dp = 0;  // data-parallel rank; 0 in a store
};

// Refers to the document it was made from, which outlives it. Owners are sorted by `end`.
class PlanSide {
 public:
  // `digest` is the identity of the document; computing it costs more than planning, so a caller that has it gives it.
  PlanSide(const Valid<PlacementManifest>& placement, const Sha256Digest& digest);
  PlanSide(const Valid<StoreLayout>& layout, const Sha256Digest& digest);
  PlanSide(const Valid<StoreManifest>& manifest, const Sha256Digest& digest);
  PlanSide(PlanSide&&) = default;
  PlanSide& operator=(PlanSide&&) = default;
  PlanSide(const PlanSide&) = delete;  // owners() may refer to what a side holds itself
  PlanSide& operator=(const PlanSide&) = delete;

  SideKind kind() const { return kind_; }
  const Sha256Digest& digest() const { return digest_; }
  const CacheSchema& cache_schema() const { return *cache_schema_; }
  Range tokens() const { return tokens_; }  // that ownership is about
  const std::vector<PlanOwner>& owners() const { return owners_; }
  // What a placement or manifest is about; null for a store layout, which fits any.
  const ResourceId* resource() const { return resource_; }
  const RevisionId* revision() const { return revision_; }  // of a placement; else null
  std::string_view name() const { return name_; }           // of the document, for messages

  // Null when there is none. O(log n).
  // By the text of its PlanEnd.
  const PlanOwner* find(std::string_view end) const;
  // "placement 'decode'"
  std::string label() const;

 private:
  SideKind kind_;
  Sha256Digest digest_;
  const CacheSchema* cache_schema_;
  Range tokens_ = Range::all();
  const ResourceId* resource_ = nullptr;
  const RevisionId* revision_ = nullptr;
  std::string_view name_;
  std::deque<std::vector<Ownership>> own_ownerships_;  // where the document states none
  std::vector<PlanOwner> owners_;
};

}  // namespace crossdock
