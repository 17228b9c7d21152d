// What executing steps costs, against a plain loop of memcpy over the same pieces. Each line copies 256 MiB, past any
// cache, into a contiguous target; its name ends in pattern / bytes of a row / threads:
//   contiguous   the rows of the source one after the other
//   stride_2     every second row of the source
//   unaligned    the same, each row of the target beginning in the middle of a cache line
//   pages        pages of 64 such rows at random slots, one step for each
// Memcpy is the loop, Cached and Streaming are copy_step(). The Total lines write the same number of MiB over and over,
// rows of 1 KiB, every second of the source: from where on streaming pays although the target could stay in the cache.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/memory/strided_copy.h"
#include "base/check.h"

namespace crossdock {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kTargetBytes = 256 * kMiB;
constexpr uint64_t kPageRows = 64;

// Anonymous memory, as regions of a process have it; written once, so that all pages are there.
std::span<std::byte> make_memory(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  std::memset(memory, 1, bytes);
  return {static_cast<std::byte*>(memory), bytes};
}
std::span<const std::byte> source_memory() {
  static const std::span<std::byte> memory = make_memory(2 * kTargetBytes);
  return memory;
}
std::span<std::byte> target_memory() {
  static const std::span<std::byte> memory = make_memory(kTargetBytes + kMiB);
  return memory;
}

enum class Pattern { kContiguous, kStride2, kUnaligned, kPages };

// Rows [first, first + count) of the target.
CopyStep rows_step(uint64_t row_bytes, uint64_t source_row, uint64_t source_stride_rows, uint64_t first,
                   uint64_t count) {
  CopyStep step;
  step.source_offset = source_row * row_bytes;
  step.target_offset = first * row_bytes;
  step.bytes = row_bytes;
  step.push_axis({count, source_stride_rows * row_bytes, row_bytes});
  return step;
}

// A target of `bytes`, divided among the threads.
std::vector<CopyStep> make_steps(Pattern pattern, uint64_t row_bytes, uint64_t bytes, uint64_t thread,
                                 uint64_t thread_count) {
  const uint64_t rows = bytes / row_bytes;
  const uint64_t first = rows * thread / thread_count;
  const uint64_t last = rows * (thread + 1) / thread_count;
  if (pattern == Pattern::kContiguous) return {rows_step(row_bytes, first, 1, first, last - first)};
  if (pattern == Pattern::kStride2) return {rows_step(row_bytes, 2 * first, 2, first, last - first)};
  if (pattern == Pattern::kUnaligned) {
    CopyStep step = rows_step(row_bytes, 2 * first, 2, first, last - first);
    step.target_offset += 32;
    return {step};
  }
  std::vector<uint64_t> slots(rows / kPageRows);
  std::iota(slots.begin(), slots.end(), uint64_t{0});
  std::shuffle(slots.begin(), slots.end(), std::mt19937_64(7));
  std::vector<CopyStep> steps;
  for (uint64_t row = first; row < last; row += kPageRows)
    steps.push_back(rows_step(row_bytes, 2 * kPageRows * slots[row / kPageRows], 2, row, kPageRows));
  return steps;
}

// The library's copy, not one that the compiler makes of it for a length it knows.
void copy_by_memcpy(const CopyStep& step, std::span<const std::byte> source, std::span<std::byte> target) {
  const CopyAxis& axis = step.axis_list[0];
  for (uint64_t i = 0; i < axis.extent; ++i)
    std::memcpy(target.data() + step.target_offset + i * axis.target_stride_bytes,
                source.data() + step.source_offset + i * axis.source_stride_bytes, step.bytes);
}

template <class Copy>
void measure(benchmark::State& state, Pattern pattern, uint64_t row_bytes, uint64_t bytes, const Copy& copy) {
  const std::span<const std::byte> source = source_memory();
  const std::span<std::byte> target = target_memory();
  const std::vector<CopyStep> steps = make_steps(pattern, row_bytes, bytes, static_cast<uint64_t>(state.thread_index()),
                                                 static_cast<uint64_t>(state.threads()));
  for (auto _ : state) {
    for (const CopyStep& step : steps) copy(step, source, target);
    benchmark::ClobberMemory();
  }
  uint64_t copied = 0;
  for (const CopyStep& step : steps) copied += step.total_bytes();
  state.SetBytesProcessed(static_cast<int64_t>(copied) * static_cast<int64_t>(state.iterations()));
}

void copy_cached(const CopyStep& step, std::span<const std::byte> source, std::span<std::byte> target) {
  copy_step(step, source, target, CopyStores::kCached);
}
void copy_streaming(const CopyStep& step, std::span<const std::byte> source, std::span<std::byte> target) {
  copy_step(step, source, target, CopyStores::kStreaming);
}

using CopyFunction = void (*)(const CopyStep&, std::span<const std::byte>, std::span<std::byte>);
constexpr std::pair<const char*, CopyFunction> kWays[] = {
    {"Memcpy", copy_by_memcpy}, {"Cached", copy_cached}, {"Streaming", copy_streaming}};
constexpr std::pair<const char*, Pattern> kPatterns[] = {{"contiguous", Pattern::kContiguous},
                                                         {"stride_2", Pattern::kStride2},
                                                         {"unaligned", Pattern::kUnaligned},
                                                         {"pages", Pattern::kPages}};

void register_all() {
  for (const auto& [way, copy] : kWays) {
    const auto add = [&, copy = copy](const std::string& name, Pattern pattern, uint64_t row_bytes, uint64_t bytes) {
      return benchmark::RegisterBenchmark(
                 name.c_str(), [=](benchmark::State& state) { measure(state, pattern, row_bytes, bytes, copy); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    };
    for (const auto& [pattern_name, pattern] : kPatterns)
      for (const uint64_t row_bytes : {64U, 128U, 256U, 512U, 1024U, 4096U, 65536U})
        add(std::string("BM_") + way + "/" + pattern_name + "/" + std::to_string(row_bytes), pattern, row_bytes,
            kTargetBytes)
            ->Threads(1)
            ->Threads(2);
    for (const uint64_t mib : {1U, 4U, 8U, 16U, 32U, 64U, 128U})
      add(std::string("BM_") + way + "Total/" + std::to_string(mib), Pattern::kStride2, 1024, mib * kMiB);
  }
}

}  // namespace
}  // namespace crossdock

int main(int argc, char** argv) {
  crossdock::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
