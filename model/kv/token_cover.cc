#include "model/kv/token_cover.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/checked.h"

// With T_1 ... T_n the sets of the ownerships: is each token of `tokens` in exactly one T_i? Cycles never end, so sets
// are not compared token by token:
// - cycles of one shape are equal or disjoint block by block, so their blocks decide;
// - for anything else, after the last stated boundary membership repeats with the common period of the cycles. So one
//   period after it decides for all that follows.
namespace crossdock {
namespace {

struct Owned {
  Range range;
  size_t owner;
};

using CoverDiagnostic = TokenCoverDiagnostic;

// Sorted ranges against one whole interval.
// Sorted by begin, the first range that begins past, or before, what is covered so far is the first gap or overlap.
std::optional<CoverDiagnostic> check_partition(std::vector<Owned> owned, Range whole) {
  std::sort(owned.begin(), owned.end(), [](const Owned& a, const Owned& b) { return a.range < b.range; });
  uint64_t covered_to = whole.begin();
  size_t last_owner = 0;
  for (const Owned& next : owned) {
    if (next.range.empty()) continue;
    if (covered_to < next.range.begin())
      return CoverDiagnostic{CoverDiagnostic::Kind::kGap, Range(covered_to, next.range.begin())};
    if (next.range.begin() < covered_to)
      return CoverDiagnostic{CoverDiagnostic::Kind::kOverlap,
                             next.range.intersect(Range(next.range.begin(), covered_to)), last_owner, next.owner};
    covered_to = next.range.end();
    last_owner = next.owner;
  }
  if (covered_to < whole.end()) return CoverDiagnostic{CoverDiagnostic::Kind::kGap, Range(covered_to, whole.end())};
  return std::nullopt;
}

// All ownerships as cycles of one shape whose whole cycle occurs in `tokens`: their blocks decide.
bool share_one_cycle(std::span<const TokenOwnership* const> ownerships, Range tokens) {
  const auto* first = std::get_if<CyclicTokens>(ownerships.front());
  if (first == nullptr) return false;
  const std::optional<uint64_t> cycle_tokens = checked_mul(first->block_tokens, first->cycle_blocks);
  if (!cycle_tokens || tokens.size() < *cycle_tokens) return false;
  return std::all_of(ownerships.begin(), ownerships.end(), [&](const TokenOwnership* ownership) {
    const auto* cyclic = std::get_if<CyclicTokens>(ownership);
    return cyclic != nullptr && cyclic->block_tokens == first->block_tokens &&
           cyclic->cycle_blocks == first->cycle_blocks;
  });
}

// The tokens of some blocks of a cycle, where they first occur in `tokens`.
Range first_occurrence(const CyclicTokens& shape, Range blocks, Range tokens) {
  const uint64_t cycle_tokens = shape.block_tokens * shape.cycle_blocks;
  // No sum wraps: share_one_cycle() made sure that a whole cycle fits between tokens.begin() and tokens.end().
  uint64_t cycle_begin = tokens.begin() / cycle_tokens * cycle_tokens;
  if (cycle_begin + blocks.end() * shape.block_tokens <= tokens.begin()) cycle_begin += cycle_tokens;
  const auto at = [&](uint64_t block) {
    return (Checked(block) * shape.block_tokens + cycle_begin).value().value_or(Range::kUnbounded);
  };
  return Range(at(blocks.begin()), at(blocks.end())).intersect(tokens);
}

// Ownerships of one shape.
std::optional<CoverDiagnostic> check_blocks(std::span<const TokenOwnership* const> ownerships, Range tokens) {
  std::vector<Owned> owned;
  for (size_t i = 0; i < ownerships.size(); ++i)
    for (const Range range : std::get<CyclicTokens>(*ownerships[i]).blocks.ranges()) owned.push_back(Owned{range, i});
  const auto& shape = std::get<CyclicTokens>(*ownerships.front());
  std::optional<CoverDiagnostic> diagnostic = check_partition(std::move(owned), Range(0, shape.cycle_blocks));
  if (diagnostic) diagnostic->tokens = first_occurrence(shape, diagnostic->tokens, tokens);
  return diagnostic;
}

// Where looking may stop: one common period after the last boundary that an interval states. Empty: past 2^64.
// The period is the least common multiple of the cycles. Where it passes 64 bits the whole interval is looked at, up to
// the limit of ranges.
std::optional<uint64_t> horizon(std::span<const TokenOwnership* const> ownerships, Range tokens) {
  uint64_t last_boundary = tokens.begin();
  uint64_t period = 1;
  bool has_cycle = false;
  for (const TokenOwnership* ownership : ownerships) {
    if (const auto* intervals = std::get_if<TokenIntervals>(ownership)) {
      for (const Range range : intervals->tokens.ranges())
        for (const uint64_t boundary : {range.begin(), range.end()})
          if (boundary < tokens.end()) last_boundary = std::max(last_boundary, boundary);
    } else if (const auto* cyclic = std::get_if<CyclicTokens>(ownership)) {
      has_cycle = true;
      const std::optional<uint64_t> cycle = checked_mul(cyclic->block_tokens, cyclic->cycle_blocks);
      if (!cycle) return std::nullopt;
      const std::optional<uint64_t> common = checked_mul(period / std::gcd(period, *cycle), *cycle);
      if (!common) return std::nullopt;
      period = *common;
    }
  }
  if (!has_cycle) return tokens.end();
  return checked_add(last_boundary, period);
}

}  // namespace

TokenCover check_token_cover(std::span<const TokenOwnership* const> ownerships, Range tokens,
                             uint64_t range_count_max) {
  if (ownerships.empty()) return TokenCover{CoverDiagnostic{CoverDiagnostic::Kind::kGap, tokens}, 0};
  if (share_one_cycle(ownerships, tokens)) return TokenCover{check_blocks(ownerships, tokens), ownerships.size()};

  const uint64_t end = std::min(horizon(ownerships, tokens).value_or(Range::kUnbounded), tokens.end());
  const Range looked_at(tokens.begin(), end);
  std::vector<Owned> owned;
  for (size_t i = 0; i < ownerships.size(); ++i) {
    // `owned` never has more than range_count_max members, so this does not wrap.
    const uint64_t left = range_count_max - owned.size();
    const std::optional<IntervalSet> set = tokens_within(*ownerships[i], looked_at, left);
    if (!set || set->ranges().size() > left)
      return TokenCover{CoverDiagnostic{CoverDiagnostic::Kind::kTooMuchWork, looked_at}, owned.size()};
    for (const Range range : set->ranges()) owned.push_back(Owned{range, i});
  }
  const uint64_t range_count = owned.size();
  return TokenCover{check_partition(std::move(owned), looked_at), range_count};
}

}  // namespace crossdock
