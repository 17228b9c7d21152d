// The report of a run without its pictures: small enough to pass from a child process to its parent, and to print.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/run_report.h"

namespace crossdock {

struct RunSummary {
  std::string error;  // why there was no run
  std::string scenario;
  std::string digest;
  std::string expected;
  std::string actual;
  bool as_expected = true;
  uint64_t seed = 0;
  uint64_t duration_ns = 0;
  uint64_t bytes = 0;
  uint64_t checks = 0;
  std::vector<std::string> verdicts;  // of each work
  std::vector<std::string> causes;
  std::vector<uint64_t> done_ns;  // of each work, from the start of the run on
  std::vector<std::string> unmet;
  std::vector<Violation> violations;
};

// Times become nanoseconds from the start of the run on.
RunSummary summary_of(const RunReport& report);
std::string to_json(const RunSummary& summary);
// Reads what to_json() wrote; empty when it is anything else.
std::optional<RunSummary> read_summary(std::string_view json);

// "I3 at 1.204 ms, event 391: bytes land in ..."
std::string violation_text(const Violation& violation, TimePoint origin);

}  // namespace crossdock
