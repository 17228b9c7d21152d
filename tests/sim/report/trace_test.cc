#include "sim/report/trace.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace crossdock {
namespace {

using nlohmann::json;

TimePoint at(int64_t ns) { return TimePoint::from_ns(ns); }

TraceEvent slice(uint32_t track, const std::string& name, int64_t begin, int64_t end) {
  return {TraceEvent::Kind::kSlice, track, name, "operation", at(begin), at(end), {}};
}

// The events of one kind, in order.
json of_phase(const std::string& text, const std::string& phase) {
  json found = json::array();
  const json parsed = json::parse(text);
  for (const json& event : parsed.at("traceEvents"))
    if (event.at("ph") == phase) found.push_back(event);
  return found;
}

TEST(PerfettoJson, SaysEverythingOfASmallTrace) {
  const Trace trace{
      {{"h1", "source"}, {"faults", "links"}, {"h1", "ssd"}},
      {
          {TraceEvent::Kind::kSlice,
           0,
           "copy",
           "operation",
           at(2'000'500),
           at(2'003'501),
           {{"to", "t1"}, {"bytes", "64"}}},
          {TraceEvent::Kind::kInstant, 1, "link off", "fault", at(2'001'000), at(0), {}},
          {TraceEvent::Kind::kSlice, 2, "put", "store", at(2'001'000), TimePoint::never(), {}},
      },
  };
  const std::vector<TraceCounter> counters = {{"h1/nic0/out", 50e9, {{at(2'000'000), 1.5e9}, {at(2'005'000), 0}}}};
  const json expected = json::parse(R"({
    "displayTimeUnit": "ns",
    "traceEvents": [
      {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "h1"}},
      {"ph": "M", "name": "process_sort_index", "pid": 1, "args": {"sort_index": 1}},
      {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "faults"}},
      {"ph": "M", "name": "process_sort_index", "pid": 2, "args": {"sort_index": 2}},
      {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "links"}},
      {"ph": "M", "name": "process_sort_index", "pid": 3, "args": {"sort_index": 3}},
      {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "source"}},
      {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": 1, "args": {"sort_index": 1}},
      {"ph": "M", "name": "thread_name", "pid": 2, "tid": 2, "args": {"name": "links"}},
      {"ph": "M", "name": "thread_sort_index", "pid": 2, "tid": 2, "args": {"sort_index": 2}},
      {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "ssd"}},
      {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": 3, "args": {"sort_index": 3}},
      {"ph": "X", "name": "copy", "cat": "operation", "pid": 1, "tid": 1, "ts": 0.5, "dur": 3.001,
       "args": {"bytes": "64", "to": "t1"}},
      {"ph": "i", "name": "link off", "cat": "fault", "pid": 2, "tid": 2, "ts": 1.0, "s": "t"},
      {"ph": "X", "name": "put", "cat": "store", "pid": 1, "tid": 3, "ts": 1.0, "dur": 4.0,
       "args": {"end": "not in this run"}},
      {"ph": "C", "name": "h1/nic0/out", "pid": 3, "ts": 0.0, "args": {"bytes/s": 1500000000.0}},
      {"ph": "C", "name": "h1/nic0/out", "pid": 3, "ts": 5.0, "args": {"bytes/s": 0}}
    ]})");
  EXPECT_EQ(json::parse(perfetto_json(trace, counters, at(2'000'000))), expected);
}

TEST(PerfettoJson, AnEmptyTraceIsAnEmptyList) {
  EXPECT_EQ(perfetto_json({}, {}, at(7)), R"({"displayTimeUnit":"ns","traceEvents":[]})");
}

TEST(PerfettoJson, TimesAreExactToTheNanosecond) {
  const int64_t most = std::numeric_limits<int64_t>::max() - 1;
  const Trace trace{{{"h", "a"}}, {slice(0, "late", most - 1, most), slice(0, "before", 3, 5)}};
  EXPECT_NE(perfetto_json(trace, {}, at(0)).find(R"("ts":9223372036854775.805)"), std::string::npos);
  EXPECT_NE(
      perfetto_json(trace, {}, at(1'004)).find(R"("dur":0.002,"name":"before","ph":"X","pid":1,"tid":1,"ts":-1.001)"),
      std::string::npos);
}

TEST(PerfettoJson, ASliceThatNeverEndedRunsToTheLastTime) {
  Trace trace{{{"h", "a"}}, {slice(0, "open", 10, 0), slice(0, "last", 20, 4'000)}};
  trace.events[0].end = TimePoint::never();
  EXPECT_EQ(of_phase(perfetto_json(trace, {}, at(0)), "X")[0]["dur"], 3.99);
  const std::vector<TraceCounter> counters = {{"l", 1, {{at(9'010), 1.0}}}};
  EXPECT_EQ(of_phase(perfetto_json(trace, counters, at(0)), "X")[0]["dur"], 9.0);
  // Nothing has a time but its own begin.
  EXPECT_EQ(of_phase(perfetto_json(Trace{trace.tracks, {trace.events[0]}}, {}, at(0)), "X")[0]["dur"], 0.0);
}

TEST(PerfettoJson, SlicesThatOverlapInPartAreOnThreadsOfTheirOwn) {
  const Trace trace{{{"h", "copies"}, {"h", "next"}},
                    {
                        slice(0, "outer", 0, 100),
                        slice(0, "inner", 10, 50),     // nested: one thread
                        slice(0, "crosses", 60, 120),  // overlaps "outer": another
                        slice(0, "third", 70, 130),    // overlaps both
                        slice(0, "after", 130, 140),
                        slice(1, "other", 0, 5),
                    }};
  const std::string text = perfetto_json(trace, {}, at(0));
  std::vector<int> threads;
  for (const json& event : of_phase(text, "X")) threads.push_back(event["tid"]);
  EXPECT_EQ(threads, (std::vector<int>{1, 1, 2, 3, 1, 4}));
  std::vector<std::string> names;
  for (const json& event : of_phase(text, "M"))
    if (event["name"] == "thread_name") names.push_back(event["args"]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"copies", "copies (2)", "copies (3)", "next"}));
}

TEST(PerfettoJson, OfTwoThatBeginTogetherTheLongerIsOutside) {
  const Trace trace{{{"h", "a"}}, {slice(0, "short", 0, 10), slice(0, "long", 0, 20), slice(0, "point", 20, 20)}};
  for (const json& event : of_phase(perfetto_json(trace, {}, at(0)), "X")) EXPECT_EQ(event["tid"], 1);
}

TEST(PerfettoJson, AnyBytesMakeValidJson) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const Trace trace{{{all, all}},
                    {{TraceEvent::Kind::kInstant, 0, all, all, at(0), at(0), {{all, all}, {all, "b"}, {"", ""}}}}};
  const std::vector<TraceCounter> counters = {
      {all,
       std::numeric_limits<double>::quiet_NaN(),
       {{at(0), std::numeric_limits<double>::infinity()}, {TimePoint::never(), -1e300}}}};
  const json parsed = json::parse(perfetto_json(trace, counters, at(0)));
  const json event = of_phase(parsed.dump(), "i")[0];
  EXPECT_NE(event["name"].get<std::string>().find("\\x00"), std::string::npos);
  EXPECT_NE(event["name"].get<std::string>().find("\\xff"), std::string::npos);
  ASSERT_EQ(event["args"].size(), 2u) << "a name that occurs twice has both values";
  EXPECT_EQ(of_phase(parsed.dump(), "C")[0]["args"]["bytes/s"], 0) << "JSON has no infinity";
}

TEST(PerfettoJson, TheSameTraceGivesTheSameText) {
  const Trace trace{{{"h", "a"}, {"g", "b"}}, {slice(0, "x", 0, 9), slice(1, "y", 3, 5), slice(0, "z", 3, 12)}};
  EXPECT_EQ(perfetto_json(trace, {}, at(0)), perfetto_json(trace, {}, at(0)));
}

}  // namespace
}  // namespace crossdock
