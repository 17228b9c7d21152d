// A report as a run of some hosts gives it: works, links, traffic, several hundred events.
#pragma once

#include <cstdint>
#include <string>

#include "sim/report/run_report.h"

namespace crossdock::test {

struct ExampleSize {
  uint32_t host_count = 4;
  uint32_t copies_per_target = 60;
};

// All went as expected.
RunReport example_report(const ExampleSize& size = {});

// The same run with a violation, and works that did not end.
RunReport violated_report();

// Texts that would break out of the page, or break it, if they were not escaped.
RunReport hostile_report();

}  // namespace crossdock::test
