// The small values of a recording in JSON: docs/formats/recording.md. Unlike a document's names, texts
// here may hold anything that a protocol, a store or an operating system said.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "executor/message.h"
#include "executor/store_types.h"
#include "model/kv/store.h"
#include "model/wire/decode.h"
#include "model/wire/json_writer.h"

namespace crossdock {

// A string where the text is UTF-8, else {"hex":"..."} of its bytes.
void encode_text(JsonWriter& out, std::string_view text);
std::string decode_text(const JsonCursor& cursor);
std::string text_field(ObjectReader& in, std::string_view name);

// Nanoseconds of a point or a duration: an integer, which may be negative.
void encode_ns(JsonWriter& out, int64_t ns);
int64_t decode_ns(const JsonCursor& cursor);
int64_t ns_field(ObjectReader& in, std::string_view name);
inline Duration duration_field(ObjectReader& in, std::string_view name) {
  return Duration::from_ns(ns_field(in, name));
}

bool bool_field(ObjectReader& in, std::string_view name);
uint32_t decode_uint32(const JsonCursor& cursor);
uint32_t uint32_field(ObjectReader& in, std::string_view name);

// `names` of an enumeration whose values count from 0.
template <class Enum, size_t kCount>
Enum enum_field(ObjectReader& in, std::string_view name, const std::array<std::string_view, kCount>& names) {
  const std::string text = in.choice(name, std::vector<std::string_view>(names.begin(), names.end()));
  for (size_t i = 0; i < kCount; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return Enum();  // the reader has refused the text
}

inline constexpr std::array<std::string_view, 2> kRoleNames = {"source", "target"};
inline constexpr std::array<std::string_view, 2> kPageObjectNames = {"rows", "state"};
template <class Enum, size_t kCount>
std::string_view enum_name(Enum value, const std::array<std::string_view, kCount>& names) {
  return names[static_cast<size_t>(value)];
}

void encode_status(JsonWriter& out, const Status& status);
Status decode_status(const JsonCursor& cursor);

void encode_identity(JsonWriter& out, const PeerIdentity& identity);
PeerIdentity decode_identity(const JsonCursor& cursor);

void encode_stored_object(JsonWriter& out, const StoredObject& object);
StoredObject decode_stored_object(const JsonCursor& cursor);

void encode_page_object_key(JsonWriter& out, const PageObjectKey& key);
PageObjectKey decode_page_object_key(const JsonCursor& cursor);

// A value that was read, in its canonical text.
std::string canonical_text(const JsonValue& value);

}  // namespace crossdock
