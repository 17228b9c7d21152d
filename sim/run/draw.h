// What the draws of a campaign have in common.
#pragma once

#include <array>
#include <cstdint>

#include "base/rng.h"
#include "base/time.h"

namespace crossdock {

inline Duration us(uint64_t value) { return Duration::from_ns(static_cast<int64_t>(value) * 1000); }

// Equally likely; a value that is listed twice is twice as likely.
template <size_t Count>
uint64_t one_of(Rng& rng, const std::array<uint64_t, Count>& values) {
  return values[rng.below(Count)];
}

}  // namespace crossdock
