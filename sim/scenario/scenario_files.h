// Where scenarios that lie in files find what they name.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace crossdock {

// For read_scenario(): the text of a cluster that a scenario of this file names, which is a file of the folder
// "clusters" beside it or beside its folder. Empty when there is none.
std::function<std::optional<std::string>(const std::string& name)> clusters_beside(const std::string& scenario_path);

}  // namespace crossdock
