#include "executor/recording/recorder.h"

#include "executor/recording/completion_json.h"
#include "executor/recording/post_json.h"
#include "executor/recording/values_json.h"

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

// The header stands first, and then the documents that it names.
void Recorder::begin(const RecordedOptions& options) {
  sink_(header_text(options, namer_));
  write_documents();
}

void Recorder::write_documents() {
  for (const std::string& line : namer_.take_lines()) sink_(line);
}

void Recorder::advanced(TimePoint now, std::span<const Completion> completions, std::span<const Post> posts,
                        const Protocol& protocol) {
  JsonWriter out;
  out.begin_object();
  if (std::optional<std::string> request = abort_request_of(protocol); request != abort_request_) {
    out.key("abort");
    encode_text(out, request.value_or(""));
    abort_request_ = std::move(request);
  }
  out.key("completions").begin_array();
  for (const Completion& completion : completions) encode_completion(out, completion, namer_);
  out.end_array();
  out.key("posts").begin_array();
  for (const Post& post : posts) out.raw(post_text(post, namer_));
  out.end_array();
  out.key("round").number(++round_);
  out.key("state");
  encode_text(out, protocol.state());
  out.key("time_ns");
  encode_ns(out, now.ns());
  out.end_object();
  write_documents();
  sink_(out.take());
}

}  // namespace crossdock
