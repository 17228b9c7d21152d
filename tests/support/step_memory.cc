#include "tests/support/step_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace crossdock::testing {

StepBytes naive_copy(const CopyStep& step, const StepBytes& source, StepBytes target) {
  return naive_copy(step, source, std::move(target), [](uint64_t, uint64_t) { return true; });
}

uint64_t at_end(StepEnd end, uint64_t from, uint64_t to) { return end == StepEnd::kSource ? from : to; }

uint64_t naive_count(const CopyStep& step, StepEnd end, Range within) {
  uint64_t count = 0;
  naive_bytes(step, [&](uint64_t from, uint64_t to) {
    if (within.contains(at_end(end, from, to))) ++count;
  });
  return count;
}

Wide naive_end(const CopyStep& step, StepEnd end) {
  Wide last = at_end(end, step.source_offset, step.target_offset);
  for (const CopyAxis& axis : step.axes())
    last += static_cast<Wide>(axis.extent - 1) * at_end(end, axis.source_stride_bytes, axis.target_stride_bytes);
  return last + step.bytes;
}

StepBytes make_bytes(uint64_t count, uint64_t seed) {
  StepBytes bytes(count);
  for (uint64_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(((i + 1) * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03) >> 56);
  return bytes;
}

uint64_t end_of(const CopyStep& step, StepEnd end) { return static_cast<uint64_t>(naive_end(step, end)); }

StepBytes copied_step(const CopyStep& step, const StepBytes& source, StepBytes target, CopyStores stores) {
  copy_step(step, source, target, stores);
  return target;
}

WindowResult copy_window(const CopyStep& step, StepEnd end, Range within, const StepBytes& source, StepBytes target) {
  const StepBytes& whole = end == StepEnd::kSource ? source : target;
  StepBytes window(whole.begin() + static_cast<ptrdiff_t>(within.begin()),
                   whole.begin() + static_cast<ptrdiff_t>(within.end()));
  if (end == StepEnd::kSource) {
    const uint64_t count = copy_step_within(step, end, within, window, target);
    return {count, std::move(target)};
  }
  const uint64_t count = copy_step_within(step, end, within, source, window);
  std::copy(window.begin(), window.end(), target.begin() + static_cast<ptrdiff_t>(within.begin()));
  return {count, std::move(target)};
}

std::optional<std::string> window_mistake(const CopyStep& step, const StepMemory& world, StepEnd end, Range within) {
  const uint64_t count = naive_count(step, end, within);
  const WindowResult result = copy_window(step, end, within, world.source, world.target);
  const StepBytes expected = naive_copy(step, world.source, world.target, [&](uint64_t from, uint64_t to) {
    return within.contains(at_end(end, from, to));
  });
  const bool is_touched = touches(step, end, within);
  if (result.count == count && result.target == expected && is_touched == (count > 0)) return std::nullopt;
  return fmt::format("{} [{}, {}): {} bytes, expected {}; touches: {}", end == StepEnd::kSource ? "source" : "target",
                     within.begin(), within.end(), result.count, count, is_touched);
}

}  // namespace crossdock::testing
