// What is left in the stores of a world once a scenario has ended (I2, I4).
#pragma once

#include <memory>
#include <vector>

#include "sim/run/work_run.h"

namespace crossdock {

// Call it when all leases have run out. Removes everything that is published.
void check_stores(SimWorld& world, const std::vector<std::unique_ptr<WorkRun>>& works);

}  // namespace crossdock
