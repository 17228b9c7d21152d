// How a scenario names processes, links, machines, stores and works: patterns, and lists of names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace crossdock {

// Each '*' of the pattern matches any text, also an empty one.
bool matches_pattern(std::string_view pattern, std::string_view text);

// The parts between commas, without empty ones.
std::vector<std::string> comma_separated(std::string_view text);

}  // namespace crossdock
