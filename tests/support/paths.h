// Where the sources and the programs under test lie. Only paths.cc knows, so that all other objects are equal in every
// clone.
#pragma once

#include <string>

namespace crossdock {

// Each returns an absolute path.
const std::string& source_directory();
const std::string& program_path();       // the crossdock program
const std::string& crash_child_path();   // tests/crash/crash_child.cc
const std::string& report_pages_path();  // a folder for pages that the browser test writes
const std::string& chromium_path();      // empty when there was none at configuration
bool program_has_simulation();           // whether the program was built with simulate and check

// source_directory() + "/" + path
std::string source_path(const std::string& path);

}  // namespace crossdock
