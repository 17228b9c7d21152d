#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

namespace crossdock::cli {

std::optional<uint64_t> decimal(std::string_view text) {
  uint64_t value = 0;
  const bool is_plain = !text.empty() && (text == "0" || text.front() != '0');
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!is_plain || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

CLI::Option* add_number(CLI::App& command, const std::string& name, uint64_t& value, uint64_t minimum, uint64_t maximum,
                        const std::string& help) {
  const auto set = [&value, name, minimum, maximum](const std::string& text) {
    const std::optional<uint64_t> number = decimal(text);
    if (!number || *number < minimum || *number > maximum)
      throw CLI::ValidationError(name, fmt::format("'{}' is not an integer from {} to {}", text, minimum, maximum));
    value = *number;
  };
  const std::string text = value == 0 ? help : fmt::format("{} (default {})", help, value);
  return command.add_option_function<std::string>(name, set, text)->type_name("N");
}

CLI::Option* add_numbers(CLI::App& command, const std::string& name, std::vector<uint64_t>& values,
                         const std::string& help) {
  const auto set = [&values, name](const std::string& text) {
    values.clear();
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const std::optional<uint64_t> number = decimal(std::string_view(text).substr(begin, end - begin));
      if (!number) throw CLI::ValidationError(name, fmt::format("'{}' is not a list of integers like 2,2,1,1", text));
      values.push_back(*number);
      begin = end + 1;
    }
  };
  return command.add_option_function<std::string>(name, set, help)->type_name("N,N,...");
}

CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value, const std::string& type,
                      const std::string& help) {
  const auto not_empty = [name](const std::string& text) { return text.empty() ? "must not be empty" : std::string(); };
  const std::string text = value.empty() ? help : fmt::format("{} (default {})", help, value);
  return command.add_option(name, value, text)->type_name(type)->check(CLI::Validator(not_empty, ""));
}

}  // namespace crossdock::cli
