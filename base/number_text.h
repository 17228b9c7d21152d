// How numbers are read from text, and how they read in tables and messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace crossdock {

// A plain decimal number: no sign, no leading zeros. Empty when the text is not one, or exceeds 2^64 - 1.
std::optional<uint64_t> decimal(std::string_view text);

// "1,234,567"
std::string grouped(uint64_t number);
// The same for whole numbers, else with two decimals.
std::string amount(double number);

// "1.25 GB": powers of 1000, two decimals; bytes below 1000 are exact.
std::string human_bytes(uint64_t bytes);
// "12.30 GB/s"; "-" when no time has passed.
std::string rate_text(uint64_t bytes, Duration time);
// "1.234 s"
std::string seconds_text(Duration time);

}  // namespace crossdock
