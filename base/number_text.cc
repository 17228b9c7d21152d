#include "base/number_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>
#include <system_error>

namespace crossdock {

std::optional<uint64_t> decimal(std::string_view text) {
  uint64_t value = 0;
  // One spelling for each number, since from_chars() accepts leading zeros.
  const bool is_plain = !text.empty() && (text == "0" || text.front() != '0');
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!is_plain || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string grouped(uint64_t number) {
  const std::string digits = fmt::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string amount(double number) {
  if (number == std::floor(number) && number < 1e18) return grouped(static_cast<uint64_t>(number));
  return fmt::format("{:.2f}", number);
}

std::string human_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string rate_text(uint64_t bytes, Duration time) {
  if (time.ns() <= 0) return "-";
  return human_bytes(static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(time.ns()))) + "/s";
}

std::string seconds_text(Duration time) { return fmt::format("{:.3f} s", static_cast<double>(time.ns()) / 1e9); }

}  // namespace crossdock
