// Stands in for executor/canary.h in the files that tests of the checkers build again: one rule can be broken at run
// time.
#pragma once

#include <optional>

#include "executor/canary_rules.h"

namespace crossdock {

// The rule that is broken in this process; empty: none.
inline std::optional<Canary> broken_rule;

inline bool is_broken(Canary canary) { return broken_rule == canary; }

}  // namespace crossdock
