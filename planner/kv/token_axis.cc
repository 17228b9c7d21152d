#include "planner/kv/token_axis.h"

#include <numeric>
#include <utility>
#include <variant>

#include "base/checked.h"

namespace crossdock {

TokenForm form_of(const TokenOwnership& ownership) {
  const auto* cyclic = std::get_if<CyclicTokens>(&ownership);
  return cyclic != nullptr ? TokenForm{cyclic->block_tokens, cyclic->cycle_blocks} : TokenForm();
}

const IntervalSet* ranges_of(const TokenOwnership& ownership) {
  if (const auto* stated = std::get_if<TokenIntervals>(&ownership)) return &stated->tokens;
  if (const auto* cyclic = std::get_if<CyclicTokens>(&ownership)) return &cyclic->blocks;
  return nullptr;
}

std::optional<TokenAxis> TokenAxis::of(const TokenForm& a, const TokenForm& b) {
  TokenAxis axis;
  axis.axis_ = a.is_cycle() ? a : b;
  if (!a.is_cycle() || !b.is_cycle() || a == b) return axis;
  const uint64_t unit = std::gcd(a.block_tokens, b.block_tokens);
  const std::optional<uint64_t> a_units = checked_mul(a.block_tokens / unit, a.cycle_blocks);
  const std::optional<uint64_t> b_units = checked_mul(b.block_tokens / unit, b.cycle_blocks);
  if (!a_units || !b_units) return std::nullopt;
  const std::optional<uint64_t> period = checked_mul(*a_units / std::gcd(*a_units, *b_units), *b_units);
  if (!period) return std::nullopt;
  axis.axis_ = TokenForm{unit, *period};
  return axis;
}

// A stated interval may go round the end of a cycle once.
uint64_t TokenAxis::projected_count(const TokenForm& form, uint64_t range_count) const {
  if (form == axis_) return range_count;
  if (!form.is_cycle()) return saturating_mul(range_count, 2);
  const uint64_t repeats = axis_.cycle_blocks / (form.block_tokens / axis_.block_tokens * form.cycle_blocks);
  return saturating_mul(range_count, repeats);
}

// The axis is a whole number of cycles of the form, and a block a whole number of units; no product passes the length
// of the axis.
void TokenAxis::project(const TokenForm& form, Range range, std::vector<Range>& pieces) const {
  if (form == axis_) {
    pieces.push_back(range);
  } else if (form.is_cycle()) {
    const uint64_t block_units = form.block_tokens / axis_.block_tokens;
    const uint64_t cycle_units = block_units * form.cycle_blocks;
    for (uint64_t begin = 0; begin < axis_.cycle_blocks; begin += cycle_units)
      pieces.emplace_back(begin + range.begin() * block_units, begin + range.end() * block_units);
  } else {
    const uint64_t first = range.begin() / axis_.block_tokens;
    const uint64_t last = (range.end() - 1) / axis_.block_tokens;
    if (last - first >= axis_.cycle_blocks - 1) {
      pieces.emplace_back(0, axis_.cycle_blocks);
      return;
    }
    const uint64_t begin = first % axis_.cycle_blocks;
    const uint64_t end = last % axis_.cycle_blocks + 1;
    if (begin < end) {
      pieces.emplace_back(begin, end);
    } else {
      pieces.emplace_back(0, end);
      pieces.emplace_back(begin, axis_.cycle_blocks);
    }
  }
}

}  // namespace crossdock
