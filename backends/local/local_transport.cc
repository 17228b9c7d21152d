#include "backends/local/local_transport.h"

#include <fmt/format.h>

#include <vector>

#include "backends/local/pool_post.h"
#include "backends/memory/step_checksum.h"
#include "backends/memory/strided_copy.h"

namespace crossdock {
namespace {

using Accesses = std::vector<MemoryRegistry::Access>;

Status check_fits(const CopyStep& step, const CopyWork& work, uint64_t source_bytes, uint64_t target_bytes) {
  if (fits(step, source_bytes, target_bytes)) return Status();
  return Status(
      Code::kInvalidArgument,
      fmt::format("a step of {} bytes from byte {} of region {} ({} bytes) to byte {} of region {} ({} bytes) "
                  "leaves one of them",
                  step.total_bytes(), step.source_offset, work.source_regions[step.source_region].to_text(),
                  source_bytes, step.target_offset, work.target_regions[step.target_region].to_text(), target_bytes));
}

// All grants and bounds are checked before the first byte is written, so a refused copy has changed nothing. The
// accesses live until the last step: a revoke of either end waits for this copy (R6).
Status copy(const MemoryRegistry& memory, const StepSpan& steps, uint64_t total_bytes,
            const std::function<bool()>& is_cancelled) {
  if (steps.steps().empty()) return Status();  // it may have no work either
  const CopyWork& work = steps.work();
  TRY(const Accesses sources, memory.access_all(work.source_regions));
  TRY(const Accesses targets, memory.access_all(work.target_regions));
  for (const CopyStep& step : steps.steps())
    TRY_STATUS(
        check_fits(step, work, sources[step.source_region].bytes().size(), targets[step.target_region].bytes().size()));
  for (const CopyStep& step : steps.steps()) {
    // Between steps only: some have landed and some have not (R3, R5).
    if (is_cancelled()) return Status(Code::kCancelled, "cancelled");
    copy_step(step, sources[step.source_region].bytes(), targets[step.target_region].bytes(),
              choose_stores(step.bytes, total_bytes));
  }
  return Status();
}

// By owner_access: a target compares checksums after its fence, when its keys are revoked already.
Result<StepsChecksum> checksum(const MemoryRegistry& memory, const StepSpan& steps, StepEnd end) {
  if (steps.steps().empty()) return StepsChecksum();  // it may have no work either
  TRY(const Accesses accesses,
      memory.owner_access_all(end == StepEnd::kSource ? steps.work().source_regions : steps.work().target_regions));
  TRY(const uint32_t sum, checksum_steps(steps, end, [&](uint32_t region) -> Result<std::span<const std::byte>> {
        return std::span<const std::byte>(accesses[region].bytes());
      }));
  return StepsChecksum{sum};
}

}  // namespace

// The task holds values and pointers to what outlives it, never `this`: the participant may be gone before a copy that
// it gave up.
Status LocalTransport::post_copy(OpId op, const StepSpan& steps) {
  return post_to_pool(
      pool_, queue_, cancelled_, op,
      [&memory = memory_, steps, total = total_bytes_, meter = meter_](const std::function<bool()>& is_cancelled) {
        if (meter != nullptr) meter->began();
        const Status status = copy(memory, steps, total, is_cancelled);
        if (meter != nullptr && status.ok()) meter->ended(steps.total_bytes());
        return completion_of(status);
      });
}

Status LocalTransport::post_checksum(OpId op, const StepSpan& steps, StepEnd end) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&memory = memory_, steps, end](const std::function<bool()>&) {
    return completion_of(checksum(memory, steps, end));
  });
}

// On a thread of the pool, because a revoke waits for copies (R1). It ends: only tasks that run
// hold accesses, and none of them waits for this one.
Status LocalTransport::post_revoke(OpId op, const RegionKey& key) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&memory = memory_, key](const std::function<bool()>&) {
    return completion_of(memory.revoke(key));
  });
}

}  // namespace crossdock
