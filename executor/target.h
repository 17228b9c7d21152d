// Target: one receiver of a live transfer. It reserves, exports, grants its memory to the writers that the job names,
// waits for the receipt of each, fences its memory off, looks at what has come, and waits for the decision. It fences
// whatever the outcome is, before it activates or releases: a late write finds its grant revoked (I3).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/participant.h"

namespace crossdock {

// I5: it reports ready only after every named writer's receipt, the fence, the checksums where the job asks for them,
// and its runtime. outcome().bytes counts what the plan says that it receives.
class Target : public ParticipantProtocol {
 public:
  explicit Target(const ParticipantOptions& options);

  void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) override;

 private:
  // What one writer has to deliver, from the job, and its receipt once it has come.
  struct Expected {
    uint64_t bytes = 0;
    const CopyPair* pair = nullptr;
    PeerId peer;
    std::optional<WriterReceipt> receipt;
    StepSpan all;  // where its checksum is compared, meanwhile
  };

  bool complete(const Completion& completion, TimePoint now) override;
  void accept(const std::shared_ptr<const TransferJob>& job) override;
  void hear(const Message& message) override;
  TimePoint wake_of_work() const override;
  void take_receipt(const Message& message, const WriterReceipt& receipt);
  // Each does the work of one state. True: the state may have changed, look again; false: wait for completions or time.
  bool step(TimePoint now, std::vector<Post>& posts);
  bool reserve(TimePoint now, std::vector<Post>& posts);
  bool grant(TimePoint now, std::vector<Post>& posts);
  bool collect();
  // Of kFencing and kDraining: revokes, then goes on to validation, or to the release.
  bool fence(TimePoint now, std::vector<Post>& posts);
  bool validate(TimePoint now, std::vector<Post>& posts);
  bool activate(TimePoint now, std::vector<Post>& posts);
  std::vector<OpId> under_way() const;
  std::string missing_writers() const;

  std::map<PeerIdentity, Expected> expected_;
  std::optional<Task> grant_task_;
  std::optional<TransferState> fenced_in_;  // the state of the last fence
  std::optional<Task> revoke_;
  std::vector<Expected*> to_check_;
  std::optional<WorkList> checksums_;
  std::optional<Task> validate_;
  std::optional<Task> activate_;
};

}  // namespace crossdock
