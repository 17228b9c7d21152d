// What one simulated run says, for people and programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "sim/report/trace.h"

namespace crossdock {

struct Violation {
  std::string invariant;  // "I3"
  TimePoint time;
  std::string what;
  uint64_t event = 0;  // number of the protocol event at which it was seen
};

struct InvariantResult {
  std::string invariant;  // "I1"
  std::string rule;       // one sentence
  uint64_t check_count = 0;
  uint64_t violation_count = 0;
};

// One piece of work: a transfer, an upload, a restore.
struct WorkResult {
  std::string name;
  std::string kind;
  std::string verdict;  // "activated", "aborted", "committed", ...
  std::string cause;
  TimePoint begin;
  TimePoint end;       // of its last process
  uint64_t bytes = 0;  // of content that it moved
  // When what it was for was there (the last activation, the commit); its end, if it never was.
  TimePoint done = {};
};

struct TrafficCell {
  std::string from;  // participant or store
  std::string to;
  uint64_t planned_bytes = 0;
  uint64_t landed_bytes = 0;
};

struct RunReport {
  std::string scenario;
  std::string shows;  // one sentence
  std::string cluster;
  uint64_t seed = 0;
  TimePoint origin;
  Duration duration;
  // Of everything that happened, kept in the trace or not (sim/world/trace_log.h); equal for equal runs.
  std::string digest;
  std::string expected;  // verdict, as text; empty: none was stated
  std::string actual;
  bool as_expected = true;
  std::string replay;  // the command that shows this run again
  std::vector<WorkResult> works;
  std::vector<InvariantResult> invariants;
  std::vector<Violation> violations;
  std::vector<std::string> unmet;  // faults whose event never came
  std::vector<TrafficCell> traffic;
  std::vector<TraceCounter> links;
  Trace trace;
};

// One self-contained page: opens without a network, on a phone as well as on a desktop.
std::string report_html(const RunReport& report);

}  // namespace crossdock
