// Shares out divisible demands among candidates so that the most loaded one carries the least.
//
// Which maximum is possible: a set of demands reaches only the union N(D) of its candidates, so for every set D
// ceil(weight(D) / |N(D)|) bounds the maximum from below; the largest of these bounds is reached (Hall's theorem with
// capacities, by maximum flow and minimum cut).
//
// How it is found:
// 1. Demands with equal candidate lists become one class, candidates that serve the same classes one group. A group's
//    load is split evenly over its members, so nothing is lost by it.
// 2. For each connected component of classes and groups, with mean load m of a candidate, a maximum flow (Dinic 1970)
//    with room for floor(m), then ceil(m), in every candidate. Where ceil(m) suffices the component is done, its loads
//    at most one apart. Otherwise the minimum cut divides it: the classes on its source side use only candidates that
//    end up at or above that room, the others only candidates at or below it. Both sides are solved in the same way.
//    This is the decomposition by density (Megiddo 1974, Fujishige 1980) in whole units.
// 3. The share of a class in each candidate is dealt out to its demands in their order.
//
// Cost: O(P log K) for P entries in all candidate lists of the demands and K classes, to read them and write the
// shares; then at most 4 * min(K, G) flows for G groups, each over the edges of one component. Dinic's bound for one
// flow is O(V^2 E); a few phases of O(E) are usual. One class, or one that shares no candidate, costs one phase.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace crossdock {

struct LoadDemand {
  uint64_t weight = 0;
  std::vector<uint32_t> candidates;  // sorted, different, at least one; below the candidate count
};

struct LoadShares {
  std::vector<std::vector<uint64_t>> shares;  // of each demand, parallel to its candidates; they sum up to its weight
  uint64_t load_max = 0;                      // of the most loaded candidate; no integral sharing has a lower one
};

// Exact for whole units of weight. The sum of all weights must be below 2^63. Equal inputs give equal shares.
//
// The lower loads are as even as can be too: of all integral sharings this one has the lexicographically least list of
// loads sorted from the highest down. A class of n demands uses at most n + (number of its candidates) - 1 different
// pairs of demand and candidate with a share above zero.
LoadShares minimize_max_load(std::span<const LoadDemand> demands, uint32_t candidate_count);

}  // namespace crossdock
