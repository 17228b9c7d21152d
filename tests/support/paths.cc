#include "tests/support/paths.h"

namespace crossdock {

const std::string& source_directory() {
  static const std::string path = CROSSDOCK_SOURCE_DIR;
  return path;
}

const std::string& program_path() {
  static const std::string path = CROSSDOCK_PROGRAM;
  return path;
}

const std::string& crash_child_path() {
  static const std::string path = CROSSDOCK_CRASH_CHILD;
  return path;
}

const std::string& report_pages_path() {
  static const std::string path = CROSSDOCK_PAGE_DIR;
  return path;
}

const std::string& chromium_path() {
  static const std::string path = CROSSDOCK_CHROMIUM;
  return path;
}

bool program_has_simulation() { return CROSSDOCK_HAS_SIMULATION; }

std::string source_path(const std::string& path) { return source_directory() + "/" + path; }

}  // namespace crossdock
