#include "tests/support/max_min.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace crossdock::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool passes(const FluidFlow& flow, uint32_t link) {
  return std::find(flow.links.begin(), flow.links.end(), link) != flow.links.end();
}

}  // namespace

std::vector<double> max_min_rates(const std::vector<double>& capacities, const std::vector<FluidFlow>& flows,
                                  const std::vector<bool>& is_under_way) {
  std::vector<double> rates(flows.size(), 0.0);
  std::vector<double> left = capacities;
  std::vector<bool> is_open = is_under_way;  // its rate still grows
  while (std::find(is_open.begin(), is_open.end(), true) != is_open.end()) {
    // All open flows grow alike until a link is full or a flow has its most.
    double least = kInfinity;
    std::vector<size_t> open_counts(capacities.size(), 0);
    for (uint32_t link = 0; link < capacities.size(); ++link) {
      for (size_t flow = 0; flow < flows.size(); ++flow)
        if (is_open[flow] && passes(flows[flow], link)) ++open_counts[link];
      if (open_counts[link] > 0) least = std::min(least, left[link] / static_cast<double>(open_counts[link]));
    }
    for (size_t flow = 0; flow < flows.size(); ++flow)
      if (is_open[flow] && flows[flow].rate_max > 0) least = std::min(least, flows[flow].rate_max - rates[flow]);
    CHECK(least < kInfinity);  // each flow passes a link or has a most
    std::vector<bool> is_full(capacities.size(), false);
    for (uint32_t link = 0; link < capacities.size(); ++link) {
      if (open_counts[link] == 0) continue;
      is_full[link] = left[link] / static_cast<double>(open_counts[link]) <= least * (1 + 1e-12);
      left[link] = std::max(0.0, left[link] - least * static_cast<double>(open_counts[link]));
    }
    for (size_t flow = 0; flow < flows.size(); ++flow) {
      if (!is_open[flow]) continue;
      rates[flow] += least;
      const bool has_most = flows[flow].rate_max > 0 && rates[flow] >= flows[flow].rate_max * (1 - 1e-12);
      const bool is_stopped =
          std::any_of(flows[flow].links.begin(), flows[flow].links.end(), [&](uint32_t link) { return is_full[link]; });
      if (has_most || is_stopped) is_open[flow] = false;
    }
  }
  return rates;
}

std::vector<double> max_min_ends(const std::vector<double>& capacities, const std::vector<FluidFlow>& flows) {
  std::vector<double> ends(flows.size(), -1.0);
  std::vector<double> left;
  for (const FluidFlow& flow : flows) left.push_back(flow.bytes);
  double now = 0;
  for (;;) {
    std::vector<bool> is_under_way(flows.size(), false);
    double next = kInfinity;
    for (size_t i = 0; i < flows.size(); ++i) {
      if (ends[i] >= 0) continue;
      const double first_byte = flows[i].start_s + flows[i].latency_s;
      is_under_way[i] = first_byte <= now;
      if (!is_under_way[i]) next = std::min(next, first_byte);
    }
    const std::vector<double> rates = max_min_rates(capacities, flows, is_under_way);
    for (size_t i = 0; i < flows.size(); ++i)
      if (is_under_way[i]) next = std::min(next, now + left[i] / rates[i]);
    if (next == kInfinity) return ends;
    for (size_t i = 0; i < flows.size(); ++i) {
      if (!is_under_way[i]) continue;
      left[i] -= rates[i] * (next - now);
      // Less than what 1e-15 of its time moves is a rounding error.
      if (left[i] <= flows[i].bytes * 1e-12) ends[i] = next;
    }
    now = next;
  }
}

}  // namespace crossdock::testing
