// What a recorded protocol was made of: the header of a recording. docs/formats/recording.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "executor/coordinator.h"
#include "executor/kv/kv_store.h"
#include "executor/kv/kv_transfer.h"
#include "executor/participant.h"
#include "executor/recording/recorded_documents.h"
#include "executor/restore.h"
#include "executor/upload.h"
#include "model/wire/decode.h"

namespace crossdock {

// The number tells forms apart: a recording is replayed by the program that has its form, or by none.
inline constexpr std::string_view kRecordingSchema = "crossdock.recording.2";
inline constexpr std::string_view kRecordingFamily = "crossdock.recording";

// A writer or a target. It is made of its options alone; the context is what the jobs it gets are about.
struct ParticipantRecord {
  Role role = Role::kSource;
  ParticipantOptions options;
  KvTransfer context;
};

// The others, and what their planner was made of. The options' own planner is made again from it.
struct CoordinatorRecord {
  CoordinatorOptions options;
  KvTransfer transfer;
};
struct UploadRecord {
  UploadOptions options;
  KvUpload upload;
};
struct RestoreRecord {
  RestoreOptions options;
  KvRestore restore;
};

using RecordedOptions = std::variant<ParticipantRecord, CoordinatorRecord, UploadRecord, RestoreRecord>;

// Empty when the planner is of another resource than KV cache: no recording can hold it yet.
std::optional<CoordinatorRecord> record_of(const CoordinatorOptions& options);
std::optional<UploadRecord> record_of(const UploadOptions& options);
std::optional<RestoreRecord> record_of(const RestoreOptions& options);

// "writer", "target", "coordinator", "upload" or "restore".
std::string_view protocol_name(const RecordedOptions& options);
bool is_protocol_name(std::string_view name);

// The header line; the documents that it names are in `namer`.
std::string header_text(const RecordedOptions& options, DocumentNamer& namer);

// Reads the field 'options' of a header whose protocol has this name. What it names is found in `documents`; pointers
// are null where it is not, and documents.missing() says so.
RecordedOptions decode_options(const JsonCursor& cursor, std::string_view protocol, KnownDocuments& documents);

// The reason for which the caller asked a coordinator, upload or restore to abort; empty when it did not, and for other
// protocols.
std::optional<std::string> abort_request_of(const Protocol& protocol);
// False when it is another protocol.
bool request_abort(Protocol& protocol, const std::string& reason);

// In its first state. The options passed check_options() where they come from outside.
std::unique_ptr<Protocol> make_protocol(const RecordedOptions& options);

}  // namespace crossdock
