// Canonical JSON: sorted keys, no spaces, ASCII only (other characters as \uXXXX, surrogate pairs above U+FFFF).
// It is the text that Python's json.dumps(value, sort_keys=True, separators=(",", ":")) gives.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace crossdock {

// Appends to one string. Keys must come sorted and each once; that is checked.
class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& string(std::string_view utf8);  // invalid UTF-8 is a bug of the caller
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  template <std::unsigned_integral Number>
  JsonWriter& number(Number value) {
    return unsigned_number(value);
  }
  // Text that is canonical JSON already.
  JsonWriter& raw(std::string_view json);

  // The finished text. Every object and array must be closed.
  std::string take();

 private:
  JsonWriter& unsigned_number(uint64_t value);
  void before_value();

  struct Level {
    bool is_object;
    bool empty = true;
    std::string last_key;
  };
  std::string text_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace crossdock
