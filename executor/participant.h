// What the two kinds of participants of a live transfer, writers and targets, have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/mailbox.h"
#include "executor/retry.h"
#include "executor/task.h"
#include "executor/transfer_job.h"
#include "executor/window.h"
#include "executor/work_list.h"

namespace crossdock {

// The nine steps of a transfer (pin, reserve, export, validate, plan, execute, collect, validate target, activate,
// release) as this participant sees them.
enum class TransferState {
  kPinning,     // source: the runtime keeps its pages as they are
  kReserving,   // target: the runtime takes pages for it
  kExporting,   // the coordinator is told where the bytes lie, until it answers with the job
  kExecuting,   // source: copies are under way, to each target that has granted its memory
  kGranting,    // target: the writers that the job names get the right to write
  kCollecting,  // target: receipts of all expected writers are awaited
  kFencing,     // target: its grants are revoked; nothing lands afterwards
  kValidating,  // target: checksums, then the runtime's own look
  kReporting,   // the result is told until there is a decision
  kDraining,    // what is under way completes
  kActivating,  // target
  kReleasing,   // pages go back to the runtime
  kClosing,     // the last messages
  kFinished,
};

std::string_view transfer_state_name(TransferState state);

// Times are from the participant's own clock; the clocks of different participants are not compared.
struct ParticipantOptions {
  OperationId operation;
  AttemptId attempt;  // the coordinator's
  ParticipantId participant;
  PeerId coordinator;                             // until another one takes over
  Duration timeout = Duration::from_s(60);        // from the first call on: then it is decided
  Duration drain = Duration::from_s(30);          // how long after that completions are awaited
  Duration decision_wait = Duration::from_s(10);  // how long after the timeout the coordinator's decision is awaited
  // How long after its end it is there for the coordinator, which may not have heard of it yet, or be another one.
  Duration linger = Duration::from_s(10);
  WindowLimits window;
  RetryOptions retry;                                                      // of operations
  RetryOptions resend{0, Duration::from_ms(20), Duration::from_ms(2000)};  // of messages
  StepSplit split;                                                         // what one step may not pass
  BatchLimits batch;                                                       // what one copy operation may not pass
  uint64_t seed = 1;
};

// What is left of a participant whose pages could not be given back: what executor/quarantine.h goes on with.
struct Remains {
  Role role = Role::kSource;
  HoldId hold;
  std::optional<GrantId> grant;  // that may not be revoked yet
  std::vector<OpId> operations;  // that never completed; the memory is theirs (R2)
  bool may_be_active = false;    // nobody knows whether the runtime has made the target active: not to be released

  friend bool operator==(const Remains&, const Remains&) = default;
};

// How it ended for one participant.
struct ParticipantOutcome {
  bool activated = false;  // target
  bool released = false;   // pages were given back
  std::optional<Remains> quarantined;
  std::vector<OpId> lost;   // operations that never completed, messages included
  Status cause;             // why it was not activated; OK when it was
  uint64_t bytes = 0;       // source: written; target: received
  uint64_t operations = 0;  // copies posted, repeated ones included

  PagesEnd pages() const {
    return quarantined ? PagesEnd::kQuarantined
           : activated ? PagesEnd::kActive
           : released  ? PagesEnd::kReleased
                       : PagesEnd::kNone;
  }
  friend bool operator==(const ParticipantOutcome&, const ParticipantOutcome&) = default;
};

// The common part of both: deadlines, messages, the decision, and the way to the end.
class ParticipantProtocol : public Protocol {
 public:
  TimePoint wake_at() const override;
  bool finished() const override { return state_ == TransferState::kFinished; }
  std::string state() const override { return std::string(transfer_state_name(state_)); }

  TransferState transfer_state() const { return state_; }
  // Once it has finished.
  const ParticipantOutcome& outcome() const { return outcome_; }

 protected:
  ParticipantProtocol(Role role, RuntimeCall first, const ParticipantOptions& options)
      : role_(role),
        options_(options),
        mail_(ops_, options.resend, options.seed),
        first_(runtime_task(first)),
        coordinator_(options.coordinator) {}

  // To be called at the begin of advance(): hands completions and messages to those below.
  void take(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts);
  // Takes a completion of the derived class's own operations; false when it is none of them.
  virtual bool complete(const Completion& completion, TimePoint now) = 0;
  // The job of this participant's own export; it comes once.
  virtual void accept(const std::shared_ptr<const TransferJob>& job) = 0;
  // A message of another participant of this attempt.
  virtual void hear(const Message& message) = 0;
  // When the derived class's own work of the current state has something to post.
  virtual TimePoint wake_of_work() const = 0;

  HoldId hold() const { return HoldId{options_.operation, options_.attempt, options_.participant}; }
  Task runtime_task(RuntimeCall call) const {
    return Task(RuntimePost{call, hold()}, options_.retry, options_.seed + 16 + static_cast<uint64_t>(call));
  }
  // What the runtime pinned or reserved; null before it did.
  AnyBinding binding() const {
    const AnyBinding* bound = first_.result<AnyBinding>();
    return bound == nullptr ? AnyBinding() : *bound;
  }
  PeerIdentity identity() const;
  bool is_of_this_life(const PeerIdentity& sender) const;
  // With the operation, the attempt and this participant's identity.
  Message message(MessageBody body) const;
  // To the coordinator, until it has acknowledged it.
  void report(MessageBody body);
  void acknowledge(const PeerId& to, const Message& taken);
  // "target 'p0-t1'", for messages.
  std::string label() const;
  // "target 'p0-t1' could not be reserved: ..."
  Status could_not(std::string_view what, const Status& status) const;
  // The operation cannot succeed any more: says so, and goes where `next` says. `waited`: others were waited for.
  void fail(Status cause, TransferState next, bool waited = false);
  // A state in which something is under way that has to complete by the drain's end.
  void enter(TransferState state, TimePoint now) {
    state_ = state;
    drain_deadline_ = now + options_.drain;
  }
  // Fails at the deadline, except while a decision is awaited, which may take longer. `why` is of this state; empty:
  // that it was still in it.
  bool fail_when_late(TimePoint now, TransferState next, const std::string& why = {});
  // The last step of those that can be done.
  void start_closing();
  // Gives up what is not done by the end of the drain: what has not completed, and what would be tried again. True when
  // it did.
  bool quarantine_when_late(const std::vector<OpId>& left, TimePoint now);
  // The pages are not given back. `left` is under way.
  void quarantine(const std::vector<OpId>& left, const std::string& why);
  // Gives pages back, if there may be any, then closes. True: look again.
  void start_release(TimePoint now);
  bool release(TimePoint now, std::vector<Post>& posts);
  void close(TimePoint now, std::vector<Post>& posts);

  Role role_;
  ParticipantOptions options_;
  OpIds ops_;
  Mailbox mail_;
  TransferState state_ = TransferState::kPinning;
  Task first_;  // pin or reserve
  std::optional<Task> release_;
  TimePoint deadline_;
  TimePoint drain_deadline_ = TimePoint::never();
  std::shared_ptr<const TransferJob> job_;
  std::optional<DecisionBody> decision_;
  std::optional<Status> cause_;
  std::optional<GrantId> grant_;  // that may be live
  bool may_be_active_ = false;
  ParticipantOutcome outcome_;

 private:
  TimePoint end_of_wait() const { return deadline_ + options_.decision_wait; }
  TimePoint close_at() const;
  void handle(const Message& message);
  bool heeds(const PeerIdentity& coordinator);
  void take_job(const Message& message, const JobBody& body);
  void answer();
  void released_after_all();
  void turn_to(const PeerId& coordinator);

  bool started_ = false;
  PeerId coordinator_;
  std::optional<PeerIdentity> heeded_;  // the coordinator with the highest term that was heard of
  std::optional<TimePoint> linger_end_;
  bool done_is_known_ = false;
  std::optional<TimePoint> close_deadline_;
};

}  // namespace crossdock
