// What the owners of one side claim of the tensors of a plan, in numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interner.h"
#include "base/interval_set.h"
#include "model/kv/token_ownership.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/tensors.h"

namespace crossdock {

// One interval of heads of one tensor that one owner has.
struct Claim {
  uint32_t tensor = 0;
  uint32_t dp = 0;  // of a source: number of its data-parallel rank, given by the planner
  uint32_t layer_set = 0;
  uint32_t replica_count = 1;
  uint32_t replica_ordinal = 0;
  Range heads;
  uint32_t ownership = 0;  // the token ownership
  uint32_t owner = 0;      // index into the side's owners

  friend auto operator<=>(const Claim&, const Claim&) = default;
};

// The numbers that the claims of both sides use.
// Interned: equal sets have equal numbers, so comparing two of them is comparing numbers.
struct ClaimNumbers {
  Interner<IntervalSet> layer_sets;
  Interner<TokenOwnership> ownerships;
};

enum class ClaimSide { kSource, kTarget };

// The claims of the given owners, in the order of owners. What they own outside the tensors is left out. Replica counts
// pass 2^32 in no valid document, since each replica is a participant.
std::vector<Claim> collect_claims(const PlanSide& side, ClaimSide which, std::span<const uint32_t> owners,
                                  const CommonTensors& common, ClaimNumbers& numbers);

}  // namespace crossdock
