#include "model/wire/documents.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

constexpr uint64_t kVersion = 1;

constexpr std::string_view kKnownSchemas =
    "crossdock.binding, crossdock.cache_schema, crossdock.placement, crossdock.snapshot, crossdock.store_layout, "
    "crossdock.store_manifest, crossdock.topology";

// The document inside a tree whose header is known to be right.
template <class Document>
std::optional<Valid<Document>> decode_document(const JsonTree& tree, Faults& faults) {
  const uint64_t faults_before = faults.total();
  const JsonPath path;
  const JsonCursor cursor{tree.root(), path, faults};
  ObjectReader in(cursor);
  in.string("schema");
  in.number("version");
  Document document = DocumentCodec<Document>::decode_fields(in);
  in.finish();
  if (faults.total() != faults_before) return std::nullopt;
  return Valid<Document>::make(std::move(document), faults);
}

// The schema that the document names; empty text, and faults, when the header is not right.
std::string read_header(const JsonTree& tree, Faults& faults) {
  const uint64_t faults_before = faults.total();
  const JsonPath path;
  const JsonCursor cursor{tree.root(), path, faults};
  ObjectReader in(cursor);
  std::string schema = in.string("schema");
  const uint64_t version = in.number("version");
  if (faults.total() != faults_before) return {};
  if (version != kVersion) {
    faults.add(Rule::kSchemaVersion, "version",
               fmt::format("version {} of '{}' is unknown; this program reads version {}", version, schema, kVersion));
    return {};
  }
  return schema;
}

template <class Document>
std::optional<AnyDocument> decode_if_named(const std::string& schema, const JsonTree& tree, Faults& faults,
                                           bool& is_known) {
  if (schema != DocumentCodec<Document>::kSchema) return std::nullopt;
  is_known = true;
  std::optional<Valid<Document>> document = decode_document<Document>(tree, faults);
  if (!document) return std::nullopt;
  return AnyDocument(std::move(*document));
}

template <class... Documents>
std::optional<AnyDocument> decode_any(const std::string& schema, const JsonTree& tree, Faults& faults,
                                      std::variant<Valid<Documents>...>*) {
  std::optional<AnyDocument> found;
  bool is_known = false;
  ((found = found ? std::move(found) : decode_if_named<Documents>(schema, tree, faults, is_known)), ...);
  if (!is_known)
    faults.add(Rule::kSchemaName, "schema", fmt::format("'{}' is not one of {}", shorten(schema, 60), kKnownSchemas));
  return found;
}

}  // namespace

template <class Document>
std::optional<Valid<Document>> read_document(std::string_view json, const JsonLimits& limits, Faults& faults) {
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, faults);
  if (!tree) return std::nullopt;
  const uint64_t faults_before = faults.total();
  const std::string schema = read_header(*tree, faults);
  if (faults.total() != faults_before) return std::nullopt;
  if (schema == DocumentCodec<Document>::kSchema) return decode_document<Document>(*tree, faults);
  faults.add(Rule::kSchemaName, "schema",
             fmt::format("'{}' stands where '{}' is needed", shorten(schema, 60), DocumentCodec<Document>::kSchema));
  return std::nullopt;
}

std::optional<AnyDocument> read_any_document(std::string_view json, const JsonLimits& limits, Faults& faults) {
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, faults);
  if (!tree) return std::nullopt;
  const uint64_t faults_before = faults.total();
  const std::string schema = read_header(*tree, faults);
  if (faults.total() != faults_before) return std::nullopt;
  return decode_any(schema, *tree, faults, static_cast<AnyDocument*>(nullptr));
}

template <class Document>
std::string to_json(const Valid<Document>& document) {
  JsonWriter out;
  DocumentCodec<Document>::encode(out, *document, true);
  return out.take();
}

template <class Document>
Sha256Digest digest(const Valid<Document>& document) {
  return sha256(to_json(document));
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

void encode_schema(JsonWriter& out, std::string_view schema, bool with_header) {
  if (with_header) out.key("schema").string(schema);
}

void encode_version(JsonWriter& out, bool with_header) {
  if (with_header) out.key("version").number(kVersion);
}

void encode(JsonWriter& out, Range range) { out.begin_array().number(range.begin()).number(range.end()).end_array(); }

void encode(JsonWriter& out, const IntervalSet& set) {
  encode_list(out, set.ranges(), [](JsonWriter& list, Range range) { encode(list, range); });
}

void encode(JsonWriter& out, const std::vector<ComponentName>& names) {
  encode_list(out, names, [](JsonWriter& list, const ComponentName& name) { list.string(name.text()); });
}

std::vector<ComponentName> decode_component_names(const JsonCursor& cursor) {
  return decode_list(cursor, [](const JsonCursor& name) { return ComponentName(name.name()); });
}

void encode(JsonWriter& out, const CyclicTokens& cycle) {
  out.begin_object();
  out.key("block_tokens").number(cycle.block_tokens);
  out.key("blocks");
  encode(out, cycle.blocks);
  out.key("cycle_blocks").number(cycle.cycle_blocks);
  out.end_object();
}

CyclicTokens decode_cycle(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  CyclicTokens cycle;
  cycle.block_tokens = in.number("block_tokens", 1);
  cycle.blocks = in.interval_set("blocks");
  cycle.cycle_blocks = in.number("cycle_blocks", 1);
  in.finish();
  return cycle;
}

#define CROSSDOCK_INSTANTIATE(Document)                                                                          \
  template std::optional<Valid<Document>> read_document<Document>(std::string_view, const JsonLimits&, Faults&); \
  template std::string to_json<Document>(const Valid<Document>&);                                                \
  template Sha256Digest digest<Document>(const Valid<Document>&)

CROSSDOCK_INSTANTIATE(CacheSchema);
CROSSDOCK_INSTANTIATE(SnapshotDescriptor);
CROSSDOCK_INSTANTIATE(Topology);
CROSSDOCK_INSTANTIATE(PlacementManifest);
CROSSDOCK_INSTANTIATE(RuntimeBinding);
CROSSDOCK_INSTANTIATE(StoreLayout);
CROSSDOCK_INSTANTIATE(StoreManifest);
#undef CROSSDOCK_INSTANTIATE

}  // namespace crossdock
