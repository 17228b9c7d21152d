#include "sim/scenario/name_pattern.h"

#include <algorithm>

namespace crossdock {

// By trying every length for each '*'. Time grows with the length of the text to the power of the stars, of which names
// of processes need one or two.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= text.size(); ++at)
    if (matches_pattern(rest, text.substr(at))) return true;
  return false;
}

std::vector<std::string> comma_separated(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace crossdock
