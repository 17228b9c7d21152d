// Recorder and replay: all that went into a protocol and came out of it, as lines of JSON. A recording has what the
// protocol was made of (its kind, options and documents), so that replay() makes the same one, feeds it the same times
// and completions, and compares what it posts, byte for byte. Wire form: docs/formats/recording.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/coordinator.h"
#include "executor/participant.h"
#include "executor/protocol.h"
#include "executor/recording/options_json.h"
#include "executor/recording/recorded_documents.h"
#include "executor/restore.h"
#include "executor/transfer_job.h"
#include "executor/upload.h"
#include "model/wire/json.h"

namespace crossdock {

// Records one protocol while drive() runs it. Each document (placement, snapshot, binding, layout, manifest, job) is
// written once, before the first call of advance() that names it by its digest. The header is written at once, by the
// constructor.
class Recorder : public ProtocolObserver {
 public:
  // Gets each line, without its end. Lines come in the thread that drives the protocol.
  using Sink = std::function<void(std::string_view line)>;

  // A writer or a target, with the documents that its jobs will be about, which are not null.
  Recorder(Sink sink, Role role, const ParticipantOptions& options, const KvTransfer& transfer);
  // The planner of the options is one of KV cache.
  Recorder(Sink sink, const CoordinatorOptions& options);
  Recorder(Sink sink, const UploadOptions& options);
  Recorder(Sink sink, const RestoreOptions& options);

  void advancing(Protocol&) override {}
  void advanced(TimePoint now, std::span<const Completion> completions, std::span<const Post> posts,
                const Protocol& protocol) override;

 private:
  void begin(const RecordedOptions& options);
  void write_documents();

  Sink sink_;
  DocumentNamer namer_;
  uint64_t round_ = 0;
  std::optional<std::string> abort_request_;  // that was written last
};

// Where a protocol did something else than was recorded.
struct ReplayDifference {
  uint64_t round = 0;  // counted from 1
  uint64_t line = 0;   // of the recording, counted from 1
  std::string what;    // "post 2", "state"
  std::string recorded;
  std::string replayed;

  // "round 4 (line 9): post 2 was recorded as ... and is now ..."
  std::string to_text() const;

  friend bool operator==(const ReplayDifference&, const ReplayDifference&) = default;
};

// What came of a replay.
// Counts are up to and with the round that differs.
struct ReplayReport {
  std::string protocol;      // "writer", "target", "coordinator", "upload" or "restore"
  uint64_t round_count = 0;  // calls of advance(), the one that differs included
  uint64_t post_count = 0;
  uint64_t completion_count = 0;
  bool finished = false;                                  // the recording goes on until the protocol's end
  TimePoint begin;                                        // of the first round
  TimePoint end;                                          // of the last round
  std::vector<std::pair<TimePoint, std::string>> states;  // each that differs from the one before, and since when
  std::optional<ReplayDifference> difference;             // the first one; nothing is replayed after it
};

// What a replay takes from a recording, which may come from outside.
struct ReplayLimits {
  JsonLimits line;  // of one line
  // A recording whose protocol had more is replayed with these; where it needs more it differs or is refused.
  LowerLimits lower = {.step_count_max = uint64_t{1} << 24};
  uint64_t split_step_count_max = uint64_t{1} << 22;
  uint64_t prefix_object_count_max = uint64_t{1} << 22;  // page objects of a prefix; more are refused
};

// `text` is a whole recording, or its first lines. kInvalidArgument, naming the line, when it is none, or says what
// could not have happened: a completion of an operation that is not under way, or with the value of another kind.
Result<ReplayReport> replay(std::string_view text, const ReplayLimits& limits = {});

}  // namespace crossdock
