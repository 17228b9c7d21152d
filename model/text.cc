#include "model/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/ids.h"
#include "model/wire/decode.h"

namespace crossdock {

std::string range_text(Range range) {
  if (range.end() == Range::kUnbounded) return fmt::format("[{},end)", range.begin());
  return fmt::format("[{},{})", range.begin(), range.end());
}

std::string set_text(const IntervalSet& set, size_t shown_max) {
  if (set.empty()) return "none";
  std::string text;
  const size_t shown = std::min(shown_max, set.ranges().size());
  for (size_t i = 0; i < shown; ++i) {
    const Range range = set.ranges()[i];
    if (i > 0) text += ',';
    text += range.size() == 1 ? fmt::to_string(range.begin()) : fmt::format("{}-{}", range.begin(), range.end() - 1);
  }
  if (shown < set.ranges().size()) text += fmt::format(" and {} more ranges", set.ranges().size() - shown);
  return text;
}

void check_name(const std::string& text, const std::string& place, std::string_view field, Diagnostics& diagnostics) {
  if (!is_name(text))
    diagnostics.add(Rule::kName, place, fmt::format("{} must have 1 to {} bytes of UTF-8", field, kNameBytesMax));
}

}  // namespace crossdock
