#include "backends/memory/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "backends/memory/synthetic_stream.h"
#include "base/checked.h"
#include "base/sorted.h"
#include "model/kv/token_ownership.h"

namespace crossdock {
namespace {

constexpr uint64_t kStretchesMax = uint64_t{1} << 20;  // as many as check_binding lets a view have
constexpr uint64_t kShownBytesMax = 16;                // of a wrong item

// Rows that follow each other both in the sequence and in the region.
struct RowRun {
  uint64_t first = 0;  // counted in the sequence
  uint64_t count = 0;
  uint64_t offset_bytes = 0;  // rows(token) of model/kv/view.h
};

// Written anew from the definition of views, without model/kv/view_geometry.h and without the planner: content that is
// checked by the code under test would prove nothing (I1).
std::vector<RowRun> row_runs(const View& view, uint64_t row_tokens, const PageTable* table) {
  const auto selected_below = [&](uint64_t token) { return view.cycle ? view.cycle->count_below(token) : token; };
  const auto selection = view.cycle ? TokenOwnership(*view.cycle) : TokenOwnership(AllTokens());
  const auto stretches = tokens_within(selection, view.tokens, kStretchesMax);
  // check_binding has refused views with more stretches than this.
  CHECK(stretches.has_value());
  const uint64_t page_rows = table != nullptr ? table->page_tokens / row_tokens : 0;
  const uint64_t base = table != nullptr ? table->token_begin : view.tokens.begin() - view.tokens.begin() % row_tokens;
  std::vector<RowRun> runs;
  uint64_t tokens_before = selected_below(view.tokens.begin()) - selected_below(base);
  for (const Range stretch : stretches->ranges()) {
    const uint64_t row_end = div_round_up(stretch.end(), row_tokens);
    uint64_t stored = tokens_before / row_tokens;
    for (uint64_t row = stretch.begin() / row_tokens; row < row_end;) {
      RowRun run{row, row_end - row, stored * view.strides.row};
      if (table != nullptr) {
        const uint64_t in_page = stored % page_rows;
        run.count = std::min(run.count, page_rows - in_page);
        run.offset_bytes =
            table->slots.at(stored / page_rows) * view.pages->page_stride_bytes + in_page * view.strides.row;
      }
      runs.push_back(run);
      row += run.count;
      stored += run.count;
    }
    tokens_before += stretch.size();
  }
  return runs;
}

// One head in one row, as far as a view holds its dims.
struct StoredRow {
  uint64_t start;  // of its stream
  uint64_t layer;
  uint64_t head;
  uint64_t row;
  uint64_t offset_bytes;
};

// The shape that all rows of a view share: `count` pieces of the stream, from byte `begin` on, `stride` bytes apart.
struct RowPieces {
  uint64_t begin;
  uint64_t bytes;
  uint64_t count;
  uint64_t stride;

  uint64_t total_bytes() const { return count * bytes; }
  uint64_t span() const { return (count - 1) * stride + bytes; }
};

class ViewWalk {
 public:
  ViewWalk(const RuntimeBinding& binding, const View& view, const CacheSchema& schema, const RegionMemory& memory)
      : view_(view), component_(component_of(view, schema)) {
    const Region* region = find_sorted(binding.regions, &Region::id, view.region);
    CHECK(region != nullptr);
    key_ = RegionKey::of(binding, *region);
    region_ = memory.find(key_);
    const PageTable* table = view.pages ? find_sorted(binding.page_tables, &PageTable::id, view.pages->table) : nullptr;
    CHECK(table != nullptr || !view.pages);
    runs_ = row_runs(view, row_tokens(), table);
    const uint64_t item = component_.item_bytes;
    const bool is_contiguous = view.strides.dim == item || view.dims.size() == 1;
    pieces_ = is_contiguous ? RowPieces{view.dims.begin() * item, view.dims.size() * item, 1, 0}
                            : RowPieces{view.dims.begin() * item, item, view.dims.size(), view.strides.dim};
  }

  const RowPieces& pieces() const { return pieces_; }
  std::span<std::byte> region() const { return region_; }

  // Calls visit(StoredRow) for each head in each row until it returns false, and returns false then.
  template <class Visit>
  bool each_row(uint64_t seed, Visit visit) const {
    for (uint64_t layer = view_.layers.begin(); layer < view_.layers.end(); ++layer) {
      const uint64_t base = stream_base(seed, view_.component, layer);
      const uint64_t layer_offset = view_.offset_bytes + (layer - view_.layers.begin()) * view_.strides.layer;
      for (const RowRun& run : runs_) {
        const StoredRow first{0, layer, view_.heads.begin(), run.first, layer_offset + run.offset_bytes};
        // Along the shorter stride, so that memory is walked through as it lies.
        const bool done = view_.strides.head <= view_.strides.row
                              ? each_head_and_row<true>(base, first, run.count, visit)
                              : each_head_and_row<false>(base, first, run.count, visit);
        if (!done) return false;
      }
    }
    return true;
  }

  // Heads and runs of rows; the rows of a run lie at one distance, so a run of one head is one piece.
  template <class Visit>
  void each_extent(Visit visit) const {
    for (uint64_t layer = 0; layer < view_.layers.size(); ++layer)
      for (const RowRun& run : runs_)
        for (uint64_t head = 0; head < view_.heads.size(); ++head) {
          const uint64_t offset =
              view_.offset_bytes + layer * view_.strides.layer + run.offset_bytes + head * view_.strides.head;
          const uint64_t bytes = (run.count - 1) * view_.strides.row + pieces_.span();
          CHECK(bytes <= region_.size() && offset <= region_.size() - bytes);
          visit(region_.subspan(offset, bytes));
        }
  }

  // Tells the first item of the row that is wrong, the one at `dim` or one after it.
  std::string describe(const StoredRow& row, uint64_t dim) const {
    const uint64_t item = component_.item_bytes;
    std::vector<std::byte> expected(item);
    for (; dim < view_.dims.end(); ++dim) {
      const uint64_t offset = row.offset_bytes + (dim - view_.dims.begin()) * view_.strides.dim;
      const std::span<const std::byte> actual = region_.subspan(offset, item);
      put_stream(row.start, dim * item, item, expected.data());
      const auto wrong = std::ranges::mismatch(actual, expected).in1;
      if (wrong == actual.end()) continue;
      const uint64_t shown = static_cast<uint64_t>(wrong - actual.begin()) / kShownBytesMax * kShownBytesMax;
      const uint64_t count = std::min(item - shown, kShownBytesMax);
      return fmt::format("region {} byte {}: component {} layer {} head {} token {} dim {}: holds {} instead of {}",
                         key_.to_text(), offset + shown, view_.component.text(), row.layer, row.head,
                         std::max(row.row * row_tokens(), view_.tokens.begin()), dim, hex(actual.subspan(shown, count)),
                         hex(std::span(expected).subspan(shown, count)));
    }
    // holds_stream() found a difference in this row.
    check_failed("an item of the row is wrong", __FILE__, __LINE__);
  }

 private:
  static const Component& component_of(const View& view, const CacheSchema& schema) {
    const LayerGroup* group = schema.find_group(view.layers.begin());
    CHECK(group != nullptr);
    const Component* component = group->find(view.component);
    CHECK(component != nullptr);
    return *component;
  }

  static std::string hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
  }

  uint64_t row_tokens() const { return component_.tokens_per_row.value_or(1); }

  template <bool kHeadsInside, class Visit>
  bool each_head_and_row(uint64_t base, const StoredRow& first, uint64_t row_count, Visit& visit) const {
    const uint64_t outer_count = kHeadsInside ? row_count : view_.heads.size();
    const uint64_t inner_count = kHeadsInside ? view_.heads.size() : row_count;
    for (uint64_t outer = 0; outer < outer_count; ++outer)
      for (uint64_t inner = 0; inner < inner_count; ++inner) {
        const uint64_t head = kHeadsInside ? inner : outer;
        const uint64_t row = kHeadsInside ? outer : inner;
        StoredRow at = first;
        at.head += head;
        at.row += row;
        at.start = stream_start(base, at.head, at.row);
        at.offset_bytes += head * view_.strides.head + row * view_.strides.row;
        // check_binding has proved it; a test tool that wrote outside of its region would hide the error that it looks
        // for.
        CHECK(pieces_.span() <= region_.size() && at.offset_bytes <= region_.size() - pieces_.span());
        if (!visit(at)) return false;
      }
    return true;
  }

  const View& view_;
  const Component& component_;
  RegionKey key_;
  std::span<std::byte> region_;
  std::vector<RowRun> runs_;
  RowPieces pieces_;
};

}  // namespace

void for_each_extent(const Valid<RuntimeBinding>& binding, const CacheSchema& schema, const RegionMemory& memory,
                     const std::function<void(std::span<const std::byte>)>& visit) {
  for (const View& view : binding->views) ViewWalk(*binding, view, schema, memory).each_extent(visit);
}

uint64_t write_synthetic(const Valid<RuntimeBinding>& binding, const CacheSchema& schema, uint64_t seed,
                         const RegionMemory& memory) {
  uint64_t bytes = 0;
  for (const View& view : binding->views) {
    const ViewWalk walk(*binding, view, schema, memory);
    const RowPieces pieces = walk.pieces();
    std::byte* const region = walk.region().data();
    walk.each_row(seed, [&](const StoredRow& row) {
      for (uint64_t i = 0; i < pieces.count; ++i)
        put_stream(row.start, pieces.begin + i * pieces.bytes, pieces.bytes,
                   region + row.offset_bytes + i * pieces.stride);
      bytes += pieces.total_bytes();
      return true;
    });
  }
  return bytes;
}

std::optional<std::string> take_synthetic(const Valid<RuntimeBinding>& binding, const CacheSchema& schema,
                                          uint64_t seed, const RegionMemory& memory) {
  std::optional<std::string> wrong;
  for (const View& view : binding->views) {
    const ViewWalk walk(*binding, view, schema, memory);
    const RowPieces pieces = walk.pieces();
    std::byte* const region = walk.region().data();
    const bool is_right = walk.each_row(seed, [&](const StoredRow& row) {
      for (uint64_t i = 0; i < pieces.count; ++i) {
        std::byte* const at = region + row.offset_bytes + i * pieces.stride;
        if (!holds_stream(row.start, pieces.begin + i * pieces.bytes, pieces.bytes, at)) {
          wrong = walk.describe(row, view.dims.begin() + i);  // a row in one piece has the one number 0
          return false;
        }
        put_guards(pieces.bytes, at);
      }
      return true;
    });
    if (!is_right) return wrong;
  }
  return std::nullopt;
}

}  // namespace crossdock
