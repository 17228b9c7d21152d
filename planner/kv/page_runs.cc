#include "planner/kv/page_runs.h"

#include <algorithm>

#include "base/checked.h"

// The tokens of an edge that both views hold, as rows: for each row its place on the source and on the target. The
// result is a list of runs whose rows, repeated as they say, are exactly these rows, each once (I1).
// Two page tables cut the same rows at different tokens, so a piece ends where either side's page ends. Pieces that
// continue each other on both sides are joined as they come; with contiguous slots a whole table becomes one run.
namespace crossdock {
namespace {

// Turns tokens into rows, and rows into places.
class RowWalker {
 public:
  RowWalker(const RowMap& map, const PageTable* table, uint64_t tokens_per_row)
      : map_(map),
        table_(table),
        tokens_per_row_(tokens_per_row),
        rows_per_page_(table == nullptr ? Range::kUnbounded : table->page_tokens / tokens_per_row),
        tokens_(map.cycle),
        before_base_(tokens_.count_below(map.base_token)) {}

  // No difference wraps: a view begins at or after the base of its table (rule view-pages), and the tokens lie within
  // the view. Boundaries lie at rows on both sides except at the ends of the interval (rule token-alignment), so a
  // stretch has equally many rows on both.
  Range rows_of(Range tokens) const {
    const uint64_t begin = tokens_.count_below(tokens.begin()) - before_base_;
    const uint64_t end = tokens_.count_below(tokens.end()) - before_base_;
    return Range(begin / tokens_per_row_, div_round_up(end, tokens_per_row_));
  }
  // At least 1, so the walk always moves on. Without pages the rest is never the smaller one.
  uint64_t rows_left_in_page(uint64_t row) const { return rows_per_page_ - row % rows_per_page_; }

  RowPlace place_of(uint64_t row) const {
    if (table_ == nullptr) return RowPlace{0, row};
    return RowPlace{table_->slots[row / rows_per_page_], row % rows_per_page_};
  }
  // Whether `after` is the row that lies behind the `rows` rows from `before` on.
  bool follows(RowPlace before, uint64_t rows, RowPlace after) const {
    if (before.slot == after.slot) return before.row + rows == after.row;
    const uint64_t end = before.row + rows;
    return map_.pages_touch && end % rows_per_page_ == after.row && before.slot + end / rows_per_page_ == after.slot;
  }

 private:
  const RowMap& map_;
  const PageTable* table_;
  uint64_t tokens_per_row_;
  uint64_t rows_per_page_;
  TokenCounter tokens_;
  uint64_t before_base_;
};

// The step from one place to a later one, when it is one that a run can repeat.
// Only forward, and by one kind of stride: a run's repeat is one axis of a step, with unsigned strides.
std::optional<RowPlace> step_between(RowPlace from, RowPlace to) {
  if (to.slot == from.slot && to.row > from.row) return RowPlace{0, to.row - from.row};
  if (to.slot == from.slot + 1 && to.row == from.row) return RowPlace{1, 0};
  return std::nullopt;
}

RowPlace last_place(RowPlace first, RowPlace step, uint64_t repeat) {
  return RowPlace{first.slot + step.slot * (repeat - 1), first.row + step.row * (repeat - 1)};
}

class RunBuilder {
 public:
  RunBuilder(const RowWalker& source, const RowWalker& target) : source_(source), target_(target) {}

  void add(RowPlace source, RowPlace target, uint64_t rows) {
    ++result_.piece_count;
    result_.row_count += rows;
    if (!result_.runs.empty() && extend(result_.runs.back(), source, target, rows)) return;
    result_.runs.push_back(PageRun{source, target, rows, 1, {}, {}});
  }
  uint64_t piece_count() const { return result_.piece_count; }
  PageRuns take() { return std::move(result_); }

 private:
  // Longer rows first: contiguous bytes are better than one more axis. Once a run repeats, its length is fixed.
  bool extend(PageRun& run, RowPlace source, RowPlace target, uint64_t rows) const {
    if (run.repeat == 1 && source_.follows(run.source, run.rows, source) &&
        target_.follows(run.target, run.rows, target)) {
      run.rows += rows;
      return true;
    }
    if (run.rows != rows) return false;
    const auto source_step = step_between(last_place(run.source, run.source_step, run.repeat), source);
    const auto target_step = step_between(last_place(run.target, run.target_step, run.repeat), target);
    if (!source_step || !target_step) return false;
    if (run.repeat > 1 && (*source_step != run.source_step || *target_step != run.target_step)) return false;
    run.source_step = *source_step;
    run.target_step = *target_step;
    ++run.repeat;
    return true;
  }

  const RowWalker& source_;
  const RowWalker& target_;
  PageRuns result_;
};

}  // namespace

std::optional<PageRuns> make_page_runs(const RunRequest& request) {
  TokenSet tokens = request.tokens->within(request.within);
  // The limit of pieces bounds the stretches too, so memory is bounded before anything is walked.
  std::optional<IntervalSet> stretches = expand_tokens(tokens, request.piece_count_max);
  if (!stretches) return std::nullopt;
  // A view may have fewer tokens of a cycle than the edge: those of its own cycle.
  for (const RowMap* map : {request.source, request.target}) {
    if (!map->cycle || map->cycle == tokens.cycle || stretches->empty()) continue;
    stretches = expand_tokens(TokenSet{*stretches, map->cycle}, request.piece_count_max);
    if (!stretches) return std::nullopt;
  }

  const RowWalker source(*request.source, request.source_table, request.tokens_per_row);
  const RowWalker target(*request.target, request.target_table, request.tokens_per_row);
  RunBuilder builder(source, target);
  for (const Range stretch : stretches->ranges()) {
    Range from = source.rows_of(stretch);
    uint64_t to = target.rows_of(stretch).begin();
    while (!from.empty()) {
      if (builder.piece_count() == request.piece_count_max) return std::nullopt;
      const uint64_t rows =
          std::min({from.size(), source.rows_left_in_page(from.begin()), target.rows_left_in_page(to)});
      builder.add(source.place_of(from.begin()), target.place_of(to), rows);
      from = Range(from.begin() + rows, from.end());
      to += rows;
    }
  }
  return builder.take();
}

}  // namespace crossdock
