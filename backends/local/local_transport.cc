#include "backends/local/local_transport.h"

#include <fmt/format.h>

#include <vector>

#include "backends/local/pool_post.h"
#include "backends/memory/step_checksum.h"
#include "backends/memory/strided_copy.h"

namespace crossdock {
namespace {

using Accesses = std::vector<MemoryRegistry::Access>;

Status check_fits(const CopyStep& step, const CopyWork& work, uint64_t source_bytes, uint64_t target_bytes,
                  Range granted) {
  if (fits(step, source_bytes, granted.end())) {
    if (step.target_offset >= granted.begin()) return Status();
    return Status(Code::kInvalidArgument,
                  fmt::format("a step to byte {} of region {} begins before byte {}, where the grant does",
                              step.target_offset, work.target_regions[step.target_region].to_text(), granted.begin()));
  }
  return Status(
      Code::kInvalidArgument,
      fmt::format("a step of {} bytes from byte {} of region {} ({} bytes) to byte {} of region {} ({} bytes) "
                  "leaves one of them",
                  step.total_bytes(), step.source_offset, work.source_regions[step.source_region].to_text(),
                  source_bytes, step.target_offset, work.target_regions[step.target_region].to_text(), target_bytes));
}

// All grants and bounds are checked before the first byte is written, so a refused copy has changed nothing. The
// accesses live until the last step: a revoke of the grant waits for this copy (R6).
Status copy(const MemoryRegistry& memory, const GrantId& grant, const StepSpan& steps, uint64_t total_bytes,
            const std::function<bool()>& is_cancelled) {
  if (steps.steps().empty()) return Status();  // it may have no work either
  const CopyWork& work = steps.work();
  TRY(const Accesses sources, memory.access_all(work.source_regions));
  // The writer is the instance whose memory is read: all source regions of a work are of one participant.
  TRY(const Accesses targets, memory.write_access_all(work.target_regions, grant, &work.source_regions.front().owner));
  for (const CopyStep& step : steps.steps()) {
    const MemoryRegistry::Access& target = targets[step.target_region];
    TRY_STATUS(
        check_fits(step, work, sources[step.source_region].bytes().size(), target.bytes().size(), target.range()));
  }
  for (const CopyStep& step : steps.steps()) {
    // Between steps only: some have landed and some have not (R3, R5).
    if (is_cancelled()) return Status(Code::kCancelled, "cancelled");
    copy_step(step, sources[step.source_region].bytes(), targets[step.target_region].bytes(),
              choose_stores(step.bytes, total_bytes));
  }
  return Status();
}

Result<StepsChecksum> checksum(const MemoryRegistry& memory, const StepSpan& steps, StepEnd end) {
  if (steps.steps().empty()) return StepsChecksum();  // it may have no work either
  TRY(const Accesses accesses,
      memory.access_all(end == StepEnd::kSource ? steps.work().source_regions : steps.work().target_regions));
  TRY(const uint32_t sum, checksum_steps(steps, end, [&](uint32_t region) -> Result<std::span<const std::byte>> {
        return std::span<const std::byte>(accesses[region].bytes());
      }));
  return StepsChecksum{sum};
}

}  // namespace

// The task holds values and pointers to what outlives it, never `this`: the participant may be gone before a copy that
// it gave up.
Status LocalTransport::post_copy(OpId op, const Grant& grant, const StepSpan& steps) {
  return post_to_pool(pool_, queue_, cancelled_, op,
                      [&memory = memory_, id = grant.id, steps, total = total_bytes_,
                       meter = meter_](const std::function<bool()>& is_cancelled) {
                        if (meter != nullptr) meter->began();
                        const Status status = copy(memory, id, steps, total, is_cancelled);
                        if (meter != nullptr && status.ok()) meter->ended(steps.total_bytes());
                        return completion_of(status);
                      });
}

Status LocalTransport::post_checksum(OpId op, const StepSpan& steps, StepEnd end) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&memory = memory_, steps, end](const std::function<bool()>&) {
    return completion_of(checksum(memory, steps, end));
  });
}

// The grant's name is all that a writer of this process needs, so the opaque part is empty.
Status LocalTransport::post_grant(OpId op, const GrantRequest& request) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&memory = memory_, request](const std::function<bool()>&) {
    const Status status = memory.grant(request);
    return status.ok() ? completion_of(Result<Grant>(Grant{request.id, {}})) : completion_of(status);
  });
}

// On a thread of the pool, because a revoke waits for copies (R1). It ends: only tasks that run
// hold accesses, and none of them waits for this one.
Status LocalTransport::post_revoke(OpId op, const RevokeRequest& request) {
  return post_to_pool(
      pool_, queue_, cancelled_, op,
      [&memory = memory_, id = request.id](const std::function<bool()>&) { return completion_of(memory.revoke(id)); });
}

}  // namespace crossdock
