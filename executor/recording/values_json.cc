#include "executor/recording/values_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/utf8.h"

// Small values, exactly: what is read is what was written, byte for byte, or it is refused. So each value has one text,
// and comparing texts compares values.
namespace crossdock {
namespace {

constexpr size_t kCodeCount = static_cast<size_t>(Code::kDataLoss) + 1;

// kDataLoss is the last code; one that is added after it has to take its place in kCodeCount.
std::array<std::string_view, kCodeCount> code_names() {
  std::array<std::string_view, kCodeCount> names;
  for (size_t i = 0; i < kCodeCount; ++i) names[i] = code_name(static_cast<Code>(i));
  return names;
}

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return hex;
}

// False when the text is not what hex_of() writes.
// Comparing with hex_of() at the end refuses upper case and signs, which from_chars would take.
bool bytes_of(std::string_view hex, std::string& bytes) {
  if (hex.size() % 2 != 0) return false;
  for (size_t i = 0; i < hex.size(); i += 2) {
    uint8_t byte = 0;
    const char* end = hex.data() + i + 2;
    if (std::from_chars(hex.data() + i, end, byte, 16).ptr != end) return false;
    bytes.push_back(static_cast<char>(byte));
  }
  return hex_of(bytes) == hex;
}

// Recursion is as deep as the text, which JsonLimits bounded when it was parsed.
void encode_value(JsonWriter& out, const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::kNull: out.null(); return;
    case JsonKind::kBool: out.boolean(value.as_bool()); return;
    case JsonKind::kUnsigned: out.number(value.as_unsigned()); return;
    // As it was written: canonical text must not change a number that no form takes anyway.
    case JsonKind::kOtherNumber: out.raw(value.text()); return;
    case JsonKind::kString: out.string(value.text()); return;
    case JsonKind::kArray:
      out.begin_array();
      for (std::optional<JsonValue> item = value.first(); item; item = item->next()) encode_value(out, *item);
      out.end_array();
      return;
    case JsonKind::kObject: break;
  }
  std::vector<JsonValue> fields;
  for (std::optional<JsonValue> field = value.first(); field; field = field->next()) fields.push_back(*field);
  std::sort(fields.begin(), fields.end(), [](const JsonValue& a, const JsonValue& b) { return a.key() < b.key(); });
  out.begin_object();
  for (const JsonValue& field : fields) {
    out.key(field.key());
    encode_value(out, field);
  }
  out.end_object();
}

}  // namespace

std::string canonical_text(const JsonValue& value) {
  JsonWriter out;
  encode_value(out, value);
  return out.take();
}

namespace form {
namespace {

constexpr auto kHex = object([](auto& fields, auto& hex) { fields.required("hex", hex, kString); });

struct StatusText {
  Code code = Code::kOk;
  std::string message;  // of an error
};
constexpr auto kStatusText = object([](auto& fields, auto& status) {
  fields.required("code", status.code, choice<Code>(code_names()));
  if (status.code != Code::kOk) fields.required("message", status.message, kText);
});

constexpr auto kPageObjectKeyFields = object([](auto& fields, auto& key) {
  fields.required("layout", key.layout, kDigest);
  fields.required("object", key.object, kPageObject);
  fields.required("page", key.page, PageKeyForm());
  fields.required("part", key.part, kText);
});

}  // namespace

void Text::encode(JsonWriter& out, std::string_view text) {
  is_utf8(text) ? void(out.string(text)) : kHex.write(out, hex_of(text));
}

std::string Text::decode(const JsonCursor& cursor) {
  if (cursor.value.kind() != JsonKind::kObject) return cursor.string();
  std::string hex;
  kHex.read(cursor, hex);
  std::string bytes;
  // UTF-8 has a string form, so its hex form would be a second text of one value.
  if (!bytes_of(hex, bytes) || is_utf8(bytes))
    cursor.refuse(Rule::kFieldChoice, "'hex' is of bytes that are not UTF-8, in lower-case hexadecimal digits");
  return bytes;
}

void StatusForm::read(const JsonCursor& cursor, Status& status) const {
  StatusText text;
  kStatusText.read(cursor, text);
  status = text.code == Code::kOk ? Status() : Status(text.code, std::move(text.message));
}

void StatusForm::write(JsonWriter& out, const Status& status) const {
  kStatusText.write(out, StatusText{status.code(), status.message()});
}

PageObjectKey PageObjectKeyForm::decode(const JsonCursor& cursor) const {
  PageObjectKey key = {PageKey(Sha256Digest()), {}, {}, PageObject()};
  kPageObjectKeyFields.read(cursor, key);
  return key;
}

void PageObjectKeyForm::write(JsonWriter& out, const PageObjectKey& key) const { kPageObjectKeyFields.write(out, key); }

}  // namespace form
}  // namespace crossdock
