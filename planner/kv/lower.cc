#include "planner/kv/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "base/checked.h"
#include "base/sorted.h"
#include "model/text.h"
#include "planner/kv/view_index.h"

namespace crossdock {
namespace {

uint64_t product(std::initializer_list<uint64_t> factors) {
  Checked value = 1;
  for (const uint64_t factor : factors) value = value * factor;
  return value.value().value_or(Range::kUnbounded);
}

void add(uint64_t& sum, uint64_t more) { sum = saturating_add(sum, more); }

constexpr CopyAxis kNoAxis = {1, 0, 0};

// A pattern while it is being joined with others.
struct RawPattern {
  StepPattern pattern;
  std::vector<uint32_t> edges;
  uint64_t joined = 1;
};

auto all_but_bases(const StepPattern& p) {
  return std::tie(p.runs, p.source_region, p.target_region, p.item_bytes, p.page, p.row, p.dim, p.head, p.layer,
                  p.component);
}

bool by_place(const RawPattern& a, const RawPattern& b) {
  return std::tuple_cat(all_but_bases(a.pattern), std::tie(a.pattern.source_base, a.pattern.target_base, a.edges)) <
         std::tuple_cat(all_but_bases(b.pattern), std::tie(b.pattern.source_base, b.pattern.target_base, b.edges));
}

// Distance from one pattern to a later one on both sides; empty when the target goes backwards.
std::optional<CopyAxis> distance(const StepPattern& from, const StepPattern& to) {
  if (to.source_base < from.source_base || to.target_base <= from.target_base) return std::nullopt;
  return CopyAxis{2, to.source_base - from.source_base, to.target_base - from.target_base};
}

// Makes patterns that differ only in their bases, at equal distances, one pattern with `axis`, which is free in all.
void join_patterns(std::vector<RawPattern>& patterns, CopyAxis StepPattern::*axis) {
  std::sort(patterns.begin(), patterns.end(), by_place);
  std::vector<RawPattern> joined;
  StepPattern last;  // the latest of those that became joined.back()
  for (RawPattern& next : patterns) {
    RawPattern* open = joined.empty() ? nullptr : &joined.back();
    CopyAxis* open_axis = open == nullptr ? nullptr : &(open->pattern.*axis);
    StepPattern comparable = next.pattern;
    if (open != nullptr) comparable.*axis = *open_axis;
    const bool alike = open != nullptr && (next.pattern.*axis) == kNoAxis && (last.*axis) == kNoAxis &&
                       all_but_bases(open->pattern) == all_but_bases(comparable);
    const std::optional<CopyAxis> step = alike ? distance(last, next.pattern) : std::nullopt;
    const bool continues =
        step && (open_axis->extent == 1 || (open_axis->source_stride_bytes == step->source_stride_bytes &&
                                            open_axis->target_stride_bytes == step->target_stride_bytes));
    last = next.pattern;
    if (!continues) {
      joined.push_back(std::move(next));
      continue;
    }
    *open_axis = CopyAxis{open_axis->extent + 1, step->source_stride_bytes, step->target_stride_bytes};
    open->joined += next.joined;
    open->edges.insert(open->edges.end(), next.edges.begin(), next.edges.end());
  }
  for (RawPattern& pattern : joined) {
    std::sort(pattern.edges.begin(), pattern.edges.end());
    pattern.edges.erase(std::unique(pattern.edges.begin(), pattern.edges.end()), pattern.edges.end());
  }
  patterns = std::move(joined);
}

// Whether the first axis has the shorter strides.
bool is_inside(const CopyAxis& a, const CopyAxis& b) {
  return a.target_stride_bytes != b.target_stride_bytes ? a.target_stride_bytes < b.target_stride_bytes
                                                        : a.source_stride_bytes < b.source_stride_bytes;
}

CopyAxis axis_of(uint64_t extent, uint64_t source_stride, uint64_t target_stride) {
  return extent == 1 ? kNoAxis : CopyAxis{extent, source_stride, target_stride};
}

uint64_t offset_in(const View& view, Range layers, Range heads, Range dims) {
  return view.offset_bytes + (layers.begin() - view.layers.begin()) * view.strides.layer +
         (heads.begin() - view.heads.begin()) * view.strides.head +
         (dims.begin() - view.dims.begin()) * view.strides.dim;
}

const PageTable* find_table(const BoundSide& side, const RowMap& map) {
  return map.table ? find_sorted(*side.ends()[map.end].page_tables, &PageTable::id, *map.table) : nullptr;
}

}  // namespace

// Builds a LoweredPlan.
class Lowering {
 public:
  Lowering(const TransferPlan& plan, const BoundSide& source, const BoundSide& target, const LowerOptions& options,
           const LowerLimits& limits, Diagnostics& diagnostics)
      : plan_(plan), source_(source), target_(target), options_(options), limits_(limits), diagnostics_(diagnostics) {}

  std::optional<LoweredPlan> run() {
    diagnostics_.set_document("plan");
    if (!check_sides(plan_, source_, target_, diagnostics_)) return std::nullopt;
    result_.source_regions_ = source_.regions();
    result_.target_regions_ = target_.regions();
    source_views_ = index_views(source_);
    target_views_ = index_views(target_);
    for (uint32_t edge = 0; edge < plan_.edges.size(); ++edge) {
      if (!is_wanted(plan_.edges[edge])) continue;
      if (!lower_edge(edge)) return std::nullopt;
      const bool last_of_pair = edge + 1 == plan_.edges.size() ||
                                plan_.edges[edge + 1].source != plan_.edges[edge].source ||
                                plan_.edges[edge + 1].target != plan_.edges[edge].target;
      if (last_of_pair) finish_pair(plan_.edges[edge]);
    }
    result_.patterns_ = std::make_shared<const LoweredPlan::Patterns>(std::move(patterns_));
    for (LoweredPlan::RunList& list : result_.runs_) LoweredPlan::note_shapes(list);
    result_.count_pairs();
    const StepCounts counts = result_.counts();
    if (!is_within(counts.bytes, limits_.bytes_max, "bytes") ||
        !is_within(counts.steps, limits_.step_count_max, "steps"))
      return std::nullopt;
    return std::move(result_);
  }

 private:
  static std::vector<ViewIndex> index_views(const BoundSide& side) {
    std::vector<ViewIndex> views;
    for (const BoundEnd& end : side.ends()) views.emplace_back(end, static_cast<uint32_t>(views.size()));
    return views;
  }

  bool is_within(uint64_t count, uint64_t count_max, std::string_view what) {
    if (count <= count_max) return true;
    diagnostics_.add(Rule::kPlanLimit, "", fmt::format("{} {} are more than {}", count, what, count_max));
    return false;
  }

  bool is_wanted(const Edge& edge) const {
    return (!options_.source || plan_.sources[edge.source] == *options_.source) &&
           (!options_.target || plan_.targets[edge.target] == *options_.target);
  }

  const BoundEnd* find_end(const BoundSide& side, const PlanEnd& end, std::string_view which) {
    const BoundEnd* bound = side.find(end.text());
    if (bound == nullptr)
      diagnostics_.add(Rule::kPlanParticipant, "", fmt::format("{} '{}' has no binding", which, end.text()));
    return bound;
  }

  bool lower_edge(uint32_t number) {
    const Edge& edge = plan_.edges[number];
    const PlanTensor& tensor = plan_.tensors[edge.tensor];
    const BoundEnd* source = find_end(source_, plan_.sources[edge.source], "source");
    const BoundEnd* target = find_end(target_, plan_.targets[edge.target], "target");
    if (source == nullptr || target == nullptr) return false;

    const uint64_t tokens_per_row = tensor.component.tokens_per_row.value_or(1);
    within_ = live_tokens(LayerGroup{{}, tensor.window_tokens, {}}, tensor.component, source_.tokens())
                  .intersect(tensor.tokens);
    const ViewClasses& source_classes =
        index_of(source_, source_views_, source).classes(tensor.component.name, tokens_per_row);
    const ViewClasses& target_classes =
        index_of(target_, target_views_, target).classes(tensor.component.name, tokens_per_row);
    items_ = 0;
    const auto layers_of = [](const LayerViews& views) { return views.layers; };
    for (const Range layers : plan_.layer_sets[edge.layer_set].ranges())
      for_each_overlapping(source_classes, layers, layers_of, [&](const LayerViews& from) {
        for_each_overlapping(target_classes, layers.intersect(from.layers), layers_of, [&](const LayerViews& to) {
          join_heads(number, layers.intersect(from.layers).intersect(to.layers), from, to);
        });
      });
    if (stopped_) return false;
    return check_complete(number);
  }

  static ViewIndex& index_of(const BoundSide& side, std::vector<ViewIndex>& views, const BoundEnd* end) {
    return views[static_cast<size_t>(end - side.ends().data())];
  }

  void join_heads(uint32_t number, Range layers, const LayerViews& from, const LayerViews& to) {
    const auto heads_of = [](const ViewClass& views) { return views.heads; };
    for_each_overlapping(from.classes, plan_.edges[number].heads, heads_of, [&](const ViewClass& source) {
      const Range heads = plan_.edges[number].heads.intersect(source.heads);
      for_each_overlapping(to.classes, heads, heads_of, [&](const ViewClass& target) {
        join_classes(number, layers, heads.intersect(target.heads), source, target);
      });
    });
  }

  void join_classes(uint32_t number, Range layers, Range heads, const ViewClass& from, const ViewClass& to) {
    if (++work_ > limits_.work_max) refuse_work();
    const Range dims = from.dims.intersect(to.dims);
    if (dims.empty() || stopped_) return;
    const auto tokens_of = [](const IndexedView& indexed) { return indexed.view->tokens; };
    const Range wanted = within_.intersect(plan_.token_sets[plan_.edges[number].token_set].intervals.hull());
    for_each_overlapping(from.views, wanted, tokens_of, [&](const IndexedView& source) {
      for_each_overlapping(to.views, wanted.intersect(source.view->tokens), tokens_of, [&](const IndexedView& target) {
        if (!stopped_) join_views(number, layers, heads, dims, source, target);
      });
    });
  }

  void join_views(uint32_t number, Range layers, Range heads, Range dims, const IndexedView& source,
                  const IndexedView& target) {
    if (++work_ > limits_.work_max) return refuse_work();
    const Edge& edge = plan_.edges[number];
    const Component& component = plan_.tensors[edge.tensor].component;
    const std::optional<uint32_t> runs =
        find_runs(edge.token_set, within_.intersect(source.view->tokens).intersect(target.view->tokens),
                  component.tokens_per_row.value_or(1), source, target);
    if (!runs || result_.runs_[*runs].runs.row_count == 0) return;
    if (raw_.size() + patterns_.list.size() >= limits_.pattern_count_max)
      return stop(fmt::format("more than {} patterns", limits_.pattern_count_max));

    const View& from = *source.view;
    const View& to = *target.view;
    RawPattern raw;
    raw.edges = {number};
    StepPattern& pattern = raw.pattern;
    pattern.source_region = source.region;
    pattern.target_region = target.region;
    pattern.runs = *runs;
    pattern.source_base = offset_in(from, layers, heads, dims);
    pattern.target_base = offset_in(to, layers, heads, dims);
    pattern.item_bytes = component.item_bytes;
    pattern.page =
        CopyAxis{1, from.pages ? from.pages->page_stride_bytes : 0, to.pages ? to.pages->page_stride_bytes : 0};
    pattern.row = CopyAxis{1, from.strides.row, to.strides.row};
    pattern.dim = axis_of(dims.size(), from.strides.dim, to.strides.dim);
    pattern.head = axis_of(heads.size(), from.strides.head, to.strides.head);
    pattern.layer = axis_of(layers.size(), from.strides.layer, to.strides.layer);
    pattern.component = kNoAxis;
    add(items_, product({layers.size(), heads.size(), dims.size(), result_.runs_[*runs].runs.row_count}));
    raw_.push_back(std::move(raw));
  }

  std::optional<uint32_t> find_runs(uint32_t token_set, Range within, uint64_t tokens_per_row,
                                    const IndexedView& source, const IndexedView& target) {
    const RunKey key{token_set, within, tokens_per_row, number_of(source.rows, source_maps_),
                     number_of(target.rows, target_maps_)};
    const auto [entry, is_new] = run_numbers_.try_emplace(key, static_cast<uint32_t>(result_.runs_.size()));
    if (!is_new) return entry->second;
    std::optional<PageRuns> runs =
        make_page_runs(RunRequest{&plan_.token_sets[token_set], within, tokens_per_row, &source.rows, &target.rows,
                                  source.table, target.table, limits_.page_piece_count_max - page_piece_count_});
    if (!runs) {
      stop(fmt::format("more than {} stretches of rows within pages", limits_.page_piece_count_max));
      return std::nullopt;
    }
    page_piece_count_ += runs->piece_count;
    result_.runs_.push_back(
        LoweredPlan::RunList{token_set, within, tokens_per_row, source.rows, target.rows, std::move(*runs), {}});
    return entry->second;
  }

  static uint32_t number_of(const RowMap& map, std::map<RowMap, uint32_t>& numbers) {
    return numbers.try_emplace(map, static_cast<uint32_t>(numbers.size())).first->second;
  }

  void refuse_work() { stop(fmt::format("more than {} pairs of views to look at", limits_.work_max)); }
  void stop(std::string message) {
    if (!stopped_) diagnostics_.add(Rule::kPlanLimit, "", std::move(message));
    stopped_ = true;
  }

  // What valid bindings hold is what the plan moves; this stands between a mistake there and garbage.
  bool check_complete(uint32_t number) {
    const Edge& edge = plan_.edges[number];
    const Component& component = plan_.tensors[edge.tensor].component;
    const uint64_t rows =
        plan_.token_sets[edge.token_set].within(within_).row_count(component.tokens_per_row.value_or(1));
    const std::optional<uint64_t> wanted =
        (Checked(plan_.layer_sets[edge.layer_set].count()) * edge.heads.size() * rows * component.head_dim).value();
    if (!wanted || items_ == Range::kUnbounded) {
      diagnostics_.add(Rule::kPlanLimit, fmt::format("edge {}", number), "has more than 2^64 - 1 items");
      return false;
    }
    if (*wanted == items_) return true;
    diagnostics_.add(
        Rule::kPlanGap, fmt::format("edge {}", number),
        fmt::format("the views of '{}' and '{}' have {} items in common, not {} (component {}, layers {}, heads {})",
                    plan_.sources[edge.source].text(), plan_.targets[edge.target].text(), items_, *wanted,
                    component.name.text(), set_text(plan_.layer_sets[edge.layer_set]), range_text(edge.heads)));
    return false;
  }

  void finish_pair(const Edge& edge) {
    LoweredPair pair;
    pair.source = edge.source;
    pair.target = edge.target;
    pair.pattern_begin = patterns_.list.size();
    join_patterns(raw_, &StepPattern::layer);
    join_patterns(raw_, &StepPattern::component);
    for (RawPattern& raw : raw_) {
      patterns_.list.push_back(raw.pattern);
      patterns_.joined.push_back(raw.joined);
      patterns_.edges.insert(patterns_.edges.end(), raw.edges.begin(), raw.edges.end());
      patterns_.edge_begin.push_back(patterns_.edges.size());
    }
    pair.pattern_end = patterns_.list.size();
    if (pair.pattern_end > pair.pattern_begin) result_.pairs_.push_back(pair);
    raw_.clear();
  }

  struct RunKey {
    uint32_t token_set;
    Range within;
    uint64_t tokens_per_row;
    uint32_t source_map;
    uint32_t target_map;
    friend auto operator<=>(const RunKey&, const RunKey&) = default;
  };

  const TransferPlan& plan_;
  const BoundSide& source_;
  const BoundSide& target_;
  const LowerOptions& options_;
  const LowerLimits& limits_;
  Diagnostics& diagnostics_;
  LoweredPlan result_;
  LoweredPlan::Patterns patterns_;
  std::vector<ViewIndex> source_views_;  // of each bound end
  std::vector<ViewIndex> target_views_;
  std::map<RowMap, uint32_t> source_maps_;
  std::map<RowMap, uint32_t> target_maps_;
  std::map<RunKey, uint32_t> run_numbers_;
  std::vector<RawPattern> raw_;  // of the current pair
  Range within_;                 // tokens of the current edge's tensor that live and are asked for
  uint64_t items_ = 0;           // of the current edge so far
  uint64_t work_ = 0;
  uint64_t page_piece_count_ = 0;
  bool stopped_ = false;
};

CopyStep LoweredPlan::shape_of(const StepPattern& pattern, const PageRun& run) {
  const auto along = [&](RowPlace step, uint64_t CopyAxis::*stride) {
    return step.slot * pattern.page.*stride + step.row * pattern.row.*stride;
  };
  const std::array<CopyAxis, CopyStep::kAxisCountMax> all = {
      pattern.component,
      pattern.layer,
      CopyAxis{run.repeat, along(run.source_step, &CopyAxis::source_stride_bytes),
               along(run.target_step, &CopyAxis::target_stride_bytes)},
      CopyAxis{run.rows, pattern.row.source_stride_bytes, pattern.row.target_stride_bytes},
      pattern.head,
      pattern.dim};
  // The order of a copy is free, so the target is written in the order of its addresses. An insertion sort of six.
  std::array<CopyAxis, CopyStep::kAxisCountMax> axes;
  size_t axis_count = 0;
  for (const CopyAxis& axis : all) {
    if (axis.extent == 1) continue;
    size_t at = axis_count++;
    for (; at > 0 && is_inside(axes[at - 1], axis); --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  CopyStep step;
  step.source_region = pattern.source_region;
  step.target_region = pattern.target_region;
  step.bytes = pattern.item_bytes;
  for (; axis_count > 0; --axis_count) {  // contiguous on both sides: longer pieces
    const CopyAxis& axis = axes[axis_count - 1];
    if (axis.source_stride_bytes != step.bytes || axis.target_stride_bytes != step.bytes) break;
    step.bytes *= axis.extent;
  }
  for (size_t i = 0; i < axis_count; ++i) {
    const CopyAxis& axis = axes[i];
    CopyAxis* outer = step.axis_count == 0 ? nullptr : &step.axis_list[step.axis_count - 1];
    if (outer != nullptr && outer->source_stride_bytes == axis.source_stride_bytes * axis.extent &&
        outer->target_stride_bytes == axis.target_stride_bytes * axis.extent)
      *outer = CopyAxis{outer->extent * axis.extent, axis.source_stride_bytes, axis.target_stride_bytes};
    else
      step.push_axis(axis);
  }
  return step;
}

void LoweredPlan::note_shapes(RunList& list) {
  std::map<std::tuple<uint64_t, uint64_t, RowPlace, RowPlace>, uint64_t> known;
  list.shapes.clear();
  for (const PageRun& run : list.runs.runs) {
    if (!list.shapes.empty() && list.shapes.back().first.same_shape(run)) {
      ++list.shapes.back().second;
      continue;
    }
    const auto [entry, is_new] =
        known.try_emplace(std::tuple(run.rows, run.repeat, run.source_step, run.target_step), list.shapes.size());
    if (is_new)
      list.shapes.emplace_back(run, 1);
    else
      ++list.shapes[entry->second].second;
  }
}

void LoweredPlan::count_pairs() {
  for (LoweredPair& pair : pairs_) {
    pair.counts = StepCounts();
    for (size_t i = pair.pattern_begin; i < pair.pattern_end; ++i) {
      const StepPattern& pattern = patterns_->list[i];
      const RunList& list = runs_[pattern.runs];
      StepCounts counts;
      counts.head_rows =
          product({list.runs.row_count, pattern.head.extent, pattern.layer.extent, pattern.component.extent});
      counts.bytes = product({counts.head_rows, pattern.dim.extent, pattern.item_bytes});
      counts.steps_planned = product({patterns_->joined[i], list.runs.piece_count});
      counts.steps = list.runs.runs.size();
      for (const auto& [run, count] : list.shapes)
        add(counts.ranges, product({count, shape_of(pattern, run).range_count()}));
      pair.counts += counts;
    }
  }
}

StepCounts& StepCounts::operator+=(const StepCounts& other) {
  add(bytes, other.bytes);
  add(head_rows, other.head_rows);
  add(steps_planned, other.steps_planned);
  add(steps, other.steps);
  add(ranges, other.ranges);
  return *this;
}

StepCounts LoweredPlan::counts() const {
  StepCounts sum;
  for (const LoweredPair& pair : pairs_) sum += pair.counts;
  return sum;
}

std::vector<CopyStep> LoweredPlan::steps(const LoweredPair& pair) const {
  std::vector<CopyStep> list;
  list.reserve(pair.counts.steps);
  for_each_step(pair, [&](const CopyStep& step) { list.push_back(step); });
  return list;
}

std::optional<BatchedSteps> batch_steps(const LoweredPlan& lowered, const LoweredPair& pair, StepSplit split,
                                        const BatchLimits& limits, Diagnostics& diagnostics) {
  split.bytes_max = std::min(split.bytes_max, limits.bytes_max);
  BatchedSteps batched;
  bool fits = true;
  lowered.for_each_step(pair, [&](const CopyStep& step) {
    ++batched.steps_before;
    fits = fits && append_split(step, split, batched.steps);
  });
  if (!fits) {
    diagnostics.add(Rule::kPlanLimit, "", fmt::format("more than {} steps after splitting", split.step_count_max));
    return std::nullopt;
  }
  batched.batch_ends = batch_ends(batched.steps, limits);
  for (const CopyStep& step : batched.steps) add(batched.ranges, step.range_count());
  return batched;
}

LoweredPlan LoweredPlan::rebound(const TransferPlan& plan, const BoundSide& source, const BoundSide& target) const {
  CHECK(source_regions_.size() == source.regions().size() && target_regions_.size() == target.regions().size());
  LoweredPlan fresh;
  fresh.source_regions_ = source.regions();
  fresh.target_regions_ = target.regions();
  fresh.pairs_ = pairs_;
  fresh.patterns_ = patterns_;
  fresh.runs_.reserve(runs_.size());
  for (const RunList& list : runs_) {
    std::optional<PageRuns> runs = make_page_runs(
        RunRequest{&plan.token_sets[list.token_set], list.within, list.tokens_per_row, &list.source, &list.target,
                   find_table(source, list.source), find_table(target, list.target), Range::kUnbounded});
    CHECK(runs.has_value());  // as many as before, since pages are cut at the same tokens
    fresh.runs_.push_back(
        RunList{list.token_set, list.within, list.tokens_per_row, list.source, list.target, std::move(*runs), {}});
    note_shapes(fresh.runs_.back());
  }
  fresh.count_pairs();
  return fresh;
}

bool check_sides(const TransferPlan& plan, const BoundSide& source, const BoundSide& target, Diagnostics& diagnostics) {
  const uint64_t diagnostics_before = diagnostics.total();
  const auto differs = [&](std::string message) { diagnostics.add(Rule::kPlanIdentity, "", std::move(message)); };
  if (source.digest() != plan.source_digest)
    differs(fmt::format("the source's bytes are of {}, the plan is of {}", source.digest().hex(),
                        plan.source_digest.hex()));
  if (target.digest() != plan.target_digest)
    differs(fmt::format("the target's bytes are of {}, the plan is of {}", target.digest().hex(),
                        plan.target_digest.hex()));
  if (source.tokens() != target.tokens())
    differs(fmt::format("the source holds tokens {}, the target {}", range_text(source.tokens()),
                        range_text(target.tokens())));
  if (plan.snapshot_tokens && *plan.snapshot_tokens != source.tokens())
    differs(fmt::format("the plan is about a snapshot of tokens {}, not {}", range_text(*plan.snapshot_tokens),
                        range_text(source.tokens())));
  if (source.operation() != nullptr && target.operation() != nullptr && *source.operation() != *target.operation())
    differs(fmt::format("the source is bound for operation '{}', the target for '{}'", source.operation()->text(),
                        target.operation()->text()));
  if (source.snapshot_digest() && target.snapshot_digest() && *source.snapshot_digest() != *target.snapshot_digest())
    differs("source and target are bound for different snapshots");
  if (source.shares_instance(target)) source.check_together_with(target, diagnostics);
  return diagnostics.total() == diagnostics_before;
}

std::optional<LoweredPlan> lower(const TransferPlan& plan, const BoundSide& source, const BoundSide& target,
                                 const LowerOptions& options, const LowerLimits& limits, Diagnostics& diagnostics) {
  return Lowering(plan, source, target, options, limits, diagnostics).run();
}

}  // namespace crossdock
