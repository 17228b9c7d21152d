// What the token ownerships of sources and targets have in common.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/interner.h"
#include "base/range_index.h"
#include "planner/kv/claims.h"
#include "planner/kv/plan.h"
#include "planner/kv/token_axis.h"
#include "planner/kv/token_set.h"

namespace crossdock {

// Joins token ownerships, each pair within each interval once. Pairs are found by look-ups: a target with stated
// intervals, or with a cycle, costs the ranges that it shares with sources, and not the number of sources.
class TokenJoiner {
 public:
  // `numbers` and `tensors` outlive the joiner.
  TokenJoiner(const ClaimNumbers& numbers, const std::vector<PlanTensor>& tensors, std::span<const Claim> source_claims,
              uint64_t range_count_max);

  // Numbers of the source ownerships that may have a token in common with the target's, ascending. The others have
  // none. They hold until another target ownership is asked for.
  std::span<const uint32_t> partners(uint32_t target_ownership);

  // The number of the common token set; empty when there is none. Sets too_many() when the cycles do not go together.
  std::optional<uint32_t> join(uint32_t tensor, uint32_t source_ownership, uint32_t target_ownership);

  // The same, cut to the pages of one replica: page i, of `page_tokens` tokens, is that of the replica i mod `count`.
  std::optional<uint32_t> join_pages(uint32_t tensor, uint32_t source_ownership, uint32_t target_ownership,
                                     uint64_t page_tokens, ReplicaOrdinal replica);

  // Sticky: true from the first pair of cycles on whose common period passes range_count_max.
  bool too_many() const { return too_many_; }
  uint64_t work() const { return work_; }  // ranges of tokens that were looked at
  const Interner<TokenSet>& token_sets() const { return token_sets_; }

 private:
  struct Key {
    uint32_t universe, source, target;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // A part of an ownership: tokens of a stated interval, or blocks of a cycle.
  struct Piece {
    Range range;
    uint32_t ownership;
  };
  // Source ownerships of one form, arranged on an axis of numbers.
  struct Shelf {
    std::vector<uint32_t> ownerships;  // ascending
    std::vector<Piece> pieces;         // by begin
    RangeIndex index;                  // of the pieces

    void sort();
  };

  // Sources of one form on the axis that it has in common with another form.
  struct Projected {
    TokenAxis axis;
    Shelf shelf;
  };

  const Projected* projected(const TokenForm& sources, const TokenForm& target);
  void find_same_form(const Shelf& shelf, const IntervalSet& wanted);
  bool find_other_form(const TokenForm& sources, const TokenForm& target, const IntervalSet& wanted);
  TokenJoin join_pair(const Key& key, TokenSet& common);
  IntervalSet met_with(uint32_t source_ownership) const;

  const ClaimNumbers& numbers_;
  uint64_t range_count_max_;
  Interner<Range> universes_;
  std::vector<uint32_t> universe_of_;                                              // of each tensor
  std::map<TokenForm, Shelf> shelves_;                                             // on the form's own axis
  std::map<std::pair<TokenForm, TokenForm>, std::optional<Projected>> projected_;  // empty: too many pieces
  std::vector<uint32_t> sources_;                                                  // all source ownerships, ascending
  std::vector<uint32_t> unshaped_;                                                 // those of all tokens
  // Of the target ownership that was asked for last:
  std::optional<uint32_t> partners_of_;
  std::vector<uint32_t> partners_;
  std::vector<Piece> met_;  // what sources of its own form share with it; by ownership, then by range
  Interner<TokenSet> token_sets_;
  std::map<Key, std::optional<uint32_t>> joined_;
  std::map<std::tuple<uint32_t, uint64_t, uint64_t, uint64_t>, std::optional<uint32_t>> pages_;  // by token set, ...
  Key last_key_ = {UINT32_MAX, 0, 0};
  std::optional<uint32_t> last_;
  bool too_many_ = false;
  uint64_t work_ = 0;
};

// Calls visit(const Item&) for the items whose ownership is among the partners. Both are sorted by ownership.
// O(the shorter one x log of the longer one + what is visited), and that is added to `work`.
template <class Item, class OwnershipOf, class Visit>
void for_each_partner(std::span<const Item> items, std::span<const uint32_t> partners, OwnershipOf ownership_of,
                      uint64_t& work, Visit visit) {
  work += std::min(items.size(), partners.size());
  if (items.size() <= partners.size()) {
    for (const Item& item : items)
      if (std::binary_search(partners.begin(), partners.end(), ownership_of(item))) visit(item);
    return;
  }
  auto at = items.begin();
  for (const uint32_t partner : partners) {
    at = std::partition_point(at, items.end(), [&](const Item& item) { return ownership_of(item) < partner; });
    for (; at != items.end() && ownership_of(*at) == partner; ++at, ++work) visit(*at);
  }
}

}  // namespace crossdock
