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

}  // namespace crossdock
