// Draws the parts of a random scenario that are not faults: cluster, cache schema, stores and works.
#pragma once

#include <set>

#include "base/rng.h"
#include "sim/scenario/scenario.h"

namespace crossdock {

// Works of these kinds only; empty: of any.
void draw_works(const std::set<WorkKind>& kinds, Rng& rng, Scenario& scenario);

}  // namespace crossdock
