#include "planner/kv/verify_tokens.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/checked.h"

// Sets of tokens of one cell: R, the union of what is required, and G_1 ... G_n, what each edge holds. Computed are the
// first stretches of R minus the union of all G (gap), of G_i cut with G_j (overlap), and of G_i minus R (extra).
// Two sweeps: over the boundaries that intervals state, and within a slab where cycles are active over their blocks. In
// such a slab everything repeats with the common period of the cycles, so one period decides for the rest. That makes
// tokens without end as cheap as one period.
namespace crossdock {
namespace {

bool same_cycle(const CyclicTokens* a, const CyclicTokens* b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

// Tokens after which all these cycles begin anew; empty past 2^64.
template <class Items>
// The least common multiple; where it passes 64 bits no slab is longer, and the slab is unrolled as it is.
std::optional<uint64_t> common_period(const Items& items) {
  uint64_t period = 1;
  for (const auto& item : items) {
    if (item.cycle == nullptr) continue;
    const std::optional<uint64_t> cycle = checked_mul(item.cycle->block_tokens, item.cycle->cycle_blocks);
    if (!cycle) return std::nullopt;
    const std::optional<uint64_t> common = checked_mul(period / std::gcd(period, *cycle), *cycle);
    if (!common) return std::nullopt;
    period = *common;
  }
  return period;
}

// The next stretch of one kind: makes the first longer if it follows on it.
void extend(Range& first, Range next) {
  if (first.empty())
    first = next;
  else if (first.end() == next.begin())
    first = Range(first.begin(), next.end());
}

}  // namespace

TokenView view_of(const TokenOwnership& ownership, Range bounds) {
  TokenView view{bounds};
  if (const auto* intervals = std::get_if<TokenIntervals>(&ownership)) view.intervals = &intervals->tokens;
  if (const auto* cyclic = std::get_if<CyclicTokens>(&ownership)) view.cycle = cyclic;
  return view;
}

TokenView view_of(const TokenSet& set) {
  return TokenView{Range::all(), &set.intervals, set.cycle ? &*set.cycle : nullptr};
}

// Linear in the intervals, without a sweep. It compares descriptions and not sets: equal sets may have different
// cycles, and then the exact comparison decides.
bool surely_equal(const TokenView& required, const TokenView& given) {
  if (!same_cycle(required.cycle, given.cycle) || given.intervals == nullptr) return false;
  const std::vector<Range>& ranges = given.intervals->ranges();
  if (required.intervals == nullptr) return ranges.size() == 1 && ranges[0] == required.bounds.intersect(given.bounds);
  size_t next = 0;
  for (const Range stated : required.intervals->ranges()) {
    const Range range = stated.intersect(required.bounds);
    if (range.empty()) continue;
    if (next == ranges.size() || ranges[next] != range) return false;
    ++next;
  }
  return next == ranges.size();
}

// Cycles of one shape are compared by their blocks. An interval that happens to lie in one block is left to the exact
// comparison.
bool surely_within(const TokenView& inner, const TokenView& outer) {
  const Range hull = inner.intervals == nullptr ? inner.bounds : inner.intervals->hull();
  if (!outer.bounds.contains(hull)) return false;
  if (outer.intervals != nullptr && (inner.intervals == nullptr || !outer.intervals->contains(*inner.intervals)))
    return false;
  if (outer.cycle == nullptr) return true;
  return inner.cycle != nullptr && inner.cycle->block_tokens == outer.cycle->block_tokens &&
         inner.cycle->cycle_blocks == outer.cycle->cycle_blocks && outer.cycle->blocks.contains(inner.cycle->blocks);
}

bool TokenComparison::compare(std::span<const TokenView> required, std::span<const TokenView> given) {
  gap_ = overlap_ = Range();
  extra_.assign(given.size(), Range());
  stated_.clear();
  for (size_t i = 0; i < required.size(); ++i)
    if (!add(required[i], static_cast<uint32_t>(i), false)) return false;
  for (size_t i = 0; i < given.size(); ++i)
    if (!add(given[i], static_cast<uint32_t>(i), true)) return false;
  return stated_.run([this](Range slab, std::span<const Item> active) {
    if (!work_.spend(active.size())) return false;
    if (std::any_of(active.begin(), active.end(), [](const Item& item) { return item.cycle != nullptr; }))
      return visit_period(slab, active);
    judge(slab, active);
    return true;
  });
}

bool TokenComparison::add(const TokenView& view, uint32_t id, bool given) {
  if (!work_.spend(view.range_count())) return false;
  if (view.intervals == nullptr)
    return stated_.add(Item{view.bounds, id, given, view.cycle}) || work_.stop(WorkMeter::Stop::kItems);
  for (const Range range : view.intervals->ranges())
    if (!stated_.add(Item{range.intersect(view.bounds), id, given, view.cycle}))
      return work_.stop(WorkMeter::Stop::kItems);
  return true;
}

// A slab in which only cycles change. A first stretch that is not over at the end of a period began before it, or else
// it would have begun a period earlier; so it is all of the slab.
// The window begins with the slab and not at a multiple of the period: any interval of one period holds each phase
// once.
bool TokenComparison::visit_period(Range slab, std::span<const Item> active) {
  const std::optional<uint64_t> period = common_period(active);
  if (!period || slab.size() <= *period) return unroll(slab, active);
  // Fits: the slab is longer than the period.
  const Range window(slab.begin(), slab.begin() + *period);
  if (!unroll(window, active)) return false;
  const auto extend_to_end = [&](Range& stretch) {
    if (!stretch.empty() && stretch.begin() <= slab.begin() && stretch.end() == window.end())
      stretch = Range(stretch.begin(), slab.end());
  };
  extend_to_end(gap_);
  extend_to_end(overlap_);
  for (const Item& item : active)
    if (item.given) extend_to_end(extra_[item.id]);
  return true;
}

bool TokenComparison::unroll(Range window, std::span<const Item> active) {
  unrolled_.clear();
  for (const Item& item : active)
    if (!add_blocks(window, item)) return false;
  return unrolled_.run([this](Range tokens, std::span<const Item> unrolled) {
    judge(tokens, unrolled);
    return work_.spend(unrolled.size());
  });
}

// Blocks before the window become empty ranges and are left out (SweepBuffer::add).
bool TokenComparison::add_blocks(Range window, const Item& item) {
  if (item.cycle == nullptr)
    return unrolled_.add(Item{window, item.id, item.given, nullptr}) || work_.stop(WorkMeter::Stop::kItems);
  const CyclicTokens& cycle = *item.cycle;
  // A cycle that ends past 2^64 begins once.
  const std::optional<uint64_t> cycle_tokens = checked_mul(cycle.block_tokens, cycle.cycle_blocks);
  const uint64_t first = cycle_tokens ? window.begin() / *cycle_tokens : 0;
  const uint64_t last = cycle_tokens ? (window.end() - 1) / *cycle_tokens : 0;
  // The count is bounded before any block is added: the shapes of cycles come from documents.
  const std::optional<uint64_t> range_count = (Checked(last - first) + 1).value();
  const std::optional<uint64_t> needed =
      range_count ? checked_mul(*range_count, cycle.blocks.ranges().size()) : std::nullopt;
  if (!needed || *needed > range_count_max_) return work_.stop(WorkMeter::Stop::kTokenRanges);
  if (!work_.spend(*needed)) return false;
  for (uint64_t n = first; n <= last; ++n)
    for (const Range blocks : cycle.blocks.ranges()) {
      const auto token_at = [&](uint64_t block) {  // what passes 2^64 lies outside every window
        return ((Checked(n) * cycle.cycle_blocks + block) * cycle.block_tokens).value().value_or(Range::kUnbounded);
      };
      const Range tokens(token_at(blocks.begin()), token_at(blocks.end()));
      if (!unrolled_.add(Item{tokens.intersect(window), item.id, item.given, nullptr}))
        return work_.stop(WorkMeter::Stop::kItems);
    }
  return true;
}

// All tokens of a stretch are in the same views.
// The two lowest positions name an overlap, so that the same plan gives the same message (I7).
void TokenComparison::judge(Range tokens, std::span<const Item> active) {
  constexpr size_t kNone = SIZE_MAX;
  bool is_required = false;
  Pair lowest{kNone, kNone};
  for (const Item& item : active) {
    if (!item.given)
      is_required = true;
    else if (item.id < lowest.first)
      lowest = Pair{item.id, lowest.first};
    else
      lowest.second = std::min<size_t>(lowest.second, item.id);
  }
  if (is_required && lowest.first == kNone) extend(gap_, tokens);
  if (!is_required)
    for (const Item& item : active)
      if (item.given) extend(extra_[item.id], tokens);
  if (lowest.second == kNone || (!overlap_.empty() && overlap_pair_ != lowest)) return;
  overlap_pair_ = lowest;
  extend(overlap_, tokens);
}

}  // namespace crossdock
