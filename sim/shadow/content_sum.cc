#include "sim/shadow/content_sum.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/shadow/step_decoder.h"

namespace crossdock::shadow {
namespace {

// A hash of a sequence of bytes of known content: what it is does not depend on how the sequence was cut.
class ContentHash {
 public:
  void add(ContentTag content, uint64_t bytes) {
    if (content != content_) flush();
    content_ = content;
    bytes_ += bytes;
  }
  uint32_t finish() {
    flush();
    return static_cast<uint32_t>(state_ ^ (state_ >> 32));
  }

 private:
  void flush() {
    if (bytes_ == 0) return;
    for (const uint64_t word : {content_, bytes_}) {
      state_ ^= word;
      state_ = splitmix64(state_);
    }
    bytes_ = 0;
  }

  uint64_t state_ = 0x6372'6f73'7364'6f63;
  ContentTag content_ = 0;
  uint64_t bytes_ = 0;
};

// What all of the boxes hold; empty when they hold different contents.
class OneContent {
 public:
  void add(ContentTag content) {
    same_ = same_ && (!content_ || *content_ == content);
    content_ = content;
    any_unknown_ = any_unknown_ || content == 0;
  }
  bool any_unknown() const { return any_unknown_; }
  std::optional<ContentTag> content() const { return same_ ? content_ : std::nullopt; }

 private:
  std::optional<ContentTag> content_;
  bool same_ = true;
  bool any_unknown_ = false;
};

// The decoder compares two sides; with the same side twice it finds the cells of one.
// The step with the given end on both sides, so that it can be decoded alone.
CopyStep mirrored(CopyStep step, StepEnd end) {
  if (end == StepEnd::kSource) {
    step.target_region = step.source_region;
    step.target_offset = step.source_offset;
    for (CopyAxis& axis : step.axis_list) axis.target_stride_bytes = axis.source_stride_bytes;
  } else {
    step.source_region = step.target_region;
    step.source_offset = step.target_offset;
    for (CopyAxis& axis : step.axis_list) axis.source_stride_bytes = axis.target_stride_bytes;
  }
  return step;
}

// The part of a step from an index of its outermost axis on, or from a byte on where it has none.
CopyStep part_of(CopyStep step, uint64_t begin, uint64_t size) {
  if (step.axis_count == 0) {
    step.source_offset += begin;
    step.target_offset += begin;
    step.bytes = size;
    return step;
  }
  step.source_offset += begin * step.axis_list[0].source_stride_bytes;
  step.target_offset += begin * step.axis_list[0].target_stride_bytes;
  step.axis_list[0].extent = size;
  if (size > 1) return step;
  std::copy(step.axis_list.begin() + 1, step.axis_list.end(), step.axis_list.begin());
  step.axis_list[--step.axis_count] = CopyAxis{};
  return step;
}

// Adds what one end of steps holds to a hash.
class ContentReader {
 public:
  ContentReader(const std::vector<RegionKey>& regions, const ShadowCells& cells)
      : cells_(cells), decoder_({regions, cells}, {regions, cells}) {}

  // False when some of it is unknown. The step is mirrored.
  bool add(const CopyStep& step) {
    if (!decoder_.decode(step, pieces_).empty()) return false;
    OneContent held;
    for (const Piece& piece : pieces_)
      cells_.cells()[piece.source_view].for_each(
          piece.source, piece.size, [&](uint64_t, const CellBox&, const Held& each) { held.add(each.content); });
    if (held.any_unknown()) return false;
    if (held.content()) {
      hash_.add(*held.content(), step.total_bytes());
      return true;
    }
    const uint64_t size = step.axis_count == 0 ? step.bytes : step.axis_list[0].extent;
    // Halved until each part holds one content. Ends: a part of one byte lies in one cell. Depth is at most the sum of
    // the logarithms of extents and bytes.
    return add(part_of(step, 0, size / 2)) && add(part_of(step, size / 2, size - size / 2));
  }
  uint32_t finish() { return hash_.finish(); }

 private:
  const ShadowCells& cells_;
  StepDecoder decoder_;
  std::vector<Piece> pieces_;
  ContentHash hash_;
};

// Else two ends that are both torn would agree, and a wrong target would pass.
// Unknown content has a sum of its own, another one each time.
uint32_t sum_of_unknown(ShadowCells& cells) {
  uint64_t state = cells.count_unknown();
  const RuntimeBinding& binding = cells.binding();
  for (const std::string& name : {binding.operation.text(), binding.participant.text(), binding.instance.text()})
    for (const char letter : name) {
      state ^= static_cast<uint8_t>(letter);
      state = splitmix64(state);
    }
  return static_cast<uint32_t>(state);
}

}  // namespace

uint32_t content_sum(const StepSpan& steps, StepEnd end, ShadowCells& cells) {
  if (steps.steps().empty()) return ContentHash().finish();
  const CopyWork& work = steps.work();
  ContentReader reader(end == StepEnd::kSource ? work.source_regions : work.target_regions, cells);
  for (const CopyStep& step : steps.steps())
    if (!reader.add(mirrored(step, end))) return sum_of_unknown(cells);
  return reader.finish();
}

}  // namespace crossdock::shadow
