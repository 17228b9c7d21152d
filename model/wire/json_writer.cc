#include "model/wire/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace crossdock {
namespace {

// Takes one code point off the front; empty when it is not well-formed (RFC 3629: shortest form, no surrogates).
std::optional<uint32_t> take_code_point(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || text.size() < length) return std::nullopt;
  uint32_t code_point = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return std::nullopt;
    code_point = code_point << 6 | (byte(i) & 0x3f);
  }
  if (length == 3 && (code_point < 0x800 || (code_point >= 0xd800 && code_point < 0xe000))) return std::nullopt;
  if (length == 4 && (code_point < 0x10000 || code_point > 0x10ffff)) return std::nullopt;
  text.remove_prefix(length);
  return code_point;
}

void append_escape(std::string& out, uint32_t code_unit) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", code_unit);
}

void append_code_point(std::string& out, uint32_t code_point) {
  switch (code_point) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (code_point >= 0x20 && code_point < 0x7f) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x10000) {
    append_escape(out, code_point);
  } else {
    append_escape(out, 0xd800 + ((code_point - 0x10000) >> 10));
    append_escape(out, 0xdc00 + ((code_point - 0x10000) & 0x3ff));
  }
}

void append_string(std::string& out, std::string_view utf8) {
  out.push_back('"');
  while (!utf8.empty()) {
    const auto is_plain = [](char c) { return 0x20 <= c && c < 0x7f && c != '"' && c != '\\'; };
    const auto plain_end = std::find_if_not(utf8.begin(), utf8.end(), is_plain);
    out.append(utf8.begin(), plain_end);
    utf8.remove_prefix(static_cast<size_t>(plain_end - utf8.begin()));
    if (utf8.empty()) break;
    const std::optional<uint32_t> code_point = take_code_point(utf8);
    CHECK(code_point.has_value());
    append_code_point(out, *code_point);
  }
  out.push_back('"');
}

}  // namespace

void JsonWriter::before_value() {
  if (levels_.empty()) {
    CHECK(text_.empty());
    return;
  }
  Level& level = levels_.back();
  if (level.is_object) {
    CHECK(std::exchange(after_key_, false));
    return;
  }
  if (!level.empty) text_.push_back(',');
  level.empty = false;
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  text_.push_back('{');
  levels_.push_back(Level{.is_object = true, .last_key = {}});
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  CHECK(!levels_.empty() && levels_.back().is_object && !after_key_);
  levels_.pop_back();
  text_.push_back('}');
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  text_.push_back('[');
  levels_.push_back(Level{.is_object = false, .last_key = {}});
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  CHECK(!levels_.empty() && !levels_.back().is_object);
  levels_.pop_back();
  text_.push_back(']');
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  CHECK(!levels_.empty() && levels_.back().is_object && !after_key_);
  Level& level = levels_.back();
  CHECK(level.empty || level.last_key < name);
  if (!level.empty) text_.push_back(',');
  level.empty = false;
  level.last_key = name;
  append_string(text_, name);
  text_.push_back(':');
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view utf8) {
  before_value();
  append_string(text_, utf8);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) { return raw(value ? "true" : "false"); }

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::unsigned_number(uint64_t value) { return raw(fmt::format_int(value).c_str()); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  text_ += json;
  return *this;
}

std::string JsonWriter::take() {
  CHECK(levels_.empty());
  return std::exchange(text_, {});
}

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (!take_code_point(text)) return false;
  return true;
}

}  // namespace crossdock
