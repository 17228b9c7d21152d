// Executes steps between memory of this process. A step stays strided: no list of its rows is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/range.h"
#include "planner/copy/steps.h"

namespace crossdock {

enum class CopyStores {
  kCached,     // memcpy
  kStreaming,  // past the cache where whole cache lines are written: for targets that are not read soon
};

// Sizes from which streaming is faster, measured by copy_bench on an EPYC with 1 MiB of L2 a core and 32 MiB of L3:
// ratios to memcpy of the same pieces, lowest and highest median over contiguous, strided and scattered sources, 1 and
// 2 threads.
//   pieces, 256 MiB in all:        64 B 0.96-1.45 (kCached 0.97-1.14), 128 B 1.03-1.55 (0.92-1.14), 256 B 1.07-1.65,
//                                  512 B 1.3-1.75, 1 KiB 1.5-3.2, 4 and 64 KiB 1.3-1.9
//   in all, strided rows of 1 KiB: 4 MiB 0.7-0.9, 8 MiB 1.3-1.9, 16 to 128 MiB 1.8-2.7
constexpr uint64_t kStreamingPieceBytesMin = 128;
constexpr uint64_t kStreamingTotalBytesMin = uint64_t{8} << 20;

// The faster stores for `total_bytes` that are written in pieces of `piece_bytes` and are not read soon. The alignment
// of the pieces to cache lines does not matter here: copy_step() streams no piece for which that is slower.
CopyStores choose_stores(uint64_t piece_bytes, uint64_t total_bytes);

// Whether every byte of the step lies within a source and a target of these sizes. No step that passes 2^64 does.
bool fits(const CopyStep& step, uint64_t source_bytes, uint64_t target_bytes);

// Executes the step. It fits(), and source and target have no byte in common. When the call returns, what it wrote is
// ordered before the caller's later stores, whichever stores were used.
void copy_step(const CopyStep& step, std::span<const std::byte> source, std::span<std::byte> target, CopyStores stores);

// Executes only the pieces, or parts of pieces, that lie within `within` at one end: to gather steps into one chunk of
// an object (kTarget), or to scatter one (kSource). That end's span stands for the bytes of `within`: its first is byte
// within.begin(); the other span is the whole other end. Returns how many bytes were copied.
// Costs as much as there are pieces in `within`, however many lie outside, if at that end no axis reaches beyond the
// stride of a longer one; otherwise it may look once at each index of the longer one too.
uint64_t copy_step_within(const CopyStep& step, StepEnd end, Range within, std::span<const std::byte> source,
                          std::span<std::byte> target, CopyStores stores = CopyStores::kCached);

// Whether any byte of the step lies within `within` at that end. The step fits() ends of 2^64 - 1 bytes.
bool touches(const CopyStep& step, StepEnd end, Range within);

}  // namespace crossdock
