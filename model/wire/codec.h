// Each part of a document to and from JSON; model/wire/documents.h puts documents together from them.
// encode() writes the value of a part; decode() reads it, adding diagnostics and returning harmless values where it
// must.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/kv/store.h"
#include "model/topology.h"
#include "model/wire/describe.h"
#include "model/wire/documents.h"

namespace crossdock {

// A document is an object with the fields 'schema' and 'version' among its own; one that is embedded in another goes
// without these two.
template <class Document>
struct DocumentCodec;

#define CROSSDOCK_DOCUMENT_CODEC(Document, schema_text)                              \
  template <>                                                                        \
  struct DocumentCodec<Document> {                                                   \
    static constexpr std::string_view kSchema = schema_text;                         \
    static void encode(JsonWriter& out, const Document& document, bool with_header); \
    static Document decode_fields(ObjectReader& in);                                 \
  };
CROSSDOCK_FOR_EACH_DOCUMENT(CROSSDOCK_DOCUMENT_CODEC)
#undef CROSSDOCK_DOCUMENT_CODEC

// A document of the kind that stands inside another one, without header.
template <class Document>
Document decode_embedded(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  Document document = DocumentCodec<Document>::decode_fields(in);
  in.finish();
  return document;
}

namespace form {

struct Embedded {
  template <class Document>
  void read(const JsonCursor& cursor, Document& document) const {
    document = decode_embedded<Document>(cursor);
  }
  template <class Document>
  void write(JsonWriter& out, const Document& document) const {
    DocumentCodec<Document>::encode(out, document, false);
  }
};
inline constexpr Embedded kEmbedded;

}  // namespace form

// True when the document's header is right and names this schema; else diagnostics.
bool check_header(const JsonCursor& cursor, std::string_view schema);

// Reads and validates a document that stands with its header inside another one, and is of a kind that `schemas` names.
// Empty, and diagnostics are added, when a rule is broken.
std::optional<AnyDocument> decode_document_of(const JsonCursor& cursor, std::span<const std::string_view> schemas);

// The two header fields, at their places in the sorted order; nothing when `with_header` is false.
void encode_schema(JsonWriter& out, std::string_view schema, bool with_header);
void encode_version(JsonWriter& out, bool with_header);

void encode(JsonWriter& out, Range range);
void encode(JsonWriter& out, const IntervalSet& set);
void encode(JsonWriter& out, const std::vector<ComponentName>& names);
std::vector<ComponentName> decode_component_names(const JsonCursor& cursor);

void encode_component(JsonWriter& out, const Component& component);
Component decode_component(const JsonCursor& cursor);

// Without a window all tokens live.
void encode_live_tokens(JsonWriter& out, const std::optional<uint64_t>& window_tokens);
std::optional<uint64_t> decode_live_tokens(const JsonCursor& cursor);

void encode(JsonWriter& out, const CyclicTokens& cycle);
CyclicTokens decode_cycle(const JsonCursor& cursor);

void encode(JsonWriter& out, const std::vector<PageTable>& tables);
std::vector<PageTable> decode_page_tables(const JsonCursor& cursor);

void encode(JsonWriter& out, const std::vector<View>& views);
std::vector<View> decode_views(const JsonCursor& cursor);

// Reads each element of an array with decode_element(const JsonCursor&).
template <class Decode>
auto decode_list(const JsonCursor& cursor, Decode decode_element) {
  std::vector<decltype(decode_element(cursor))> list;
  list.reserve(cursor.value.kind() == JsonKind::kArray ? cursor.value.size() : 0);
  cursor.for_each([&](const JsonCursor& item) { list.push_back(decode_element(item)); });
  return list;
}

// Writes an array with encode_element(out, element) for each.
template <class Element, class Encode>
void encode_list(JsonWriter& out, const std::vector<Element>& list, Encode encode_element) {
  out.begin_array();
  for (const Element& element : list) encode_element(out, element);
  out.end_array();
}

}  // namespace crossdock
