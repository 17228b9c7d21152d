#include "executor/recording/values_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/utf8.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr size_t kCodeCount = static_cast<size_t>(Code::kDataLoss) + 1;

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

void encode_value(JsonWriter& out, const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::kNull: out.null(); return;
    case JsonKind::kBool: out.boolean(value.as_bool()); return;
    case JsonKind::kUnsigned: out.number(value.as_unsigned()); return;
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

void encode_text(JsonWriter& out, std::string_view text) {
  if (is_utf8(text)) {
    out.string(text);
    return;
  }
  out.begin_object();
  out.key("hex").string(hex_of(text));
  out.end_object();
}

std::string decode_text(const JsonCursor& cursor) {
  if (cursor.value.kind() != JsonKind::kObject) return cursor.string();
  ObjectReader in(cursor);
  const std::string hex = in.string("hex");
  in.finish();
  std::string bytes;
  if (!bytes_of(hex, bytes) || is_utf8(bytes))
    cursor.refuse(Rule::kFieldChoice, "'hex' is of bytes that are not UTF-8, in lower-case hexadecimal digits");
  return bytes;
}

std::string text_field(ObjectReader& in, std::string_view name) {
  std::string text;
  in.required(name, [&](const JsonCursor& cursor) { text = decode_text(cursor); });
  return text;
}

void encode_ns(JsonWriter& out, int64_t ns) { out.raw(fmt::to_string(ns)); }

int64_t decode_ns(const JsonCursor& cursor) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const JsonKind kind = cursor.value.kind();
  if (kind == JsonKind::kUnsigned && cursor.value.as_unsigned() <= kMax)
    return static_cast<int64_t>(cursor.value.as_unsigned());
  if (kind == JsonKind::kOtherNumber) {
    const std::string_view text = cursor.value.text();
    int64_t ns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ns);
    if (error == std::errc() && end == text.data() + text.size() && fmt::to_string(ns) == text) return ns;
  }
  if (kind == JsonKind::kUnsigned || kind == JsonKind::kOtherNumber)
    cursor.refuse(Rule::kFieldInteger, "a time is an integer of 64 bits with a sign");
  else
    cursor.require(JsonKind::kUnsigned);
  return 0;
}

int64_t ns_field(ObjectReader& in, std::string_view name) {
  int64_t ns = 0;
  in.required(name, [&](const JsonCursor& cursor) { ns = decode_ns(cursor); });
  return ns;
}

bool bool_field(ObjectReader& in, std::string_view name) {
  bool value = false;
  in.required(name, [&](const JsonCursor& cursor) { value = cursor.boolean(); });
  return value;
}

uint32_t decode_uint32(const JsonCursor& cursor) {
  const uint64_t value = cursor.unsigned_integer();
  if (value > std::numeric_limits<uint32_t>::max())
    cursor.refuse(Rule::kFieldInteger, fmt::format("{} is not an integer from 0 to 4294967295", value));
  return static_cast<uint32_t>(value);
}

uint32_t uint32_field(ObjectReader& in, std::string_view name) {
  uint32_t value = 0;
  in.required(name, [&](const JsonCursor& cursor) { value = decode_uint32(cursor); });
  return value;
}

void encode_status(JsonWriter& out, const Status& status) {
  out.begin_object();
  out.key("code").string(code_name(status.code()));
  if (!status.ok()) {
    out.key("message");
    encode_text(out, status.message());
  }
  out.end_object();
}

Status decode_status(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  const Code code = enum_field<Code>(in, "code", code_names());
  std::string message;
  if (code != Code::kOk) message = text_field(in, "message");
  in.finish();
  return code == Code::kOk ? Status() : Status(code, std::move(message));
}

void encode_identity(JsonWriter& out, const PeerIdentity& identity) {
  out.begin_object();
  out.key("generation").number(identity.generation);
  out.key("instance");
  encode_text(out, identity.instance.text());
  out.key("participant");
  encode_text(out, identity.participant.text());
  out.end_object();
}

PeerIdentity decode_identity(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  PeerIdentity identity;
  identity.generation = in.number("generation");
  identity.instance = InstanceId(text_field(in, "instance"));
  identity.participant = ParticipantId(text_field(in, "participant"));
  in.finish();
  return identity;
}

void encode_stored_object(JsonWriter& out, const StoredObject& object) {
  out.begin_object();
  out.key("bytes").number(object.bytes);
  out.key("chunk_bytes").number(object.chunk_bytes);
  out.key("chunk_crc32c");
  encode_list(out, object.chunk_crc32c, [](JsonWriter& list, uint32_t checksum) { list.number(checksum); });
  out.key("id");
  encode_text(out, object.id.text());
  out.end_object();
}

StoredObject decode_stored_object(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  StoredObject object;
  object.bytes = in.number("bytes");
  object.chunk_bytes = in.number("chunk_bytes");
  in.required("chunk_crc32c", [&](const JsonCursor& list) { object.chunk_crc32c = decode_list(list, decode_uint32); });
  object.id = RegionId(text_field(in, "id"));
  in.finish();
  return object;
}

void encode_page_object_key(JsonWriter& out, const PageObjectKey& key) {
  out.begin_object();
  out.key("layout").string(key.layout.hex());
  out.key("object").string(enum_name(key.object, kPageObjectNames));
  out.key("page").string(key.page.digest().hex());
  out.key("part");
  encode_text(out, key.part.text());
  out.end_object();
}

PageObjectKey decode_page_object_key(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  const Sha256Digest layout = in.digest("layout");
  const auto object = enum_field<PageObject>(in, "object", kPageObjectNames);
  const PageKey page(in.digest("page"));
  ObjectKey part(text_field(in, "part"));
  in.finish();
  return PageObjectKey{page, layout, std::move(part), object};
}

std::string canonical_text(const JsonValue& value) {
  JsonWriter out;
  encode_value(out, value);
  return out.take();
}

}  // namespace crossdock
