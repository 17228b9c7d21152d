// Target: one receiver of a live transfer. It reserves, exports, waits for the receipt of every writer that the job
// names, fences its memory off, looks at what has come, and waits for the decision. It fences whatever the outcome is,
// before it activates or releases: a late write finds its grant revoked (I3).
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
    std::optional<WriterReceipt> receipt;
    StepSpan all;  // where checksums are compared
  };

  bool complete(const Completion& completion, TimePoint now) override;
  TimePoint wake_of_work() const override;
  void handle(const Message& message);
  void accept(const std::shared_ptr<const TransferJob>& job);
  void take_receipt(const PeerIdentity& writer, const WriterReceipt& receipt);
  // Each does the work of one state. True: the state may have changed, look again; false: wait for completions or time.
  bool step(TimePoint now, std::vector<Post>& posts);
  bool reserve(TimePoint now, std::vector<Post>& posts);
  bool collect();
  // Of kFencing and kDraining: revokes, then goes on to validation, or to the release.
  bool fence(TimePoint now, std::vector<Post>& posts);
  bool validate(TimePoint now, std::vector<Post>& posts);
  bool activate(TimePoint now, std::vector<Post>& posts);
  std::string missing_writers() const;

  std::shared_ptr<const TransferJob> job_;
  std::map<PeerIdentity, Expected> expected_;
  std::map<PeerIdentity, WriterReceipt> early_;  // came before the job
  bool fencing_ = false;
  std::vector<RegionKey> keys_;
  std::optional<WorkList> revokes_;
  std::vector<Expected*> to_check_;
  std::optional<WorkList> checksums_;
  std::optional<Task> validate_;
  std::optional<Task> activate_;
};

}  // namespace crossdock
