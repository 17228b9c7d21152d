#include "sim/run/link_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace crossdock {
namespace {

constexpr size_t kStretches = 240;
constexpr size_t kLinksMax = 512;

// Mean rates of flows can add up to more than a link has, in one stretch, when their real rates changed; what is too
// much belongs to a stretch beside.
void keep_within(std::vector<double>& bytes, double most) {
  double over = 0;
  const auto pour = [&](double& stretch) {
    stretch += over;
    over = std::max(0.0, stretch - most);
    stretch -= over;
  };
  for (double& each : bytes) pour(each);
  for (auto each = bytes.rbegin(); each != bytes.rend(); ++each) pour(*each);
}

}  // namespace

std::vector<TraceCounter> link_counters(const ClusterLinks& links, const std::vector<SimWorld::FlowRecord>& flows,
                                        TimePoint begin, TimePoint end) {
  std::map<uint32_t, std::vector<double>> bytes;  // of each link, in each stretch
  const auto whole = static_cast<double>((end - begin).ns());
  if (whole <= 0) return {};
  const double stretch = whole / kStretches;
  for (const SimWorld::FlowRecord& flow : flows) {
    if (flow.bytes <= 0) continue;
    const double first = std::clamp(static_cast<double>((flow.begin - begin).ns()), 0.0, whole);
    // At least a nanosecond long, so that the division below is defined.
    const double last = std::clamp(static_cast<double>((flow.end - begin).ns()), first + 1, whole + 1);
    for (auto i = static_cast<size_t>(first / stretch); i < kStretches && static_cast<double>(i) * stretch < last;
         ++i) {
      const double from = std::max(first, static_cast<double>(i) * stretch);
      const double to = std::min(last, static_cast<double>(i + 1) * stretch);
      if (to <= from) continue;
      for (const uint32_t link : flow.links) {
        std::vector<double>& of_link = bytes[link];
        of_link.resize(kStretches);
        of_link[i] += flow.bytes * (to - from) / (last - first);
      }
    }
  }
  std::vector<std::pair<double, TraceCounter>> all;
  for (auto& [link, in_stretch] : bytes) {
    TraceCounter counter;
    counter.link = links.links()[link].name;
    counter.capacity_bytes_per_s = links.links()[link].bytes_per_s;
    keep_within(in_stretch, counter.capacity_bytes_per_s * stretch / 1e9);
    double total = 0;
    for (size_t i = 0; i < kStretches; ++i) {
      total += in_stretch[i];
      counter.bytes_per_s.emplace_back(
          begin + Duration::from_ns(static_cast<int64_t>(static_cast<double>(i) * stretch)),
          in_stretch[i] / stretch * 1e9);
    }
    all.emplace_back(total / counter.capacity_bytes_per_s, std::move(counter));
  }
  // Stable, and numbers of links before: equal runs give equal pages (I7).
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<TraceCounter> counters;
  for (size_t i = 0; i < std::min(all.size(), kLinksMax); ++i) counters.push_back(std::move(all[i].second));
  return counters;
}

void add_interface_rows(const ClusterLinks& links, const std::vector<SimWorld::FlowRecord>& flows, Trace& trace) {
  std::map<uint32_t, uint32_t> tracks;  // of a link
  for (const SimWorld::FlowRecord& flow : flows)
    for (const uint32_t link : flow.links) {
      const std::string& name = links.links()[link].name;  // "h3/nic0/out"
      const size_t slash = name.find('/');
      if (slash == std::string::npos || name.compare(slash, 4, "/nic") != 0) continue;
      const auto [track, is_new] = tracks.try_emplace(link, static_cast<uint32_t>(trace.tracks.size()));
      if (is_new) trace.tracks.push_back(TraceTrack{name.substr(0, slash), name.substr(slash + 1)});
      TraceEvent event;
      event.kind = TraceEvent::Kind::kSlice;
      event.track = track->second;
      event.name = "flow";
      event.category = "flow";
      event.begin = flow.begin;
      event.end = flow.end;
      event.args = {{"bytes", fmt::format("{:.0f}", flow.bytes)}};
      trace.events.push_back(std::move(event));
    }
}

// I8 as a bound over the whole run. It finds a model that gives bandwidth twice; it does not see a burst that is too
// fast within a run.
void check_links(const std::vector<double>& carried_bytes, const ClusterLinks& links, Duration time, TimePoint now,
                 Checks& checks) {
  for (size_t i = 0; i < carried_bytes.size(); ++i) {
    if (carried_bytes[i] == 0) continue;
    // No fault of a scenario makes a link faster, so its capacity is the limit.
    const double most = links.links()[i].bytes_per_s * static_cast<double>(time.ns()) / 1e9 * (1 + 1e-6) + 1;
    checks.check(Invariant::kI8, now,
                 carried_bytes[i] <= most ? ""
                                          : fmt::format("link {} carried {} bytes, {} are as many as it can",
                                                        links.links()[i].name, carried_bytes[i], most));
  }
}

}  // namespace crossdock
