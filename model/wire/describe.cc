#include "model/wire/describe.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/check.h"

namespace crossdock {

// Constants (`schema`, `version`, `kind`) are known before the fields that come ahead of them in the alphabet are
// written. They wait in a stack, the next one on top, and go out before the first key that is larger. So a description
// can state them first and the text is canonical all the same.

void FieldWriter::header(std::string_view schema) {
  CHECK(constant_count_ == 0);
  constants_[0] = Constant{"version", {}};
  constants_[1] = Constant{"schema", schema};
  constant_count_ = 2;
}

size_t FieldWriter::kind(std::span<const std::string_view> kinds, size_t index) {
  constexpr std::string_view kKind = "kind";
  CHECK(index < kinds.size() && constant_count_ < constants_.size());
  CHECK(constant_count_ == 0 || kKind < constants_[constant_count_ - 1].name);
  constants_[constant_count_++] = Constant{kKind, kinds[index]};
  return index;
}

void FieldWriter::end() {
  while (constant_count_ > 0) write_constant();
  out_.end_object();
}

void FieldWriter::write_constants_before(std::string_view name) {
  while (constant_count_ > 0 && constants_[constant_count_ - 1].name < name) write_constant();
}

void FieldWriter::write_constant() {
  const Constant& constant = constants_[--constant_count_];
  out_.key(constant.name);
  constant.text.empty() ? out_.number(kWireVersion) : out_.string(constant.text);
}

namespace form {

std::optional<uint64_t> Bounded::read_up_to(const JsonCursor& cursor, uint64_t maximum) const {
  const uint64_t value = cursor.unsigned_integer();
  if (value < minimum)
    cursor.refuse(Rule::kFieldMinimum, fmt::format("{} is below {}", value, minimum));
  else if (value > maximum)
    cursor.refuse(Rule::kFieldMinimum, fmt::format("{} is above {}", value, maximum));
  else
    return value;
  return std::nullopt;
}

void Uint32::read(const JsonCursor& cursor, uint32_t& value) const {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  const uint64_t read = cursor.unsigned_integer();
  if (read > kMax) cursor.refuse(Rule::kFieldInteger, fmt::format("{} is not an integer from 0 to {}", read, kMax));
  value = static_cast<uint32_t>(read);
}

void Interval::write(JsonWriter& out, Range value) const {
  out.begin_array().number(value.begin()).number(value.end()).end_array();
}

void Intervals::write(JsonWriter& out, const IntervalSet& value) const {
  out.begin_array();
  for (const Range& range : value.ranges()) kInterval.write(out, range);
  out.end_array();
}

int64_t Nanoseconds::read_ns(const JsonCursor& cursor) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const JsonKind kind = cursor.value.kind();
  if (kind == JsonKind::kUnsigned && cursor.value.as_unsigned() <= kMax)
    return static_cast<int64_t>(cursor.value.as_unsigned());
  if (kind == JsonKind::kOtherNumber) {
    const std::string_view text = cursor.value.text();
    int64_t ns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ns);
    // Written again and compared: "-0" and other spellings of one number are refused, since equal values have equal
    // text.
    if (error == std::errc() && end == text.data() + text.size() && fmt::to_string(ns) == text) return ns;
  }
  if (kind == JsonKind::kUnsigned || kind == JsonKind::kOtherNumber)
    cursor.refuse(Rule::kFieldInteger, "a time is an integer of 64 bits with a sign");
  else
    cursor.require(JsonKind::kUnsigned);
  return 0;
}

void Nanoseconds::write_ns(JsonWriter& out, int64_t ns) { out.raw(fmt::to_string(ns)); }

void Microseconds::read(const JsonCursor& cursor, Duration& value) const {
  constexpr uint64_t kMax = uint64_t{1} << 52;
  const uint64_t read = cursor.unsigned_integer();
  if (read > kMax)
    cursor.refuse(Rule::kFieldMinimum, fmt::format("{} us are more than {}", read, kMax));
  else
    // 2^52 microseconds are below 2^63 nanoseconds.
    value = Duration::from_ns(static_cast<int64_t>(read) * 1000);
}

void Microseconds::write(JsonWriter& out, Duration value) const {
  out.number(static_cast<uint64_t>(value.ns() / 1000));
}

}  // namespace form
}  // namespace crossdock
