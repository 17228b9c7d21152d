// Who sent how much to whom, small enough to look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/run_report.h"

namespace crossdock {

struct TrafficMatrix {
  struct Cell {
    size_t row = 0;     // sender
    size_t column = 0;  // receiver
    uint64_t planned_bytes = 0;
    uint64_t landed_bytes = 0;
  };
  std::vector<std::string> senders;  // h2 before h10
  std::vector<std::string> receivers;
  size_t senders_together = 0;  // how many the last sender, "all others", stands for; 0: there is no such row
  size_t receivers_together = 0;
  std::vector<Cell> cells;  // by row, then column; each once, none with nothing planned and nothing landed
};

// At most `side_max` (2 or more) senders and receivers. Above that, those with the most bytes stay, and the others
// become one.
TrafficMatrix traffic_matrix(const std::vector<TrafficCell>& traffic, size_t side_max);

// The pairs of a sender and a receiver with the most bytes, planned or landed; each pair once, the largest first,
// equals by name.
struct TrafficPairs {
  std::vector<TrafficCell> largest;
  size_t pair_count = 0;  // of all
};
TrafficPairs largest_pairs(const std::vector<TrafficCell>& traffic, size_t count_max);

}  // namespace crossdock
