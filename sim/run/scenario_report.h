// The report of a scenario that has been run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/report/run_report.h"
#include "sim/run/work_run.h"

namespace crossdock {

// Checks what links carried (I8) before it tells what all checks found.
RunReport report_of(const Scenario& scenario, uint64_t seed, const std::vector<std::unique_ptr<WorkRun>>& works,
                    SimWorld& world);

}  // namespace crossdock
