// The program's own log, to standard error.
#pragma once

#include <cstddef>
#include <string_view>

namespace crossdock::cli {

// Level 0 logs nothing; 1 (--verbose) times, sizes and states of protocols; 2 each of their operations too. All
// functions are thread-safe.
void set_verbosity(size_t level);
bool logs_info();
bool logs_debug();
void log_info(std::string_view message);
void log_debug(std::string_view message);

}  // namespace crossdock::cli
