// A round of a recording, which is one call of advance(): docs/formats/recording.md.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "executor/protocol.h"
#include "executor/recording/completion_json.h"
#include "executor/recording/post_json.h"
#include "executor/recording/values_json.h"
#include "model/wire/describe.h"

namespace crossdock {

template <class Completions, class Posts>
// Times are in nanoseconds of the clock of the recorded queue.
struct RecordedRound {
  std::optional<std::string> abort;  // the reason, in the round before which the caller asked for it
  Completions completions;
  Posts posts;
  uint64_t number = 0;
  std::string state;
  TimePoint time;
};
using WrittenRound = RecordedRound<std::span<const Completion>, std::span<const Post>>;
using ReadRound = RecordedRound<std::vector<Completion>, std::vector<std::string>>;  // posts: canonical texts

namespace form {

// A post is written, and its text is read.
template <class Documents>
// A text and not a post: a replay compares texts, and has no need to make posts of them.
struct PostForm {
  Documents& documents;

  void read(const JsonCursor& cursor, std::string& text) const { text = canonical_text(cursor.value); }
  void write(JsonWriter& out, const Post& post) const { out.raw(post_text(post, documents)); }
};

template <class Documents>
auto round_with(Documents& documents) {
  return object([&documents](auto& fields, auto& round) {
    fields.optional("abort", round.abort, kText);
    fields.required("completions", round.completions, list_of(completion_with(documents)));
    fields.required("posts", round.posts, list_of(PostForm<Documents>{documents}));
    fields.required("round", round.number, number());
    fields.required("state", round.state, kText);
    fields.required("time_ns", round.time, kNanoseconds);
  });
}

}  // namespace form
}  // namespace crossdock
