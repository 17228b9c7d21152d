#include "model/wire/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/utf8.h"

namespace crossdock {
namespace {

void append_escape(std::string& out, uint32_t code_unit) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", code_unit);
}

// The escapes of Python's json.dumps, since digests are taken of this text and others compute them (docs/formats/).
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

// Wrong nesting is a bug of the caller, not of its data, so it is CHECKed everywhere below.
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
  // Sorted and each once: canonical by construction, without a pass at the end.
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

}  // namespace crossdock
