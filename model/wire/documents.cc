#include "model/wire/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr auto kDocumentSchemas = [] {
#define CROSSDOCK_SCHEMA(Document, schema) std::string_view(schema),
  std::array schemas = {CROSSDOCK_FOR_EACH_DOCUMENT(CROSSDOCK_SCHEMA)};
#undef CROSSDOCK_SCHEMA
  std::sort(schemas.begin(), schemas.end());
  return schemas;
}();
static_assert(std::adjacent_find(kDocumentSchemas.begin(), kDocumentSchemas.end()) == kDocumentSchemas.end());

// The header is read first and alone: in a document of another version the other fields mean nothing, and diagnostics
// about them would mislead.
// The schema that the document names; empty text, and diagnostics, when the header is not right.
std::string read_header(const JsonCursor& cursor) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  ObjectReader in(cursor);
  std::string schema = in.string("schema");
  const uint64_t version = in.number("version");
  if (cursor.diagnostics.total() != diagnostics_before) return {};
  if (version != kWireVersion) {
    cursor.diagnostics.add(
        Rule::kSchemaVersion, cursor.path.field("version").text(),
        fmt::format("version {} of '{}' is unknown; this program reads version {}", version, schema, kWireVersion));
    return {};
  }
  return schema;
}

void refuse_schema(const JsonCursor& cursor, const std::string& schema, std::string_view why) {
  cursor.diagnostics.add(Rule::kSchemaName, cursor.path.field("schema").text(),
                         fmt::format("'{}' {}", shorten(schema, 60), why));
}

// Whether the header is right and names one of these; else diagnostics.
bool is_one_of(const JsonCursor& cursor, std::span<const std::string_view> schemas, std::string& schema) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  schema = read_header(cursor);
  if (cursor.diagnostics.total() != diagnostics_before) return false;
  if (std::find(schemas.begin(), schemas.end(), schema) != schemas.end()) return true;
  refuse_schema(cursor, schema, fmt::format("stands where '{}' is needed", fmt::join(schemas, "' or '")));
  return false;
}

// The document whose header is known to be right.
template <class Document>
// Rules are checked only of a document of which every field was read. Valid<T>::make() is the one way in, so text that
// breaks a rule never becomes a value.
std::optional<Valid<Document>> decode_document(const JsonCursor& cursor) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  ObjectReader in(cursor);
  in.string("schema");
  in.number("version");
  Document document = DocumentCodec<Document>::decode_fields(in);
  in.finish();
  if (cursor.diagnostics.total() != diagnostics_before) return std::nullopt;
  return Valid<Document>::make(std::move(document), cursor.diagnostics);
}

template <class Document>
std::optional<AnyDocument> decode_if_named(const std::string& schema, const JsonCursor& cursor, bool& is_known) {
  if (schema != DocumentCodec<Document>::kSchema) return std::nullopt;
  is_known = true;
  std::optional<Valid<Document>> document = decode_document<Document>(cursor);
  if (!document) return std::nullopt;
  return AnyDocument(std::move(*document));
}

template <class... Documents>
std::optional<AnyDocument> decode_any(const std::string& schema, const JsonCursor& cursor,
                                      std::variant<Valid<Documents>...>*) {
  std::optional<AnyDocument> found;
  bool is_known = false;
  // One comparison for each kind of document; at most one kind has the name.
  ((found = found ? std::move(found) : decode_if_named<Documents>(schema, cursor, is_known)), ...);
  if (!is_known) refuse_schema(cursor, schema, fmt::format("is not one of {}", fmt::join(kDocumentSchemas, ", ")));
  return found;
}

std::optional<AnyDocument> decode_any(const std::string& schema, const JsonCursor& cursor) {
  return decode_any(schema, cursor, static_cast<AnyDocument*>(nullptr));
}

// The canonical text of a document in canonical order.
template <class Document>
std::string encode_document(const Document& document) {
  JsonWriter out;
  DocumentCodec<Document>::encode(out, document, true);
  return out.take();
}

}  // namespace

std::span<const std::string_view> document_schemas() { return kDocumentSchemas; }

bool check_header(const JsonCursor& cursor, std::string_view schema) {
  std::string stated;
  return is_one_of(cursor, std::span(&schema, 1), stated);
}

std::optional<AnyDocument> decode_document_of(const JsonCursor& cursor, std::span<const std::string_view> schemas) {
  std::string schema;
  if (!is_one_of(cursor, schemas, schema)) return std::nullopt;
  const std::string outer = cursor.diagnostics.document();
  std::optional<AnyDocument> document = decode_any(schema, cursor);
  cursor.diagnostics.set_document(outer);  // validation names the inner document
  return document;
}

template <class Document>
std::optional<Valid<Document>> read_document(std::string_view json, const JsonLimits& limits,
                                             Diagnostics& diagnostics) {
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, diagnostics);
  if (!tree) return std::nullopt;
  const JsonPath path;
  const JsonCursor cursor{tree->root(), path, diagnostics};
  if (!check_header(cursor, DocumentCodec<Document>::kSchema)) return std::nullopt;
  return decode_document<Document>(cursor);
}

std::optional<AnyDocument> read_any_document(std::string_view json, const JsonLimits& limits,
                                             Diagnostics& diagnostics) {
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, diagnostics);
  if (!tree) return std::nullopt;
  const JsonPath path;
  const JsonCursor cursor{tree->root(), path, diagnostics};
  const uint64_t diagnostics_before = diagnostics.total();
  const std::string schema = read_header(cursor);
  if (diagnostics.total() != diagnostics_before) return std::nullopt;
  return decode_any(schema, cursor);
}

template <class Document>
std::string to_json(const Valid<Document>& document) {
  return encode_document(*document);
}

template <class Document>
Sha256Digest digest(const Valid<Document>& document) {
  return digest_of_part(*document);
}

template <class Document>
// With its header, which names kind and version: two documents of different kinds never have one digest.
Sha256Digest digest_of_part(const Document& part) {
  return sha256(encode_document(part));
}

std::string to_json(const AnyDocument& document) {
  return std::visit([](const auto& valid) { return to_json(valid); }, document);
}

Sha256Digest digest(const AnyDocument& document) {
  return std::visit([](const auto& valid) { return digest(valid); }, document);
}

std::string_view schema_name(const AnyDocument& document) {
  return std::visit([]<class Document>(const Valid<Document>&) { return DocumentCodec<Document>::kSchema; }, document);
}

#define CROSSDOCK_INSTANTIATE(Document, schema)                                                                       \
  template std::optional<Valid<Document>> read_document<Document>(std::string_view, const JsonLimits&, Diagnostics&); \
  template std::string to_json<Document>(const Valid<Document>&);                                                     \
  template Sha256Digest digest<Document>(const Valid<Document>&);                                                     \
  template Sha256Digest digest_of_part<Document>(const Document&);
CROSSDOCK_FOR_EACH_DOCUMENT(CROSSDOCK_INSTANTIATE)
#undef CROSSDOCK_INSTANTIATE

}  // namespace crossdock
