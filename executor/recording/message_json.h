// A control message in a recording: docs/formats/recording.md.
#pragma once

#include "executor/message.h"
#include "executor/recording/recorded_documents.h"
#include "model/wire/decode.h"
#include "model/wire/json_writer.h"

namespace crossdock {

void encode_message(JsonWriter& out, const Message& message, DocumentNamer& namer);
Message decode_message(const JsonCursor& cursor, KnownDocuments& documents);

}  // namespace crossdock
