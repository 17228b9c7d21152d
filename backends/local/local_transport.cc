#include "backends/local/local_transport.h"

#include <fmt/format.h>

#include <vector>

#include "backends/local/pool_post.h"
#include "backends/local/strided_copy.h"
#include "base/crc32c.h"

namespace crossdock {
namespace {

using Accesses = std::vector<MemoryRegistry::Access>;

// Access to each region of the list; none is held when one cannot be had.
Result<Accesses> access_all(const MemoryRegistry& memory, const std::vector<RegionKey>& keys) {
  Accesses accesses;
  for (const RegionKey& key : keys) {
    TRY(MemoryRegistry::Access access, memory.access(key));
    accesses.push_back(std::move(access));
  }
  return accesses;
}

Status check_fits(const CopyStep& step, const CopyWork& work, uint64_t source_bytes, uint64_t target_bytes) {
  if (fits(step, source_bytes, target_bytes)) return Status();
  return Status(
      Code::kInvalidArgument,
      fmt::format("a step of {} bytes from byte {} of region {} ({} bytes) to byte {} of region {} ({} bytes) "
                  "leaves one of them",
                  step.total_bytes(), step.source_offset, work.source_regions[step.source_region].to_text(),
                  source_bytes, step.target_offset, work.target_regions[step.target_region].to_text(), target_bytes));
}

Status copy(const MemoryRegistry& memory, const StepSpan& steps, uint64_t total_bytes,
            const std::function<bool()>& is_cancelled) {
  if (steps.steps().empty()) return Status();  // it may have no work either
  const CopyWork& work = steps.work();
  TRY(const Accesses sources, access_all(memory, work.source_regions));
  TRY(const Accesses targets, access_all(memory, work.target_regions));
  for (const CopyStep& step : steps.steps())
    TRY_STATUS(
        check_fits(step, work, sources[step.source_region].bytes().size(), targets[step.target_region].bytes().size()));
  for (const CopyStep& step : steps.steps()) {
    if (is_cancelled()) return Status(Code::kCancelled, "cancelled");
    copy_step(step, sources[step.source_region].bytes(), targets[step.target_region].bytes(),
              choose_stores(step.bytes, total_bytes));
  }
  return Status();
}

Completion checksum(const MemoryRegistry& memory, const StepSpan& steps, StepEnd end) {
  Completion completion;
  if (steps.steps().empty()) {
    completion.result = StepsChecksum();
    return completion;
  }
  const CopyWork& work = steps.work();
  const bool of_source = end == StepEnd::kSource;
  const std::vector<RegionKey>& keys = of_source ? work.source_regions : work.target_regions;
  Accesses accesses;
  for (const RegionKey& key : keys) {
    Result<MemoryRegistry::Access> access = memory.owner_access(key);
    if (!access.ok()) {
      completion.status = access.status();
      return completion;
    }
    accesses.push_back(std::move(access).value());
  }
  StepsChecksum sum;
  for (const CopyStep& step : steps.steps()) {
    const std::span<const std::byte> bytes = accesses[of_source ? step.source_region : step.target_region].bytes();
    const uint64_t begin = of_source ? step.source_offset : step.target_offset;
    const uint64_t span = of_source ? step.source_span() : step.target_span();
    if (span > bytes.size() || begin > bytes.size() - span) {
      completion.status = Status(Code::kInvalidArgument, fmt::format("a step ends at byte {} of a region of {} bytes",
                                                                     begin + span, bytes.size()));
      return completion;
    }
    ByteRanges pieces(step);
    for (ByteCopy piece; pieces.next(piece);)
      sum.crc32c =
          crc32c(bytes.subspan(of_source ? piece.source_offset : piece.target_offset, piece.bytes), sum.crc32c);
  }
  completion.result = sum;
  return completion;
}

}  // namespace

Status LocalTransport::post_copy(OpId op, const StepSpan& steps) {
  return post_to_pool(
      pool_, queue_, cancelled_, op,
      [&memory = memory_, steps, total = total_bytes_, meter = meter_](const std::function<bool()>& is_cancelled) {
        Completion completion;
        if (meter != nullptr) meter->began();
        completion.status = copy(memory, steps, total, is_cancelled);
        if (meter != nullptr && completion.status.ok()) meter->ended(steps.total_bytes());
        return completion;
      });
}

Status LocalTransport::post_checksum(OpId op, const StepSpan& steps, StepEnd end) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&memory = memory_, steps, end](const std::function<bool()>&) {
    return checksum(memory, steps, end);
  });
}

Status LocalTransport::post_revoke(OpId op, const RegionKey& key) {
  return post_to_pool(pool_, queue_, cancelled_, op, [&memory = memory_, key](const std::function<bool()>&) {
    Completion completion;
    completion.status = memory.revoke(key);
    return completion;
  });
}

}  // namespace crossdock
