// How busy a link was, in equal parts of the run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/time.h"
#include "sim/report/trace.h"

namespace crossdock {

struct LinkShares {
  std::string link;
  double capacity_bytes_per_s = 0;
  double bytes = 0;
  double peak_share = 0;       // of the capacity; 0 when that is unknown
  std::vector<double> shares;  // mean share of the capacity in each part
};

// The `count_max` busiest links by mean share of their capacity, busiest first, equals in their order; links that
// carried nothing are left out. A rate counts from its time to the next one's, the last to `end`; what is before
// `begin` is left out. The parts divide [begin, end).
std::vector<LinkShares> busiest_links(const std::vector<TraceCounter>& links, TimePoint begin, TimePoint end,
                                      size_t part_count, size_t count_max);

}  // namespace crossdock
