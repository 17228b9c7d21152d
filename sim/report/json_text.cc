#include "sim/report/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace crossdock {

std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "0"; }

std::string json_number(int64_t value) { return fmt::format("{}", value); }

std::string json_line(std::string_view text, size_t bytes_max) {
  // One byte prints as at least one: what lies behind the first `bytes_max` of them is cut anyway.
  return shorten(printable(text.substr(0, bytes_max + 4)), bytes_max);
}

TimePoint last_time(const Trace& trace, const std::vector<TraceCounter>& counters, TimePoint at_least) {
  TimePoint last = at_least;
  const auto include = [&last](TimePoint time) {
    if (time != TimePoint::never()) last = std::max(last, time);
  };
  for (const TraceEvent& event : trace.events) {
    include(event.begin);
    if (event.kind == TraceEvent::Kind::kSlice) include(event.end);
  }
  for (const TraceCounter& counter : counters)
    for (const auto& [time, rate] : counter.bytes_per_s) include(time);
  return last;
}

TimePoint shown_begin(const TraceEvent& event, TimePoint last) { return std::min(event.begin, last); }

TimePoint shown_end(const TraceEvent& event, TimePoint last) {
  const TimePoint begin = shown_begin(event, last);
  return event.kind == TraceEvent::Kind::kSlice ? std::max(begin, std::min(event.end, last)) : begin;
}

}  // namespace crossdock
