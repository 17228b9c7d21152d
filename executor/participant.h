// What the two kinds of participants of a live transfer, writers and targets, have in common.
#pragma once

#include <algorithm>
#include <cstdint>
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
  kExecuting,   // source: copies are under way
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
  ParticipantId participant;
  PeerId coordinator;
  Duration timeout = Duration::from_s(60);        // from the first call on: then it is decided
  Duration drain = Duration::from_s(30);          // how long after that completions are awaited
  Duration decision_wait = Duration::from_s(10);  // how long after the timeout the coordinator's decision is awaited
  Duration linger = Duration::from_ns(0);         // how long a repeated decision is answered after the end
  WindowLimits window;
  RetryOptions retry;                                                      // of operations
  RetryOptions resend{0, Duration::from_ms(20), Duration::from_ms(2000)};  // of messages
  StepSplit split;                                                         // what one step may not pass
  BatchLimits batch;                                                       // what one copy operation may not pass
  uint64_t seed = 1;
};

// How it ended for one participant.
struct ParticipantOutcome {
  bool activated = false;    // target
  bool released = false;     // pages were given back
  bool quarantined = false;  // operations never completed: pages stay pinned
  std::vector<OpId> lost;    // those operations
  Status cause;              // why it was not activated; OK when it was
  uint64_t bytes = 0;        // source: written; target: received
  uint64_t operations = 0;   // copies posted, repeated ones included

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
      : role_(role), options_(options), mail_(ops_, options.resend, options.seed), first_(runtime_task(first)) {}

  // To be called at the begin of advance(); returns the messages that came.
  std::vector<Message> take(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts);
  // Takes a completion of the derived class's own operations; false when it is none of them.
  virtual bool complete(const Completion& completion, TimePoint now) = 0;
  // When the derived class's own work of the current state has something to post.
  virtual TimePoint wake_of_work() const = 0;

  Task runtime_task(RuntimeCall call) const {
    return Task(RuntimePost{call, options_.participant}, options_.retry,
                options_.seed + 16 + static_cast<uint64_t>(call));
  }
  // What the runtime pinned or reserved; null before it did.
  AnyBinding binding() const {
    const AnyBinding* bound = first_.result<AnyBinding>();
    return bound == nullptr ? AnyBinding() : *bound;
  }
  // With the operation and this participant's identity.
  Message message(MessageBody body) const;
  // "target 'p0-t1'", for messages.
  std::string label() const;
  // "target 'p0-t1' could not be reserved: ..."
  Status could_not(std::string_view what, const Status& status) const;
  // Takes the decision, or answers a repeated one with "done" while the participant lingers.
  void decide(const DecisionBody& decision);
  // The operation cannot succeed any more: says so, and goes where `next` says.
  void fail(Status cause, TransferState next);
  // A state in which something is under way that has to complete by the drain's end.
  void enter(TransferState state, TimePoint now) {
    state_ = state;
    drain_deadline_ = now + options_.drain;
  }
  // Fails at the deadline, except while a decision is awaited, which may take longer.
  bool fail_when_late(TimePoint now, TransferState next);
  // The last step of those that can be done.
  void start_closing(TimePoint now);
  // Gives up what is not done by the end of the drain: what has not completed, and what would be tried again. True when
  // it did.
  bool quarantine(const std::vector<OpId>& left, TimePoint now);
  // Gives pages back, if there are any, then closes. True: look again.
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
  std::optional<DecisionBody> decision_;
  std::optional<Status> cause_;
  ParticipantOutcome outcome_;

 private:
  TimePoint end_of_wait() const { return deadline_ + options_.decision_wait; }
  TimePoint close_at() const { return decision_ ? linger_end_ : std::max(end_of_wait(), linger_end_); }

  bool started_ = false;
  TimePoint linger_end_;
  std::optional<TimePoint> close_deadline_;
};

}  // namespace crossdock
