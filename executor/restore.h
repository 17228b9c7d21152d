// Restore: store to runtime. Looks up and leases, reserves, reads what the targets own straight into their memory,
// fences, validates, activates. A restore that fails leaves nothing activated and nothing reserved.
//
// Targets are activated one after another, so a runtime that fails meanwhile leaves some of them active
// (activated_only). None of them is in use: a framework routes nothing to a target before the restore has succeeded
// (Runtime in executor/ports.h). That is cheaper than holding all targets back until each is sure to be activated,
// which no order of calls can make sure.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/participant.h"
#include "executor/planners.h"
#include "executor/protocol.h"
#include "executor/task.h"
#include "executor/work_list.h"

namespace crossdock {

// Times are of the clock of the queue that drives it, from the first call of advance() on.
struct RestoreOptions {
  OperationId operation;
  AttemptId attempt;                              // random, and never used twice
  std::shared_ptr<const RestorePlanner> planner;  // of what is restored; not null
  std::vector<ParticipantId> participants;        // targets that are restored here
  LeaseRequest lease;
  Duration timeout = Duration::from_s(600);
  Duration drain = Duration::from_s(60);
  WindowLimits window;
  RetryOptions retry;
  uint64_t seed = 1;
};

// In the order of a restore that succeeds. A failure goes on at kFencing, and from there to kReleasing.
enum class RestoreState {
  kLookingUp,
  kReserving,
  kGranting,
  kReading,
  kFencing,
  kValidating,
  kActivating,
  kReleasing,
  kFinished,
};

// Complete once the restore has finished.
struct RestoreOutcome {
  bool activated = false;                     // all of the targets
  std::vector<ParticipantId> activated_only;  // where only some could be
  std::vector<ParticipantId> may_be_active;   // nobody knows; their pages stay reserved
  bool released = false;                      // what was not activated was given back
  std::vector<Remains> quarantined;           // what was not
  std::vector<OpId> lost;                     // operations that never completed: pages stay reserved
  Status cause;
  GetReport read;
  uint64_t object_count = 0;
  uint64_t operations = 0;

  // Bytes of chunks that were read for each byte that was delivered.
  double read_amplification() const {
    return read.bytes == 0 ? 1 : static_cast<double>(read.bytes_read) / static_cast<double>(read.bytes);
  }
};

// I5: a target is activated only after all of its bytes were read with matching checksums, its memory was fenced, and
// the runtime agreed. I6: it finishes at latest at timeout plus the drains of the states that follow.
class Restore : public Protocol {
 public:
  explicit Restore(RestoreOptions options);

  void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) override;
  TimePoint wake_at() const override;
  bool finished() const override { return state_ == RestoreState::kFinished; }
  std::string state() const override;

  // Takes effect at the next advance(), and only before fencing begins: afterwards the outcome is decided.
  void request_abort(std::string reason) { abort_request_ = std::move(reason); }
  // What was asked for last.
  const std::optional<std::string>& abort_request() const { return abort_request_; }

  // Changes until the restore has finished.
  const RestoreOutcome& outcome() const { return outcome_; }
  // Null until all targets are reserved.
  const std::shared_ptr<const RestoreJob>& job() const { return job_; }
  // Delivered so far, for progress; job()->bytes is the whole.
  uint64_t done_bytes() const { return outcome_.read.bytes; }

 private:
  // A call of the runtime for each of some participants.
  struct Calls {
    RuntimeCall call;
    std::vector<size_t> members;  // numbers in options_.participants
    WorkList list;
    std::vector<bool> is_done;  // of each member
  };

  // Gives a completion to the list or task that posted it.
  void take(TimePoint now, const Completion& completion);
  // Each does the work of one state. True: the state may have changed, look again; false: wait for completions or time.
  bool step(TimePoint now, std::vector<Post>& posts);
  bool look_up(TimePoint now, std::vector<Post>& posts);
  bool reserve(TimePoint now, std::vector<Post>& posts);
  bool grant(TimePoint now, std::vector<Post>& posts);
  bool read(TimePoint now, std::vector<Post>& posts);
  bool fence(TimePoint now, std::vector<Post>& posts);
  bool validate(TimePoint now, std::vector<Post>& posts);
  bool activate(TimePoint now, std::vector<Post>& posts);
  bool release(TimePoint now, std::vector<Post>& posts);
  // Keeps the first cause.
  void fail(Status cause);
  void enter(RestoreState state, TimePoint now);
  Calls calls(RuntimeCall call, std::vector<size_t> members) const;
  void post_calls(Calls& calls, TimePoint now, std::vector<Post>& posts);
  std::string label() const;  // "restore 'a'"
  TimePoint wake_of_work() const;
  std::vector<OpId> under_way() const;
  std::vector<OpId> memory_under_way() const;
  HoldId hold(size_t participant) const;
  bool may_be_active(size_t participant) const;
  void quarantine();
  void finish();

  RestoreOptions options_;
  OpIds ops_;
  RestoreState state_ = RestoreState::kLookingUp;
  bool started_ = false;
  bool fencing_ = false;
  TimePoint deadline_;
  TimePoint drain_deadline_ = TimePoint::never();
  std::optional<Task> lookup_;
  std::optional<Found> found_;
  std::optional<Calls> reserves_;
  std::vector<AnyBinding> bindings_;  // of each participant; null: not reserved
  std::shared_ptr<const RestoreJob> job_;
  std::optional<WorkList> gets_;
  std::optional<GrantRequest> grant_request_;
  std::optional<Task> grant_;
  std::optional<Task> revoke_;
  bool is_fenced_ = false;
  std::optional<Calls> validates_;
  std::optional<Calls> activates_;
  std::vector<bool> is_active_;
  std::optional<Calls> releases_;
  std::optional<Task> lease_release_;
  std::optional<std::string> abort_request_;
  std::optional<Status> cause_;
  RestoreOutcome outcome_;
};

}  // namespace crossdock
