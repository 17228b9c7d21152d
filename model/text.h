// How ranges and sets read in messages and tables.
#pragma once

#include <string>

#include "base/interval_set.h"
#include "model/diagnostics.h"

namespace crossdock {

// "[6,9)"; an end of 2^64 - 1 reads as "end".
std::string range_text(Range range);
// Inclusive, as people write layers: "0-39,41"; "none" when empty. At most `shown_max` ranges, then "and N more".
std::string set_text(const IntervalSet& set, size_t shown_max = 8);

// Rule "name" for a value that did not come through the reader.
void check_name(const std::string& text, const std::string& place, std::string_view field, Diagnostics& diagnostics);

}  // namespace crossdock
