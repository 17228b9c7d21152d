// Rules that a build for tests breaks one at a time, to see that the checkers notice (tests/sim/run/canary_test.cc). In
// every other build nothing is broken, at compile time.
#pragma once

#include "executor/canary_rules.h"

namespace crossdock {

constexpr bool is_broken(Canary) { return false; }

}  // namespace crossdock
