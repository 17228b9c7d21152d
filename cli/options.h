// Options that CLI11 alone reads too kindly: it takes -1 for 2^64 - 1, 010 for 8, and drops what is empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace crossdock::cli {

// A plain decimal number: no sign, no leading zeros. Empty when the text is none, or passes 2^64 - 1.
std::optional<uint64_t> decimal(std::string_view text);

// The value that stands there is the default and is told in the help; 0 and empty text are not.

// A decimal integer from `minimum` to `maximum`.
CLI::Option* add_number(CLI::App& command, const std::string& name, uint64_t& value, uint64_t minimum, uint64_t maximum,
                        const std::string& help);
// Decimal integers between commas, none missing.
CLI::Option* add_numbers(CLI::App& command, const std::string& name, std::vector<uint64_t>& values,
                         const std::string& help);
// Text that is not empty.
CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value, const std::string& type,
                      const std::string& help);

}  // namespace crossdock::cli
