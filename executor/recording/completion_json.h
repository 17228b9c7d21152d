// A completion in a recording, with all that a protocol may see of it: docs/formats/recording.md.
#pragma once

#include "executor/ports.h"
#include "executor/recording/recorded_documents.h"
#include "model/wire/decode.h"
#include "model/wire/json_writer.h"

namespace crossdock {

void encode_completion(JsonWriter& out, const Completion& completion, DocumentNamer& namer);
// What it names is found in `documents`.
Completion decode_completion(const JsonCursor& cursor, KnownDocuments& documents);

// "nothing", "receipt", "transaction", "found", "report", "checksum", "message" or "binding".
std::string_view result_kind(const decltype(Completion::result)& result);

}  // namespace crossdock
