// The documents in JSON: strict reading, canonical writing, identity. docs/formats/ is the specification.
#pragma once

#include <optional>
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

// Reads and validates one document of the named kind. Empty, and diagnostics are added, when a rule is broken.
// Document: CacheSchema, SnapshotDescriptor, Topology, PlacementManifest, RuntimeBinding, StoreLayout or StoreManifest.
template <class Document>
std::optional<Valid<Document>> read_document(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics);

using AnyDocument =
    std::variant<Valid<CacheSchema>, Valid<SnapshotDescriptor>, Valid<Topology>, Valid<PlacementManifest>,
                 Valid<RuntimeBinding>, Valid<StoreLayout>, Valid<StoreManifest>>;

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
