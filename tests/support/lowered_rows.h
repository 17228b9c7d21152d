// Rows of one-byte items in stated places, planned and lowered between participants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/kv/binding_rules.h"
#include "planner/copy/gather.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/plan_side.h"
#include "tests/support/builders.h"

namespace crossdock::testing {

// One component, "kv", of items of one byte.
Valid<CacheSchema> bytes_of(uint64_t layer_count, uint64_t head_count, uint64_t head_dim);

// Where the rows of one participant lie.
struct RowMemory {
  std::string participant = "p0-t0";
  Range heads = Range(0, 1);
  ByteStrides strides;
  bool region_per_layer = false;
  std::vector<uint64_t> slots = {};  // of the pages; empty: no pages
  uint64_t page_tokens = 0;
  uint64_t page_stride_bytes = 0;
};

// A region for each layer, or one for all, with its size as in the binding of a real pool: what the strides reach.
Valid<RuntimeBinding> bound_rows(const RowMemory& memory, const std::string& instance,
                                 const Valid<PlacementManifest>& placement, const Valid<SnapshotDescriptor>& snapshot);

// Plans, proves and lowers between one source and any targets that share its heads.
LoweredPlan lower_between(const Valid<CacheSchema>& schema, uint64_t token_count, const RowMemory& source,
                          const std::vector<RowMemory>& targets);

GatherChoice choose_between(const LoweredPlan& lowered, const TransportLimits& limits);

// Rows of `row_bytes` that follow each other on both sides: one contiguous range.
LoweredPlan contiguous(uint64_t row_count, uint64_t row_bytes);

// 3 layers of 4 heads of 8 tokens of 128 bytes, [layer, token, head] to [layer, head, token].
LoweredPlan token_major_to_head_major();

// Pages of 10 rows of 100 bytes in every second slot.
LoweredPlan scattered_pages(uint64_t page_count);

}  // namespace crossdock::testing
