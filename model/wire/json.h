// A strict JSON reader into a compact tree. It refuses, by rule: what is not JSON (comments, NaN, trailing bytes,
// invalid UTF-8), a repeated field at any depth, and anything past the limits, before memory is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/diagnostics.h"

namespace crossdock {

struct JsonLimits {
  uint64_t bytes_max = uint64_t{256} << 20;
  uint32_t depth_max = 32;
  uint32_t values_max = uint32_t{8} << 20;  // 32 bytes of memory each
};

enum class JsonKind : uint8_t { kNull, kBool, kUnsigned, kOtherNumber, kString, kArray, kObject };

std::string_view json_kind_name(JsonKind kind);

class JsonTree;

// A value inside a tree; valid as long as the tree is. Cheap to copy.
class JsonValue {
 public:
  JsonKind kind() const;
  bool as_bool() const;          // of a kBool
  uint64_t as_unsigned() const;  // of a kUnsigned
  // Of a string: its text. Of a kOtherNumber (negative, fractional, or past 64 bits): as it stands in the document.
  std::string_view text() const;

  // Of an array or an object: how many values it has.
  uint32_t size() const;
  // Walks the values of an array or an object: first(), then next() of each until it is empty.
  std::optional<JsonValue> first() const;
  std::optional<JsonValue> next() const;
  // The field name of a value inside an object; else empty text.
  std::string_view key() const;
  // Of an object: the value of a field. O(size).
  std::optional<JsonValue> find(std::string_view key) const;

 private:
  friend class JsonTree;
  JsonValue(const JsonTree* tree, uint32_t index) : tree_(tree), index_(index) {}
  const JsonTree* tree_;
  uint32_t index_;
};

class JsonTree {
 public:
  // Empty, and diagnostics are added, when the text is refused.
  static std::optional<JsonTree> parse(std::string_view text, const JsonLimits& limits, Diagnostics& diagnostics);

  JsonValue root() const { return JsonValue(this, 0); }

 private:
  friend class JsonValue;
  friend class JsonTreeBuilder;

  static constexpr uint32_t kNone = UINT32_MAX;

  struct Node {
    uint64_t payload = 0;  // kUnsigned: the number; kBool: 0 or 1; text: begin << 32 | size; containers: first child
    uint32_t key_begin = 0;
    uint32_t key_size = 0;
    uint32_t next = kNone;
    uint32_t child_count = 0;
    JsonKind kind = JsonKind::kNull;
  };

  std::string_view text_at(uint64_t begin_and_size) const;

  std::vector<Node> nodes_;
  std::string text_;  // all keys and strings, one after the other
};

}  // namespace crossdock
