// The contents of a document, for people and for tools.
#pragma once

#include <cstdint>
#include <string>

#include "model/wire/documents.h"

namespace crossdock::cli {

// Tables of at most `row_count_max` rows each.
std::string inspect_text(const AnyDocument& document, uint64_t row_count_max);
// One JSON object with all rows.
std::string inspect_json(const AnyDocument& document);

}  // namespace crossdock::cli
