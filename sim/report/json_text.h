// What the trace and the report put into JSON: times, fractions and text of any bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "sim/report/trace.h"

namespace crossdock {

// The shortest text that reads back as `value`. JSON knows neither infinity nor "not a number": those are 0.
std::string json_number(double value);
std::string json_number(int64_t value);

// One line of UTF-8 of about `bytes_max` bytes at most; what was no UTF-8 reads as \xNN.
std::string json_line(std::string_view text, size_t bytes_max);

// Where a picture ends: at the last time of the trace and its counters, never() aside; not before `at_least`.
TimePoint last_time(const Trace& trace, const std::vector<TraceCounter>& counters, TimePoint at_least);

// The part of `event` that a picture shows: within `last`, and never backwards.
TimePoint shown_begin(const TraceEvent& event, TimePoint last);
TimePoint shown_end(const TraceEvent& event, TimePoint last);

}  // namespace crossdock
