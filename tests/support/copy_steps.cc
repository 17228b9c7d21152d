#include "tests/support/copy_steps.h"

#include <fmt/format.h>

#include <ostream>

namespace crossdock {

void PrintTo(const CopyStep& step, std::ostream* out) {
  *out << fmt::format("{} bytes {}:{} -> {}:{}", step.bytes, step.source_region, step.source_offset, step.target_region,
                      step.target_offset);
  for (const CopyAxis& axis : step.axes())
    *out << fmt::format(" [{} by {} -> {}]", axis.extent, axis.source_stride_bytes, axis.target_stride_bytes);
}

namespace testing {

CopyStep make_step(uint64_t source_offset, uint64_t target_offset, uint64_t bytes, const std::vector<CopyAxis>& axes) {
  CopyStep step;
  step.source_region = 3;
  step.target_region = 5;
  step.source_offset = source_offset;
  step.target_offset = target_offset;
  step.bytes = bytes;
  for (const CopyAxis& axis : axes) step.push_axis(axis);
  return step;
}

}  // namespace testing
}  // namespace crossdock
