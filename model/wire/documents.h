// The documents in JSON: strict reading, canonical writing, identity. docs/formats/ is the specification.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/sha256.h"
#include "model/kv/binding.h"
#include "model/kv/cache_schema.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/kv/store.h"
#include "model/topology.h"
#include "model/valid.h"
#include "model/wire/json.h"

namespace crossdock {

// The kinds of documents, each with its schema: all that is done for every kind is derived from this list. A kind has
// canonicalize() and validate() (model/valid.h), and its DocumentCodec in a file of its own; without them it does not
// link.
#define CROSSDOCK_FOR_EACH_DOCUMENT(DO)        \
  DO(CacheSchema, "crossdock.cache_schema")    \
  DO(SnapshotDescriptor, "crossdock.snapshot") \
  DO(Topology, "crossdock.topology")           \
  DO(PlacementManifest, "crossdock.placement") \
  DO(RuntimeBinding, "crossdock.binding")      \
  DO(StoreLayout, "crossdock.store_layout")    \
  DO(StoreManifest, "crossdock.store_manifest")

// Holder<Document> of each kind, as the arguments of another template.
template <template <class...> class Whole, template <class> class Holder, class, class... Documents>
using OfDocuments = Whole<Holder<Documents>...>;
#define CROSSDOCK_COMMA_DOCUMENT(Document, schema) , Document
template <template <class...> class Whole, template <class> class Holder>
using OfEachDocument = OfDocuments<Whole, Holder, void CROSSDOCK_FOR_EACH_DOCUMENT(CROSSDOCK_COMMA_DOCUMENT)>;
#undef CROSSDOCK_COMMA_DOCUMENT

using AnyDocument = OfEachDocument<std::variant, Valid>;

// "crossdock.binding", ...: all schemas, sorted.
std::span<const std::string_view> document_schemas();

// Reads and validates one document of the named kind. Empty, and diagnostics are added, when a rule is broken.
template <class Document>
std::optional<Valid<Document>> read_document(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics);

// The same for a document of any kind; its field 'schema' tells which.
std::optional<AnyDocument> read_any_document(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics);

// The canonical text, and the SHA-256 of it. Documents with equal content have equal text, in whatever order lists
// without an order stood when they were read.
template <class Document>
std::string to_json(const Valid<Document>& document);
template <class Document>
Sha256Digest digest(const Valid<Document>& document);

// The identity of a document that stands inside a valid one, as a document of its own.
template <class Document>
Sha256Digest digest_of_part(const Document& part);

std::string to_json(const AnyDocument& document);
Sha256Digest digest(const AnyDocument& document);

// "crossdock.placement", ...
std::string_view schema_name(const AnyDocument& document);

}  // namespace crossdock
