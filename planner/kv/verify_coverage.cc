#include "planner/kv/verify_coverage.h"

#include <algorithm>

// Over one tensor, for one end: the owned regions R and the edges E, as boxes of layers x heads with sets of tokens.
//
//   kExactlyOnce:  union of E = union of R, and the members of E are disjoint
//   kContained:    each member of E is a subset of the union of R
//
// A slab is a maximal interval of layers with the same active regions, a cell one of heads in it. All elements of a
// cell with one token are in the same regions, so comparing the tokens of a cell proves all its layers and heads at
// once.
// Diagnostics grow along layers while they stay the same from slab to slab, so one mistake over 80 layers is one
// diagnostic and not 80.
namespace crossdock {

void CoverageSweep::begin() {
  regions_.clear();
  layer_sweep_.clear();
}

uint32_t CoverageSweep::add_owned(std::span<const Range> heads, const TokenView& tokens) {
  regions_.push_back(Region{heads, tokens, kNoEdge});
  return static_cast<uint32_t>(regions_.size() - 1);
}

uint32_t CoverageSweep::add_edge(uint32_t edge, const TokenView& tokens) {
  regions_.push_back(Region{std::span(&edges_[edge].heads, 1), tokens, edge});
  return static_cast<uint32_t>(regions_.size() - 1);
}

bool CoverageSweep::add_layers(uint32_t region, Range layers) {
  if (!work_.spend(1)) return false;
  return layer_sweep_.add(Item{layers, region}) || work_.stop(WorkMeter::Stop::kItems);
}

// Also after a stop: open diagnostics are closed, so that what was found is reported.
bool CoverageSweep::run(CoverageRule rule, const LayerMap& layers, uint32_t target, uint32_t tensor) {
  rule_ = rule;
  layer_map_ = &layers;
  target_ = target;
  tensor_ = tensor;
  const bool finished = layer_sweep_.run([this](Range slab, std::span<const Item> active) {
    const bool goes_on = visit_slab(slab, active);
    if (!slab_diagnostics_.empty() || !open_diagnostics_.empty()) finish_slab(slab);
    return goes_on && !work_.stopped();
  });
  for (const OpenDiagnostic& open : open_diagnostics_) close(open);
  open_diagnostics_.clear();
  return finished;
}

bool CoverageSweep::visit_slab(Range, std::span<const Item> active) {
  head_sweep_.clear();
  bool has_edge = false;
  for (const Item& item : active) {
    const Region& region = regions_[item.id];
    has_edge |= region.edge != kNoEdge;
    if (!work_.spend(region.heads.size())) return false;
    for (const Range heads : region.heads)
      if (!head_sweep_.add(Item{heads, item.id})) return work_.stop(WorkMeter::Stop::kItems);
  }
  // Without an edge there is nothing to contain. For kExactlyOnce the slab may be a gap.
  if (rule_ == CoverageRule::kContained && !has_edge) return true;
  return head_sweep_.run([this](Range heads, std::span<const Item> cell) { return visit_cell(heads, cell); });
}

bool CoverageSweep::visit_cell(Range heads, std::span<const Item> active) {
  if (!work_.spend(active.size())) return false;
  owned_.clear();
  given_regions_.clear();
  for (const Item& item : active) {
    if (regions_[item.id].edge == kNoEdge)
      owned_.push_back(regions_[item.id].tokens);
    else
      given_regions_.push_back(item.id);
  }
  std::sort(given_regions_.begin(), given_regions_.end());  // as edges are, so that messages name the first
  return rule_ == CoverageRule::kExactlyOnce ? compare_all(heads) : compare_each(heads);
}

// One owned region and one edge of the same tokens is what right plans are made of; all other cells compare exactly.
bool CoverageSweep::compare_all(Range heads) {
  ++cells_;
  if (owned_.size() == 1 && given_regions_.size() == 1) {
    const TokenView& given = regions_[given_regions_[0]].tokens;
    if (!work_.spend(owned_[0].range_count() + given.range_count())) return false;
    if (surely_equal(owned_[0], given)) return true;
  }
  given_.clear();
  for (const uint32_t region : given_regions_) given_.push_back(regions_[region].tokens);
  if (!tokens_.compare(owned_, given_)) return false;
  const auto edge_at = [this](size_t position) { return regions_[given_regions_[position]].edge; };
  if (!tokens_.gap().empty())
    slab_diagnostics_.push_back(CellDiagnostic{heads, tokens_.gap(), PlanDiagnostic::Kind::kGap});
  if (!tokens_.overlap().empty())
    slab_diagnostics_.push_back(CellDiagnostic{heads, tokens_.overlap(), PlanDiagnostic::Kind::kOverlap,
                                               edge_at(tokens_.overlap_first()), edge_at(tokens_.overlap_second())});
  for (size_t i = 0; i < given_.size(); ++i)
    if (!tokens_.extra(i).empty())
      slab_diagnostics_.push_back(
          CellDiagnostic{heads, tokens_.extra(i), PlanDiagnostic::Kind::kNotTarget, edge_at(i)});
  return true;
}

// One by one: their cycles together may have a common period far beyond that of each alone.
bool CoverageSweep::compare_each(Range heads) {
  for (const uint32_t region : given_regions_) {
    const TokenView& given = regions_[region].tokens;
    const Range hull = given.intervals->hull();
    clipped_.clear();
    bool is_within = false;
    for (const TokenView& owned : owned_) {
      if (!work_.spend(owned.range_count() + given.range_count())) return false;
      is_within = surely_within(given, owned);
      if (is_within) break;
      clipped_.push_back(owned);
      // Owned tokens outside the edge cannot matter, and a cycle without end would be unrolled for nothing.
      clipped_.back().bounds = owned.bounds.intersect(hull);
    }
    if (is_within) continue;
    if (!tokens_.compare(clipped_, std::span(&given, 1))) return false;
    if (!tokens_.extra(0).empty())
      slab_diagnostics_.push_back(
          CellDiagnostic{heads, tokens_.extra(0), PlanDiagnostic::Kind::kNotSource, regions_[region].edge});
  }
  return true;
}

// One diagnostic over several slabs is one.
void CoverageSweep::finish_slab(Range layers) {
  std::sort(slab_diagnostics_.begin(), slab_diagnostics_.end());
  // A slab of counted layers may be several runs of real ones; a diagnostic never spans layers that the tensor does not
  // have.
  layer_map_->for_each_real(layers, [this](Range real_layers) {
    if (!work_.spend(slab_diagnostics_.size() + open_diagnostics_.size())) return false;
    continue_diagnostics(real_layers);
    return true;
  });
  slab_diagnostics_.clear();
}

// Both lists are sorted by diagnostic.
// A merge of the open diagnostics and those of this slab: equal ones that touch are extended, all other open ones end.
void CoverageSweep::continue_diagnostics(Range real_layers) {
  next_open_diagnostics_.clear();
  auto open = open_diagnostics_.begin();
  for (const CellDiagnostic& diagnostic : slab_diagnostics_) {
    for (; open != open_diagnostics_.end() && open->diagnostic < diagnostic; ++open) close(*open);
    Range layers = real_layers;
    if (open != open_diagnostics_.end() && open->diagnostic == diagnostic) {
      if (open->layers.end() == real_layers.begin())
        layers = Range(open->layers.begin(), real_layers.end());
      else
        close(*open);
      ++open;
    }
    next_open_diagnostics_.push_back(OpenDiagnostic{diagnostic, layers});
  }
  for (; open != open_diagnostics_.end(); ++open) close(*open);
  open_diagnostics_.swap(next_open_diagnostics_);
}

void CoverageSweep::close(const OpenDiagnostic& open) {
  const CellDiagnostic& diagnostic = open.diagnostic;
  PlanDiagnostic closed{diagnostic.kind, tensor_, target_, open.layers, diagnostic.heads, diagnostic.tokens, {}};
  if (diagnostic.first_edge != kNoEdge) closed.edges.push_back(diagnostic.first_edge);
  if (diagnostic.second_edge != kNoEdge) closed.edges.push_back(diagnostic.second_edge);
  // A sweep over a source mixes edges to several targets; the report is by target.
  if (diagnostic.kind == PlanDiagnostic::Kind::kNotSource) closed.target = edges_[diagnostic.first_edge].target;
  diagnostics_.add(std::move(closed));
}

}  // namespace crossdock
