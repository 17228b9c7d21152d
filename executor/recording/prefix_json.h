// A matched prefix of pages in a recording. Part of executor/recording/options_json.h.
#pragma once

#include <memory>

#include "executor/kv/kv_store.h"
#include "executor/recording/recorded_documents.h"
#include "model/wire/decode.h"
#include "model/wire/json_writer.h"

namespace crossdock {

void encode_page_keys(JsonWriter& out, const std::vector<PageKey>& keys);
std::vector<PageKey> decode_page_keys(const JsonCursor& cursor);

void encode_prefix(JsonWriter& out, const PrefixRestore& prefix, DocumentNamer& namer);
// Null when something is missing or, with a diagnostic, refused.
std::shared_ptr<const PrefixRestore> decode_prefix(const JsonCursor& cursor, KnownDocuments& documents);

}  // namespace crossdock
