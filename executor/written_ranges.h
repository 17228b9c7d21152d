// Which bytes of an object some steps write, exactly: what a ledger compares to see that an object is complete.
#pragma once

#include <optional>
#include <vector>

#include "base/range.h"
#include "base/status.h"
#include "executor/copy_work.h"

namespace crossdock {

// Of the target end, sorted, neighbours joined. kInvalidArgument when a byte is written twice, or when there are more
// than kWrittenRangesMax pieces. No step ends past 2^64.
inline constexpr size_t kWrittenRangesMax = size_t{1} << 24;
Result<std::vector<Range>> written_ranges(const StepSpan& steps);

// The first byte that both have; empty when there is none. O(both).
std::optional<uint64_t> first_common_byte(const std::vector<Range>& a, const std::vector<Range>& b);
// All of both, which have no byte in common; and all of `a` without those of `b`, which it has.
std::vector<Range> joined(const std::vector<Range>& a, const std::vector<Range>& b);
std::vector<Range> without(const std::vector<Range>& a, const std::vector<Range>& b);

}  // namespace crossdock
