#include "executor/recording/recorder.h"

#include <utility>

#include "executor/recording/round_json.h"

// A recording is written line by line while the protocol runs, so after a crash the lines that the sink has are a
// recording too.
namespace crossdock {

Recorder::Recorder(Sink sink, Role role, const ParticipantOptions& options, const KvTransfer& transfer)
    : sink_(std::move(sink)) {
  begin(ParticipantRecord{role, options, transfer});
}

Recorder::Recorder(Sink sink, const CoordinatorOptions& options) : sink_(std::move(sink)) {
  begin(record_of(options).value());
}
Recorder::Recorder(Sink sink, const UploadOptions& options) : sink_(std::move(sink)) {
  begin(record_of(options).value());
}
Recorder::Recorder(Sink sink, const RestoreOptions& options) : sink_(std::move(sink)) {
  begin(record_of(options).value());
}

// The header comes first, then the documents that it names: a reader must know the protocol before anything else.
void Recorder::begin(const RecordedOptions& options) {
  sink_(header_text(options, namer_));
  write_documents();
}

void Recorder::write_documents() {
  for (const std::string& line : namer_.take_lines()) sink_(line);
}

// The documents that a round names are written before the round, hence the text is made first and kept until then.
void Recorder::advanced(TimePoint now, std::span<const Completion> completions, std::span<const Post> posts,
                        const Protocol& protocol) {
  WrittenRound round = {{}, completions, posts, ++round_, protocol.state(), now};
  // A request comes from outside the protocol; without it a replay would go on where the recorded run was aborted.
  if (std::optional<std::string> request = abort_request_of(protocol); request != abort_request_) {
    round.abort = request.value_or("");
    abort_request_ = std::move(request);
  }
  JsonWriter out;
  form::round_with(namer_).write(out, round);
  write_documents();
  sink_(out.take());
}

}  // namespace crossdock
