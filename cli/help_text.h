// Layout of help texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace crossdock::cli {

inline constexpr size_t kHelpColumns = 100;

// Breaks the lines of the text between words, so that each is at most `columns` wide. A longer word gets its own line.
std::string wrapped(std::string_view text, size_t columns);

// "Example:" or "Examples:", then the commands, indented. A command wider than kHelpColumns is broken before an option
// and continues after a backslash, so that a shell can run it as it is printed.
std::string examples_text(const std::vector<std::string>& commands);

}  // namespace crossdock::cli
