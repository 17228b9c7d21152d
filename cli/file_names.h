// Names that become file names, and paths that become JSON.
#pragma once

#include <string>

namespace crossdock::cli {

// The name as a file name: bytes other than [A-Za-z0-9._-] become %XX.
std::string escaped_name(const std::string& name);

// The path as a JSON string: unchanged when it is UTF-8, else escaped.
std::string json_path(const std::string& path);

}  // namespace crossdock::cli
