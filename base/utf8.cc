#include "base/utf8.h"

#include <fmt/format.h>

#include <iterator>

namespace crossdock {
namespace {

bool controls_display(uint32_t code_point) {
  const auto within = [code_point](uint32_t first, uint32_t last) { return first <= code_point && code_point <= last; };
  return within(0, 0x1f) || within(0x7f, 0x9f)                // C0, DEL, C1
         || within(0x200b, 0x200f) || within(0x2028, 0x202e)  // invisible, line separators, directions
         || within(0x2060, 0x2069) || code_point == 0x061c || code_point == 0xfeff;
}

}  // namespace

std::optional<uint32_t> take_code_point(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  // 0x80 to 0xbf continue a character; 0xc0 and 0xc1 would begin forms that are longer than needed; from 0xf5 on the
  // code point would pass U+10FFFF.
  const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || text.size() < length) return std::nullopt;
  uint32_t code_point = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return std::nullopt;
    code_point = code_point << 6 | (byte(i) & 0x3fu);
  }
  if (length == 3 && (code_point < 0x800 || (code_point >= 0xd800 && code_point < 0xe000))) return std::nullopt;
  if (length == 4 && (code_point < 0x10000 || code_point > 0x10ffff)) return std::nullopt;
  text.remove_prefix(length);
  return code_point;
}

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (!take_code_point(text)) return false;
  return true;
}

std::string shorten(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80; };
  size_t end = bytes_max;
  while (end > 0 && continues(end)) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::string_view before = text;
    const std::optional<uint32_t> code_point = take_code_point(text);
    if (!code_point) {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<uint8_t>(text.front()));
      text.remove_prefix(1);
    } else if (!controls_display(*code_point)) {
      line += before.substr(0, before.size() - text.size());
    } else if (*code_point < 0x80) {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", *code_point);
    } else {
      fmt::format_to(std::back_inserter(line), "\\u{{{:04x}}}", *code_point);
    }
  }
  return line;
}

}  // namespace crossdock
