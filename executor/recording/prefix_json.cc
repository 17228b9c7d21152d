#include "executor/recording/prefix_json.h"

#include <utility>
#include <vector>

#include "executor/recording/values_json.h"

namespace crossdock::form {
namespace {

// A prefix whose documents are named by their digests.
// Between the text and PrefixRestore, which holds the documents themselves.
struct PrefixText {
  PageDomain domain;
  std::vector<PageKey> keys;
  std::vector<Sha256Digest> layouts;
  PrefixMatch match;
  Sha256Digest snapshot;
};

constexpr auto kAdapter = object([](auto& fields, auto& adapter) {
  fields.required("id", adapter.id, kText);
  fields.required("revision", adapter.revision, kText);
});

constexpr auto kDomain = object([](auto& fields, auto& domain) {
  fields.optional("adapter", domain.adapter, kAdapter);
  fields.required("cache_schema_digest", domain.cache_schema_digest, kDigest);
  fields.required("model_id", domain.model_id, kText);
  fields.required("model_revision", domain.model_revision, kText);
  fields.required("page_tokens", domain.page_tokens, number(1));
  fields.required("salt", domain.salt, kText);
  fields.required("semantic_fingerprint", domain.semantic_fingerprint, kText);
  fields.required("tenant", domain.tenant, kText);
});

constexpr auto kRows = object([](auto& fields, auto& rows) {
  fields.required("layout", rows.layout, kDigest);
  fields.required("pages", rows.pages, kInterval);
  fields.required("parts", rows.parts, list_of(kText));
});

constexpr auto kState = object([](auto& fields, auto& state) {
  fields.required("layout", state.layout, kDigest);
  fields.required("page", state.page, number());
  fields.required("parts", state.parts, list_of(kText));
});

constexpr auto kStop = object([](auto& fields, auto& stop) {
  fields.optional("layout", stop.layout, kDigest);
  fields.required("layout_name", stop.layout_name, kText);
  fields.required("missing", stop.missing, list_of(kText));
  fields.required("object", stop.object, kPageObject);
  fields.required("page", stop.page, number());
});

constexpr auto kMatch = object([](auto& fields, auto& match) {
  fields.required("lookup_count", match.lookup_count, number());
  fields.required("page_count", match.page_count, number());
  fields.required("rows", match.rows, list_of(kRows));
  fields.optional("state", match.state, kState);
  fields.optional("stop", match.stop, kStop);
  fields.required("token_count", match.token_count, number());
});

constexpr auto kPrefix = object([](auto& fields, auto& prefix) {
  fields.required("domain", prefix.domain, kDomain);
  fields.required("keys", prefix.keys, kPageKeys);
  fields.required("layouts", prefix.layouts, list_of(kDigest));
  fields.required("match", prefix.match, kMatch);
  fields.required("snapshot", prefix.snapshot, kDigest);
});

// Empty when a layout is missing or does not belong to the domain.
// Through with_layout(), so that a catalog from a recording keeps the same rules as one that was built in the program.
std::optional<LayoutCatalog> make_catalog(const JsonCursor& cursor, PageDomain domain,
                                          const std::vector<Sha256Digest>& layouts, KnownDocuments& documents) {
  LayoutCatalog catalog(std::move(domain));
  for (const Sha256Digest& digest : layouts) {
    const auto layout = documents.find<StoreLayout>(digest);
    if (layout == nullptr) return std::nullopt;
    Result<LayoutCatalog> next = catalog.with_layout(*layout, catalog.revision());
    if (!next.ok()) {
      cursor.refuse(Rule::kFieldChoice, next.status().message());
      return std::nullopt;
    }
    catalog = std::move(next).value();
  }
  return catalog;
}

}  // namespace

// The match is read as it was found and not computed again: the pages that were stored then are not in the recording.
// check_prefix() (replay_rules.cc) looks at what it relies on.
void PrefixReader::read(const JsonCursor& cursor, std::shared_ptr<const PrefixRestore>& prefix) const {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  PrefixText text;
  kPrefix.read(cursor, text);
  const auto snapshot = documents.find<SnapshotDescriptor>(text.snapshot);
  // `prefix` stays null; documents.missing() or a diagnostic says why.
  if (cursor.diagnostics.total() != diagnostics_before || snapshot == nullptr) return;
  std::optional<LayoutCatalog> catalog = make_catalog(cursor, std::move(text.domain), text.layouts, documents);
  if (!catalog) return;
  prefix = std::make_shared<const PrefixRestore>(
      PrefixRestore{std::move(*catalog), std::move(text.match), std::move(text.keys), *snapshot});
}

void PrefixWriter::write(JsonWriter& out, const std::shared_ptr<const PrefixRestore>& prefix) const {
  PrefixText text = {prefix->catalog.domain(), prefix->keys, {}, prefix->match, {}};
  for (const CatalogedLayout& layout : prefix->catalog.layouts()) text.layouts.push_back(documents.name(layout.layout));
  text.snapshot = documents.name(prefix->snapshot);
  kPrefix.write(out, text);
}

}  // namespace crossdock::form
