// Writer: one source of a live transfer. It pins, exports, copies what the job says to each target, tells each target
// that its bytes have landed, and releases its pin once there is a decision and nothing of it is under way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/participant.h"

namespace crossdock {

// R2: its pin is released only when no copy and no checksum of it is under way. outcome().bytes counts the bytes of
// copies that completed OK.
class Writer : public ParticipantProtocol {
 public:
  explicit Writer(const ParticipantOptions& options) : ParticipantProtocol(Role::kSource, RuntimeCall::kPin, options) {}

  void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) override;

 private:
  // All that goes to one target.
  // `crc32c` is of the bytes in the order of the pair's steps, once its checksum has completed.
  struct Pair {
    PeerIdentity target;
    PeerId peer;
    uint64_t bytes = 0;
    StepSpan all;
    uint32_t crc32c = 0;
  };

  bool complete(const Completion& completion, TimePoint now) override;
  TimePoint wake_of_work() const override;
  void handle(const Message& message);
  void accept(const std::shared_ptr<const TransferJob>& job);
  bool step(TimePoint now, std::vector<Post>& posts);  // true: look again
  bool pin(TimePoint now, std::vector<Post>& posts);
  bool execute(TimePoint now, std::vector<Post>& posts);
  bool drain(TimePoint now, std::vector<Post>& posts);
  // Everything that must complete before the pin may be released (R2).
  std::vector<OpId> under_way() const;

  std::vector<Pair> pairs_;
  std::vector<StepSpan> batches_;
  std::optional<WorkList> copies_;
  std::optional<WorkList> checksums_;  // of each pair
};

}  // namespace crossdock
