// What a recording may say, so that a replay feeds a protocol nothing that no backend would: options that a protocol
// takes, and completions that answer what was posted (executor/ports.h). Recordings may come from outside.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "executor/protocol.h"
#include "executor/recording/options_json.h"
#include "executor/recording/recorder.h"

namespace crossdock {

// kInvalidArgument when a protocol cannot be made of them. Their limits become no higher than those of the replay.
Status check_options(RecordedOptions& options, const ReplayLimits& limits);

// The operations that were posted and have not completed.
class PendingPosts {
 public:
  void add(const Post& post);
  // kInvalidArgument when no such operation is under way (R1), or when the completion is not of its kind.
  Status complete(const Completion& completion);

 private:
  struct Pending {
    std::string_view name;
    CompletionResult answer;  // a value of the kind that it brings when it succeeds
    std::optional<Lookup> lookup;
  };

  std::map<OpId, Pending> pending_;
};

}  // namespace crossdock
