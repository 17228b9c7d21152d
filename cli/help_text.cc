#include "cli/help_text.h"

#include <algorithm>

namespace crossdock::cli {
namespace {

// Joins the words with spaces into lines of at most `columns`. `end` closes each line but the last, `begin` opens each
// but the first.
std::string joined(const std::vector<std::string_view>& words, size_t columns, std::string_view end,
                   std::string_view begin) {
  std::string text;
  size_t width = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    // Room for what closes the line, should the next word not fit.
    const size_t reserved = i + 1 == words.size() ? 0 : end.size();
    if (i != 0 && width + 1 + words[i].size() + reserved > columns) {
      text.append(end).append("\n").append(begin);
      width = begin.size();
    } else if (i != 0) {
      text += ' ';
      ++width;
    }
    text.append(words[i]);
    width += words[i].size();
  }
  return text;
}

// Splits at each space that comes before `next`.
std::vector<std::string_view> split(std::string_view text, const std::string& next) {
  std::vector<std::string_view> parts;
  for (size_t end = text.find(" " + next); end != std::string_view::npos; end = text.find(" " + next)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

std::string wrapped(std::string_view text, size_t columns) {
  std::string lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (begin != 0) lines += '\n';
    lines += joined(split(text.substr(begin, end - begin), ""), columns, "", "");
    begin = end + 1;
  }
  return lines;
}

std::string examples_text(const std::vector<std::string>& commands) {
  constexpr std::string_view kIndent = "  ";
  const std::string continuation(3 * kIndent.size(), ' ');
  std::string text = commands.size() == 1 ? "Example:" : "Examples:";
  for (const std::string& command : commands)
    text.append("\n").append(kIndent).append(
        joined(split(command, "-"), kHelpColumns - kIndent.size(), " \\", continuation));
  return text;
}

}  // namespace crossdock::cli
