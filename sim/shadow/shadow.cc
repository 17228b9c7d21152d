#include "sim/shadow/shadow.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/check.h"
#include "sim/shadow/cells.h"
#include "sim/shadow/content_sum.h"
#include "sim/shadow/shadow_cells.h"
#include "sim/shadow/step_decoder.h"
#include "sim/shadow/stored_view.h"

namespace crossdock {

using shadow::CellBox;
using shadow::Cells;
using shadow::Corner;
using shadow::Held;
using shadow::kAxisCount;
using shadow::kByte;
using shadow::kHead;
using shadow::kLayer;
using shadow::kRow;
using shadow::Piece;
using shadow::ShadowCells;
using shadow::StepDecoder;
using shadow::StoredView;

namespace {

// Calls write(cells of the target, begin, size, content of the source) for all cells of the piece.
template <class Write>
void copy_piece(const Piece& piece, const ShadowCells& source, ShadowCells& target, Write write) {
  const Cells& from = source.cells()[piece.source_view];
  Cells& to = target.cells()[piece.target_view];
  from.for_each(piece.source, piece.size, [&](uint64_t row, const CellBox& box, const Held& held) {
    Corner begin = from.corner(row, box);
    Corner size = {};
    for (size_t axis = 0; axis < kAxisCount; ++axis) {
      begin[axis] += piece.target[axis] - piece.source[axis];
      size[axis] = box.end[axis] - box.begin[axis];
    }
    write(to, begin, size, held.content);
  });
}

}  // namespace

Shadow::Shadow(std::shared_ptr<const Valid<RuntimeBinding>> binding, std::shared_ptr<const Valid<CacheSchema>> schema,
               ContentTag initial)
    : binding_(std::move(binding)),
      cells_(std::make_shared<shadow::ShadowCells>(binding_, std::move(schema), initial)) {}

void Shadow::overwrite_all(ContentTag content) {
  for (Cells& cells : cells_->cells()) cells.set_all(content);
}

std::string Shadow::check(ContentTag content, bool exactly_once) const {
  for (size_t i = 0; i < cells_->views().size(); ++i) {
    const StoredView& view = cells_->views()[i];
    const Cells& cells = cells_->cells()[i];
    std::optional<std::pair<Corner, Held>> first;
    cells.for_each([&](uint64_t row, const CellBox& box, const Held& held) {
      if (held.content == content && (!exactly_once || held.count == 1)) return;
      const Corner at = cells.corner(row, box);
      // The first in order of cells, not of boxes: the message does not depend on how boxes were joined (I7).
      if (!first || at < first->first) first = {at, held};
    });
    if (!first) continue;
    const std::string place = view.text(view.meaning(first->first));
    const Held& held = first->second;
    // The most telling reason first: what was never written also holds the wrong content.
    if (held.count == 0) return fmt::format("{}: was never written", place);
    if (held.content == 0) return fmt::format("{}: holds nothing that anybody knows", place);
    if (held.content != content) return fmt::format("{}: holds content {}, not {}", place, held.content, content);
    return fmt::format("{}: was written {} times", place, held.count);
  }
  return "";
}

uint64_t Shadow::bytes_holding(ContentTag content) const {
  uint64_t bytes = 0;
  for (const Cells& cells : cells_->cells())
    cells.for_each([&](uint64_t, const CellBox& box, const Held& held) {
      if (held.content == content) bytes += box.volume();
    });
  return bytes;
}

uint64_t Shadow::total_bytes() const {
  uint64_t bytes = 0;
  for (const StoredView& view : cells_->views()) {
    const Corner size = view.extents();
    bytes += size[kLayer] * size[kRow] * size[kHead] * size[kByte];
  }
  return bytes;
}

uint32_t Shadow::checksum(const StepSpan& steps, StepEnd end) const { return shadow::content_sum(steps, end, *cells_); }

std::string ShadowCopier::land(const CopyWork& work, size_t begin, size_t end, const Shadow& source, Shadow& target) {
  CHECK(begin <= end && end <= work.steps.size());
  StepDecoder decoder({work.source_regions, *source.cells_}, {work.target_regions, *target.cells_});
  std::vector<Piece> pieces;
  for (size_t i = begin; i < end; ++i) {
    const std::string fault = decoder.decode(work.steps[i], pieces);
    if (!fault.empty()) return fmt::format("step {}: {}", i, fault);
    for (const Piece& piece : pieces)
      copy_piece(piece, *source.cells_, *target.cells_,
                 [](Cells& cells, const Corner& at, const Corner& size, ContentTag content) {
                   cells.change(at, size, [&](const Held& before) { return Held{content, before.count + 1}; });
                 });
  }
  return "";
}

// Which bytes landed is not kept, so every cell of the step is unknown (0) afterwards: a reader must not rely on any of
// them (R3). A repetition of the step makes them known again.
std::string ShadowCopier::tear(const CopyWork& work, size_t step, const Shadow& source, Shadow& target) {
  CHECK(step < work.steps.size());
  StepDecoder decoder({work.source_regions, *source.cells_}, {work.target_regions, *target.cells_});
  std::vector<Piece> pieces;
  const std::string fault = decoder.decode(work.steps[step], pieces);
  if (!fault.empty()) return fmt::format("step {}: {}", step, fault);
  for (const Piece& piece : pieces)
    target.cells_->cells()[piece.target_view].change(piece.target, piece.size, [](const Held& before) {
      return Held{0, before.count + 1};
    });
  return "";
}

}  // namespace crossdock
