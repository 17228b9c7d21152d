// Partition: a placement from a cache schema and parallel sizes, as serving engines split a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"
#include "model/engine.h"
#include "model/kv/cache_schema.h"
#include "model/kv/placement.h"
#include "model/valid.h"

namespace crossdock {

struct PartitionRequest {
  std::string name;
  ResourceId resource;
  RevisionId revision;
  Engine engine = Engine::kVllm;  // whose rule shares out layers that the number of stages does not divide
  uint64_t dp = 1;
  uint64_t pp = 1;
  uint64_t tp = 1;
  uint64_t cp = 1;
  uint64_t cp_block_tokens = 1;  // tokens are dealt to the context-parallel ranks in blocks of this size
  uint64_t layer_count = 0;      // that the pipeline splits; layers of the schema above it are on the last stage
  std::vector<uint64_t> layers_per_stage;  // instead of the engine's rule
  // Instead of equal shares: lists of tp numbers, one after another, each for the components whose head count is its
  // sum.
  std::vector<uint64_t> heads_per_rank;
  std::optional<Paging> paging;
};

inline constexpr uint64_t kParticipantsMax = uint64_t{1} << 17;

// Both engines share out heads alike: contiguous equal runs when tp divides the head count; when the head count divides
// tp, tp / head_count neighbouring ranks are replicas of one head; otherwise a diagnostic that names heads_per_rank.
// A component with one head (MLA) is so replicated on every rank. Participants are called "d0-p1-t3-c0", without the d
// and c of an axis of size 1.
std::optional<Valid<PlacementManifest>> partition(const Valid<CacheSchema>& schema, const PartitionRequest& request,
                                                  Diagnostics& diagnostics);

// The layers of each stage by the engine's rule: those that do not divide go, one each, to the stages before the last
// from the back (vLLM, vllm/distributed/utils.py, get_pp_indices) or to the last stages (SGLang's function of that
// name). Requires 1 <= stage_count.
std::vector<uint64_t> split_layers(Engine engine, uint64_t layer_count, uint64_t stage_count);

}  // namespace crossdock
