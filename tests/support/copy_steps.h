// Strided steps of a copy, written in one line.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "planner/copy/steps.h"

namespace crossdock {

void PrintTo(const CopyStep& step, std::ostream* out);

namespace testing {

// From region 3 to region 5; offsets and `bytes` of one piece in bytes.
CopyStep make_step(uint64_t source_offset, uint64_t target_offset, uint64_t bytes, const std::vector<CopyAxis>& axes);

}  // namespace testing
}  // namespace crossdock
