#include "cli/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/utf8.h"

namespace crossdock::cli {
namespace {

// The log belongs to the program and not to the library, which logs nothing: observers bring what it does
// (log_observer.h).
spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("crossdock", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("crossdock: %v");
    made.set_level(spdlog::level::warn);
    return made;
  }();
  return instance;
}

}  // namespace

void set_verbosity(size_t level) {
  logger().set_level(level == 0 ? spdlog::level::warn : level == 1 ? spdlog::level::info : spdlog::level::debug);
}

bool logs_info() { return logger().should_log(spdlog::level::info); }

bool logs_debug() { return logger().should_log(spdlog::level::debug); }

void log_info(std::string_view message) { logger().info("{}", printable(message)); }

void log_debug(std::string_view message) { logger().debug("{}", printable(message)); }

}  // namespace crossdock::cli
