#include "sim/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "model/wire/json_writer.h"
#include "sim/report/json_text.h"

namespace crossdock {
namespace {

constexpr size_t kAnyLength = std::numeric_limits<size_t>::max() / 2;
constexpr size_t kLanesMax = 256;  // of one track; slices beyond overlap in the last one

// A viewer nests the slices of a thread and drops those that overlap in part. So a track becomes as many threads as it
// needs for each slice to lie within, or beside, the others of its thread.
struct Lanes {
  std::vector<uint32_t> of_event;
  std::vector<uint32_t> count;      // of each track
  std::vector<uint64_t> first_tid;  // of each track
};

size_t take_lane(std::vector<std::vector<TimePoint>>& open_ends, TimePoint begin, TimePoint end) {
  for (size_t lane = 0;; ++lane) {
    if (lane == open_ends.size()) open_ends.emplace_back();
    std::vector<TimePoint>& ends = open_ends[lane];
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    // It lies within the innermost open slice of this lane, or the lane is free.
    if (ends.empty() || ends.back() >= end || lane + 1 == kLanesMax) {
      ends.push_back(end);
      return lane;
    }
  }
}

Lanes lay_out(const Trace& trace, TimePoint last) {
  std::vector<uint32_t> order(trace.events.size());
  std::iota(order.begin(), order.end(), 0);
  // Of two that begin together, the longer one lies outside.
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const TraceEvent& event_a = trace.events[a];
    const TraceEvent& event_b = trace.events[b];
    return std::tuple(event_a.track, shown_begin(event_a, last), shown_end(event_b, last), a) <
           std::tuple(event_b.track, shown_begin(event_b, last), shown_end(event_a, last), b);
  });

  Lanes lanes{std::vector<uint32_t>(trace.events.size()), std::vector<uint32_t>(trace.tracks.size(), 1), {}};
  std::vector<std::vector<TimePoint>> open_ends;
  for (size_t i = 0; i < order.size(); ++i) {
    const TraceEvent& event = trace.events[order[i]];
    CHECK(event.track < trace.tracks.size());
    if (i == 0 || trace.events[order[i - 1]].track != event.track) open_ends.clear();
    if (event.kind != TraceEvent::Kind::kSlice) continue;
    const size_t lane = take_lane(open_ends, shown_begin(event, last), shown_end(event, last));
    lanes.of_event[order[i]] = static_cast<uint32_t>(lane);
    lanes.count[event.track] = std::max(lanes.count[event.track], static_cast<uint32_t>(lane + 1));
  }
  uint64_t tid = 1;
  for (const uint32_t count : lanes.count) {
    lanes.first_tid.push_back(tid);
    tid += count;
  }
  return lanes;
}

// Microseconds with the nanoseconds behind the point.
std::string microseconds(Duration duration) {
  const bool negative = duration.ns() < 0;
  // In unsigned arithmetic, since the negative of the least int64_t is none.
  const uint64_t ns = negative ? 0 - static_cast<uint64_t>(duration.ns()) : static_cast<uint64_t>(duration.ns());
  return fmt::format("{}{}.{:03}", negative ? "-" : "", ns / 1000, ns % 1000);
}

class Events {
 public:
  Events(const Trace& trace, TimePoint origin, TimePoint last)
      : trace_(trace), origin_(origin), last_(last), lanes_(lay_out(trace, last)) {
    for (const TraceTrack& track : trace.tracks) {
      const auto [entry, is_new] = pid_of_group_.emplace(track.group, pid_of_group_.size() + 1);
      if (is_new) groups_.push_back(track.group);
      pids_.push_back(entry->second);
    }
  }

  std::string write(const std::vector<TraceCounter>& counters) {
    json_.begin_object().key("displayTimeUnit").string("ns").key("traceEvents").begin_array();
    for (size_t group = 0; group < groups_.size(); ++group) name_process(group + 1, groups_[group]);
    if (!counters.empty()) name_process(groups_.size() + 1, "links");
    for (size_t track = 0; track < trace_.tracks.size(); ++track) name_threads(track);
    for (size_t number = 0; number < trace_.events.size(); ++number) write_event(number);
    for (const TraceCounter& counter : counters) write_counter(counter);
    json_.end_array().end_object();
    return json_.take();
  }

 private:
  void name_process(uint64_t pid, const std::string& name) {
    json_.begin_object().key("args").begin_object().key("name").string(json_line(name, kAnyLength)).end_object();
    json_.key("name").string("process_name").key("ph").string("M").key("pid").number(pid).end_object();
    json_.begin_object().key("args").begin_object().key("sort_index").number(pid).end_object();
    json_.key("name").string("process_sort_index").key("ph").string("M").key("pid").number(pid).end_object();
  }

  void name_threads(size_t track) {
    const std::string name = json_line(trace_.tracks[track].name, kAnyLength);
    for (uint32_t lane = 0; lane < lanes_.count[track]; ++lane) {
      const uint64_t tid = lanes_.first_tid[track] + lane;
      const std::string lane_name = lane == 0 ? name : fmt::format("{} ({})", name, lane + 1);
      json_.begin_object().key("args").begin_object().key("name").string(lane_name).end_object();
      json_.key("name").string("thread_name").key("ph").string("M").key("pid").number(pids_[track]);
      json_.key("tid").number(tid).end_object();
      json_.begin_object().key("args").begin_object().key("sort_index").number(tid).end_object();
      json_.key("name").string("thread_sort_index").key("ph").string("M").key("pid").number(pids_[track]);
      json_.key("tid").number(tid).end_object();
    }
  }

  void write_event(size_t number) {
    const TraceEvent& event = trace_.events[number];
    const bool is_slice = event.kind == TraceEvent::Kind::kSlice;
    const TimePoint begin = shown_begin(event, last_);
    json_.begin_object();
    write_args(event, is_slice && event.end == TimePoint::never());
    json_.key("cat").string(json_line(event.category, kAnyLength));
    if (is_slice) json_.key("dur").raw(microseconds(shown_end(event, last_) - begin));
    json_.key("name").string(json_line(event.name, kAnyLength));
    json_.key("ph").string(is_slice ? "X" : "i").key("pid").number(pids_[event.track]);
    if (!is_slice) json_.key("s").string("t");
    json_.key("tid").number(lanes_.first_tid[event.track] + lanes_.of_event[number]);
    json_.key("ts").raw(microseconds(begin - origin_)).end_object();
  }

  // Each of several arguments with the same name is kept.
  void write_args(const TraceEvent& event, bool never_ended) {
    std::map<std::string, std::string> args;
    const auto add = [&args](const std::string& name, const std::string& value) {
      const auto [entry, is_new] = args.emplace(name, value);
      if (!is_new) entry->second += ", " + value;
    };
    for (const auto& [name, value] : event.args) add(json_line(name, kAnyLength), json_line(value, kAnyLength));
    if (never_ended) add("end", "not in this run");
    if (args.empty()) return;
    json_.key("args").begin_object();
    for (const auto& [name, value] : args) json_.key(name).string(value);
    json_.end_object();
  }

  void write_counter(const TraceCounter& counter) {
    const std::string name = json_line(counter.link, kAnyLength);
    for (const auto& [time, rate] : counter.bytes_per_s) {
      json_.begin_object().key("args").begin_object().key("bytes/s").raw(json_number(rate)).end_object();
      json_.key("name").string(name).key("ph").string("C").key("pid").number(groups_.size() + 1);
      json_.key("ts").raw(microseconds(std::min(time, last_) - origin_)).end_object();
    }
  }

  const Trace& trace_;
  const TimePoint origin_;
  const TimePoint last_;
  const Lanes lanes_;
  std::vector<std::string> groups_;  // in the order in which the tracks name them
  std::map<std::string, uint64_t> pid_of_group_;
  std::vector<uint64_t> pids_;  // of each track
  JsonWriter json_;
};

}  // namespace

std::string perfetto_json(const Trace& trace, const std::vector<TraceCounter>& counters, TimePoint origin) {
  return Events(trace, origin, last_time(trace, counters, origin)).write(counters);
}

}  // namespace crossdock
