#include "planner/kv/verify_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "model/text.h"
#include "planner/kv/verify_coverage.h"
#include "planner/kv/verify_diagnostics.h"
#include "planner/kv/verify_layers.h"
#include "planner/kv/verify_report.h"
#include "planner/kv/verify_sweep.h"
#include "planner/kv/verify_tensors.h"
#include "planner/kv/verify_tokens.h"

// What is proved, with the sets of docs/architecture.md, "Definitions":
//
//   for each edge e from p to q:  Elements(e) is a subset of Owned(p)                   (plan-source)
//   for each target q:            each element of Required(q) is in exactly one
//                                 Elements(e)                                           (plan-gap, plan-overlap)
//                                 and no other element is in any                        (plan-target)
//
// Way of the proof: for each (end, tensor) a sweep over layers, then heads, compares owned regions and edges cell by
// cell; within a cell all elements have the same owners and edges, so one comparison of tokens decides for all of them.
// O(n log n) for regions that share boundaries; orthogonal stripes cost their product and stop at the work limit.
// It shares no code with the planner but base/ and the types: the planner looks up which regions overlap, and a look-up
// that misses one would miss it again here. A sweep visits every boundary and needs no knowledge of how edges are
// found. Plans from other processes go through the same proof, so nothing in `plan` is trusted besides its own rules
// (Valid<TransferPlan>).
namespace crossdock {
namespace {

bool kind_fits(PlanKind kind, SideKind source, SideKind target) {
  switch (kind) {
    case PlanKind::kLive: return source == SideKind::kRuntime && target == SideKind::kRuntime;
    case PlanKind::kUpload: return source == SideKind::kRuntime && target == SideKind::kStoreLayout;
    case PlanKind::kRestore: return source != SideKind::kRuntime && target == SideKind::kRuntime;
  }
  check_failed("a known plan kind", __FILE__, __LINE__);
}

// Edges by one of their numbers, below `number_count`; those that are equal stay in the order that they are given in.
// A counting sort: O(edges + numbers), and stable, so sorting by tensor and then by end orders by both. Numbers are in
// range: rule plan-index.
std::vector<uint32_t> sorted_by(uint32_t Edge::*number, size_t number_count, const std::vector<Edge>& edges,
                                std::span<const uint32_t> order) {
  std::vector<uint32_t> begin_of(number_count + 1);
  for (const Edge& edge : edges) ++begin_of[edge.*number + 1];
  std::partial_sum(begin_of.begin(), begin_of.end(), begin_of.begin());
  std::vector<uint32_t> sorted(order.size());
  for (const uint32_t edge : order) sorted[begin_of[edges[edge].*number]++] = edge;
  return sorted;
}

// Layers of one tensor, counted through, in one ownership of the owner that is looked at.
struct OwnedLayers {
  uint32_t tensor;
  uint32_t ownership;
  Range layers;
};

// One end of all edges.
struct Side {
  const PlanSide& document;
  const std::vector<PlanEnd>& ends;
  uint32_t Edge::*end_of;
  std::vector<const PlanOwner*> owners;  // of each end
};

class PlanCheck {
 public:
  PlanCheck(const TransferPlan& plan, const PlanSide& source, const PlanSide& target, const VerifyLimits& limits,
            Diagnostics& diagnostics)
      : plan_(plan),
        source_{source, plan.sources, &Edge::source, {}},
        target_{target, plan.targets, &Edge::target, {}},
        limits_(limits),
        diagnostics_(diagnostics),
        work_(limits.work_max),
        keeper_(limits.diagnostic_count_max),
        coverage_(plan.edges, limits.token_range_count_max, work_, keeper_) {}

  PlanProof run() {
    const uint64_t diagnostics_before = diagnostics_.total();
    check_identity();
    find_owners(source_, "source");
    find_owners(target_, "target");
    check_plan_tensors(plan_, source_.document, target_.document, work_, diagnostics_);
    // Against other documents or other tensors every element would be wrong.
    if (diagnostics_.total() == diagnostics_before && !work_.stopped()) check_edges();
    return report();
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Bounds the tries for one edge, so that many ownerships do not make check_source() quadratic.
  static constexpr size_t kOwnedTriesMax = 8;

  // A proof against other documents would say nothing; so these come first, and end it.
  void check_identity() {
    const PlanSide& source = source_.document;
    const PlanSide& target = target_.document;
    check_digest(plan_.source_digest, source, "source_digest");
    check_digest(plan_.target_digest, target, "target_digest");
    if (!kind_fits(plan_.kind, source.kind(), target.kind()))
      diagnostics_.add(
          Rule::kPlanIdentity, "kind",
          fmt::format("{} does not lead from {} to {}", plan_kind_name(plan_.kind), source.label(), target.label()));
    if (source.resource() != nullptr && target.resource() != nullptr && *source.resource() != *target.resource())
      diagnostics_.add(Rule::kPlanIdentity, "",
                       fmt::format("{} is about resource '{}', {} about '{}'", source.label(),
                                   source.resource()->text(), target.label(), target.resource()->text()));
    // What a manifest holds of windows follows from its snapshot.
    if (source.kind() == SideKind::kStoreManifest && plan_.snapshot_tokens != source.tokens())
      diagnostics_.add(
          Rule::kPlanIdentity, "snapshot_tokens",
          fmt::format("{} holds tokens {}, the plan is about {}", source.label(), range_text(source.tokens()),
                      plan_.snapshot_tokens ? range_text(*plan_.snapshot_tokens) : "no snapshot"));
  }

  void check_digest(const Sha256Digest& stated, const PlanSide& document, std::string_view field) {
    if (stated != document.digest())
      diagnostics_.add(
          Rule::kPlanIdentity, std::string(field),
          fmt::format("{} is not that of {}, {}", stated.hex(), document.label(), document.digest().hex()));
  }

  void find_owners(Side& side, std::string_view side_name) {
    side.owners.reserve(side.ends.size());
    for (const PlanEnd& end : side.ends) {
      side.owners.push_back(side.document.find(end.text()));
      if (side.owners.back() == nullptr)
        diagnostics_.add(Rule::kPlanParticipant, fmt::format("{} '{}'", side_name, end.text()),
                         fmt::format("{} has no such participant or part", side.document.label()));
    }
  }

  void check_edges() {
    index_tensors();
    counted_of_.resize(plan_.layer_sets.size());
    std::vector<uint32_t> order(plan_.edges.size());
    std::iota(order.begin(), order.end(), 0);
    order = sorted_by(&Edge::tensor, plan_.tensors.size(), plan_.edges, order);
    // Targets first: where the work limit ends the proof, what targets miss has been looked for.
    if (check_side(target_, order)) check_side(source_, order);
  }

  // Tensors are sorted by layers and then by name (rule plan-tensor), so those with equal layers are neighbours and
  // share one map.
  void index_tensors() {
    const std::vector<PlanTensor>& tensors = plan_.tensors;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (i == 0 || tensors[i].layers != tensors[i - 1].layers) layer_maps_.emplace_back(tensors[i].layers);
      layer_map_of_.push_back(static_cast<uint32_t>(layer_maps_.size() - 1));
      tensors_by_name_.push_back(static_cast<uint32_t>(i));
    }
    std::sort(tensors_by_name_.begin(), tensors_by_name_.end(), [&](uint32_t a, uint32_t b) {
      return std::tie(tensors[a].component.name, a) < std::tie(tensors[b].component.name, b);
    });
  }

  // `order`: the edges by tensor. False when a limit stopped it.
  // Every owner is visited, also one without edges: what it requires is then a gap.
  bool check_side(const Side& side, std::span<const uint32_t> order) {
    const std::vector<uint32_t> edges = sorted_by(side.end_of, side.owners.size(), plan_.edges, order);
    size_t begin = 0;
    for (uint32_t owner = 0; owner < side.owners.size(); ++owner) {
      size_t end = begin;
      while (end < edges.size() && plan_.edges[edges[end]].*side.end_of == owner) ++end;
      if (!check_owner(side, owner, std::span(edges).subspan(begin, end - begin))) return false;
      begin = end;
    }
    return true;
  }

  // Merges two lists that are sorted by tensor: what is owned, and the edges.
  bool check_owner(const Side& side, uint32_t owner, std::span<const uint32_t> edges) {
    if (!collect_owned(*side.owners[owner])) return false;
    std::span<const OwnedLayers> owned = owned_;
    while (!owned.empty() || !edges.empty()) {
      uint32_t tensor = kNone;
      if (!owned.empty()) tensor = owned[0].tensor;
      if (!edges.empty()) tensor = std::min(tensor, plan_.edges[edges[0]].tensor);
      size_t owned_count = 0;
      while (owned_count < owned.size() && owned[owned_count].tensor == tensor) ++owned_count;
      size_t edge_count = 0;
      while (edge_count < edges.size() && plan_.edges[edges[edge_count]].tensor == tensor) ++edge_count;
      const bool goes_on = &side == &target_
                               ? check_target(owner, tensor, owned.first(owned_count), edges.first(edge_count))
                               : check_source(owner, tensor, owned.first(owned_count), edges.first(edge_count));
      if (!goes_on) return false;
      owned = owned.subspan(owned_count);
      edges = edges.subspan(edge_count);
    }
    return true;
  }

  // Sorted by tensor, then by ownership.
  // A component name may belong to several tensors, one for each pair of layer groups; layers tell which of them an
  // ownership is about.
  bool collect_owned(const PlanOwner& owner) {
    owned_.clear();
    for (size_t i = 0; i < owner.owns.size(); ++i)
      for (const ComponentName& name : owner.owns[i].components)
        for (const uint32_t tensor : tensors_named(name)) {
          const uint64_t steps =
              layer_maps_[layer_map_of_[tensor]].for_each_counted(owner.owns[i].layers, [&](Range layers) {
                owned_.push_back(OwnedLayers{tensor, static_cast<uint32_t>(i), layers});
              });
          if (!work_.spend(steps)) return false;
        }
    const auto before = [](const OwnedLayers& a, const OwnedLayers& b) {
      return std::tie(a.tensor, a.ownership, a.layers) < std::tie(b.tensor, b.ownership, b.layers);
    };
    if (!std::is_sorted(owned_.begin(), owned_.end(), before)) std::sort(owned_.begin(), owned_.end(), before);
    return true;
  }

  std::span<const uint32_t> tensors_named(const ComponentName& name) const {
    const auto name_of = [this](uint32_t tensor) -> const ComponentName& {
      return plan_.tensors[tensor].component.name;
    };
    const auto begin = std::partition_point(tensors_by_name_.begin(), tensors_by_name_.end(),
                                            [&](uint32_t tensor) { return name_of(tensor) < name; });
    auto end = begin;
    while (end != tensors_by_name_.end() && name_of(*end) == name) ++end;
    return std::span(begin, end);
  }

  // Required(q) in one tensor: what q owns, cut to the tensor's tokens, which are Live and Asked (check_plan_tensors()
  // compared them with the documents).
  bool check_target(uint32_t target, uint32_t tensor, std::span<const OwnedLayers> owned,
                    std::span<const uint32_t> edges) {
    const Range tokens = owned_tokens(target_, tensor).intersect(plan_.tensors[tensor].tokens);
    coverage_.begin();
    if (!tokens.empty() && !add_owned(*target_.owners[target], owned, tokens)) return false;
    for (const uint32_t edge : edges)
      if (!add_edge(edge)) return false;
    return coverage_.run(CoverageRule::kExactlyOnce, layer_maps_[layer_map_of_[tensor]], target, tensor);
  }

  // Most edges lie within one ownership; the others are swept together.
  // Being contained needs no exact cover, so an edge that lies within one ownership is done without a sweep. An edge
  // may also lie in several ownerships together; only the sweep can tell.
  bool check_source(uint32_t source, uint32_t tensor, std::span<const OwnedLayers> owned,
                    std::span<const uint32_t> edges) {
    const PlanOwner& owner = *source_.owners[source];
    const Range tokens = owned_tokens(source_, tensor);
    coverage_.begin();
    bool has_others = false;
    for (const uint32_t edge : edges) {
      if (lies_in_one(plan_.edges[edge], owner, owned.first(std::min(owned.size(), kOwnedTriesMax)), tokens)) continue;
      if (!add_edge(edge)) return false;
      has_others = true;
    }
    // lies_in_one() says true when the work limit stops it; here that is told apart.
    if (work_.stopped()) return false;
    if (!has_others) return true;
    return add_owned(owner, owned, tokens) &&
           coverage_.run(CoverageRule::kContained, layer_maps_[layer_map_of_[tensor]], 0, tensor);
  }

  // Tokens that a side's ownerships are about.
  Range owned_tokens(const Side& side, uint32_t tensor) const {
    return plan_.tensors[tensor].component.is_state() ? Range(0, 1) : side.document.tokens();
  }

  bool add_owned(const PlanOwner& owner, std::span<const OwnedLayers> owned, Range tokens) {
    uint32_t region = 0;
    for (size_t i = 0; i < owned.size(); ++i) {
      const Ownership& ownership = owner.owns[owned[i].ownership];
      if (i == 0 || owned[i].ownership != owned[i - 1].ownership)
        region = coverage_.add_owned(ownership.heads.ranges(), view_of(ownership.tokens, tokens));
      if (!coverage_.add_layers(region, owned[i].layers)) return false;
    }
    return true;
  }

  bool add_edge(uint32_t edge) {
    const uint32_t region = coverage_.add_edge(edge, view_of(plan_.token_sets[plan_.edges[edge].token_set]));
    for (const Range layers : counted_layers(plan_.edges[edge]))
      if (!coverage_.add_layers(region, layers)) return false;
    return true;
  }

  bool lies_in_one(const Edge& edge, const PlanOwner& owner, std::span<const OwnedLayers> owned, Range tokens) {
    const std::span<const Range> layers = counted_layers(edge);
    const Range layers_hull(layers.front().begin(), layers.back().end());
    const TokenView edge_tokens = view_of(plan_.token_sets[edge.token_set]);
    for (const OwnedLayers& candidate : owned) {
      if (!candidate.layers.contains(layers_hull)) continue;
      const Ownership& ownership = owner.owns[candidate.ownership];
      const TokenView owned_view = view_of(ownership.tokens, tokens);
      const std::vector<Range>& heads = ownership.heads.ranges();
      // The caller looks at work_ before it believes this.
      if (!work_.spend(heads.size() + owned_view.range_count() + edge_tokens.range_count())) return true;
      if (std::any_of(heads.begin(), heads.end(), [&](Range range) { return range.contains(edge.heads); }) &&
          surely_within(edge_tokens, owned_view))
        return true;
    }
    return false;
  }

  // The edge's layers, counted through; until the next call. The plan's own rules say that a layer set lies within the
  // tensor of its edge, and tensors have equal layers or none in common; so it is counted in one way only.
  std::span<const Range> counted_layers(const Edge& edge) {
    const uint32_t map = layer_map_of_[edge.tensor];
    CountedLayers& known = counted_of_[edge.layer_set];
    if (known.count == 0) {
      known = CountedLayers{map, counted_layers_.size(), 0};
      work_.spend(layer_maps_[map].for_each_counted(plan_.layer_sets[edge.layer_set],
                                                    [&](Range layers) { counted_layers_.push_back(layers); }));
      known.count = counted_layers_.size() - known.begin;
    }
    CHECK(known.map == map && known.count > 0);
    return std::span(counted_layers_).subspan(known.begin, known.count);
  }

  // A proof that was stopped always adds plan-limit: no diagnostics means proved, and never "not looked at".
  PlanProof report() {
    report_limit();
    if (plan_.edges.empty() && keeper_.has_gap())
      diagnostics_.add(Rule::kPlanEmpty, "", "the plan has no edge, and its targets require something");
    PlanProof proof;
    proof.diagnostic_count = keeper_.count();
    proof.diagnostics = keeper_.take();
    proof.cells = coverage_.cells();
    proof.complete = !work_.stopped();
    report_plan_diagnostics(plan_, proof, diagnostics_);
    return proof;
  }

  void report_limit() {
    switch (work_.reason()) {
      case WorkMeter::Stop::kNone: return;
      case WorkMeter::Stop::kSteps:
        return diagnostics_.add(Rule::kPlanLimit, "",
                                fmt::format("the proof takes more than {} steps", limits_.work_max));
      case WorkMeter::Stop::kTokenRanges:
        return diagnostics_.add(
            Rule::kPlanLimit, "",
            fmt::format("token cycles have a common period of more than {} blocks", limits_.token_range_count_max));
      case WorkMeter::Stop::kItems:
        return diagnostics_.add(Rule::kPlanLimit, "", "one target has too many regions in one tensor");
    }
  }

  struct CountedLayers {
    uint32_t map = 0;
    size_t begin = 0;
    size_t count = 0;  // 0: not counted yet
  };

  const TransferPlan& plan_;
  Side source_;
  Side target_;
  const VerifyLimits& limits_;
  Diagnostics& diagnostics_;
  WorkMeter work_;
  DiagnosticKeeper keeper_;
  CoverageSweep coverage_;

  std::vector<LayerMap> layer_maps_;  // one for each run of tensors with equal layers
  std::vector<uint32_t> layer_map_of_;
  std::vector<uint32_t> tensors_by_name_;
  std::vector<CountedLayers> counted_of_;  // of each layer set
  std::vector<Range> counted_layers_;
  std::vector<OwnedLayers> owned_;
};

}  // namespace

PlanProof verify_plan(const Valid<TransferPlan>& plan, const PlanSide& source, const PlanSide& target,
                      const VerifyLimits& limits, Diagnostics& diagnostics) {
  return PlanCheck(*plan, source, target, limits, diagnostics).run();
}

}  // namespace crossdock
