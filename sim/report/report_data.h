// What the page of a report shows, as JSON: bounded, however large the run was.
#pragma once

#include <cstddef>
#include <string>

#include "sim/report/run_report.h"

namespace crossdock {

struct ReportLimits {
  size_t event_count_max = 20'000;
  size_t row_count_max = 500;  // works, and violations
  size_t link_count_max = 200;
  size_t link_part_count = 240;
  size_t matrix_side_max = 64;
  size_t pair_count_max = 12;
  size_t arg_count_max = 16;  // of one event
  size_t text_bytes_max = 400;
};

// Times are nanoseconds from the report's origin; null: never.
std::string report_data(const RunReport& report, const ReportLimits& limits);

}  // namespace crossdock
