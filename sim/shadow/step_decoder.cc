#include "sim/shadow/step_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "sim/shadow/step_block.h"

namespace crossdock::shadow {
namespace {

using Side = StepDecoder::Side;

// Indices of one axis that follow each other on both sides.
struct Run {
  uint64_t source;
  uint64_t target;
  uint64_t size;
};

// Correctness does not rest on the choice of cuts: a block becomes pieces only after every run of indices on both sides
// was found in a view and compared by meaning (append_run). A bad cut costs time. It ends because each cut makes blocks
// with smaller extents, and a block of a single byte is always a piece or an error.

// Takes a step apart into pieces. What is left of it is a list of blocks: bytes along some axes. A block is one piece,
// or a few, when each of its axes moves one axis of the cells by the same distance all along, on both sides; else it is
// cut into blocks for which that is more likely, in the worst case into single bytes.
class Decoder {
 public:
  Decoder(const Side& source, const Side& target)
      : ends_{End{source, "reads", &CopyAxis::source_stride_bytes},
              End{target, "writes", &CopyAxis::target_stride_bytes}} {}

  // The pieces of a step, or what is wrong with it.
  std::string decode(const CopyStep& step, std::vector<Piece>& pieces) {
    pieces.clear();
    blocks_.clear();
    if (!enter_region(kFrom, step.source_region) || !enter_region(kTo, step.target_region)) return fault_;
    StepBlock block;
    block.offset = {step.source_offset, step.target_offset};
    for (const CopyAxis& axis : step.axes()) block.push(axis);
    if (step.bytes > 1) block.push(CopyAxis{step.bytes, 1, 1});
    blocks_.push_back(block);
    while (!blocks_.empty()) {
      block = blocks_.back();
      blocks_.pop_back();
      if (!take(block, pieces)) return fault_;
    }
    return "";
  }

 private:
  enum Which : size_t { kFrom, kTo };

  struct End {
    End(const Side& side, const char* of_verb, uint64_t CopyAxis::*of_stride)
        : keys(side.regions), cells(side.cells), verb(of_verb), stride(of_stride) {}

    const StoredView& view() const { return cells.views()[place.view]; }
    Corner corner() const { return view().corner(place.digits, place.row); }
    Corner meaning() const { return view().meaning(corner()); }
    const std::string& participant() const { return cells.binding().participant.text(); }

    const std::vector<RegionKey>& keys;
    const ShadowCells& cells;
    const char* verb;
    uint64_t CopyAxis::*stride;
    uint32_t number = kNotLookedUp;  // of the step's region in the work
    uint32_t region = 0;             // and in the binding
    BytePlace place;                 // of the block's first byte
  };
  static constexpr uint32_t kNotLookedUp = std::numeric_limits<uint32_t>::max();

  // How one axis of a block moves the digits of one side, and for how many indices.
  struct Motion {
    std::array<int64_t, kDigitCount> digits;
    uint64_t count;
    bool from_begin;  // of the digit that ends it
    Axis axis;        // that it moves; kAxisCount: none, or several
  };

  using Indices = std::array<uint64_t, StepBlock::kAxesMax>;  // of the axes in axes_scratch_

  bool enter_region(size_t which, uint32_t number) {
    End& end = ends_[which];
    if (number >= end.keys.size()) return refuse(fmt::format("{} region {}, which has no name", end.verb, number));
    // Most steps of a work name the same region as the one before.
    if (end.number == number) return true;
    const std::optional<uint32_t> found = end.cells.find_region(end.keys[number]);
    if (!found)
      return refuse(fmt::format("{} region {}, which '{}' does not have", end.verb, end.keys[number].to_text(),
                                end.participant()));
    end.number = number;
    end.region = *found;
    return true;
  }

  bool refuse(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }
  bool refuse_byte(size_t which, uint64_t byte) {
    const End& end = ends_[which];
    return refuse(fmt::format("{} byte {} of region '{}' of '{}', which belongs to no view", end.verb, byte,
                              end.cells.binding().regions[end.region].id.text(), end.participant()));
  }
  bool refuse_move(const StepBlock& block, const Corner& source, const Corner& target) {
    const CopyAxis last = block.axis_count == 0 ? CopyAxis{} : block.axes[block.axis_count - 1];
    const uint64_t bytes = last.source_stride_bytes == 1 && last.target_stride_bytes == 1 ? last.extent : 1;
    const End& from = ends_[kFrom];
    const End& to = ends_[kTo];
    return refuse(fmt::format("writes {} bytes from {} of '{}' to {} of '{}'", bytes, from.view().text(source),
                              from.participant(), to.view().text(target), to.participant()));
  }

  // False with a fault. Appends pieces, or puts blocks in its place.
  bool take(const StepBlock& block, std::vector<Piece>& pieces) {
    for (const size_t which : {kFrom, kTo})
      if (!ends_[which].cells.find(ends_[which].region, block.offset[which], ends_[which].place))
        return refuse_byte(which, block.offset[which]);
    const Corner source = ends_[kFrom].meaning();
    const Corner target = ends_[kTo].meaning();
    if (source != target || !ends_[kFrom].view().is_alike(ends_[kTo].view())) return refuse_move(block, source, target);
    for (size_t axis = 0; axis < block.axis_count; ++axis) {
      for (const size_t which : {kFrom, kTo}) motions_[which][axis] = motion(which, block, axis);
      const Motion& a = motions_[kFrom][axis];
      const Motion& b = motions_[kTo][axis];
      const Motion& shorter = a.count < b.count ? a : b;
      if (shorter.count < block.axes[axis].extent) return cut(block, axis, shorter.count, shorter.from_begin);
      if (a.axis == kAxisCount || a.axis != b.axis) return cut(block, axis, 1, false);
    }
    for (const size_t which : {kFrom, kTo})
      if (const std::optional<size_t> axis = carrying_axis(which, block)) return cut(block, *axis, 1, false);
    return append(block, pieces);
  }

  // One step along the axis is decoded, and the difference of digits is assumed for all following ones, up to the first
  // digit that would leave its range. That holds because the digits are a mixed-radix number in which equal distances
  // add equal digits until one carries.
  Motion motion(size_t which, const StepBlock& block, size_t axis) const {
    const End& end = ends_[which];
    Motion motion{{}, 1, false, kAxisCount};
    BytePlace next;
    if (!end.view().locate(block.offset[which] + block.axes[axis].*end.stride, next.digits, next.row)) return motion;
    motion.count = std::numeric_limits<uint64_t>::max();
    for (size_t digit = 0; digit < kDigitCount; ++digit) {
      const uint64_t at = end.place.digits[digit];
      const int64_t by = static_cast<int64_t>(next.digits[digit] - at);
      if (by == 0) continue;
      motion.digits[digit] = by;
      const Axis moved = kAxisOfDigit[digit];
      motion.axis = motion.count == std::numeric_limits<uint64_t>::max() || motion.axis == moved ? moved : kAxisCount;
      const uint64_t step = static_cast<uint64_t>(by < 0 ? -by : by);
      const uint64_t count = by < 0 ? at / step + 1 : (end.view().extent_of(digit) - 1 - at) / step + 1;
      if (count >= motion.count) continue;
      motion.count = count;
      motion.from_begin = by > 0 && at < step && end.view().extent_of(digit) % step == 0;
    }
    return motion;
  }

  // Puts the first `count` indices of the axis and the rest into the list. When each further `count` of them are
  // likely to be alike (`periodic`), all whole periods stay together, as two axes.
  bool cut(const StepBlock& block, size_t axis, uint64_t count, bool periodic) {
    const CopyAxis& whole = block.axes[axis];
    const uint64_t periods = whole.extent / count;
    const bool fold = periodic && count > 1 && periods > 1 && block.axis_count < StepBlock::kAxesMax;
    const uint64_t first_count = fold ? periods * count : count;
    if (first_count < whole.extent) {
      StepBlock rest = block;
      for (const size_t which : {kFrom, kTo}) rest.offset[which] += first_count * (whole.*ends_[which].stride);
      rest.set_extent(axis, whole.extent - first_count);
      blocks_.push_back(rest);
    }
    StepBlock first = block;
    first.set_extent(axis, count);
    if (fold)
      first.insert(axis, CopyAxis{periods, whole.source_stride_bytes * count, whole.target_stride_bytes * count});
    blocks_.push_back(first);
    return true;
  }

  // An axis that leaves the range of a digit when others have moved it before.
  // motion() looks at each axis alone, from the block's first byte. Two axes that move the same digit can carry
  // together.
  std::optional<size_t> carrying_axis(size_t which, const StepBlock& block) const {
    const End& end = ends_[which];
    for (size_t digit = 0; digit < kDigitCount; ++digit) {
      uint64_t low = end.place.digits[digit];
      uint64_t high = low;
      std::optional<size_t> outermost;
      for (size_t axis = block.axis_count; axis-- > 0;) {
        const int64_t by = motions_[which][axis].digits[digit];
        if (by == 0) continue;
        outermost = axis;
        const uint64_t way = static_cast<uint64_t>(by < 0 ? -by : by) * (block.axes[axis].extent - 1);
        if (by < 0 ? way > low : way > end.view().extent_of(digit) - 1 - high) return outermost;
        if (by < 0)
          low -= way;
        else
          high += way;
      }
    }
    return std::nullopt;
  }

  bool append(const StepBlock& block, std::vector<Piece>& pieces) {
    for (size_t axis = 0; axis < kAxisCount; ++axis)
      if (!find_runs(block, static_cast<Axis>(axis))) return false;
    const Piece like{ends_[kFrom].place.view, ends_[kTo].place.view, {}, {}, {}};
    for (const Run& layers : runs_[kLayer])
      for (const Run& rows : runs_[kRow])
        for (const Run& heads : runs_[kHead])
          for (const Run& bytes : runs_[kByte]) {
            Piece piece = like;
            piece.source = {layers.source, rows.source, heads.source, bytes.source};
            piece.target = {layers.target, rows.target, heads.target, bytes.target};
            piece.size = {layers.size, rows.size, heads.size, bytes.size};
            pieces.push_back(piece);
          }
    return true;
  }

  // The distance by which a block's axis moves an axis of the cells within a page.
  int64_t distance(size_t which, size_t axis) const {
    const Motion& motion = motions_[which][axis];
    switch (motion.axis) {
      case kLayer: return motion.digits[kLayerDigit];
      case kRow: return motion.digits[kRowDigit];
      case kHead: return motion.digits[kHeadDigit];
      default:
        return motion.digits[kDimDigit] * static_cast<int64_t>(ends_[which].view().component().item_bytes) +
               motion.digits[kByteDigit];
    }
  }
  bool moves_slots(size_t axis) const {
    return motions_[kFrom][axis].digits[kSlotDigit] != 0 || motions_[kTo][axis].digits[kSlotDigit] != 0;
  }

  // The indices of one axis of the cells that the block runs through, on both sides; each is compared, or each run of
  // those that mean following numbers. The axes that run through following cells are a run; the others, and those
  // through slots, are gone through index by index.
  bool find_runs(const StepBlock& block, Axis axis) {
    std::vector<size_t>& others = axes_scratch_;
    others.clear();
    for (size_t i = 0; i < block.axis_count; ++i)
      if (motions_[kFrom][i].axis == axis) others.push_back(i);
    uint64_t size = 1;
    for (size_t i = others.size(); i-- > 0;) {  // inner axes come last
      const int64_t wanted = static_cast<int64_t>(size);
      if (moves_slots(others[i]) || distance(kFrom, others[i]) != wanted || distance(kTo, others[i]) != wanted)
        continue;
      size *= block.axes[others[i]].extent;
      others.erase(others.begin() + static_cast<ptrdiff_t>(i));
      i = others.size();  // an outer one may have been passed over
    }
    runs_[axis].clear();
    Indices indices = {};
    do {
      if (!append_run(block, axis, indices, size)) return false;
    } while (advance(block, others, indices));
    return true;
  }

  static bool advance(const StepBlock& block, const std::vector<size_t>& axes, Indices& indices) {
    for (size_t i = axes.size(); i-- > 0;) {
      if (++indices[i] < block.axes[axes[i]].extent) return true;
      indices[i] = 0;
    }
    return false;
  }

  // Where a run begins, as digits; the row is found in its page.
  bool begin_of(size_t which, const StepBlock& block, Axis axis, const Indices& indices, uint64_t size,
                uint64_t& begin) {
    const End& end = ends_[which];
    Digits digits = end.place.digits;
    uint64_t byte = block.offset[which];
    for (size_t i = 0; i < axes_scratch_.size(); ++i) {
      for (size_t digit = 0; digit < kDigitCount; ++digit)
        digits[digit] += indices[i] * static_cast<uint64_t>(motions_[which][axes_scratch_[i]].digits[digit]);
      byte += indices[i] * (block.axes[axes_scratch_[i]].*end.stride);
    }
    const StoredView& view = end.view();
    if (axis != kRow) {
      begin = view.corner(digits, 0)[axis];
      return true;
    }
    begin = view.row_at(digits[kSlotDigit], digits[kRowDigit]);
    if (begin == StoredView::kNoRow) return refuse_byte(which, byte);
    // Counted down to name the first byte that belongs to no row; this is the path of an error.
    // Rows that a view holds of a page follow each other.
    uint64_t held = size;
    while (held > 1 && view.row_at(digits[kSlotDigit], digits[kRowDigit] + held - 1) == StoredView::kNoRow) --held;
    return held == size || refuse_byte(which, byte + held * view.stride_of(kRowDigit));
  }

  bool append_run(const StepBlock& block, Axis axis, const Indices& indices, uint64_t size) {
    Run run{0, 0, size};
    if (!begin_of(kFrom, block, axis, indices, size, run.source) ||
        !begin_of(kTo, block, axis, indices, size, run.target))
      return false;
    const StoredView& from = ends_[kFrom].view();
    const StoredView& to = ends_[kTo].view();
    for (uint64_t i = 0; i < size;) {
      const StoredView::Meaning source = from.meaning(axis, run.source + i);
      const StoredView::Meaning target = to.meaning(axis, run.target + i);
      if (source.value != target.value) {
        Corner source_cell = ends_[kFrom].meaning();
        Corner target_cell = ends_[kTo].meaning();
        source_cell[axis] = source.value;
        target_cell[axis] = target.value;
        return refuse_move(block, source_cell, target_cell);
      }
      // Within both runs the meanings grow by one each, so comparing their first is enough.
      i += std::min(source.run, target.run);
    }
    std::vector<Run>& runs = runs_[axis];
    if (!runs.empty() && runs.back().source + runs.back().size == run.source &&
        runs.back().target + runs.back().size == run.target)
      runs.back().size += run.size;
    else
      runs.push_back(run);
    return true;
  }

  std::array<End, 2> ends_;
  std::vector<StepBlock> blocks_;
  std::array<std::array<Motion, StepBlock::kAxesMax>, 2> motions_;  // of the axes of the block at hand
  std::array<std::vector<Run>, kAxisCount> runs_;
  std::vector<size_t> axes_scratch_;
  std::string fault_;
};

}  // namespace

struct StepDecoder::Inside {
  Inside(const Side& source, const Side& target) : decoder(source, target) {}
  Decoder decoder;
};

StepDecoder::StepDecoder(const Side& source, const Side& target) : inside_(std::make_unique<Inside>(source, target)) {}
StepDecoder::~StepDecoder() = default;

std::string StepDecoder::decode(const CopyStep& step, std::vector<Piece>& pieces) {
  return inside_->decoder.decode(step, pieces);
}

}  // namespace crossdock::shadow
