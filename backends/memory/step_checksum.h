// CRC-32C of the bytes that steps read or write, as Transport::post_checksum() promises them: the pieces of each step
// in order, step after step, as one sequence. Both ends of a step have the same sum when the copy is right (I1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "executor/copy_work.h"

namespace crossdock {

// All bytes of a region of the work, by its number among the regions of that end.
using BytesOfRegion = std::function<Result<std::span<const std::byte>>(uint32_t region)>;

// 0 without steps. kInvalidArgument when a step leaves its region; else the errors of `bytes_of`, which is called once
// for each step.
Result<uint32_t> checksum_steps(const StepSpan& steps, StepEnd end, const BytesOfRegion& bytes_of);

}  // namespace crossdock
