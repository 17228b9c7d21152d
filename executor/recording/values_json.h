// The small values of a recording in JSON: docs/formats/recording.md. Unlike a document's names, texts
// here may hold anything that a protocol, a store or an operating system said.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/status.h"
#include "executor/message.h"
#include "executor/store_types.h"
#include "model/kv/store.h"
#include "model/wire/describe.h"

namespace crossdock {

inline constexpr std::array<std::string_view, 2> kRoleNames = {"source", "target"};
inline constexpr std::array<std::string_view, 2> kPageObjectNames = {"rows", "state"};

// A value that was read, in its canonical text.
// Fields sorted by name, no white space: two values are equal exactly when their canonical texts are.
std::string canonical_text(const JsonValue& value);

namespace form {

// A string where the text is UTF-8, else {"hex":"..."} of its bytes. Of a std::string or a StrongName.
struct Text {
  template <class Value>
  void read(const JsonCursor& cursor, Value& value) const {
    value = Value(decode(cursor));
  }
  template <class Value>
  void write(JsonWriter& out, const Value& value) const {
    encode(out, text_of(value));
  }

 private:
  static std::string decode(const JsonCursor& cursor);
  static void encode(JsonWriter& out, std::string_view text);
};
inline constexpr Text kText;

inline constexpr auto kRole = choice<Role>(kRoleNames);
inline constexpr auto kPageObject = choice<PageObject>(kPageObjectNames);

// {"code":NAME}, and the message of an error.
struct StatusForm {
  void read(const JsonCursor& cursor, Status& status) const;
  void write(JsonWriter& out, const Status& status) const;
};
inline constexpr StatusForm kStatus;

inline constexpr auto kIdentity = object([](auto& fields, auto& identity) {
  fields.required("generation", identity.generation, number());
  fields.required("instance", identity.instance, kText);
  fields.required("participant", identity.participant, kText);
});

// Its opaque part is a right, and means nothing to a replay: it is left out.
inline constexpr auto kGrant = object([](auto& fields, auto& grant) { fields.required("id", grant.id, kText); });

inline constexpr auto kStoredObject = object([](auto& fields, auto& stored) {
  fields.required("bytes", stored.bytes, number());
  fields.required("chunk_bytes", stored.chunk_bytes, number());
  fields.required("chunk_crc32c", stored.chunk_crc32c, list_of(kUint32));
  fields.required("id", stored.id, kText);
});

// By its 64 hexadecimal digits.
struct PageKeyForm {
  PageKey decode(const JsonCursor& cursor) const { return PageKey(cursor.digest()); }
  void read(const JsonCursor& cursor, PageKey& key) const { key = decode(cursor); }
  void write(JsonWriter& out, const PageKey& key) const { kDigest.write(out, key.digest()); }
};
inline constexpr auto kPageKeys = list_of(PageKeyForm());

struct PageObjectKeyForm {
  PageObjectKey decode(const JsonCursor& cursor) const;
  void write(JsonWriter& out, const PageObjectKey& key) const;
};
inline constexpr PageObjectKeyForm kPageObjectKey;

}  // namespace form
}  // namespace crossdock
