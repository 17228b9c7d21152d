#include "backends/memory/step_checksum.h"

#include <fmt/format.h>

#include "backends/memory/strided_copy.h"
#include "base/crc32c.h"

namespace crossdock {

// The pieces are enumerated by ByteRanges and not by the code that copies (strided_copy.cc), so that an error there
// does not cancel out (I1).
Result<uint32_t> checksum_steps(const StepSpan& steps, StepEnd end, const BytesOfRegion& bytes_of) {
  const bool of_source = end == StepEnd::kSource;
  uint32_t sum = 0;
  for (const CopyStep& step : steps.steps()) {
    TRY(const std::span<const std::byte> bytes, bytes_of(of_source ? step.source_region : step.target_region));
    // The other end is in another process; the largest size stands for it.
    if (!fits(step, of_source ? bytes.size() : UINT64_MAX, of_source ? UINT64_MAX : bytes.size()))
      return Status(Code::kInvalidArgument,
                    fmt::format("a step of {} bytes from byte {} leaves its region of {} bytes", step.total_bytes(),
                                of_source ? step.source_offset : step.target_offset, bytes.size()));
    ByteRanges pieces(step);
    for (ByteCopy piece; pieces.next(piece);)
      sum = crc32c(bytes.subspan(of_source ? piece.source_offset : piece.target_offset, piece.bytes), sum);
  }
  return sum;
}

}  // namespace crossdock
