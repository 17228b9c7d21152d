#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "executor/recording/recorder.h"
#include "executor/recording/replay_rules.h"
#include "executor/recording/round_json.h"
#include "model/wire/codec.h"

// A replay feeds a new protocol the recorded times and completions, and compares every post and state. This works
// because a protocol is pure: its posts follow from its options, the times and the completions alone (I7). Lines come
// from outside, so each is checked before the protocol sees it: the form, the order of rounds and times, and that
// completions answer posts (replay_rules.h).
namespace crossdock {
namespace {

class Replay {
 public:
  explicit Replay(const ReplayLimits& limits) : limits_(limits) {}

  // Takes the next line. After a difference there is nothing more to take.
  Status take(std::string_view line);
  Result<ReplayReport> finish() &&;

  bool differs() const { return report_.difference.has_value(); }

 private:
  Status invalid(const std::string& why) const {
    return Status(Code::kInvalidArgument, fmt::format("line {}: {}", line_, why));
  }
  Status status_of(const Diagnostics& diagnostics) const {
    return Status(Code::kInvalidArgument, diagnostics.to_status().message());
  }

  Status take_header(const JsonCursor& cursor);
  Status take_document(const JsonCursor& cursor);
  Status take_round(const JsonCursor& cursor);
  Status make();
  Result<RecordedOptions> options();
  Status run(const ReadRound& round);
  void compare(const ReadRound& round, const std::vector<Post>& posts);
  void differ(std::string what, std::string recorded, std::string replayed);

  const ReplayLimits& limits_;
  uint64_t line_ = 0;
  std::optional<JsonTree> header_;
  KnownDocuments documents_;
  DocumentNamer namer_;
  std::unique_ptr<Protocol> protocol_;
  PendingPosts pending_;
  ReplayReport report_;
};

Status Replay::take(std::string_view line) {
  ++line_;
  Diagnostics diagnostics(fmt::format("line {}", line_));
  std::optional<JsonTree> tree = JsonTree::parse(line, limits_.line, diagnostics);
  if (!tree) return status_of(diagnostics);
  const JsonPath path;
  const JsonCursor cursor{tree->root(), path, diagnostics};
  if (!cursor.require(JsonKind::kObject)) return status_of(diagnostics);
  if (!header_) {
    TRY_STATUS(take_header(cursor));
    header_ = std::move(tree);
    return Status();
  }
  Status status = cursor.value.find("document") ? take_document(cursor) : take_round(cursor);
  if (!diagnostics.empty()) return status_of(diagnostics);
  return status;
}

Status Replay::take_header(const JsonCursor& cursor) {
  const std::optional<JsonValue> schema = cursor.value.find("schema");
  if (schema && schema->kind() == JsonKind::kString && schema->text().starts_with(kRecordingFamily) &&
      schema->text() != kRecordingSchema)
    return invalid(fmt::format("this is a '{}', and this program replays '{}' alone; record it again", schema->text(),
                               kRecordingSchema));
  if (!check_header(cursor, kRecordingSchema)) return status_of(cursor.diagnostics);
  ObjectReader in(cursor);
  in.required("options", [](const JsonCursor& options) { options.require(JsonKind::kObject); });
  report_.protocol = in.string("protocol");
  in.string("schema");
  in.number("version");
  in.finish();
  if (!cursor.diagnostics.empty()) return status_of(cursor.diagnostics);
  if (!is_protocol_name(report_.protocol)) return invalid(fmt::format("there is no protocol '{}'", report_.protocol));
  return Status();
}

Status Replay::take_document(const JsonCursor& cursor) {
  ObjectReader in(cursor);
  if (documents_.add(in, cursor) && !documents_.missing().empty()) return invalid(documents_.missing());
  return Status();
}

// The header names documents that follow it, so it is read when all that are needed have come.
Result<RecordedOptions> Replay::options() {
  Diagnostics diagnostics("line 1");
  const JsonPath path;
  const JsonPath options_path = path.field("options");
  const JsonCursor cursor{*header_->root().find("options"), options_path, diagnostics};
  RecordedOptions options = decode_options(cursor, report_.protocol, documents_);
  if (!diagnostics.empty()) return status_of(diagnostics);
  return options;
}

// At the first round: by then all documents of the header are known.
Status Replay::make() {
  TRY(RecordedOptions recorded, options());
  if (!documents_.missing().empty()) return invalid(documents_.missing());
  if (const Status checked = check_options(recorded, limits_); !checked.ok())
    return Status(checked.code(), "line 1: " + checked.message());
  if (const auto* participant = std::get_if<ParticipantRecord>(&recorded))
    documents_.set_job_context(participant->context);
  if (const auto* coordinator = std::get_if<CoordinatorRecord>(&recorded))
    documents_.set_job_context(coordinator->transfer);
  protocol_ = make_protocol(recorded);
  return Status();
}

Status Replay::take_round(const JsonCursor& cursor) {
  if (protocol_ == nullptr) TRY_STATUS(make());
  ReadRound round;
  form::round_with(documents_).read(cursor, round);
  if (!cursor.diagnostics.empty()) return Status();  // take() makes the status of them
  if (!documents_.missing().empty()) return invalid(documents_.missing());
  if (report_.finished) return invalid("the protocol has finished in the round before");
  if (round.number != report_.round_count + 1)
    return invalid(fmt::format("round {} stands where round {} is due", round.number, report_.round_count + 1));
  // A clock that goes back would be a backend that breaks the ports' rules.
  if (report_.round_count > 0 && round.time < report_.end)
    return invalid(fmt::format("the time {} ns is before that of the round before", round.time.ns()));
  // All of them before advance(): a protocol CHECKs what the ports promise, and a recording must not end the program.
  for (const Completion& completion : round.completions)
    if (const Status status = pending_.complete(completion); !status.ok()) return invalid(status.message());
  return run(round);
}

Status Replay::run(const ReadRound& round) {
  if (round.abort && !request_abort(*protocol_, *round.abort))
    return invalid(fmt::format("a {} cannot be asked to abort", report_.protocol));
  std::vector<Post> posts;
  protocol_->advance(round.time, round.completions, posts);
  for (const Post& post : posts) pending_.add(post);
  if (report_.round_count++ == 0) report_.begin = round.time;
  report_.end = round.time;
  report_.completion_count += round.completions.size();
  report_.post_count += posts.size();
  report_.finished = protocol_->finished();
  const std::string state = protocol_->state();
  if (report_.states.empty() || report_.states.back().second != state) report_.states.emplace_back(round.time, state);
  compare(round, posts);
  return Status();
}

void Replay::differ(std::string what, std::string recorded, std::string replayed) {
  report_.difference =
      ReplayDifference{report_.round_count, line_, std::move(what), std::move(recorded), std::move(replayed)};
}

// Posts first: a state that differs mostly follows from a post that does.
void Replay::compare(const ReadRound& round, const std::vector<Post>& posts) {
  for (size_t i = 0; i < std::max(posts.size(), round.posts.size()); ++i) {
    std::string recorded = i < round.posts.size() ? round.posts[i] : "nothing";
    std::string replayed = i < posts.size() ? post_text(posts[i], namer_) : "nothing";
    if (recorded != replayed) return differ(fmt::format("post {}", i + 1), std::move(recorded), std::move(replayed));
  }
  namer_.take_lines();  // the recording has these lines already
  if (std::string state = protocol_->state(); state != round.state) differ("state", round.state, std::move(state));
}

Result<ReplayReport> Replay::finish() && {
  if (!header_) return invalid("a recording begins with a header");
  // Without a round, documents that the header names may be in the lines that are cut off; only the options' form is
  // checked.
  if (protocol_ == nullptr) TRY_STATUS(options().status());
  return std::move(report_);
}

}  // namespace

std::string ReplayDifference::to_text() const {
  return fmt::format("round {} (line {}): {} was recorded as {} and is now {}", round, line, what, recorded, replayed);
}

Result<ReplayReport> replay(std::string_view text, const ReplayLimits& limits) {
  Replay replay(limits);
  // After a difference the protocol and the recording are no longer in the same state.
  while (!text.empty() && !replay.differs()) {
    const size_t end = text.find('\n');
    TRY_STATUS(replay.take(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return std::move(replay).finish();
}

}  // namespace crossdock
