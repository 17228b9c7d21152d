// Coordinator: decides one live transfer. It collects the exports of all participants, plans and proves, hands the job
// out, collects the reports of all targets, decides once, and repeats the decision to each participant until that one
// has said that it is done. Success is a set of named participants, never a count; those that are missing at the
// deadline are named.
//
// A coordinator that died is replaced by one with a higher term, which asks the participants what they know. It
// finishes what was decided, and aborts when nothing can have been: a target heeds the highest term alone, so once
// every target has answered, no earlier decision can be carried out any more. Where a target does not answer and may
// have been activated, the outcome is unknown.
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
  AttemptId attempt;        // random, and never used twice; the participants of the attempt have the same
  InstanceId instance;      // of this coordinator, random
  uint64_t term = 1;        // higher than that of every coordinator of this attempt before it
  bool takes_over = false;  // another coordinator may have decided
  PeerId reply_to;          // its own address; needed when it takes over
  std::shared_ptr<const TransferPlanner> planner;  // of what is moved; not null
  std::vector<PeerAddress> sources;                // all that take part
  std::vector<PeerAddress> targets;
  bool checksum = true;  // of what was sent and of what has arrived are compared
  Duration timeout = Duration::from_s(60);
  // How long after the timeout a participant's own failure message is awaited, since it knows the cause better.
  Duration report_wait = Duration::from_s(1);
  // How long after the decision the "done" of all is awaited: a participant may need two drains of its own for it.
  Duration done_wait = Duration::from_s(75);
  RetryOptions resend{0, Duration::from_ms(20), Duration::from_ms(2000)};
  uint64_t seed = 1;
};

enum class CoordinatorState { kAsking, kCollectingExports, kCollectingReports, kTelling, kClosing, kFinished };
std::string_view coordinator_state_name(CoordinatorState state);

struct TransferOutcome {
  bool activate = false;  // the decision
  // Another coordinator may have decided to activate, and these targets may have done so: they do not answer.
  std::vector<std::string> may_be_active;
  Status cause;  // of an abort: the first failure, or which participants are missing
  // Targets that never said that they carried the decision out, which of an activated transfer leaves open whether they
  // are active (kOutcomeUnknown); and sources that never said that they gave their pins back.
  std::vector<std::string> unconfirmed_targets;
  std::vector<std::string> unconfirmed_sources;
  // Participants that said that they could not give their pages back.
  std::vector<std::string> quarantined;
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
    bool is_needed = true;  // a target, or a source that has something to write
    bool ready = false;
    std::optional<DoneBody> done;
    std::optional<KnownBody> known;  // what it said when it was asked
    uint64_t bytes = 0;
  };

  void handle(const Message& message);
  Member* find(Role role, const PeerIdentity& identity);
  void take_export(Member& member, const MemberId& id, const ExportBody& body);
  void take_failure(const Member& member, const FailureBody& body);
  bool is_current(const Member& member, const PeerIdentity& identity) const;
  void acknowledge(const Member& member, Role role, const Message& taken);
  // True: the state may have changed, look again.
  bool step(TimePoint now, std::vector<Post>& posts);
  bool ask(TimePoint now);
  bool collect(TimePoint now);
  bool tell(TimePoint now, std::vector<Post>& posts);
  void hand_out(TimePoint now);
  void decide(bool activate, Status cause, TimePoint now);
  template <class IsThere>
  std::string missing(const IsThere& is_there) const;
  Message message(MessageBody body) const;

  CoordinatorOptions options_;
  OpIds ops_;
  Mailbox mail_;
  CoordinatorState state_;
  bool started_ = false;
  TimePoint deadline_;
  TimePoint done_deadline_;
  std::map<MemberId, Member> members_;
  std::shared_ptr<const TransferJob> job_;
  std::optional<Status> failure_;       // what a participant could not do
  std::optional<Status> late_failure_;  // of one whose time was over while it waited for others
  std::optional<std::string> abort_request_;
  TransferOutcome outcome_;
};

}  // namespace crossdock
