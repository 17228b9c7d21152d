// What links carried: over time, for pictures; and whether it was more than their capacity (I8).
#pragma once

#include <vector>

#include "sim/scenario/cluster_links.h"
#include "sim/world/checks.h"
#include "sim/world/sim_world.h"

namespace crossdock {

// Of each link that carried anything, the busiest first: the rate in a number of equal stretches from begin to end. A
// flow counts with its own mean rate, so what two flows share can seem uneven within a stretch.
std::vector<TraceCounter> link_counters(const ClusterLinks& links, const std::vector<SimWorld::FlowRecord>& flows,
                                        TimePoint begin, TimePoint end);

// A row for each direction of each network interface, with what passed it.
void add_interface_rows(const ClusterLinks& links, const std::vector<SimWorld::FlowRecord>& flows, Trace& trace);

void check_links(const std::vector<double>& carried_bytes, const ClusterLinks& links, Duration time, TimePoint now,
                 Checks& checks);

}  // namespace crossdock
