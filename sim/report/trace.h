// Trace: what happened in a run, in the order in which it happened. Everything that is derived from a run's seed is in
// it, so equal digests mean equal runs (I7).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace crossdock {

using TraceArgs = std::vector<std::pair<std::string, std::string>>;

// One row of a picture: "h3" has "source p0-t0", "nic0/out", "ssd", ...; faults have the group "faults".
struct TraceTrack {
  std::string group;
  std::string name;
};

struct TraceEvent {
  enum class Kind {
    kSlice,    // something that takes time: an operation, a state of a protocol
    kInstant,  // a fault, a decision, a violation
  };
  Kind kind = Kind::kInstant;
  uint32_t track = 0;    // number in Trace::tracks
  std::string name;      // "copy", "executing", "link h3/nic0 off"
  std::string category;  // "operation", "state", "fault", "message", "store", "check"
  TimePoint begin;
  TimePoint end;  // of a slice; never(): it had not ended when the run did
  TraceArgs args;
  uint64_t event = 0;  // protocol events before it: what `--trace op:A-B` counts
};

struct Trace {
  std::vector<TraceTrack> tracks;
  std::vector<TraceEvent> events;  // by the time at which they were noted
};

// Chrome/Perfetto trace JSON: a process for each group, a thread for each track, times in microseconds from `origin`
// on. Counters: bytes per second of each link, from `counters`.
struct TraceCounter {
  std::string link;
  double capacity_bytes_per_s = 0;
  std::vector<std::pair<TimePoint, double>> bytes_per_s;  // holds from this time to the next
};
std::string perfetto_json(const Trace& trace, const std::vector<TraceCounter>& counters, TimePoint origin);

}  // namespace crossdock
