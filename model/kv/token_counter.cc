#include "model/kv/token_counter.h"

namespace crossdock {

// At most `token`, so nothing wraps.
uint64_t TokenCounter::count_below(uint64_t token) const {
  if (cycle_ == nullptr) return token;
  const uint64_t block = token / cycle_->block_tokens;
  const uint64_t in_cycle = block % cycle_->cycle_blocks;
  const uint64_t whole_blocks = block / cycle_->cycle_blocks * blocks_->count() + blocks_->count_below(in_cycle);
  const uint64_t partial_tokens = cycle_->blocks.contains(in_cycle) ? token % cycle_->block_tokens : 0;
  return whole_blocks * cycle_->block_tokens + partial_tokens;
}

// By halving: count_below() never sinks with the token.
uint64_t TokenCounter::first_with(uint64_t count, uint64_t token_max) const {
  uint64_t low = 0;
  uint64_t high = token_max;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (count_below(middle) < count)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace crossdock
