// A completion in a recording, with all that a protocol may see of it: docs/formats/recording.md.
#pragma once

#include <string_view>

#include "executor/ports.h"
#include "executor/recording/recorded_documents.h"
#include "model/wire/describe.h"

namespace crossdock {

// "nothing", "receipt", "transaction", "found", "report", "checksum", "message" or "binding".
std::string_view result_kind(const CompletionResult& result);

namespace form {

// Reads with KnownDocuments, in which it finds what a completion names; writes with a DocumentNamer.
template <class Documents>
struct CompletionForm {
  Documents& documents;

  // Adds diagnostics where the form is broken. Whether the completion could have happened is for PendingPosts to say.
  void read(const JsonCursor& cursor, Completion& completion) const;
  void write(JsonWriter& out, const Completion& completion) const;
};
template <class Documents>
CompletionForm<Documents> completion_with(Documents& documents) {
  return {documents};
}

}  // namespace form
}  // namespace crossdock
