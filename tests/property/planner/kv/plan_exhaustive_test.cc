// Every pair of small splits, planned, proved, and compared cell by cell with what the two splits say.
//
// Layers and heads. A split says which of at most four ranks has each cell of a grid of layers x heads. For each grid
// of at most 4 x 4 all pairs of these splits are planned:
// - grids of at most six cells: every partition of the cells into at most four sets, one set for each rank;
// - larger grids: every partition of the layers into stages, and for each stage its own partition of the heads, as long
// as
//   there are at most four ranks in all. Stages and shares are any sets, so layers may interleave and heads have gaps.
// A partition is taken once, not once for each way to name its ranks.
//
// Replicas. Every way to give each of at most three heads to a non-empty set of at most three ranks, on both sides.
//
// Tokens. Every way to share out the blocks of a cycle of at most four blocks of one to three tokens among at most four
// ranks, on both sides.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/wire/documents.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kRanksMax = 4;

// ---- enumeration

using Partition = std::vector<uint64_t>;  // the number of the set that each item is in

// Partitions of items into at most `set_count_max` sets, each once: an item joins a set that an earlier one is in, or
// opens the next.
std::vector<Partition> partitions(uint64_t item_count, uint64_t set_count_max) {
  std::vector<Partition> all = {{}};
  for (uint64_t item = 0; item < item_count; ++item) {
    std::vector<Partition> longer;
    for (const Partition& partition : all) {
      const uint64_t open = partition.empty() ? 0 : *std::max_element(partition.begin(), partition.end()) + 1;
      for (uint64_t set = 0; set <= open && set < set_count_max; ++set) {
        longer.push_back(partition);
        longer.back().push_back(set);
      }
    }
    all = std::move(longer);
  }
  return all;
}

uint64_t set_count(const Partition& partition) {
  return partition.empty() ? 0 : *std::max_element(partition.begin(), partition.end()) + 1;
}

// The ranks that own each cell, by replica ordinal; cells are numbered layer by layer.
using Split = std::vector<std::vector<uint64_t>>;

Split split_of(const Partition& cells) {
  Split split;
  for (const uint64_t rank : cells) split.push_back({rank});
  return split;
}

// Appends the splits in which stages from `stage` on have any partition of the heads. `cells` is the split so far.
void append_stages(const Partition& stages, uint64_t stage, uint64_t head_count, uint64_t ranks_used,
                   const Partition& cells, std::vector<Split>& splits) {
  if (stage == set_count(stages)) {
    splits.push_back(split_of(cells));
    return;
  }
  if (ranks_used == kRanksMax) return;
  for (const Partition& shares : partitions(head_count, kRanksMax - ranks_used)) {
    Partition more = cells;
    for (uint64_t layer = 0; layer < stages.size(); ++layer)
      for (uint64_t head = 0; head < head_count; ++head)
        if (stages[layer] == stage) more[layer * head_count + head] = ranks_used + shares[head];
    append_stages(stages, stage + 1, head_count, ranks_used + set_count(shares), more, splits);
  }
}

std::vector<Split> all_splits(uint64_t layer_count, uint64_t head_count) {
  std::vector<Split> splits;
  const uint64_t cell_count = layer_count * head_count;
  if (cell_count <= 6) {
    for (const Partition& cells : partitions(cell_count, kRanksMax)) splits.push_back(split_of(cells));
    return splits;
  }
  for (const Partition& stages : partitions(layer_count, kRanksMax))
    append_stages(stages, 0, head_count, 0, Partition(cell_count), splits);
  return splits;
}

std::vector<Split> all_replica_splits(uint64_t head_count, uint64_t rank_count) {
  std::vector<Split> splits = {{}};
  for (uint64_t head = 0; head < head_count; ++head) {
    std::vector<Split> longer;
    for (const Split& split : splits)
      for (uint64_t members = 1; members < uint64_t{1} << rank_count; ++members) {
        longer.push_back(split);
        longer.back().emplace_back();
        for (uint64_t rank = 0; rank < rank_count; ++rank)
          if (members >> rank & 1) longer.back().back().push_back(rank);
      }
    splits = std::move(longer);
  }
  return splits;
}

// ---- placements

CacheSchema schema_of(uint64_t layer_count, uint64_t head_count) {
  return CacheSchema{{LayerGroup{IntervalSet{Range(0, layer_count)},
                                 LiveTokens::all(),
                                 {Component{ComponentName("key"), "bfloat16", "plain", 2, head_count, 1, 1}}}}};
}

PlacementManifest placement_of(const CacheSchema& schema, std::vector<std::vector<Ownership>> owns) {
  PlacementManifest placement;
  placement.name = "split";
  placement.resource = ResourceId("r");
  placement.revision = RevisionId("1");
  placement.cache_schema = schema;
  placement.topology.sizes = ParallelAxes{.dp = 1, .pp = 1, .tp = owns.size(), .cp = 1, .ep = 1};
  for (uint64_t rank = 0; rank < owns.size(); ++rank) {
    const ParticipantId id(fmt::format("r{}", rank));
    placement.topology.participants.push_back(
        Participant{id, ParallelAxes{.dp = 0, .pp = 0, .tp = rank, .cp = 0, .ep = 0}});
    placement.parts.push_back(Part{id, std::move(owns[rank])});
  }
  return placement;
}

PlacementManifest placement_of(const CacheSchema& schema, const Split& split, uint64_t head_count) {
  std::vector<std::vector<Ownership>> owns(kRanksMax);
  const uint64_t layer_count = split.size() / head_count;
  for (uint64_t layer = 0; layer < layer_count; ++layer) {
    std::map<std::pair<uint64_t, ReplicaOrdinal>, std::vector<Range>> heads_of;  // by rank
    for (uint64_t head = 0; head < head_count; ++head) {
      const std::vector<uint64_t>& ranks = split[layer * head_count + head];
      for (uint64_t i = 0; i < ranks.size(); ++i)
        heads_of[{ranks[i], ReplicaOrdinal{i, ranks.size()}}].emplace_back(head, head + 1);
    }
    for (const auto& [key, heads] : heads_of)
      owns[key.first].push_back(Ownership{IntervalSet{Range(layer, layer + 1)},
                                          {ComponentName("key")},
                                          IntervalSet::from_ranges(heads),
                                          AllTokens(),
                                          key.second});
  }
  return placement_of(schema, std::move(owns));
}

// ---- comparison

// (cell, source) of each target, sorted.
using Brought = std::vector<std::vector<std::pair<uint64_t, uint64_t>>>;

uint64_t rank_of(const PlanEnd& end) { return static_cast<uint64_t>(end.text()[1] - '0'); }

Brought brought_by(const TransferPlan& plan, uint64_t head_count) {
  Brought brought(kRanksMax);
  for (const Edge& edge : plan.edges)
    for (const Range layers : plan.layer_sets[edge.layer_set].ranges())
      for (uint64_t layer = layers.begin(); layer < layers.end(); ++layer)
        for (uint64_t head = edge.heads.begin(); head < edge.heads.end(); ++head)
          brought[rank_of(plan.targets[edge.target])].emplace_back(layer * head_count + head,
                                                                   rank_of(plan.sources[edge.source]));
  for (auto& list : brought) std::sort(list.begin(), list.end());
  return brought;
}

Brought expected_of(const Split& source, const Split& target) {
  Brought expected(kRanksMax);
  for (uint64_t cell = 0; cell < target.size(); ++cell)
    for (uint64_t i = 0; i < target[cell].size(); ++i)
      expected[target[cell][i]].emplace_back(cell, source[cell][i % source[cell].size()]);
  return expected;
}

struct Side {
  Split split;
  Valid<PlacementManifest> placement;
  PlanSide side;

  Side(const Split& own, Valid<PlacementManifest> document)
      : split(own), placement(std::move(document)), side(placement, digest(placement)) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
};

std::optional<Valid<TransferPlan>> plan_and_prove(const Side& source, const Side& target, Diagnostics& diagnostics) {
  std::optional<Valid<TransferPlan>> plan =
      make_plan(source.side, target.side, PlanOptions{}, PlanLimits{}, diagnostics);
  if (plan) verify_plan(*plan, source.side, target.side, VerifyLimits{}, diagnostics);
  return plan;
}

void show(const Side& source, const Side& target, const Diagnostics& diagnostics) {
  ADD_FAILURE() << "source: " << to_json(source.placement) << "\ntarget: " << to_json(target.placement) << "\n"
                << (diagnostics.empty() ? "" : diagnostics.kept().front().to_line());
}

// False after the first pair that is wrong.
bool compare_all(const std::vector<Split>& splits, uint64_t layer_count, uint64_t head_count) {
  const CacheSchema schema = schema_of(layer_count, head_count);
  std::deque<Side> sides;
  for (const Split& split : splits) sides.emplace_back(split, valid_or_die(placement_of(schema, split, head_count)));
  for (const Side& source : sides)
    for (const Side& target : sides) {
      Diagnostics diagnostics;
      const auto plan = plan_and_prove(source, target, diagnostics);
      if (plan && diagnostics.empty() && brought_by(**plan, head_count) == expected_of(source.split, target.split))
        continue;
      show(source, target, diagnostics);
      return false;
    }
  return true;
}

TEST(PlanExhaustive, EnumeratesWhatItSays) {
  // Bell numbers, but for the one set of four that is not among at most three.
  EXPECT_EQ(partitions(4, 4).size(), 15u);
  EXPECT_EQ(partitions(4, 3).size(), 14u);
  // Partitions of six cells into at most four sets: Stirling numbers 1 + 31 + 90 + 65.
  EXPECT_EQ(all_splits(2, 3).size(), 187u);
  // One stage: 15. Two stages: 7 ways to share out layers x (1 + 7 + 7 + 6 + 6 + 49). Three: 6 x (1 + 3 x 7). Four: 1.
  EXPECT_EQ(all_splits(4, 4).size(), 15u + 7 * 76 + 6 * 22 + 1);
  const std::vector<Split> splits = all_splits(4, 4);
  EXPECT_EQ(std::set<Split>(splits.begin(), splits.end()).size(), splits.size());
  EXPECT_EQ(all_replica_splits(3, 3).size(), 343u);
}

TEST(PlanExhaustive, AllSplitsOfLayersAndHeads) {
  for (uint64_t layer_count = 1; layer_count <= 4; ++layer_count)
    for (uint64_t head_count = 1; head_count <= 4; ++head_count)
      ASSERT_TRUE(compare_all(all_splits(layer_count, head_count), layer_count, head_count));
}

TEST(PlanExhaustive, AllReplicaSets) {
  for (uint64_t head_count = 1; head_count <= 3; ++head_count)
    ASSERT_TRUE(compare_all(all_replica_splits(head_count, 3), 1, head_count));
}

// ---- tokens

struct CycleSplit {
  uint64_t block_tokens;
  Partition blocks;

  uint64_t rank_of(uint64_t token) const { return blocks[token / block_tokens % blocks.size()]; }
};

std::vector<CycleSplit> all_cycle_splits() {
  std::vector<CycleSplit> splits;
  for (uint64_t block_tokens = 1; block_tokens <= 3; ++block_tokens)
    for (uint64_t block_count = 1; block_count <= 4; ++block_count)
      for (const Partition& blocks : partitions(block_count, kRanksMax))
        splits.push_back(CycleSplit{block_tokens, blocks});
  return splits;
}

PlacementManifest placement_of(const CycleSplit& split) {
  std::vector<std::vector<Ownership>> owns(kRanksMax);
  for (uint64_t rank = 0; rank < set_count(split.blocks); ++rank) {
    std::vector<Range> own;
    for (uint64_t block = 0; block < split.blocks.size(); ++block)
      if (split.blocks[block] == rank) own.emplace_back(block, block + 1);
    owns[rank] = {Ownership{IntervalSet{Range(0, 1)},
                            {ComponentName("key")},
                            IntervalSet{Range(0, 1)},
                            CyclicTokens{split.block_tokens, split.blocks.size(), IntervalSet::from_ranges(own)},
                            {}}};
  }
  return placement_of(schema_of(1, 1), std::move(owns));
}

TEST(PlanExhaustive, AllCyclesOfTokens) {
  constexpr uint64_t kPeriod = 72;  // of any two of the cycles
  const std::vector<CycleSplit> splits = all_cycle_splits();
  ASSERT_EQ(splits.size(), 3u * (1 + 2 + 5 + 15));
  std::deque<Side> sides;
  for (const CycleSplit& split : splits) sides.emplace_back(Split(), valid_or_die(placement_of(split)));
  for (size_t s = 0; s < splits.size(); ++s)
    for (size_t t = 0; t < splits.size(); ++t) {
      Diagnostics diagnostics;
      const auto plan = plan_and_prove(sides[s], sides[t], diagnostics);
      std::vector<std::tuple<uint64_t, uint64_t, uint64_t>> brought;  // token, target, source
      std::vector<std::tuple<uint64_t, uint64_t, uint64_t>> expected;
      for (uint64_t token = 0; token < 2 * kPeriod && plan; ++token) {
        expected.emplace_back(token, splits[t].rank_of(token), splits[s].rank_of(token));
        for (const Edge& edge : (*plan)->edges) {
          const TokenSet& tokens = (*plan)->token_sets[edge.token_set];
          if (tokens.intervals.contains(token) && (!tokens.cycle || tokens.cycle->contains(token)))
            brought.emplace_back(token, rank_of((*plan)->targets[edge.target]), rank_of((*plan)->sources[edge.source]));
        }
      }
      if (plan && diagnostics.empty() && brought == expected) continue;
      show(sides[s], sides[t], diagnostics);
      return;
    }
}

}  // namespace
}  // namespace crossdock::testing
