#include "model/wire/decode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "model/ids.h"

namespace crossdock {
namespace {

constexpr size_t kShownBytesMax = 40;  // of the document's own text in a message

std::string shown(std::string_view text) { return shorten(text, kShownBytesMax); }

}  // namespace

// Made only when a diagnostic needs it: a document without errors costs no texts. Depth is bounded by
// JsonLimits::depth_max.
std::string JsonPath::text() const {
  const std::string before = parent == nullptr ? "" : parent->text();
  if (is_index) return fmt::format("{}[{}]", before, index);
  if (before.empty()) return std::string(key);
  return fmt::format("{}.{}", before, key);
}

bool is_name(std::string_view text) { return !text.empty() && text.size() <= kNameBytesMax && is_utf8(text); }

void JsonCursor::refuse(Rule rule, std::string message) const {
  diagnostics.add(rule, path.text(), std::move(message));
}

bool JsonCursor::require(JsonKind kind) const {
  if (value.kind() == kind) return true;
  refuse(Rule::kFieldType, fmt::format("must be {}, not {}", json_kind_name(kind), json_kind_name(value.kind())));
  return false;
}

// Fractions, negative numbers and numbers past 64 bits are kOtherNumber: nothing is rounded.
uint64_t JsonCursor::unsigned_integer() const {
  if (value.kind() == JsonKind::kOtherNumber) {
    refuse(Rule::kFieldInteger,
           fmt::format("{} is not an integer from 0 to 18446744073709551615", shown(value.text())));
    return 0;
  }
  return require(JsonKind::kUnsigned) ? value.as_unsigned() : 0;
}

uint64_t JsonCursor::number(uint64_t minimum) const {
  const uint64_t diagnostics_before = diagnostics.total();
  const uint64_t read = unsigned_integer();
  // A value of another type is reported once, and not also for being below the minimum.
  if (diagnostics.total() != diagnostics_before) return minimum;
  if (read < minimum) refuse(Rule::kFieldMinimum, fmt::format("{} is below {}", read, minimum));
  return std::max(read, minimum);
}

bool JsonCursor::boolean() const { return require(JsonKind::kBool) && value.as_bool(); }

std::string JsonCursor::string() const {
  return require(JsonKind::kString) ? std::string(value.text()) : std::string();
}

std::string JsonCursor::name() const {
  if (!require(JsonKind::kString)) return {};
  if (is_name(value.text())) return std::string(value.text());
  refuse(Rule::kName, value.text().empty()
                          ? "a name must not be empty"
                          : fmt::format("a name of {} bytes is longer than {}", value.text().size(), kNameBytesMax));
  return {};
}

Sha256Digest JsonCursor::digest() const {
  if (!require(JsonKind::kString)) return {};
  if (const auto digest = Sha256Digest::from_hex(value.text())) return *digest;
  refuse(Rule::kDigestText,
         fmt::format("'{}' is not 64 lower-case hexadecimal digits (and nothing before them)", shown(value.text())));
  return {};
}

Range JsonCursor::range() const {
  if (!require(JsonKind::kArray)) return {};
  if (value.size() != 2) {
    refuse(Rule::kIntervals, fmt::format("one interval [begin,end] stands here, not {} values", value.size()));
    return {};
  }
  std::array<uint64_t, 2> ends = {};
  const uint64_t diagnostics_before = diagnostics.total();
  // The array has two entries, so the index fits.
  for_each([&](const JsonCursor& item) { ends[item.path.index] = item.unsigned_integer(); });
  if (diagnostics.total() != diagnostics_before) return {};
  if (const auto range = Range::make(ends[0], ends[1])) return *range;
  refuse(Rule::kIntervals, fmt::format("interval [{},{}) ends before it begins", ends[0], ends[1]));
  return {};
}

IntervalSet JsonCursor::interval_set() const {
  std::vector<Range> ranges;
  const uint64_t diagnostics_before = diagnostics.total();
  for_each([&](const JsonCursor& item) {
    const uint64_t item_diagnostics_before = diagnostics.total();
    ranges.push_back(item.range());
    if (diagnostics.total() == item_diagnostics_before && ranges.back().empty())
      item.refuse(Rule::kIntervals, fmt::format("interval [{0},{0}) is empty", ranges.back().begin()));
  });
  if (diagnostics.total() != diagnostics_before) return {};
  // Any order is accepted, and the set has one form (base/interval_set.h). Overlaps are refused although a union would
  // be possible: they are a mistake in the document.
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (!ranges[i].overlaps(ranges[i - 1])) continue;
    refuse(Rule::kIntervals, fmt::format("intervals [{},{}) and [{},{}) overlap", ranges[i - 1].begin(),
                                         ranges[i - 1].end(), ranges[i].begin(), ranges[i].end()));
    return {};
  }
  return IntervalSet::from_ranges(std::move(ranges));
}

std::optional<size_t> JsonCursor::choice(std::span<const std::string_view> choices) const {
  if (!require(JsonKind::kString)) return std::nullopt;
  const auto found = std::find(choices.begin(), choices.end(), value.text());
  if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  refuse(Rule::kFieldChoice, fmt::format("'{}' is not one of {}", shown(value.text()), fmt::join(choices, ", ")));
  return std::nullopt;
}

ObjectReader::ObjectReader(const JsonCursor& cursor) : cursor_(cursor), is_object_(cursor.require(JsonKind::kObject)) {
  if (is_object_) expected_ = cursor.value.first();
}

// Formats ask in sorted order, and canonical text has that order, so the next field is nearly always the one asked for.
// In any other order each look-up is O(fields); at most kFieldsMax of them are made.
std::optional<JsonValue> ObjectReader::take(std::string_view name, bool is_required) {
  if (!is_object_) return std::nullopt;
  CHECK(asked_count_ < kFieldsMax);
  asked_[asked_count_++] = name;
  std::optional<JsonValue> value = expected_ && expected_->key() == name ? expected_ : cursor_.value.find(name);
  if (value) {
    ++found_count_;
    expected_ = value->next();
  } else if (is_required) {
    cursor_.refuse(Rule::kFieldMissing, fmt::format("field '{}' is missing", name));
  }
  return value;
}

uint64_t ObjectReader::number(std::string_view name, uint64_t minimum) {
  uint64_t number = minimum;
  required(name, [&](const JsonCursor& cursor) { number = cursor.number(minimum); });
  return number;
}

std::optional<uint64_t> ObjectReader::optional_number(std::string_view name, uint64_t minimum) {
  std::optional<uint64_t> number;
  optional(name, [&](const JsonCursor& cursor) { number = cursor.number(minimum); });
  return number;
}

std::string ObjectReader::string(std::string_view name) {
  std::string text;
  required(name, [&](const JsonCursor& cursor) { text = cursor.string(); });
  return text;
}

std::string ObjectReader::name(std::string_view name) {
  std::string text;
  required(name, [&](const JsonCursor& cursor) { text = cursor.name(); });
  return text;
}

Sha256Digest ObjectReader::digest(std::string_view name) {
  Sha256Digest digest;
  required(name, [&](const JsonCursor& cursor) { digest = cursor.digest(); });
  return digest;
}

Range ObjectReader::range(std::string_view name) {
  Range range;
  required(name, [&](const JsonCursor& cursor) { range = cursor.range(); });
  return range;
}

IntervalSet ObjectReader::interval_set(std::string_view name) {
  IntervalSet set;
  required(name, [&](const JsonCursor& cursor) { set = cursor.interval_set(); });
  return set;
}

std::string ObjectReader::choice(std::string_view name, const std::vector<std::string_view>& choices) {
  std::string text;
  required(name, [&](const JsonCursor& cursor) {
    if (const std::optional<size_t> found = cursor.choice(choices)) text = choices[*found];
  });
  return text;
}

// A format asks for each name once and the tree has no repeated fields, so equal counts mean that every field was asked
// for.
void ObjectReader::finish() {
  if (!is_object_ || found_count_ == cursor_.value.size()) return;
  const auto asked_end = asked_.begin() + static_cast<ptrdiff_t>(asked_count_);
  for (std::optional<JsonValue> field = cursor_.value.first(); field; field = field->next())
    if (std::find(asked_.begin(), asked_end, field->key()) == asked_end)
      cursor_.refuse(Rule::kFieldUnknown, fmt::format("field '{}' is unknown", shown(field->key())));
}

}  // namespace crossdock
