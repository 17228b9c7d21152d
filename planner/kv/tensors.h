// The tensors of a plan: what source and target have in common, proved to be the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/diagnostics.h"
#include "model/kv/schema_rules.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_options.h"
#include "planner/kv/plan_side.h"

namespace crossdock {

// Layers that are in one group on each side.
// Layer sets of different groups are disjoint.
struct CommonGroup {
  IntervalSet layers;
  size_t source_group;
  size_t target_group;
  size_t first_tensor;  // its tensors follow each other, by component name
};

struct CommonTensors {
  std::vector<PlanTensor> tensors;
  std::vector<CommonGroup> groups;  // sorted by layers
};

// Matches the target's schema with the source's, which may have more layers and components. Diagnostics: plan-schema,
// which names the field; token-alignment, where options.tokens cut a row that the snapshot does not.
std::optional<CommonTensors> match_tensors(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                           Diagnostics& diagnostics);

}  // namespace crossdock
