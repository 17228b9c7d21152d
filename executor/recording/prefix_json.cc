#include "executor/recording/prefix_json.h"

#include <utility>

#include "executor/recording/values_json.h"
#include "model/wire/codec.h"

namespace crossdock {
namespace {

void encode_field(JsonWriter& out, std::string_view name, std::string_view text) {
  out.key(name);
  encode_text(out, text);
}

void encode_domain(JsonWriter& out, const PageDomain& domain) {
  out.begin_object();
  if (domain.adapter) {
    out.key("adapter").begin_object();
    encode_field(out, "id", domain.adapter->id);
    encode_field(out, "revision", domain.adapter->revision);
    out.end_object();
  }
  out.key("cache_schema_digest").string(domain.cache_schema_digest.hex());
  encode_field(out, "model_id", domain.model_id);
  encode_field(out, "model_revision", domain.model_revision);
  out.key("page_tokens").number(domain.page_tokens);
  encode_field(out, "salt", domain.salt);
  encode_field(out, "semantic_fingerprint", domain.semantic_fingerprint);
  encode_field(out, "tenant", domain.tenant);
  out.end_object();
}

PageDomain decode_domain(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  PageDomain domain;
  in.optional("adapter", [&](const JsonCursor& adapter) {
    ObjectReader fields(adapter);
    domain.adapter.emplace();
    domain.adapter->id = text_field(fields, "id");
    domain.adapter->revision = text_field(fields, "revision");
    fields.finish();
  });
  domain.cache_schema_digest = in.digest("cache_schema_digest");
  domain.model_id = text_field(in, "model_id");
  domain.model_revision = text_field(in, "model_revision");
  domain.page_tokens = in.number("page_tokens", 1);
  domain.salt = text_field(in, "salt");
  domain.semantic_fingerprint = text_field(in, "semantic_fingerprint");
  domain.tenant = text_field(in, "tenant");
  in.finish();
  return domain;
}

void encode_parts(JsonWriter& out, const std::vector<ObjectKey>& parts) {
  encode_list(out, parts, [](JsonWriter& list, const ObjectKey& part) { encode_text(list, part.text()); });
}

std::vector<ObjectKey> parts_field(ObjectReader& in, std::string_view name) {
  std::vector<ObjectKey> parts;
  in.required(name, [&](const JsonCursor& list) {
    parts = decode_list(list, [](const JsonCursor& part) { return ObjectKey(decode_text(part)); });
  });
  return parts;
}

void encode_rows(JsonWriter& out, const RowSource& rows) {
  out.begin_object();
  out.key("layout").string(rows.layout.hex());
  out.key("pages");
  encode(out, rows.pages);
  out.key("parts");
  encode_parts(out, rows.parts);
  out.end_object();
}

RowSource decode_rows(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  RowSource rows;
  rows.layout = in.digest("layout");
  rows.pages = in.range("pages");
  rows.parts = parts_field(in, "parts");
  in.finish();
  return rows;
}

void encode_state(JsonWriter& out, const StateSource& state) {
  out.begin_object();
  out.key("layout").string(state.layout.hex());
  out.key("page").number(state.page);
  out.key("parts");
  encode_parts(out, state.parts);
  out.end_object();
}

StateSource decode_state(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  StateSource state;
  state.layout = in.digest("layout");
  state.page = in.number("page");
  state.parts = parts_field(in, "parts");
  in.finish();
  return state;
}

void encode_stop(JsonWriter& out, const PrefixStop& stop) {
  out.begin_object();
  if (stop.layout) out.key("layout").string(stop.layout->hex());
  encode_field(out, "layout_name", stop.layout_name);
  out.key("missing");
  encode_parts(out, stop.missing);
  out.key("object").string(enum_name(stop.object, kPageObjectNames));
  out.key("page").number(stop.page);
  out.end_object();
}

PrefixStop decode_stop(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  PrefixStop stop;
  in.optional("layout", [&](const JsonCursor& layout) { stop.layout = layout.digest(); });
  stop.layout_name = text_field(in, "layout_name");
  stop.missing = parts_field(in, "missing");
  stop.object = enum_field<PageObject>(in, "object", kPageObjectNames);
  stop.page = in.number("page");
  in.finish();
  return stop;
}

void encode_match(JsonWriter& out, const PrefixMatch& match) {
  out.begin_object();
  out.key("lookup_count").number(match.lookup_count);
  out.key("page_count").number(match.page_count);
  out.key("rows");
  encode_list(out, match.rows, encode_rows);
  if (match.state) {
    out.key("state");
    encode_state(out, *match.state);
  }
  if (match.stop) {
    out.key("stop");
    encode_stop(out, *match.stop);
  }
  out.key("token_count").number(match.token_count);
  out.end_object();
}

PrefixMatch decode_match(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  PrefixMatch match;
  match.lookup_count = in.number("lookup_count");
  match.page_count = in.number("page_count");
  in.required("rows", [&](const JsonCursor& list) { match.rows = decode_list(list, decode_rows); });
  in.optional("state", [&](const JsonCursor& state) { match.state = decode_state(state); });
  in.optional("stop", [&](const JsonCursor& stop) { match.stop = decode_stop(stop); });
  match.token_count = in.number("token_count");
  in.finish();
  return match;
}

std::vector<Sha256Digest> decode_digests(const JsonCursor& cursor) {
  return decode_list(cursor, [](const JsonCursor& digest) { return digest.digest(); });
}

// Empty when a layout is missing or does not belong to the domain.
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

void encode_page_keys(JsonWriter& out, const std::vector<PageKey>& keys) {
  encode_list(out, keys, [](JsonWriter& list, const PageKey& key) { list.string(key.digest().hex()); });
}

std::vector<PageKey> decode_page_keys(const JsonCursor& cursor) {
  return decode_list(cursor, [](const JsonCursor& key) { return PageKey(key.digest()); });
}

void encode_prefix(JsonWriter& out, const PrefixRestore& prefix, DocumentNamer& namer) {
  out.begin_object();
  out.key("domain");
  encode_domain(out, prefix.catalog.domain());
  out.key("keys");
  encode_page_keys(out, prefix.keys);
  out.key("layouts");
  encode_list(out, prefix.catalog.layouts(),
              [&](JsonWriter& list, const CatalogedLayout& layout) { list.string(namer.name(layout.layout).hex()); });
  out.key("match");
  encode_match(out, prefix.match);
  out.key("snapshot").string(namer.name(prefix.snapshot).hex());
  out.end_object();
}

std::shared_ptr<const PrefixRestore> decode_prefix(const JsonCursor& cursor, KnownDocuments& documents) {
  const uint64_t diagnostics_before = cursor.diagnostics.total();
  ObjectReader in(cursor);
  PageDomain domain;
  std::vector<PageKey> keys;
  std::vector<Sha256Digest> layouts;
  PrefixMatch match;
  in.required("domain", [&](const JsonCursor& value) { domain = decode_domain(value); });
  in.required("keys", [&](const JsonCursor& list) { keys = decode_page_keys(list); });
  in.required("layouts", [&](const JsonCursor& list) { layouts = decode_digests(list); });
  in.required("match", [&](const JsonCursor& value) { match = decode_match(value); });
  const auto snapshot = documents.find<SnapshotDescriptor>(in.digest("snapshot"));
  in.finish();
  if (cursor.diagnostics.total() != diagnostics_before || snapshot == nullptr) return nullptr;
  std::optional<LayoutCatalog> catalog = make_catalog(cursor, std::move(domain), layouts, documents);
  if (!catalog) return nullptr;
  return std::make_shared<const PrefixRestore>(
      PrefixRestore{std::move(*catalog), std::move(match), std::move(keys), *snapshot});
}

}  // namespace crossdock
