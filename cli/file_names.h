// Names that become file names, and paths that become JSON.
#pragma once

#include <string>

namespace crossdock::cli {

// A name as that of a file: other bytes than [A-Za-z0-9._-] stand as %XX.
std::string escaped_name(const std::string& name);

// A path as JSON can hold it: itself when it is UTF-8, else escaped.
std::string json_path(const std::string& path);

}  // namespace crossdock::cli
