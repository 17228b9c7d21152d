// What an upload puts, and what a restore gets: copies between regions and objects of a store, cut into operations.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/store_types.h"
#include "model/erased.h"
#include "planner/copy/copy_plan.h"

namespace crossdock {

// One object that an upload writes, as its manifest will name it.
struct UploadObject {
  RegionId id;
  uint64_t bytes = 0;
};

struct UploadJob {
  std::vector<UploadObject> objects;  // sorted by id
  std::vector<PutStep> puts;          // sorted by object, then by writer: objects are completed one after another
  StepCounts counts;
  Erased plan;    // the proved plan document that the copies were lowered from
  Erased origin;  // the planner's own: what it needs to publish the objects
};

struct RestoreJob {
  std::vector<GetStep> gets;  // without the lease
  // Of the object, for each get; what the window counts.
  std::vector<uint64_t> get_bytes;
  // In bytes of all gets together; read amplification compares it with the chunks that are read.
  uint64_t bytes = 0;  // that the targets need
  uint64_t object_count = 0;
  StepCounts counts;
  Erased plan;
};

struct RestoreLimits {
  uint64_t get_bytes_max = uint64_t{4} << 20;  // of an object that one operation reads, in whole chunks
};

// One put for each object and each source that has bytes of it, in the order of objects, then of writers. The target
// regions of the plan are objects.
std::vector<PutStep> puts_of(const CopyPlan& copies);

// Gets that read each chunk of each object at most once. The source regions of the plan are the objects of `found`, in
// its order of names.
void add_gets(const CopyPlan& copies, const std::vector<FoundObject>& found, const RestoreLimits& limits,
              RestoreJob& job);

}  // namespace crossdock
