// Islands: works that share no link, no store and no order do not influence each other, so each group of works that do
// can be simulated alone. The times are the same (tests/sim/run/islands_test.cc), and the cost is less: it grows with
// the number of flows under way at once times the number of instants at which one ends.
#pragma once

#include <vector>

#include "sim/scenario/scenario.h"

namespace crossdock {

// The scenario itself, or parts of it that together have its works, each once, in their order. A scenario with faults
// is one island: what a fault meets may be anything.
std::vector<Scenario> islands_of(const Scenario& scenario);

}  // namespace crossdock
