// A control message in a recording: docs/formats/recording.md. The field 'kind' of its body says which of kMessageKinds
// it is.
#pragma once

#include "executor/message.h"
#include "executor/recording/recorded_documents.h"
#include "model/wire/describe.h"

namespace crossdock::form {

// Reads with KnownDocuments, writes with a DocumentNamer.
template <class Documents>
struct MessageForm {
  Documents& documents;

  void read(const JsonCursor& cursor, Message& message) const;
  void write(JsonWriter& out, const Message& message) const;
};
template <class Documents>
MessageForm<Documents> message_with(Documents& documents) {
  return {documents};
}

}  // namespace crossdock::form
