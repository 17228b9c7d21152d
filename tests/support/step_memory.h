// Memory for the two ends of a step, and the copy of a step byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/memory/strided_copy.h"

namespace crossdock::testing {

using StepBytes = std::vector<std::byte>;

// visit(source byte, target byte) for every byte of the step, from axis k on.
template <class Visit>
void naive_bytes(const CopyStep& step, size_t k, uint64_t source_at, uint64_t target_at, const Visit& visit) {
  if (k < step.axis_count) {
    const CopyAxis& axis = step.axis_list[k];
    for (uint64_t i = 0; i < axis.extent; ++i)
      naive_bytes(step, k + 1, source_at + i * axis.source_stride_bytes, target_at + i * axis.target_stride_bytes,
                  visit);
  } else {
    for (uint64_t i = 0; i < step.bytes; ++i) visit(source_at + i, target_at + i);
  }
}

template <class Visit>
void naive_bytes(const CopyStep& step, const Visit& visit) {
  naive_bytes(step, 0, step.source_offset, step.target_offset, visit);
}

// The target after a copy of what `chosen` says; the other bytes keep what they were.
template <class Chosen>
StepBytes naive_copy(const CopyStep& step, const StepBytes& source, StepBytes target, const Chosen& chosen) {
  naive_bytes(step, [&](uint64_t from, uint64_t to) {
    if (chosen(from, to)) target[to] = source[from];
  });
  return target;
}

StepBytes naive_copy(const CopyStep& step, const StepBytes& source, StepBytes target);

uint64_t at_end(StepEnd end, uint64_t from, uint64_t to);

uint64_t naive_count(const CopyStep& step, StepEnd end, Range within);

// One past the last byte at an end, in arithmetic that cannot wrap.
__extension__ using Wide = unsigned __int128;

Wide naive_end(const CopyStep& step, StepEnd end);

// Bytes that differ from their neighbours and from those a row, a page and so on away.
StepBytes make_bytes(uint64_t count, uint64_t seed);

uint64_t end_of(const CopyStep& step, StepEnd end);

// A source that ends with the step, and a target with a guard behind it; what lies before the offsets and between the
// pieces guards too.
struct StepMemory {
  explicit StepMemory(const CopyStep& step)
      : source(make_bytes(end_of(step, StepEnd::kSource), 1)),
        target(make_bytes(end_of(step, StepEnd::kTarget) + 70, 2)) {}
  StepBytes source, target;
};

StepBytes copied_step(const CopyStep& step, const StepBytes& source, StepBytes target, CopyStores stores);

inline constexpr StepEnd kStepEnds[] = {StepEnd::kSource, StepEnd::kTarget};

// Copies within a window that is cut out of the memory of its end, and puts the target together again.
struct WindowResult {
  uint64_t count;
  StepBytes target;
};

WindowResult copy_window(const CopyStep& step, StepEnd end, Range within, const StepBytes& source, StepBytes target);

std::optional<std::string> window_mistake(const CopyStep& step, const StepMemory& world, StepEnd end, Range within);

}  // namespace crossdock::testing
