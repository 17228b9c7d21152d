// Transfers in shadow and in tags, which have to say the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "executor/kv/kv_transfer.h"
#include "executor/transfer_job.h"
#include "model/kv/pool_binding.h"
#include "sim/shadow/shadow.h"
#include "tests/sim/shadow/naive_memory.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {

using SchemaPointer = std::shared_ptr<const Valid<CacheSchema>>;
using Bindings = std::vector<BindingPointer>;

// What one source copies to one target: their numbers in the world.
struct Pair {
  std::shared_ptr<const CopyWork> work;
  size_t source;
  size_t target;
};

// Both sides in shadow and in tags.
struct World {
  SchemaPointer schema;
  Bindings source_bindings;
  Bindings target_bindings;
  std::vector<Shadow> sources;
  std::vector<Shadow> targets;
  std::vector<NaiveMemory> naive_sources;
  std::vector<NaiveMemory> naive_targets;
  std::vector<Pair> pairs;
  std::set<ContentTag> contents;

  World(const TransferJob& job, SchemaPointer of_schema, const std::vector<ContentTag>& source_contents,
        const StepSplit& split);

  static size_t number_of(const Bindings& bindings, const PlanEnd& end);
  std::vector<NaiveBytes> bytes(const Pair& pair, size_t step);

  // Empty, or what the shadow says of the step; a step that is wrong changes nothing.
  std::string land(const Pair& pair, size_t step);
  std::string tear(const Pair& pair, size_t step);
  void overwrite(size_t source, ContentTag content);
  void overwrite_target(size_t target, ContentTag content);

  // The first disagreement between the targets' shadows and what their tags say; empty when there is none.
  std::string difference() const;
};

// The bytes of some steps at one end, by content.
std::vector<ContentTag> contents_of(const StepSpan& span, StepEnd end, NaiveMemory& source, NaiveMemory& target);

struct Pools {
  PartitionSizes sizes;
  uint64_t page_tokens;
  AxisOrder order = AxisOrder::kNhd;
  bool region_per_layer = false;
};

Valid<CacheSchema> keys_and_values(uint64_t layers, uint64_t heads, uint64_t head_dim);
Bindings pools_of(const Valid<PlacementManifest>& placement, const Valid<SnapshotDescriptor>& snapshot,
                  const Pools& pools, uint64_t seed);
std::shared_ptr<TransferJob> job_between(const Valid<CacheSchema>& schema, uint64_t tokens, const Pools& source,
                                         const Pools& target);

}  // namespace crossdock::testing
