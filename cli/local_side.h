// One side of an operation in this process's memory: placement, bindings as serving engines lay them out, and bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/local/local_runtime.h"
#include "backends/memory/guards.h"
#include "backends/memory/region_memory.h"
#include "executor/ports.h"
#include "model/engine.h"
#include "model/kv/cache_schema.h"
#include "model/kv/parallel_spec.h"
#include "model/kv/placement.h"
#include "model/kv/pool_binding.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"

namespace crossdock::cli {

struct LocalSide {
  std::shared_ptr<const Valid<PlacementManifest>> placement;
  std::vector<BindingPointer> bindings;  // one for each participant that is bound
  RegionMemory memory;
};

struct LocalSideRequest {
  std::shared_ptr<const Valid<PlacementManifest>> placement;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
  PoolRequest pool;                         // instance_prefix: filled in
  std::vector<ParticipantId> participants;  // empty: all
  uint64_t memory_bytes_max = 0;
};

// Of a page in memory, where neither an option nor a placement says it.
inline constexpr uint64_t kUsualPageTokens = 16;

// Page size and axis order as options give them (0 and empty: not given), else as the placement states them, else
// kUsualPageTokens and nhd. Prints an error and returns false when the placement states another order than
// `order_option`.
bool set_paging(const PlacementManifest& placement, uint64_t page_tokens, const std::string& order_option,
                const std::string& order, PoolRequest& request);

// Prints an error and returns nothing on failure; `exit_code` is then kBadInput, or kFailed when memory is short.
std::optional<LocalSide> make_local_side(const LocalSideRequest& request, int& exit_code);

// The placement of a spec like "tp8". Prints an error and returns null on failure.
std::shared_ptr<const Valid<PlacementManifest>> place(const Valid<CacheSchema>& schema, uint64_t layer_count,
                                                      Engine engine, const ParallelSpec& spec, const std::string& name);

// A snapshot of the placement's resource with synthetic names, for synthetic content.
std::shared_ptr<const Valid<SnapshotDescriptor>> synthetic_snapshot(const PlacementManifest& placement,
                                                                    const Sha256Digest& schema_digest, Range tokens,
                                                                    uint64_t seed);

// Writes synthetic content (backends/memory/synthetic.h) with several threads. Returns the bytes written.
uint64_t fill(LocalSide& side, uint64_t seed, size_t thread_count, const std::string& label, bool quiet);

// Guards around what the bindings of the side hold.
SparseGuards guard(const LocalSide& side);

// Result of a check of every byte. `wrong` is empty when each item of each binding is correct and no other byte
// changed.
struct ContentCheck {
  uint64_t bytes = 0;
  std::string wrong;
};
// `guards`: of side.memory, made before the bytes were moved; null: those of fill_guards() are all over it.
ContentCheck check_content(const LocalSide& side, const std::vector<BindingPointer>& bindings, uint64_t seed,
                           size_t thread_count, const std::string& label, bool quiet,
                           const SparseGuards* guards = nullptr);

// "A" (for both sides) or "A:B". Empty when the text is neither, or a number is 0.
std::optional<std::pair<uint64_t, uint64_t>> number_pair(const std::string& text);
// "nhd", "hnd", "nhd:hnd", ...
std::optional<std::pair<AxisOrder, AxisOrder>> order_pair(const std::string& text);

}  // namespace crossdock::cli
