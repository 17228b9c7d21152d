// Stands in for executor/canary.h in the library that tests of the checkers use: one rule can be broken at run time.
#pragma once

#include <optional>

namespace crossdock {

enum class Canary {
  kReleaseBeforeDrain,
  kPublishFirstFragment,
  kCountWriters,
  kNoFence,
  kSkipChecksum,
  kIgnoreGeneration,
};

// The rule that is broken in this process; empty: none.
inline std::optional<Canary> broken_rule;

inline bool is_broken(Canary canary) { return broken_rule == canary; }

}  // namespace crossdock
