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

// What is computed: the set of byte pairs of a plan,
//
//   { (byte of Address(source, x), the same byte of Address(target, x)) : x in Elements(e), e an edge }
//
// as CopyPatterns times PageRuns. For edge e, source view v and target view w, the common block (layers, heads, dims,
// tokens of e, v and w) is affine on both sides, so it is one pattern. The views of one binding are disjoint and cover
// what is owned and live (rules coverage-gap, coverage-overlap, view-not-owned). So the blocks of all pairs (v, w)
// partition Elements(e), and no target byte is in two steps (I1): views that share no element share no byte either
// (rule views-overlap).
// Views are joined by sorted lists with running maxima (planner/kv/view_index.h) axis by axis, not pair by pair: a
// binding may have a view for each layer and page run. Rows of pages are kept apart from strides, because only they
// change when the same instances move the next snapshot (LoweredPlan::rebound).
// Sizes and offsets need no check of their own where views passed the rules view-bounds and view-strides; counts of
// plans that come from outside are checked or saturate.
namespace crossdock {
namespace {

// 2^64 - 1 where it does not fit; check_complete() refuses that.
uint64_t product(std::initializer_list<uint64_t> factors) {
  Checked value = 1;
  for (const uint64_t factor : factors) value = value * factor;
  return value.value().value_or(Range::kUnbounded);
}

void add(uint64_t& sum, uint64_t more) { sum = saturating_add(sum, more); }

// The axes of a pattern, innermost first.
// The component axis has no strides of its own: it comes to be where key and value, or parts of one region, lie at
// equal distances.
enum PatternAxis : size_t { kDimAxis, kHeadAxis, kLayerAxis, kComponentAxis };

// A pattern while it is being joined with others.
struct RawPattern {
  CopyPattern pattern;
  std::vector<uint32_t> edges;
};

auto all_but_bases(const CopyPattern& p) {
  return std::tie(p.runs, p.source_region, p.target_region, p.item_bytes, p.page, p.row, p.axes);
}

bool by_place(const RawPattern& a, const RawPattern& b) {
  return std::tuple_cat(all_but_bases(a.pattern), std::tie(a.pattern.source_base, a.pattern.target_base, a.edges)) <
         std::tuple_cat(all_but_bases(b.pattern), std::tie(b.pattern.source_base, b.pattern.target_base, b.edges));
}

// Distance from one pattern to a later one on both sides; empty when the target goes backwards.
// Strides are unsigned, so a target that goes backwards, or stays, cannot be an axis.
std::optional<CopyAxis> distance(const CopyPattern& from, const CopyPattern& to) {
  if (to.source_base < from.source_base || to.target_base <= from.target_base) return std::nullopt;
  return CopyAxis{2, to.source_base - from.source_base, to.target_base - from.target_base};
}

// Makes patterns that differ only in their bases, at equal distances, one pattern with `axis`, which is free in all.
// Patterns at bases b, b + d, ..., b + (n-1) d have the same bytes as one pattern with an axis of extent n and stride
// d, so the set of byte pairs stays the same. O(n log n). Greedy along the sorted bases: a sequence that is interrupted
// begins anew. That may miss a join, which costs a step more and no byte.
void join_patterns(std::vector<RawPattern>& patterns, PatternAxis axis) {
  std::sort(patterns.begin(), patterns.end(), by_place);
  std::vector<RawPattern> joined;
  CopyPattern last;  // the latest of those that became joined.back()
  for (RawPattern& next : patterns) {
    RawPattern* open = joined.empty() ? nullptr : &joined.back();
    CopyAxis* open_axis = open == nullptr ? nullptr : &open->pattern.axes[axis];
    CopyPattern comparable = next.pattern;
    if (open != nullptr) comparable.axes[axis] = *open_axis;
    const bool alike = open != nullptr && next.pattern.axes[axis] == kNoAxis && last.axes[axis] == kNoAxis &&
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
    open->pattern.joined += next.pattern.joined;
    open->edges.insert(open->edges.end(), next.edges.begin(), next.edges.end());
  }
  for (RawPattern& pattern : joined) {
    std::sort(pattern.edges.begin(), pattern.edges.end());
    pattern.edges.erase(std::unique(pattern.edges.begin(), pattern.edges.end()), pattern.edges.end());
  }
  patterns = std::move(joined);
}

CopyAxis axis_of(uint64_t extent, uint64_t source_stride, uint64_t target_stride) {
  return extent == 1 ? kNoAxis : CopyAxis{extent, source_stride, target_stride};
}

// Fits: it is the offset of a byte of the view's region.
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

  // Edges are sorted by target and source, so the patterns of a pair are neighbours and are joined when its last edge
  // is done.
  std::optional<LoweredPlan> run() {
    diagnostics_.set_document("plan");
    if (!check_sides(plan_, source_, target_, diagnostics_)) return std::nullopt;
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
    LoweredPlan result(
        CopyPlan(std::make_shared<const CopyEnds>(CopyEnds{plan_.sources, plan_.targets}), source_.regions(),
                 target_.regions(), std::make_shared<const std::vector<CopyPattern>>(std::move(patterns_)),
                 std::move(pairs_), std::move(runs_)),
        std::make_shared<const LoweredPlan::PatternEdges>(std::move(edges_)), std::move(run_origins_));
    // Steps are counted, not made, so that a plan of too many is refused before a transport walks through them.
    const StepCounts counts = result.counts();
    if (!is_within(counts.bytes, limits_.bytes_max, "bytes") ||
        !is_within(counts.steps, limits_.step_count_max, "steps"))
      return std::nullopt;
    return result;
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
    // Live and Asked once more, from the bindings' interval: a plan made without a snapshot is about more tokens than
    // the pages of this operation hold.
    within_ =
        live_pages(tensor.live, tensor.component, source_.tokens(), plan_.live_page_tokens).intersect(tensor.tokens);
    const ViewClasses& source_classes =
        index_of(source_, source_views_, source).classes(tensor.component.name, tokens_per_row);
    const ViewClasses& target_classes =
        index_of(target_, target_views_, target).classes(tensor.component.name, tokens_per_row);
    items_ = 0;
    const auto layers_of = [](const LayerViews& views) { return views.layers; };
    // Layers outermost: most views are of other layers, and are never looked at.
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
    // Limits stop the joining early, and `stopped_` keeps the first reason only. The visits that are still under way
    // return at once.
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
    // No row in common, as with cycles of context parallelism: then there is nothing to copy for this pair of views.
    if (!runs || runs_[*runs].row_count == 0) return;
    if (raw_.size() + patterns_.size() >= limits_.pattern_count_max)
      return stop(fmt::format("more than {} patterns", limits_.pattern_count_max));

    const View& from = *source.view;
    const View& to = *target.view;
    RawPattern raw;
    raw.edges = {number};
    CopyPattern& pattern = raw.pattern;
    pattern.source_region = source.region;
    pattern.target_region = target.region;
    pattern.runs = *runs;
    pattern.source_base = offset_in(from, layers, heads, dims);
    pattern.target_base = offset_in(to, layers, heads, dims);
    pattern.item_bytes = component.item_bytes;
    pattern.page =
        CopyAxis{1, from.pages ? from.pages->page_stride_bytes : 0, to.pages ? to.pages->page_stride_bytes : 0};
    pattern.row = CopyAxis{1, from.strides.row, to.strides.row};
    pattern.axes[kDimAxis] = axis_of(dims.size(), from.strides.dim, to.strides.dim);
    pattern.axes[kHeadAxis] = axis_of(heads.size(), from.strides.head, to.strides.head);
    pattern.axes[kLayerAxis] = axis_of(layers.size(), from.strides.layer, to.strides.layer);
    add(items_, product({layers.size(), heads.size(), dims.size(), runs_[*runs].row_count}));
    raw_.push_back(std::move(raw));
  }

  // Runs do not depend on layers, heads and components, so there is one list for each pair of page tables and not for
  // each pair of views. `page_piece_count_` never passes its limit, so the difference below does not wrap.
  std::optional<uint32_t> find_runs(uint32_t token_set, Range within, uint64_t tokens_per_row,
                                    const IndexedView& source, const IndexedView& target) {
    const RunKey key{token_set, within, tokens_per_row, number_of(source.rows, source_maps_),
                     number_of(target.rows, target_maps_)};
    const auto [entry, is_new] = run_numbers_.try_emplace(key, static_cast<uint32_t>(runs_.size()));
    if (!is_new) return entry->second;
    std::optional<PageRuns> runs =
        make_page_runs(RunRequest{&plan_.token_sets[token_set], within, tokens_per_row, &source.rows, &target.rows,
                                  source.table, target.table, limits_.page_piece_count_max - page_piece_count_});
    if (!runs) {
      stop(fmt::format("more than {} stretches of rows within pages", limits_.page_piece_count_max));
      return std::nullopt;
    }
    page_piece_count_ += runs->piece_count;
    runs_.push_back(std::move(*runs));
    run_origins_.push_back(LoweredPlan::RunOrigin{token_set, within, tokens_per_row, source.rows, target.rows});
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

  // The blocks of pairs of views are disjoint, so their number of items equals that of the edge exactly when they cover
  // it. Valid bindings of the plan's documents always do. The check guards against bindings of other documents and
  // mistakes in the rules: without it the target would keep some old bytes (I1).
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
    pair.pattern_begin = patterns_.size();
    join_patterns(raw_, kLayerAxis);
    join_patterns(raw_, kComponentAxis);
    for (RawPattern& raw : raw_) {
      patterns_.push_back(raw.pattern);
      edges_.list.insert(edges_.list.end(), raw.edges.begin(), raw.edges.end());
      edges_.begin.push_back(edges_.list.size());
    }
    pair.pattern_end = patterns_.size();
    if (pair.pattern_end > pair.pattern_begin) pairs_.push_back(pair);
    raw_.clear();
  }

  // Row maps by number, which is a cheap comparison; most calls find their runs here.
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
  std::vector<CopyPair> pairs_;
  std::vector<CopyPattern> patterns_;
  LoweredPlan::PatternEdges edges_;
  std::vector<PageRuns> runs_;
  std::vector<LoweredPlan::RunOrigin> run_origins_;
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

// Correct because BoundSide::rebind() made sure that only slots and epochs differ, and that no page lies on another or
// past its region. Regions keep their numbers for the same reason. O(pages).
LoweredPlan LoweredPlan::rebound(const TransferPlan& plan, const BoundSide& source, const BoundSide& target) const {
  CHECK(source_regions().size() == source.regions().size() && target_regions().size() == target.regions().size());
  std::vector<PageRuns> fresh;
  fresh.reserve(run_origins_.size());
  for (const RunOrigin& origin : run_origins_) {
    std::optional<PageRuns> runs = make_page_runs(
        RunRequest{&plan.token_sets[origin.token_set], origin.within, origin.tokens_per_row, &origin.source,
                   &origin.target, find_table(source, origin.source), find_table(target, origin.target), UINT64_MAX});
    CHECK(runs.has_value());  // as many as before, since pages are cut at the same tokens
    fresh.push_back(std::move(*runs));
  }
  return LoweredPlan(
      CopyPlan(shared_ends(), source.regions(), target.regions(), shared_patterns(), pairs(), std::move(fresh)), edges_,
      run_origins_);
}

// A digest stands for a document, so equal digests make every rule that was proved against the documents hold here.
// What a digest does not say is compared: interval, operation and snapshot.
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
  // Each side was checked alone. Only within one instance can a byte be source and target at once, which would make the
  // result depend on the order of steps (I1).
  if (source.shares_instance(target)) source.check_together_with(target, diagnostics);
  return diagnostics.total() == diagnostics_before;
}

std::optional<LoweredPlan> lower(const TransferPlan& plan, const BoundSide& source, const BoundSide& target,
                                 const LowerOptions& options, const LowerLimits& limits, Diagnostics& diagnostics) {
  return Lowering(plan, source, target, options, limits, diagnostics).run();
}

}  // namespace crossdock
