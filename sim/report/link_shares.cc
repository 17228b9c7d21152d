#include "sim/report/link_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace crossdock {
namespace {

double seconds(Duration duration) { return static_cast<double>(duration.ns()) * 1e-9; }

bool is_amount(double value) { return std::isfinite(value) && value > 0; }

// Adds `rate` over [from, to), both in parts of the run, to the parts it touches.
void spread(double rate_bytes_per_part, double from, double to, std::vector<double>& bytes) {
  // Rounding may put `from` at the end of the last part.
  const size_t first = std::min(static_cast<size_t>(from), bytes.size() - 1);
  for (size_t part = first; part < bytes.size() && static_cast<double>(part) < to; ++part) {
    const double begin = std::max(from, static_cast<double>(part));
    const double end = std::min(to, static_cast<double>(part + 1));
    bytes[part] += rate_bytes_per_part * std::max(0.0, end - begin);
  }
}

LinkShares use_of(const TraceCounter& link, TimePoint begin, TimePoint end, size_t part_count) {
  LinkShares use{link.link, is_amount(link.capacity_bytes_per_s) ? link.capacity_bytes_per_s : 0, 0, 0, {}};
  use.shares.assign(part_count, 0);
  const double part_s = seconds(end - begin) / static_cast<double>(part_count);
  for (size_t i = 0; i < link.bytes_per_s.size(); ++i) {
    const double rate = link.bytes_per_s[i].second;
    const TimePoint next = i + 1 < link.bytes_per_s.size() ? link.bytes_per_s[i + 1].first : end;
    const TimePoint from = std::max(link.bytes_per_s[i].first, begin);
    const TimePoint to = std::min(next, end);
    if (!is_amount(rate) || from >= to) continue;
    use.bytes += rate * seconds(to - from);
    if (use.capacity_bytes_per_s > 0) use.peak_share = std::max(use.peak_share, rate / use.capacity_bytes_per_s);
    spread(rate * part_s, seconds(from - begin) / part_s, seconds(to - begin) / part_s, use.shares);
  }
  for (double& share : use.shares) share = use.capacity_bytes_per_s > 0 ? share / part_s / use.capacity_bytes_per_s : 0;
  return use;
}

}  // namespace

std::vector<LinkShares> busiest_links(const std::vector<TraceCounter>& links, TimePoint begin, TimePoint end,
                                      size_t part_count, size_t count_max) {
  std::vector<LinkShares> uses;
  // A run without duration has no parts to divide into.
  if (begin >= end) return uses;
  for (const TraceCounter& link : links) {
    LinkShares use = use_of(link, begin, end, part_count);
    if (use.bytes > 0) uses.push_back(std::move(use));
  }
  const auto total = [](const LinkShares& use) { return std::accumulate(use.shares.begin(), use.shares.end(), 0.0); };
  std::stable_sort(uses.begin(), uses.end(),
                   [&](const LinkShares& a, const LinkShares& b) { return total(a) > total(b); });
  if (uses.size() > count_max) uses.resize(count_max);
  return uses;
}

}  // namespace crossdock
