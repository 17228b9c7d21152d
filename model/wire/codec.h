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

// What encode() and decode_fields() do with describe(fields, document).
template <class Document, class Describe>
void write_document(JsonWriter& out, const Document& document, const Describe& describe, bool with_header) {
  FieldWriter fields(out);
  if (with_header) fields.header(DocumentCodec<Document>::kSchema);
  describe(fields, document);
  fields.end();
}
template <class Document, class Describe>
Document take_document(ObjectReader& in, const Describe& describe) {
  Document document;
  FieldReader fields(in);
  describe(fields, document);
  return document;
}

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

}  // namespace crossdock
