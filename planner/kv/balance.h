// Choosing among sources that own the same elements: GQA replicas, and data-parallel ranks that hold the same cache.
//
// Demands: each region of a target is cut into cells within which the same sources can serve (a sweep over layers, then
// over heads, found once for each distinct region). Cells that the same sources can serve form a class. The classes are
// shared out among NICs so that the most loaded one carries the least; this is exact, by maximum flow
// (planner/min_max_load.h). Then each cell is cut, layer by layer and within a layer head by head, at the nearest whole
// (layer, head) to its share. Where all of these weigh the same nothing is lost by that; else each NIC is off by less
// than one of them for each class it serves. If rounding makes it worse than the deterministic choice, that one is
// taken. With D cells, N NICs and C distinct lists of candidates: O(D log D + flow of C x N edges); at most D + C x N
// edges more than without balancing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/kv/claims.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_options.h"
#include "planner/kv/source_index.h"
#include "planner/kv/token_joiner.h"

namespace crossdock {

// A block of one target's elements, and the owners each of which can send all of it.
struct Demand {
  uint32_t tensor = 0;
  uint32_t layer_set = 0;
  Range heads;
  uint32_t token_set = 0;
  uint32_t candidates = 0;  // number of the list
  uint32_t defaults = 0;    // the list of those of the default data-parallel rank, by replica ordinal
  uint32_t target = 0;      // owner
  uint32_t target_ordinal = 0;

  friend auto operator<=>(const Demand&, const Demand&) = default;
};

// A block with its source; numbers of owners, not of the plan's lists.
struct ChosenEdge {
  uint32_t tensor;
  uint32_t layer_set;
  Range heads;
  uint32_t token_set;
  uint32_t source;
  uint32_t target;
};

class DemandCollector {
 public:
  DemandCollector(SourceIndex& index, ClaimNumbers& numbers, TokenJoiner& joiner, uint64_t work_max)
      : index_(index), numbers_(numbers), joiner_(joiner), work_max_(work_max) {}

  // `dps`: the ranks that may serve, sorted; `default_dp` decides how tokens are shared out: another rank serves only
  // where it shares them out alike. False when the work limit was passed.
  bool add(const Claim& target, std::span<const uint32_t> dps, uint32_t default_dp);

  const std::vector<Demand>& demands() const { return demands_; }
  const Interner<std::vector<uint32_t>>& candidates() const { return candidates_; }
  // (layer, head) pairs of all demands; empty when they pass 2^64 - 1.
  std::optional<uint64_t> block_count() const;

 private:
  struct Cell {
    uint32_t layer_set;
    Range heads;
    uint32_t ownership;
    uint32_t candidates;
    uint32_t defaults;
  };
  struct Item {
    Range layers;
    Range heads;
    uint32_t claim;
  };
  using RegionKey = std::tuple<uint32_t, uint32_t, Range, uint32_t, size_t>;
  using CellKey = std::tuple<Range, uint32_t, uint32_t, uint32_t>;  // heads, ownership, candidates, defaults

  // By heads, then by ownership.
  const std::vector<Cell>& cells_of(const Claim& target, std::span<const uint32_t> dps, uint32_t default_dp);
  std::vector<Item> find_items(const Claim& target, std::span<const uint32_t> dps);
  void add_cell(Range layers, Range heads, std::span<const Item> active, uint32_t default_dp,
                std::map<CellKey, std::vector<Range>>& cells);

  SourceIndex& index_;
  ClaimNumbers& numbers_;
  TokenJoiner& joiner_;
  uint64_t work_max_;
  uint64_t work_ = 0;
  std::map<RegionKey, std::vector<Cell>> cells_;
  Interner<std::vector<uint32_t>> candidates_;
  std::vector<Demand> demands_;
};

// The source at index (target's replica ordinal mod their number) among those of the default data-parallel rank.
// One edge for each demand, in their order.
std::vector<ChosenEdge> choose_by_ordinal(const DemandCollector& collected);

struct BalanceInput {
  const DemandCollector& collected;
  const std::vector<PlanTensor>& tensors;
  ClaimNumbers& numbers;
  const Interner<TokenSet>& token_sets;
  std::vector<uint32_t> nic_of;  // of each owner
  uint32_t nic_count;
};

// Pairs of (layer, head) of all demands; their products with weights stay in 64 bits up to here.
inline constexpr uint64_t kBalancedBlocksMax = uint64_t{1} << 40;

// At least as good as choose_by_ordinal. Requires collected.block_count() <= kBalancedBlocksMax. `report` gets the
// loads.
std::vector<ChosenEdge> choose_balanced(const BalanceInput& input, BalanceReport& report);

}  // namespace crossdock
