// Typed access to the fields of a JSON tree. Every diagnostic names the path ("parts[3].owns[0].heads") and goes on, so
// that one reading reports as much as it can.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/interval_set.h"
#include "base/sha256.h"
#include "model/wire/json.h"

namespace crossdock {

// Where a value stands: a chain of frames on the stack, made into text only when a diagnostic needs it.
struct JsonPath {
  const JsonPath* parent = nullptr;
  std::string_view key = {};
  uint32_t index = 0;
  bool is_index = false;

  JsonPath field(std::string_view name) const { return JsonPath{this, name, 0, false}; }
  JsonPath element(uint32_t i) const { return JsonPath{this, {}, i, true}; }
  std::string text() const;
};

// A value with its path and the place for diagnostics.
struct JsonCursor {
  JsonValue value;
  const JsonPath& path;
  Diagnostics& diagnostics;

  void refuse(Rule rule, std::string message) const;
  // True, or a diagnostic about the type.
  bool require(JsonKind kind) const;

  // Each adds a diagnostic and returns a harmless value when the JSON value is something else.
  uint64_t unsigned_integer() const;
  uint64_t number(uint64_t minimum) const;  // `minimum` where the value is something else or below it
  bool boolean() const;
  std::string string() const;        // any text, also empty
  std::string name() const;          // rule "name"
  Sha256Digest digest() const;       // rule "digest-text"
  Range range() const;               // [begin,end], begin <= end
  IntervalSet interval_set() const;  // [[begin,end],...] in any order, each not empty, none overlapping
  // Which of these texts it is; empty when it is another.
  std::optional<size_t> choice(std::span<const std::string_view> choices) const;

  // Calls visit(const JsonCursor&) for each element of an array.
  template <class Visit>
  void for_each(Visit visit) const {
    if (!require(JsonKind::kArray)) return;
    uint32_t index = 0;
    for (std::optional<JsonValue> item = value.first(); item; item = item->next()) {
      const JsonPath item_path = path.element(index++);
      visit(JsonCursor{*item, item_path, diagnostics});
    }
  }
};

// The fields of one object. Ask for each field of the format once, then call finish(): a field that was not asked for
// is a diagnostic.
class ObjectReader {
 public:
  explicit ObjectReader(const JsonCursor& cursor);

  // Calls read(const JsonCursor&) with the field's value; a missing field is a diagnostic.
  template <class Read>
  void required(std::string_view name, Read read) {
    if (const std::optional<JsonValue> value = take(name, true)) call(name, *value, read);
  }
  // The same, but a missing field is legal, and the result says so. There is no null: a field is there or it is not.
  template <class Read>
  bool optional(std::string_view name, Read read) {
    const std::optional<JsonValue> value = take(name, false);
    if (value) call(name, *value, read);
    return value.has_value();
  }

  // Shorthands for required fields. A number below `minimum` is a diagnostic.
  uint64_t number(std::string_view name, uint64_t minimum = 0);
  std::string string(std::string_view name);
  std::string name(std::string_view name);
  Sha256Digest digest(std::string_view name);
  Range range(std::string_view name);
  IntervalSet interval_set(std::string_view name);
  // One of `choices`; empty text, and a diagnostic, when it is another.
  std::string choice(std::string_view name, const std::vector<std::string_view>& choices);
  std::optional<uint64_t> optional_number(std::string_view name, uint64_t minimum = 0);

  void finish();
  const JsonCursor& cursor() const { return cursor_; }

 private:
  template <class Read>
  void call(std::string_view name, JsonValue value, Read& read) {
    const JsonPath path = cursor_.path.field(name);
    read(JsonCursor{value, path, cursor_.diagnostics});
  }
  std::optional<JsonValue> take(std::string_view name, bool is_required);

  static constexpr size_t kFieldsMax = 32;  // that a format may ask for in one object

  const JsonCursor& cursor_;
  bool is_object_;
  std::optional<JsonValue> expected_;  // the field after the last one found: in canonical text the next one asked for
  uint32_t found_count_ = 0;
  size_t asked_count_ = 0;
  std::array<std::string_view, kFieldsMax> asked_;
};

// Rule "name": 1 to kNameBytesMax bytes of UTF-8. What is printed escapes control characters.
bool is_name(std::string_view text);

}  // namespace crossdock
