#include "backends/memory/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/checked.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace crossdock {
namespace {

constexpr uint64_t kLineBytes = 64;

// `count` pieces of `bytes`, each its strides after the one before.
struct Rows {
  uint64_t count = 1;
  uint64_t bytes = 0;
  uint64_t source_stride = 0;
  uint64_t target_stride = 0;
};

// ---- Ordinary stores ----

// memcpy of a length that the compiler knows. It pays up to two lines; from 256 bytes on the library's wider registers
// win (0.7 of its rate for strided rows of 512 bytes).
template <size_t kBytes>
void copy_rows_of(const Rows& rows, const std::byte* source, std::byte* target) {
  for (uint64_t i = 0; i < rows.count; ++i)
    std::memcpy(target + i * rows.target_stride, source + i * rows.source_stride, kBytes);
}

void copy_rows_cached(const Rows& rows, const std::byte* source, std::byte* target) {
  if (rows.bytes == kLineBytes) return copy_rows_of<kLineBytes>(rows, source, target);
  if (rows.bytes == 2 * kLineBytes) return copy_rows_of<2 * kLineBytes>(rows, source, target);
  for (uint64_t i = 0; i < rows.count; ++i)
    std::memcpy(target + i * rows.target_stride, source + i * rows.source_stride, rows.bytes);
}

// ---- Stores past the cache ----

#if defined(__x86_64__)

bool can_stream() { return __builtin_cpu_supports("avx2") != 0; }
void order_streamed() { _mm_sfence(); }

// Whole lines, the target at the start of one. Loads of several lines come before their stores, so that they overlap.
template <size_t kLines>
[[gnu::target("avx2")]] inline void stream_block(const std::byte* source, std::byte* target) {
  constexpr size_t kVectors = kLines * kLineBytes / sizeof(__m256i);
  constexpr size_t kAtOnce = std::min<size_t>(kVectors, 8);
  const auto* from = reinterpret_cast<const __m256i_u*>(source);
  auto* to = reinterpret_cast<__m256i*>(target);
  for (size_t done = 0; done < kVectors; done += kAtOnce) {
    __m256i vectors[kAtOnce];
    for (size_t i = 0; i < kAtOnce; ++i) vectors[i] = _mm256_loadu_si256(from + done + i);
    for (size_t i = 0; i < kAtOnce; ++i) _mm256_stream_si256(to + done + i, vectors[i]);
  }
}

// A block of eight lines without a loop is worth a third for rows of 512 bytes.
[[gnu::target("avx2")]] inline void stream_lines(const std::byte* source, std::byte* target, uint64_t line_count) {
  if (line_count == 8) return stream_block<8>(source, target);
  for (; line_count >= 4; line_count -= 4, source += 4 * kLineBytes, target += 4 * kLineBytes)
    stream_block<4>(source, target);
  for (; line_count > 0; --line_count, source += kLineBytes, target += kLineBytes) stream_block<1>(source, target);
}

// Rows that lie alike in the target's lines. Several are read at a time, a block of each, so that the memory is not
// left waiting where one row ends and the next, far away, begins. What does not fill a line is written through the
// cache.
[[gnu::target("avx2")]] inline void stream_group(const Rows& rows, const std::byte* source, std::byte* target) {
  const uint64_t head = std::min(-reinterpret_cast<uintptr_t>(target) % kLineBytes, rows.bytes);
  const uint64_t lines_end = head + (rows.bytes - head) / kLineBytes * kLineBytes;
  if (head > 0) copy_rows_cached({rows.count, head, rows.source_stride, rows.target_stride}, source, target);
  const uint64_t block = rows.bytes < 4096 ? 512 : 256;
  for (uint64_t at = head; at < lines_end; at += block) {
    const uint64_t line_count = std::min(block, lines_end - at) / kLineBytes;
    for (uint64_t i = 0; i < rows.count; ++i)
      stream_lines(source + i * rows.source_stride + at, target + i * rows.target_stride + at, line_count);
  }
  if (lines_end < rows.bytes)
    copy_rows_cached({rows.count, rows.bytes - lines_end, rows.source_stride, rows.target_stride}, source + lines_end,
                     target + lines_end);
}

[[gnu::target("avx2")]] void copy_rows_streaming(const Rows& rows, const std::byte* source, std::byte* target) {
  const uint64_t group_max = rows.target_stride % kLineBytes == 0 ? 8 : 1;
  for (uint64_t i = 0; i < rows.count; i += group_max)
    stream_group({std::min(group_max, rows.count - i), rows.bytes, rows.source_stride, rows.target_stride},
                 source + i * rows.source_stride, target + i * rows.target_stride);
}

#else

bool can_stream() { return false; }
void order_streamed() {}
void copy_rows_streaming(const Rows& rows, const std::byte* source, std::byte* target) {
  copy_rows_cached(rows, source, target);
}

#endif

// Lines that a row has to itself can all be streamed. Where rows share lines, those are written through the cache, and
// below 1 KiB that costs more than the rest gains: 0.57 to 0.95 of memcpy for 128 to 512 bytes, 1.6 for 1 KiB.
bool worth_streaming(const Rows& rows, const std::byte* target) {
  const uint64_t stride = rows.count > 1 ? rows.target_stride : 0;
  const bool has_own_lines = (reinterpret_cast<uintptr_t>(target) | stride | rows.bytes) % kLineBytes == 0;
  return has_own_lines || rows.bytes >= 1024;
}

void copy_rows(const Rows& rows, const std::byte* source, std::byte* target, CopyStores stores) {
  if (stores == CopyStores::kCached || !can_stream()) return copy_rows_cached(rows, source, target);
  // Rows that touch on both sides are one piece, which is read in order.
  const bool is_one = rows.source_stride == rows.bytes && rows.target_stride == rows.bytes;
  const Rows pieces = is_one ? Rows{1, rows.count * rows.bytes, 0, 0} : rows;
  if (worth_streaming(pieces, target)) return copy_rows_streaming(pieces, source, target);
  copy_rows_cached(rows, source, target);
}

// The axes of a step from one on, outermost first. At least one.
using Axes = std::span<const CopyAxis>;

// Recursion of at most CopyStep::kAxisCountMax levels; the innermost axis is a loop over rows.
void copy_axes(Axes axes, uint64_t bytes, const std::byte* source, std::byte* target, CopyStores stores) {
  const CopyAxis& axis = axes.front();
  if (axes.size() == 1)
    return copy_rows({axis.extent, bytes, axis.source_stride_bytes, axis.target_stride_bytes}, source, target, stores);
  for (uint64_t i = 0; i < axis.extent; ++i)
    copy_axes(axes.subspan(1), bytes, source + i * axis.source_stride_bytes, target + i * axis.target_stride_bytes,
              stores);
}

// Overflow: copy_step(), copy_step_within() and touches() check with fits(), in checked arithmetic, that the last byte
// of the step at each end is below 2^64. Every offset, stride times index and reach below is at most that, so the plain
// unsigned arithmetic of this file cannot wrap.

// ---- Parts of a step ----

// The axes of a step in the order of their strides at one end, the longest first, so that what lies inside an axis
// reaches no further than it must. A step without axes has one with a single index.
class EndAxes {
 public:
  EndAxes(const CopyStep& step, StepEnd end)
      : stride_(end == StepEnd::kSource ? &CopyAxis::source_stride_bytes : &CopyAxis::target_stride_bytes) {
    for (const CopyAxis& axis : step.axes()) {  // an insertion sort of six
      size_t k = count_++;
      for (; k > 0 && axis_list_[k - 1].*stride_ < axis.*stride_; --k) axis_list_[k] = axis_list_[k - 1];
      axis_list_[k] = axis;
    }
    if (count_ == 0) axis_list_[count_++] = CopyAxis{1, 0, 0};
    reaches_[count_ - 1] = step.bytes;
    for (size_t k = count_ - 1; k > 0; --k)
      reaches_[k - 1] = reaches_[k] + axis_list_[k].*stride_ * (axis_list_[k].extent - 1);
  }

  bool is_last(size_t k) const { return k + 1 == count_; }
  const CopyAxis& axis(size_t k) const { return axis_list_[k]; }
  uint64_t stride(size_t k) const { return axis_list_[k].*stride_; }

  // The indices of axis k for which something within [begin, begin + reach) of what lies inside it may be in `within`,
  // when index 0 begins at `at`. On the last axis: for which something is.
  Range near(size_t k, uint64_t at, Range within) const {
    const uint64_t end = at + reaches_[k];
    if (at >= within.end()) return Range();
    if (stride(k) == 0) return end > within.begin() ? Range(0, axis(k).extent) : Range();
    const uint64_t first = end > within.begin() ? 0 : (within.begin() - end) / stride(k) + 1;
    const uint64_t last = std::min(axis(k).extent, div_round_up(within.end() - at, stride(k)));
    return Range::make(first, last).value_or(Range());
  }
  // The indices of axis k for which all that lies inside it is in `within`.
  Range whole(size_t k, uint64_t at, Range within) const {
    if (within.end() < reaches_[k] || at > within.end() - reaches_[k]) return Range();
    const uint64_t room = within.end() - reaches_[k] - at;
    const uint64_t before = within.begin() - std::min(at, within.begin());
    if (stride(k) == 0) return before == 0 ? Range(0, axis(k).extent) : Range();
    const uint64_t last = std::min(axis(k).extent, room / stride(k) + 1);
    return Range::make(div_round_up(before, stride(k)), last).value_or(Range());
  }
  size_t count() const { return count_; }

 private:
  uint64_t CopyAxis::*stride_;
  std::array<CopyAxis, CopyStep::kAxisCountMax> axis_list_ = {};
  size_t count_ = 0;
  std::array<uint64_t, CopyStep::kAxisCountMax> reaches_ = {};  // of what lies inside axis k
};

// Copies a step clipped to a window, without a list of its pieces. On each axis the indices fall into three ranges:
// outside of the window (skipped by a division), cut by its edge (descended into), and whole (copied as they are). Only
// those that are cut cost a descent, and at most two on each axis are, where no axis reaches beyond the stride of a
// longer one.
class WindowCopy {
 public:
  WindowCopy(const CopyStep& step, StepEnd end, Range within, std::span<const std::byte> source,
             std::span<std::byte> target, CopyStores stores)
      : end_(end),
        axes_(step, end),
        within_(within),
        bytes_(step.bytes),
        source_(source),
        target_(target),
        stores_(stores) {}

  // What lies inside axis k, with all indices outside of it fixed. Returns the bytes copied.
  uint64_t copy(size_t k, uint64_t source_at, uint64_t target_at) const {
    const CopyAxis& axis = axes_.axis(k);
    const Range near = axes_.near(k, here(source_at, target_at), within_);
    const Range whole = axes_.whole(k, here(source_at, target_at), within_);
    uint64_t copied = 0;
    for (uint64_t i = near.begin(); i < near.end();) {
      const uint64_t from = source_at + i * axis.source_stride_bytes;
      const uint64_t to = target_at + i * axis.target_stride_bytes;
      if (whole.contains(i)) {
        copied += copy_whole(k, whole.end() - i, from, to);
        i = whole.end();
      } else {
        copied += axes_.is_last(k) ? copy_part(from, to) : copy(k + 1, from, to);
        ++i;
      }
    }
    return copied;
  }

 private:
  uint64_t here(uint64_t source_at, uint64_t target_at) const {
    return end_ == StepEnd::kSource ? source_at : target_at;
  }
  const std::byte* source(uint64_t at) const {
    return source_.data() + (end_ == StepEnd::kSource ? at - within_.begin() : at);
  }
  std::byte* target(uint64_t at) const {
    return target_.data() + (end_ == StepEnd::kTarget ? at - within_.begin() : at);
  }

  // `count` indices of axis k with all that lies inside, none of it cut. The window is small and in the cache, the
  // other end is neither: so that one is walked through as it lies.
  uint64_t copy_whole(size_t k, uint64_t count, uint64_t source_at, uint64_t target_at) const {
    const auto other_stride =
        end_ == StepEnd::kSource ? &CopyAxis::target_stride_bytes : &CopyAxis::source_stride_bytes;
    std::array<CopyAxis, CopyStep::kAxisCountMax> sorted;
    size_t sorted_count = 0;
    uint64_t copied = bytes_;
    for (size_t j = k; j < axes_.count(); ++j) {
      CopyAxis axis = axes_.axis(j);
      if (j == k) axis.extent = count;
      copied *= axis.extent;
      size_t place = sorted_count++;
      for (; place > 0 && sorted[place - 1].*other_stride < axis.*other_stride; --place)
        sorted[place] = sorted[place - 1];
      sorted[place] = axis;
    }
    copy_axes(Axes(sorted).first(sorted_count), bytes_, source(source_at), target(target_at), stores_);
    return copied;
  }

  // The part of one piece that is in the window.
  uint64_t copy_part(uint64_t source_at, uint64_t target_at) const {
    const uint64_t begin = here(source_at, target_at);
    const Range part = within_.intersect(Range(begin, begin + bytes_));
    const uint64_t skipped = part.begin() - begin;
    std::memcpy(target(target_at + skipped), source(source_at + skipped), part.size());
    return part.size();
  }

  StepEnd end_;
  EndAxes axes_;
  Range within_;
  uint64_t bytes_;
  std::span<const std::byte> source_;
  std::span<std::byte> target_;
  CopyStores stores_;
};

// near() may name an index whose pieces leave gaps that the window falls into, so all but the last axis are looked
// into.
bool any_within(const EndAxes& axes, size_t k, uint64_t at, Range within) {
  const Range near = axes.near(k, at, within);
  if (axes.is_last(k) || near.empty()) return !near.empty();
  const uint64_t last = axes.stride(k) == 0 ? near.begin() + 1 : near.end();  // without a stride all indices are alike
  for (uint64_t i = near.begin(); i < last; ++i)
    if (any_within(axes, k + 1, at + i * axes.stride(k), within)) return true;
  return false;
}

// An extent of 0 makes the subtraction fail, so such a step fits nowhere.
bool end_fits(const CopyStep& step, uint64_t offset, uint64_t CopyAxis::*stride, uint64_t region_bytes) {
  Checked end = Checked(offset) + step.bytes;
  for (const CopyAxis& axis : step.axes()) end = end + Checked(axis.*stride) * (Checked(axis.extent) - 1);
  return end.value() && *end.value() <= region_bytes;
}

}  // namespace

CopyStores choose_stores(uint64_t piece_bytes, uint64_t total_bytes) {
  return piece_bytes >= kStreamingPieceBytesMin && total_bytes >= kStreamingTotalBytesMin ? CopyStores::kStreaming
                                                                                          : CopyStores::kCached;
}

bool fits(const CopyStep& step, uint64_t source_bytes, uint64_t target_bytes) {
  return end_fits(step, step.source_offset, &CopyAxis::source_stride_bytes, source_bytes) &&
         end_fits(step, step.target_offset, &CopyAxis::target_stride_bytes, target_bytes);
}

void copy_step(const CopyStep& step, std::span<const std::byte> source, std::span<std::byte> target,
               CopyStores stores) {
  CHECK(fits(step, source.size(), target.size()));
  const CopyAxis no_axis = {1, 0, 0};
  copy_axes(step.axis_count > 0 ? step.axes() : Axes(&no_axis, 1), step.bytes, source.data() + step.source_offset,
            target.data() + step.target_offset, stores);
  if (stores == CopyStores::kStreaming) order_streamed();
}

uint64_t copy_step_within(const CopyStep& step, StepEnd end, Range within, std::span<const std::byte> source,
                          std::span<std::byte> target, CopyStores stores) {
  const bool source_clipped = end == StepEnd::kSource;
  CHECK((source_clipped ? source.size() : target.size()) == within.size());
  CHECK(fits(step, source_clipped ? UINT64_MAX : source.size(), source_clipped ? target.size() : UINT64_MAX));
  if (within.empty()) return 0;
  const uint64_t copied =
      WindowCopy(step, end, within, source, target, stores).copy(0, step.source_offset, step.target_offset);
  if (stores == CopyStores::kStreaming) order_streamed();
  return copied;
}

bool touches(const CopyStep& step, StepEnd end, Range within) {
  CHECK(fits(step, UINT64_MAX, UINT64_MAX));
  if (within.empty()) return false;
  return any_within(EndAxes(step, end), 0, end == StepEnd::kSource ? step.source_offset : step.target_offset, within);
}

}  // namespace crossdock
