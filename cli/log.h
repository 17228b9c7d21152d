// The program's own log, to standard error.
#pragma once

#include <cstddef>
#include <string_view>

namespace crossdock::cli {

// Log lines of the program's own doings go to standard error when asked for: with --verbose times, sizes and states of
// protocols, given twice each of their operations too. Thread-safe.
void set_verbosity(size_t level);
bool logs_info();
bool logs_debug();
void log_info(std::string_view message);
void log_debug(std::string_view message);

}  // namespace crossdock::cli
