// Regions against regions in one tensor: a sweep over layers, in each slab a sweep over heads, in each cell a
// comparison of tokens.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/kv/plan.h"
#include "planner/kv/plan_proof.h"
#include "planner/kv/verify_diagnostics.h"
#include "planner/kv/verify_layers.h"
#include "planner/kv/verify_sweep.h"
#include "planner/kv/verify_tokens.h"

namespace crossdock {

enum class CoverageRule {
  kExactlyOnce,  // edges bring each element of the owner's regions once, and no other
  kContained,    // edges lie within the owner's regions
};

// For one tensor after another: begin(), the owner's regions, the edges ascending, run().
class CoverageSweep {
 public:
  CoverageSweep(const std::vector<Edge>& edges, uint64_t token_range_count_max, WorkMeter& work,
                DiagnosticKeeper& diagnostics)
      : edges_(edges), tokens_(token_range_count_max, work), work_(work), diagnostics_(diagnostics) {}

  // Forgets the regions of the tensor before.
  void begin();
  // Regions that overlap count as their union. Layers are counted through, as `LayerMap` does.
  // Returns the region's number, for add_layers(). `heads` and what the view refers to outlive run().
  uint32_t add_owned(std::span<const Range> heads, const TokenView& tokens);
  uint32_t add_edge(uint32_t edge, const TokenView& tokens);
  // False when a limit is passed.
  bool add_layers(uint32_t region, Range layers);

  // Adds what is wrong as diagnostics in `tensor`: kNotSource of the edge's target for kContained; the other kinds, of
  // `target`, for kExactlyOnce. False when a limit stopped it.
  bool run(CoverageRule rule, const LayerMap& layers, uint32_t target, uint32_t tensor);

  // Cells that were compared for kExactlyOnce, over all tensors.
  uint64_t cells() const { return cells_; }

 private:
  static constexpr uint32_t kNoEdge = UINT32_MAX;

  struct Region {
    std::span<const Range> heads;
    TokenView tokens;
    uint32_t edge;  // kNoEdge: it is owned
  };
  struct Item {
    Range range;
    uint32_t id;  // the region
  };
  // A diagnostic of one slab.
  struct CellDiagnostic {
    Range heads;
    Range tokens;
    PlanDiagnostic::Kind kind;
    uint32_t first_edge = kNoEdge;
    uint32_t second_edge = kNoEdge;
    friend auto operator<=>(const CellDiagnostic&, const CellDiagnostic&) = default;
  };
  // It may go on in the next slab.
  struct OpenDiagnostic {
    CellDiagnostic diagnostic;
    Range layers;
  };

  // Each false when a limit stopped it.
  bool visit_slab(Range layers, std::span<const Item> active);
  bool visit_cell(Range heads, std::span<const Item> active);
  bool compare_all(Range heads);
  bool compare_each(Range heads);
  // Joins the diagnostics of this slab with equal ones of the slab before.
  void finish_slab(Range layers);
  void continue_diagnostics(Range real_layers);
  void close(const OpenDiagnostic& open);

  const std::vector<Edge>& edges_;
  TokenComparison tokens_;
  WorkMeter& work_;
  DiagnosticKeeper& diagnostics_;
  uint64_t cells_ = 0;

  CoverageRule rule_ = CoverageRule::kExactlyOnce;
  const LayerMap* layer_map_ = nullptr;
  uint32_t target_ = 0;
  uint32_t tensor_ = 0;
  std::vector<Region> regions_;
  SweepBuffer<Item> layer_sweep_;
  SweepBuffer<Item> head_sweep_;
  std::vector<uint32_t> given_regions_;  // of the cell
  std::vector<TokenView> owned_;
  std::vector<TokenView> clipped_;
  std::vector<TokenView> given_;
  std::vector<CellDiagnostic> slab_diagnostics_;
  std::vector<OpenDiagnostic> open_diagnostics_;  // of the slab before, in the order of their diagnostics
  std::vector<OpenDiagnostic> next_open_diagnostics_;
};

}  // namespace crossdock
