#include "planner/copy/steps.h"

#include <algorithm>

// Cutting and batching of steps. For every step s, the union of Bytes(t) over the steps t that it is cut into is
// Bytes(s), and these sets are disjoint: a cut only divides the index range of one axis, or the contiguous bytes (I1).
// Cutting from the outermost axis inwards keeps pieces as large as the limits allow; cutting contiguous bytes first
// would turn one strided operation into many plain ones.
namespace crossdock {
namespace {

// Bytes from `offset` to the next multiple of `unit`.
uint64_t bytes_to_boundary(uint64_t offset, uint64_t unit) { return unit - offset % unit; }

// A span that ends at a boundary does not cross it, hence <=. The products fit: a lowering made sure of range_count()
// and total_bytes() of a whole step, and a part has no more.
bool keeps_to(const CopyStep& step, const StepSplit& split) {
  return step.range_count() <= split.range_count_max && step.total_bytes() <= split.bytes_max &&
         step.source_span() <= bytes_to_boundary(step.source_offset, split.source_registration_bytes) &&
         step.target_span() <= bytes_to_boundary(step.target_offset, split.target_registration_bytes);
}

// Every turn takes at least one byte: bytes_max is at least 1, and so is the distance to the next boundary.
bool append_contiguous(CopyStep step, const StepSplit& split, std::vector<CopyStep>& steps) {
  for (uint64_t left = step.bytes; left > 0; left -= step.bytes) {
    if (steps.size() >= split.step_count_max) return false;
    step.bytes =
        std::min({left, split.bytes_max, bytes_to_boundary(step.source_offset, split.source_registration_bytes),
                  bytes_to_boundary(step.target_offset, split.target_registration_bytes)});
    steps.push_back(step);
    step.source_offset += step.bytes;
    step.target_offset += step.bytes;
  }
  return true;
}

// The first `count` indices of the outermost axis, from index `first` on.
// A single index needs no axis; without it recursion ends after at most kAxisCountMax levels.
CopyStep take_indices(const CopyStep& step, uint64_t first, uint64_t count) {
  const CopyAxis& outer = step.axis_list[0];
  CopyStep part = step;
  part.source_offset += first * outer.source_stride_bytes;
  part.target_offset += first * outer.target_stride_bytes;
  if (count > 1) {
    part.axis_list[0].extent = count;
    return part;
  }
  std::copy(step.axis_list.begin() + 1, step.axis_list.end(), part.axis_list.begin());
  part.axis_list.back() = CopyAxis{};
  --part.axis_count;
  return part;
}

// The most indices from `first` on that keep to the split together; 0 when not even one does. By halving, since each
// condition only gets harder with more indices.
uint64_t indices_that_fit(const CopyStep& step, uint64_t first, const StepSplit& split) {
  // Keeps: `fits` indices keep to the split and `fails` do not. The count of indices left, plus one, stands for failing
  // without a test.
  uint64_t fits = 0;
  uint64_t fails = step.axis_list[0].extent - first + 1;
  while (fails - fits > 1) {
    const uint64_t middle = fits + (fails - fits) / 2;
    (keeps_to(take_indices(step, first, middle), split) ? fits : fails) = middle;
  }
  return fits;
}

}  // namespace

bool append_split(const CopyStep& step, const StepSplit& split, std::vector<CopyStep>& steps) {
  CHECK(split.bytes_max > 0 && split.range_count_max > 0 && split.source_registration_bytes > 0 &&
        split.target_registration_bytes > 0);
  if (keeps_to(step, split)) {
    if (steps.size() >= split.step_count_max) return false;
    steps.push_back(step);
    return true;
  }
  // The count of indices differs from turn to turn, because registration boundaries lie at multiples of an offset and
  // not of a stride. So it is searched anew: O(parts * log extent) tests in all.
  if (step.axis_count == 0) return append_contiguous(step, split, steps);
  for (uint64_t first = 0; first < step.axis_list[0].extent;) {
    const uint64_t count = std::max<uint64_t>(indices_that_fit(step, first, split), 1);
    if (!append_split(take_indices(step, first, count), split, steps)) return false;
    first += count;
  }
  return true;
}

std::vector<size_t> batch_ends(std::span<const CopyStep> steps, const BatchLimits& limits) {
  CHECK(limits.step_count_max > 0);
  std::vector<size_t> ends;
  size_t begin = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const uint64_t more = steps[i].total_bytes();
    // batch_steps() cut every step to it. `bytes` is at most bytes_max, so the difference below does not wrap.
    CHECK(more <= limits.bytes_max);
    if (i > begin && (i - begin == limits.step_count_max || more > limits.bytes_max - bytes)) {
      ends.push_back(i);
      begin = i;
      bytes = 0;
    }
    bytes += more;
  }
  if (begin < steps.size()) ends.push_back(steps.size());
  return ends;
}

}  // namespace crossdock
