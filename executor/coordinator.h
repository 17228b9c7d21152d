// Coordinator: decides one live transfer. It collects the exports of all participants, plans and proves, hands the job
// out, collects the reports of all targets, decides once, and repeats the decision to each participant until that one
// has said that it is done. Success is a set of named participants, never a count; those that are missing at the
// deadline are named.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/mailbox.h"
#include "executor/planners.h"
#include "executor/transfer_job.h"

namespace crossdock {

// Where messages for a participant go.
struct PeerAddress {
  ParticipantId participant;
  PeerId peer;
};

// Times are of the coordinator's own clock, from the first call of advance() on. `seed` only decides waits between
// repetitions.
struct CoordinatorOptions {
  OperationId operation;
  std::shared_ptr<const TransferPlanner> planner;  // of what is moved; not null
  std::vector<PeerAddress> sources;                // all that take part
  std::vector<PeerAddress> targets;
  bool checksum = false;
  Duration timeout = Duration::from_s(60);
  // How long after the timeout a participant's own failure message is awaited, since it knows the cause better.
  Duration report_wait = Duration::from_s(1);
  Duration done_wait = Duration::from_s(30);  // how long after the decision the "done" of all is awaited
  RetryOptions resend{0, Duration::from_ms(20), Duration::from_ms(2000)};
  uint64_t seed = 1;
};

enum class CoordinatorState { kCollectingExports, kCollectingReports, kTelling, kClosing, kFinished };
std::string_view coordinator_state_name(CoordinatorState state);

struct TransferOutcome {
  bool activate = false;  // the decision
  Status cause;           // of an abort: the first failure, or which participants are missing
  // Targets that never said that they carried the decision out, which of an activated transfer leaves open whether they
  // are active (kOutcomeUnknown); and sources that never said that they gave their pins back.
  std::vector<std::string> unconfirmed_targets;
  std::vector<std::string> unconfirmed_sources;
  size_t activated_count = 0;
  uint64_t bytes = 0;  // that targets reported

  // OK exactly when every target said that it is active.
  Status status() const;
};

// I5: it decides to activate only when every target has reported that it is fenced and validated. I6: it finishes at
// latest at timeout + report_wait + 2 * done_wait.
class Coordinator : public Protocol {
 public:
  explicit Coordinator(CoordinatorOptions options);

  void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) override;
  TimePoint wake_at() const override;
  bool finished() const override { return state_ == CoordinatorState::kFinished; }
  std::string state() const override { return std::string(coordinator_state_name(state_)); }

  CoordinatorState coordinator_state() const { return state_; }

  // The caller wants it to end: aborts, unless it was decided before.
  void request_abort(std::string reason) { abort_request_ = std::move(reason); }
  // What was asked for last.
  const std::optional<std::string>& abort_request() const { return abort_request_; }

  // Once it has finished.
  const TransferOutcome& outcome() const { return outcome_; }
  // Once all have exported.
  const std::shared_ptr<const TransferJob>& job() const { return job_; }

 private:
  using MemberId = std::pair<Role, ParticipantId>;
  struct Member {
    PeerId peer;
    AnyBinding binding;
    bool ready = false;
    bool done = false;
    bool activated = false;
    uint64_t bytes = 0;
  };

  void handle(const Message& message);
  void take_export(Member& member, const MemberId& id, const ExportBody& body);
  bool is_current(const Member& member, const PeerIdentity& identity) const;
  // True: the state may have changed, look again.
  bool step(TimePoint now, std::vector<Post>& posts);
  void hand_out(TimePoint now);
  void decide(bool activate, Status cause, TimePoint now);
  std::string missing(bool (*is_there)(const Member&), bool targets_only) const;
  Message message(MessageBody body) const;

  CoordinatorOptions options_;
  OpIds ops_;
  Mailbox mail_;
  CoordinatorState state_ = CoordinatorState::kCollectingExports;
  bool started_ = false;
  TimePoint deadline_;
  TimePoint done_deadline_;
  std::map<MemberId, Member> members_;
  std::shared_ptr<const TransferJob> job_;
  std::optional<Status> failure_;
  std::optional<std::string> abort_request_;
  TransferOutcome outcome_;
};

}  // namespace crossdock
