// The tokens of one block of layers x heads: those that are required against those that edges hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interval_set.h"
#include "base/range.h"
#include "model/kv/token_ownership.h"
#include "planner/kv/token_set.h"
#include "planner/kv/verify_sweep.h"

namespace crossdock {

// The tokens of `bounds` that are in `intervals` and in `cycle`, where these are given. Refers to what it was made
// from.
struct TokenView {
  Range bounds;
  const IntervalSet* intervals = nullptr;
  const CyclicTokens* cycle = nullptr;

  uint64_t range_count() const { return intervals == nullptr ? 1 : intervals->ranges().size(); }
};

TokenView view_of(const TokenOwnership& ownership, Range bounds);
TokenView view_of(const TokenSet& set);

// What can be said without looking at single blocks of cycles; false says nothing.
bool surely_equal(const TokenView& required, const TokenView& given);
bool surely_within(const TokenView& inner, const TokenView& outer);

// Compares exactly, over cycles without end too: where none of the stated intervals begins or ends, everything repeats
// with the common period of the cycles, and one period decides.
class TokenComparison {
 public:
  // `range_count_max`: ranges of blocks of one cycle in the common period.
  TokenComparison(uint64_t range_count_max, WorkMeter& work) : range_count_max_(range_count_max), work_(work) {}

  // False when a limit stopped it. The results hold until the next call.
  // Views of `required` may overlap and count as their union. What the views refer to outlives the call.
  bool compare(std::span<const TokenView> required, std::span<const TokenView> given);

  // The first stretches; empty when there is none.
  Range gap() const { return gap_; }                                           // required, not given
  Range overlap() const { return overlap_; }                                   // in two of the given
  size_t overlap_first() const { return overlap_pair_.first; }                 // their positions: the first two
  size_t overlap_second() const { return overlap_pair_.second; }               // of those that there are
  Range extra(size_t given_position) const { return extra_[given_position]; }  // given, not required

 private:
  // An interval that a view states, or one block of its cycle.
  struct Item {
    Range range;
    uint32_t id;  // position in its list
    bool given;
    const CyclicTokens* cycle;
  };
  struct Pair {
    size_t first = 0;
    size_t second = 0;
    friend bool operator==(const Pair&, const Pair&) = default;
  };

  bool add(const TokenView& view, uint32_t id, bool given);
  // Each false when a limit stopped it.
  bool visit_period(Range slab, std::span<const Item> active);
  bool unroll(Range window, std::span<const Item> active);
  bool add_blocks(Range window, const Item& item);
  void judge(Range tokens, std::span<const Item> active);

  uint64_t range_count_max_;
  WorkMeter& work_;
  SweepBuffer<Item> stated_;    // over boundaries that views state
  SweepBuffer<Item> unrolled_;  // over the blocks of cycles, between two of these
  Range gap_;
  Range overlap_;
  Pair overlap_pair_;
  std::vector<Range> extra_;
};

}  // namespace crossdock
