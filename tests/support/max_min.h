// A fluid network by the textbook: each moment, bandwidth is shared out max-min fair by progressive filling (Bertsekas
// and Gallager, "Data Networks", 1992, section 6.5.2). Plain loops, for small worlds.
#pragma once

#include <cstdint>
#include <vector>

namespace crossdock::testing {

struct FluidFlow {
  std::vector<uint32_t> links;  // that it passes; each once
  double bytes = 0;
  double start_s = 0;
  double latency_s = 0;  // before its first byte moves
  double rate_max = 0;   // bytes per second; 0: as fast as the links let it
};

// When each flow ends. Capacities in bytes per second.
std::vector<double> max_min_ends(const std::vector<double>& capacities, const std::vector<FluidFlow>& flows);

// The rates of the flows that are under way, 0 for the others.
std::vector<double> max_min_rates(const std::vector<double>& capacities, const std::vector<FluidFlow>& flows,
                                  const std::vector<bool>& is_under_way);

}  // namespace crossdock::testing
