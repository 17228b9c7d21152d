#include "model/hf/fields.h"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"

namespace crossdock {

std::string shown_text(std::string_view text) {
  constexpr size_t kShownBytesMax = 60;
  return shorten(text, kShownBytesMax);
}

// transformers writes null for "use the default", so both mean absent; where a class tells them apart, is_null() does.
std::optional<JsonValue> ConfigFields::find(std::string_view name) const {
  note_asked(name);
  const std::optional<JsonValue> value = cursor_.value.find(name);
  return value && value->kind() != JsonKind::kNull ? value : std::nullopt;
}

bool ConfigFields::is_null(std::string_view name) const {
  note_asked(name);
  const std::optional<JsonValue> value = cursor_.value.find(name);
  return value && value->kind() == JsonKind::kNull;
}

std::optional<uint64_t> ConfigFields::find_number(std::string_view name) const {
  std::optional<uint64_t> number;
  visit(name, [&](const JsonCursor& field) {
    const uint64_t diagnostics_before = field.diagnostics.total();
    const uint64_t value = field.unsigned_integer();
    if (field.diagnostics.total() == diagnostics_before) number = value;
  });
  return number;
}

std::optional<uint64_t> ConfigFields::find_count(std::string_view name) const {
  const std::optional<uint64_t> number = find_number(name);
  // Absent or refused before: returned as it is, without a second diagnostic.
  if (number != uint64_t{0}) return number;
  refuse(name, "0 is below 1");
  return std::nullopt;
}

std::optional<bool> ConfigFields::find_flag(std::string_view name) const {
  std::optional<bool> flag;
  visit(name, [&](const JsonCursor& field) {
    if (field.require(JsonKind::kBool)) flag = field.value.as_bool();
  });
  return flag;
}

std::optional<std::string> ConfigFields::find_text(std::string_view name) const {
  std::optional<std::string> text;
  visit(name, [&](const JsonCursor& field) {
    if (field.require(JsonKind::kString)) text = std::string(field.value.text());
  });
  return text;
}

std::optional<uint64_t> ConfigFields::count(std::string_view name, std::optional<uint64_t> fallback) const {
  if (has(name)) return find_count(name);
  if (!fallback) refuse_missing(name);
  return fallback;
}

void ConfigFields::refuse(std::string_view name, Rule rule, std::string message) const {
  cursor_.diagnostics.add(rule, cursor_.path.field(name).text(), std::move(message));
}

void ConfigFields::refuse_missing(std::string_view name) const {
  refuse(name, fmt::format("is missing; {} needs it", architecture_));
}

}  // namespace crossdock
