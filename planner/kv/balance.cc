#include "planner/kv/balance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/sweep.h"
#include "planner/min_max_load.h"

// A target's claim is cut into cells (layers x heads, one token ownership of the sources) such that all elements of a
// cell have the same candidates. The cells of one claim are disjoint, and their union is the part of the claim that any
// candidate owns. A choice of one candidate for each part of a cell therefore keeps I1, whichever it is; balancing only
// decides which one.
// Cells and not elements: the number of cells follows the boundaries of the documents. Why not greedily: with lists of
// candidates that overlap, a greedy choice may load one NIC more than needed; the flow is exact.
namespace crossdock {

// Cells do not depend on the target's tokens, so all targets with the same layers and heads share them; tokens are
// joined here, with the cells whose ownership has some in common. Cells are sorted by heads and then by ownership.
bool DemandCollector::add(const Claim& target, std::span<const uint32_t> dps, uint32_t default_dp) {
  const std::span<const Cell> cells = cells_of(target, dps, default_dp);
  for (auto begin = cells.begin(); begin != cells.end();) {
    const auto end =
        std::partition_point(begin, cells.end(), [&](const Cell& cell) { return cell.heads == begin->heads; });
    for_each_partner(
        std::span<const Cell>(begin, end), joiner_.partners(target.ownership),
        [](const Cell& cell) { return cell.ownership; }, work_,
        [&](const Cell& cell) {
          if (const std::optional<uint32_t> tokens = joiner_.join(target.tensor, cell.ownership, target.ownership))
            demands_.push_back(Demand{target.tensor, cell.layer_set, cell.heads, *tokens, cell.candidates,
                                      cell.defaults, target.owner, target.replica_ordinal});
        });
    begin = end;
  }
  return work_ + joiner_.work() <= work_max_;
}

// The number of ranks is enough to name them: it is either all ranks or the default one alone. When the work limit
// stops the sweep the cells are incomplete; add() then returns false and the plan is refused.
const std::vector<DemandCollector::Cell>& DemandCollector::cells_of(const Claim& target, std::span<const uint32_t> dps,
                                                                    uint32_t default_dp) {
  const auto [entry, is_new] =
      cells_.try_emplace(RegionKey(target.tensor, target.layer_set, target.heads, default_dp, dps.size()));
  if (!is_new) return entry->second;

  // A cell that continues over several slabs of layers is one cell. An ordered map, so that cells come in one order
  // (I7).
  std::map<CellKey, std::vector<Range>> cells;
  sweep(
      find_items(target, dps), [](const Item& item) { return item.layers; },
      [&](Range layers, std::span<const Item> in_slab) {
        work_ += in_slab.size();
        return sweep(
            std::vector<Item>(in_slab.begin(), in_slab.end()), [](const Item& item) { return item.heads; },
            [&](Range heads, std::span<const Item> active) {
              work_ += active.size();
              add_cell(layers, heads, active, default_dp, cells);
              return work_ <= work_max_;
            });
      });
  for (auto& [key, layers] : cells) {
    const auto& [heads, ownership, candidates, defaults] = key;
    const uint32_t layer_set = numbers_.layer_sets.intern(IntervalSet::from_ranges(std::move(layers)));
    entry->second.push_back(Cell{layer_set, heads, ownership, candidates, defaults});
  }
  return entry->second;
}

std::vector<DemandCollector::Item> DemandCollector::find_items(const Claim& target, std::span<const uint32_t> dps) {
  std::vector<Item> items;
  for (const uint32_t dp : dps)
    for (SourceIndex::LayerOverlap& overlap : index_.overlaps(target.tensor, dp, target.layer_set, work_))
      for (const SourceIndex::Class& members : index_.classes(overlap))
        index_.for_each_overlapping(members, target.heads, work_, [&](std::span<const Claim> run) {
          const std::optional<uint32_t> common = index_.common_layers(overlap, target.layer_set, work_);
          if (!common) return;
          const std::vector<Range>& layers = numbers_.layer_sets[*common].ranges();
          work_ += layers.size() * run.size();
          if (work_ > work_max_) return;
          for (const Claim& claim : run)
            for (const Range range : layers)
              items.push_back(Item{range, claim.heads.intersect(target.heads),
                                   static_cast<uint32_t>(&claim - index_.claims().data())});
        });
  return items;
}

// One rank decides how tokens are shared out. Its ownerships partition the tokens of this cell (coverage-gap,
// coverage-overlap hold for each rank), so the demands of the cell are disjoint, and complete unless the caller left
// sources out. An owner of another rank serves only under an equal token ownership: with another cut of the tokens it
// would bring some of them twice.
void DemandCollector::add_cell(Range layers, Range heads, std::span<const Item> active, uint32_t default_dp,
                               std::map<CellKey, std::vector<Range>>& cells) {
  std::vector<const Claim*> claims;
  claims.reserve(active.size());
  for (const Item& item : active) claims.push_back(&index_.claims()[item.claim]);
  std::sort(claims.begin(), claims.end(), [](const Claim* a, const Claim* b) {
    return std::tie(a->ownership, a->replica_ordinal, a->owner) < std::tie(b->ownership, b->replica_ordinal, b->owner);
  });
  const bool has_default =
      std::any_of(claims.begin(), claims.end(), [&](const Claim* claim) { return claim->dp == default_dp; });
  const auto lowest =
      std::min_element(claims.begin(), claims.end(), [](const Claim* a, const Claim* b) { return a->dp < b->dp; });
  const uint32_t deciding_dp = has_default ? default_dp : (*lowest)->dp;
  for (size_t begin = 0; begin < claims.size();) {
    const uint32_t ownership = claims[begin]->ownership;
    std::vector<uint32_t> owners;
    std::vector<uint32_t> defaults;
    size_t end = begin;
    for (; end < claims.size() && claims[end]->ownership == ownership; ++end) {
      owners.push_back(claims[end]->owner);
      if (claims[end]->dp == deciding_dp) defaults.push_back(claims[end]->owner);
    }
    if (!defaults.empty()) {
      // Before `defaults`: numbers follow the order of interning, and arguments of one call have no fixed order (I7).
      const uint32_t candidates = candidates_.intern(owners);
      cells[CellKey(heads, ownership, candidates, candidates_.intern(defaults))].push_back(layers);
    }
    begin = end;
  }
}

std::optional<uint64_t> DemandCollector::block_count() const {
  Checked sum = 0;
  for (const Demand& demand : demands_)
    sum = sum + Checked(numbers_.layer_sets[demand.layer_set].count()) * demand.heads.size();
  return sum.value();
}

std::vector<ChosenEdge> choose_by_ordinal(const DemandCollector& collected) {
  std::vector<ChosenEdge> edges;
  edges.reserve(collected.demands().size());
  for (const Demand& demand : collected.demands()) {
    const std::vector<uint32_t>& defaults = collected.candidates()[demand.defaults];
    edges.push_back(ChosenEdge{demand.tensor, demand.layer_set, demand.heads, demand.token_set,
                               defaults[demand.target_ordinal % defaults.size()], demand.target});
  }
  return edges;
}

namespace {

// The weights of all demands stay below about this, so that sums never wrap.
// A double is exact enough: it only bounds a sum that min_max_load takes up to 2^63. Rounding each weight up to at
// least 1 adds at most kBalancedBlocksMax.
constexpr double kTotalWeightMax = 0x1p61;
// Longer intervals are tokens without end, which a plan without a snapshot has; they are weighed as kWeighedTokens.
constexpr uint64_t kTokensExactMax = uint64_t{1} << 40;

// Layers number `begin` to `end` of the set, counted from its first.
IntervalSet slice(const IntervalSet& layers, uint64_t begin, uint64_t end) {
  std::vector<Range> ranges;
  uint64_t before = 0;
  for (const Range range : layers.ranges()) {
    const Range wanted = Range(begin, end).intersect(Range(before, before + range.size()));
    if (!wanted.empty())
      ranges.emplace_back(range.begin() + (wanted.begin() - before), range.begin() + (wanted.end() - before));
    before += range.size();
  }
  return IntervalSet::from_ranges(std::move(ranges));
}

class Balancer {
 public:
  Balancer(const BalanceInput& input, BalanceReport& report)
      : input_(input), demands_(input.collected.demands()), report_(report) {}

  // Both choices are made and measured with the same weights, because cutting at whole (layer, head) may cost more than
  // sharing out gains. So the result is never worse than the deterministic one.
  std::vector<ChosenEdge> run() {
    weigh();
    std::vector<ChosenEdge> by_ordinal = choose_by_ordinal(input_.collected);
    LoadShares best = share_out();
    left_ = std::move(best.shares);
    next_nic_.resize(left_.size());
    for (const Demand& demand : demands_) cut(demand);
    const uint64_t balanced = load_max(edges_);
    const uint64_t deterministic = load_max(by_ordinal);
    report_.deterministic_bytes = in_bytes(deterministic);
    report_.balanced_bytes = in_bytes(std::min(balanced, deterministic));
    report_.bound_bytes = in_bytes(best.load_max);
    return balanced < deterministic ? std::move(edges_) : std::move(by_ordinal);
  }

 private:
  uint64_t in_bytes(uint64_t load) const { return saturating_mul(load, weight_unit_); }

  // The weight of each (tensor, token set) for one layer and head, in units of their common divisor, or coarser where
  // the sum of all would come near 2^64.
  void weigh() {
    uint64_t divisor = 0;
    double total = 0;
    for (const Demand& demand : demands_) {
      const uint64_t bytes = cell_bytes(demand.tensor, demand.token_set);
      divisor = std::gcd(divisor, bytes);
      total += static_cast<double>(bytes) * static_cast<double>(layer_heads(demand));
    }
    weight_unit_ = std::max<uint64_t>(divisor, 1);
    while (total / static_cast<double>(weight_unit_) >= kTotalWeightMax) weight_unit_ *= 2;
  }

  uint64_t cell_bytes(uint32_t tensor_number, uint32_t token_set) {
    const auto [entry, is_new] = cell_bytes_.try_emplace(std::pair(tensor_number, token_set), 0);
    if (!is_new) return entry->second;
    const PlanTensor& tensor = input_.tensors[tensor_number];
    TokenSet weighed = input_.token_sets[token_set];
    std::vector<Range> ranges = weighed.intervals.ranges();
    for (Range& range : ranges)
      if (range.size() > kTokensExactMax) range = Range(range.begin(), saturating_add(range.begin(), kWeighedTokens));
    weighed.intervals = IntervalSet::from_ranges(std::move(ranges));
    const uint64_t rows = weighed.row_count(tensor.component.tokens_per_row.value_or(1));
    entry->second = saturating_mul(std::max<uint64_t>(rows, 1), tensor.component.head_bytes());
    return entry->second;
  }

  uint64_t weight(uint32_t tensor, uint32_t token_set) {
    return std::max<uint64_t>(cell_bytes(tensor, token_set) / weight_unit_, 1);
  }

  // Fits: choose_balanced() is given no more than kBalancedBlocksMax of them.
  template <class Block>
  uint64_t layer_heads(const Block& block) const {
    return input_.numbers.layer_sets[block.layer_set].count() * block.heads.size();
  }

  // Candidates that share a NIC are one candidate of the flow: the NIC is what carries the load. One class for each
  // list, not for each demand, so the flow has lists x NICs edges.
  LoadShares share_out() {
    const Interner<std::vector<uint32_t>>& lists = input_.collected.candidates();
    lists_.resize(lists.size());
    for (uint32_t number = 0; number < lists.size(); ++number) {
      Candidates& list = lists_[number];
      list.owners = lists[number];
      std::stable_sort(list.owners.begin(), list.owners.end(),
                       [&](uint32_t a, uint32_t b) { return input_.nic_of[a] < input_.nic_of[b]; });
      for (size_t i = 0; i < list.owners.size(); ++i) {
        const uint32_t nic = input_.nic_of[list.owners[i]];
        if (list.nics.empty() || list.nics.back() != nic) {
          list.nics.push_back(nic);
          list.owner_begin.push_back(i);
        }
      }
      list.owner_begin.push_back(list.owners.size());
    }
    std::vector<LoadDemand> classes;
    classes.reserve(lists.size());
    for (const Candidates& list : lists_) classes.push_back(LoadDemand{0, list.nics});
    for (const Demand& demand : demands_)
      classes[demand.candidates].weight += weight(demand.tensor, demand.token_set) * layer_heads(demand);
    return minimize_max_load(classes, input_.nic_count);
  }

  // The demands of a class take its shares one after the other; each is cut at whole (layer, head).
  // The blocks [at, end) of one demand follow each other without a gap, and the last `end` is exactly the number of
  // blocks, since `whole` is a multiple of `unit`. So every (layer, head) of the demand gets one source (I1). `nic`
  // stays within the list: the shares of a class sum up to the weight of its demands.
  void cut(const Demand& demand) {
    const uint64_t unit = weight(demand.tensor, demand.token_set);
    const uint64_t whole = unit * layer_heads(demand);
    std::vector<uint64_t>& left = left_[demand.candidates];
    size_t& nic = next_nic_[demand.candidates];
    uint64_t taken = 0;
    uint64_t at = 0;
    while (taken < whole) {
      const uint64_t amount = std::min(whole - taken, left[nic]);
      taken += amount;
      left[nic] -= amount;
      const uint64_t end = taken / unit + (taken % unit >= div_round_up(unit, 2) ? 1 : 0);
      if (end > at) add_block(demand, source_on(demand, nic), Range(at, end));
      at = std::max(at, end);
      if (left[nic] == 0) ++nic;
    }
  }

  // Among the candidates that share a NIC, the list's number `nic`, the target's ordinal decides.
  uint32_t source_on(const Demand& demand, size_t nic) const {
    const Candidates& list = lists_[demand.candidates];
    const size_t begin = list.owner_begin[nic];
    return list.owners[begin + demand.target_ordinal % (list.owner_begin[nic + 1] - begin)];
  }

  // Elements (layer, head) number `block`, layer by layer: at most three rectangles.
  // An edge is layers x heads, so a run of blocks in row-major order is a partial first row, whole rows and a partial
  // last row.
  void add_block(const Demand& demand, uint32_t source, Range block) {
    const uint64_t width = demand.heads.size();
    const uint64_t first_layer = block.begin() / width;
    const uint64_t last_layer = block.end() / width;
    const uint64_t first_head = block.begin() % width;
    const uint64_t last_head = block.end() % width;
    if (first_layer == last_layer) {
      add_rectangle(demand, source, Range(first_layer, first_layer + 1), Range(first_head, last_head));
      return;
    }
    if (first_head != 0) add_rectangle(demand, source, Range(first_layer, first_layer + 1), Range(first_head, width));
    const uint64_t whole_begin = first_head == 0 ? first_layer : first_layer + 1;
    if (whole_begin < last_layer) add_rectangle(demand, source, Range(whole_begin, last_layer), Range(0, width));
    if (last_head != 0) add_rectangle(demand, source, Range(last_layer, last_layer + 1), Range(0, last_head));
  }

  void add_rectangle(const Demand& demand, uint32_t source, Range layers, Range heads) {
    const IntervalSet& all = input_.numbers.layer_sets[demand.layer_set];
    const uint32_t layer_set = layers == Range(0, all.count())
                                   ? demand.layer_set
                                   : input_.numbers.layer_sets.intern(slice(all, layers.begin(), layers.end()));
    const uint64_t first = demand.heads.begin();
    edges_.push_back(ChosenEdge{demand.tensor, layer_set, Range(first + heads.begin(), first + heads.end()),
                                demand.token_set, source, demand.target});
  }

  // No sum wraps: edges of one choice are disjoint, so their weights sum up to at most that of all demands.
  uint64_t load_max(const std::vector<ChosenEdge>& edges) {
    std::vector<uint64_t> loads(input_.nic_count);
    for (const ChosenEdge& edge : edges)
      loads[input_.nic_of[edge.source]] += weight(edge.tensor, edge.token_set) * layer_heads(edge);
    return loads.empty() ? 0 : *std::max_element(loads.begin(), loads.end());
  }

  // A list of candidates by their NICs.
  struct Candidates {
    std::vector<uint32_t> owners;     // by NIC, then as in the list
    std::vector<uint32_t> nics;       // ascending
    std::vector<size_t> owner_begin;  // of each NIC, and the end
  };

  const BalanceInput& input_;
  const std::vector<Demand>& demands_;
  BalanceReport& report_;
  uint64_t weight_unit_ = 1;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> cell_bytes_;
  std::vector<Candidates> lists_;
  std::vector<std::vector<uint64_t>> left_;  // of the share of each of these NICs, not yet given to a demand
  std::vector<size_t> next_nic_;             // of each list: the first NIC with something left
  std::vector<ChosenEdge> edges_;
};

}  // namespace

std::vector<ChosenEdge> choose_balanced(const BalanceInput& input, BalanceReport& report) {
  return Balancer(input, report).run();
}

}  // namespace crossdock
