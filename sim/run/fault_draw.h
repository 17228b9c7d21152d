// Draws the faults of a random scenario.
#pragma once

#include <set>
#include <vector>

#include "base/rng.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

// Some of these kinds (empty: of all) that make sense with the scenario's works. Swarm style: in each scenario some
// kinds are off altogether, so that the others are not drowned.
void draw_faults(const std::set<FaultKind>& allowed, Rng& rng, Scenario& scenario);

// Adds a fault at one of the places where outcomes are rare, if its kind is among these.
void aim_fault(const std::vector<FaultKind>& kinds, Rng& rng, Scenario& scenario);

}  // namespace crossdock
