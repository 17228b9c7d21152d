// Recorder and replay: all that went into a protocol and came out of it, as lines of JSON. A recording has what the
// protocol was made of (its kind, options and documents), so that replay() makes the same one, feeds it the same times
// and completions, and compares what it posts, byte for byte. Wire form: docs/formats.md, "crossdock.recording".
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "executor/coordinator.h"
#include "executor/participant.h"
#include "executor/protocol.h"
#include "executor/restore.h"
#include "executor/transfer_job.h"
#include "executor/upload.h"

namespace crossdock {

// Records one protocol while drive() runs it. Each document (placement, snapshot, binding, layout, manifest, plan)
// is written once, before the first line that names it by its digest.
class Recorder : public ProtocolObserver {
 public:
  // Gets each line, without its end. Lines come in the thread that drives the protocol.
  using Sink = std::function<void(std::string_view line)>;

  // A writer or a target, with the documents that its jobs will be about.
  Recorder(Sink sink, Role role, const ParticipantOptions& options, const TransferDocuments& documents,
           const PlanOptions& plan, const LowerLimits& lower);
  Recorder(Sink sink, const CoordinatorOptions& options);
  Recorder(Sink sink, const UploadOptions& options);
  Recorder(Sink sink, const RestoreOptions& options);

  void advancing(Protocol&) override {}
  void advanced(TimePoint now, std::span<const Completion> completions, std::span<const Post> posts,
                const Protocol& protocol) override;

 private:
  Sink sink_;
  std::set<std::string> written_;  // documents, by digest
};

// What came of a replay.
struct ReplayReport {
  std::string protocol;       // "writer", "target", "coordinator", "upload" or "restore"
  uint64_t round_count = 0;   // calls of advance()
  uint64_t post_count = 0;
  uint64_t completion_count = 0;
  bool finished = false;      // the recording goes on until the protocol's end
  std::string last_state;
  // One for each change: "     0.004,213 s  executing".
  std::vector<std::pair<TimePoint, std::string>> states;
  TimePoint begin;
  // The first round in which the protocol did something else than was recorded; empty when there is none.
  std::string difference;
};

// `text` is a whole recording. kInvalidArgument, naming the line, when it is none. abort requests of a coordinator,
// upload or restore are recorded and replayed too.
Result<ReplayReport> replay(std::string_view text);

}  // namespace crossdock
