// A matched prefix of pages in a recording, with its layouts and its snapshot named by digest. Part of
// executor/recording/options_json.h.
#pragma once

#include <memory>

#include "executor/kv/kv_store.h"
#include "executor/recording/recorded_documents.h"
#include "model/wire/describe.h"

namespace crossdock::form {

// Null when something is missing in `documents` or, with a diagnostic, refused.
struct PrefixReader {
  KnownDocuments& documents;

  void read(const JsonCursor& cursor, std::shared_ptr<const PrefixRestore>& prefix) const;
};
inline PrefixReader prefix_with(KnownDocuments& documents) { return {documents}; }

struct PrefixWriter {
  DocumentNamer& documents;

  void write(JsonWriter& out, const std::shared_ptr<const PrefixRestore>& prefix) const;
};
inline PrefixWriter prefix_with(DocumentNamer& documents) { return {documents}; }

}  // namespace crossdock::form
