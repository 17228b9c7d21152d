// Parallel sizes in short, as people name a deployment: "tp8", "tp4pp2", "DP2-TP4-CP2".
#pragma once

#include <cstdint>
#include <string_view>

#include "base/checked.h"
#include "base/status.h"

namespace crossdock {

struct ParallelSpec {
  uint64_t dp = 1;
  uint64_t pp = 1;
  uint64_t tp = 1;
  uint64_t cp = 1;

  // 2^64 - 1 where there are more.
  uint64_t participant_count() const { return saturating_mul(saturating_mul(dp, pp), saturating_mul(tp, cp)); }

  friend bool operator==(const ParallelSpec&, const ParallelSpec&) = default;
};

inline constexpr uint64_t kParallelSizeMax = 131072;

// Axes "dp", "pp", "tp" and "cp" in any order and either case, each once at most and followed by its size; between two
// of them one of 'x', '-', '_', or nothing. An axis that is not named has size 1. kInvalidArgument says what is wrong
// at which character, counted from 1.
Result<ParallelSpec> parse_parallel_spec(std::string_view text);

}  // namespace crossdock
