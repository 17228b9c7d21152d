// Upload: runtime to store. Pins the sources, begins a transaction, puts every object, and publishes the manifest in
// one step, or aborts. It ends committed, aborted, or, when the store cannot be reached, unknown; never half visible.
#pragma once

#include <map>
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

// Times are of the clock of the queue that drives it. `txn` is never used for two uploads: the store remembers how it
// ended.
struct UploadOptions {
  TxnId txn;
  std::string tenant;
  std::shared_ptr<const UploadPlanner> planner;  // of what is stored; not null
  std::vector<ParticipantId> participants;       // sources that are pinned; at least those that the plan needs
  std::optional<Duration> ttl;
  Duration lease = Duration::from_s(60);     // of the transaction
  Duration timeout = Duration::from_s(600);  // from the first call on: then it is given up
  Duration drain = Duration::from_s(60);     // how long after that completions are awaited
  uint32_t put_round_count_max = 3;          // whole rounds of puts, when the store says at commit that bytes are gone
  WindowLimits window;
  RetryOptions retry;
  uint64_t seed = 1;
};

// kDraining and kAborting are passed by failures only.
enum class UploadState { kPinning, kBeginning, kPutting, kCommitting, kDraining, kAborting, kReleasing, kFinished };

// Complete once the upload has finished. `committed` and `unknown` are never both true.
struct UploadOutcome {
  bool committed = false;
  bool unknown = false;              // the store never said how it ended
  bool released = false;             // all pins were given back
  std::vector<Remains> quarantined;  // those that were not
  std::vector<OpId> lost;            // operations that never completed: pages stay pinned
  Status cause;                      // why it was not committed
  std::optional<uint64_t> sequence;
  AnyManifest manifest;  // that was published; null for page objects
  uint64_t bytes = 0;    // put
  uint64_t object_count = 0;
  uint64_t operations = 0;  // puts posted, repeated ones included
};

// I2: nothing is visible before the commit, and the commit is one call. I4: pins are given back in every outcome, but
// where an operation never completes.
class Upload : public Protocol {
 public:
  explicit Upload(UploadOptions options);

  void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) override;
  TimePoint wake_at() const override;
  bool finished() const override { return state_ == UploadState::kFinished; }
  std::string state() const override;

  // Aborts, unless it is being committed already.
  void request_abort(std::string reason) { abort_request_ = std::move(reason); }
  // What was asked for last.
  const std::optional<std::string>& abort_request() const { return abort_request_; }

  // Changes until the upload has finished.
  const UploadOutcome& outcome() const { return outcome_; }
  // Null until all sources are pinned.
  const std::shared_ptr<const UploadJob>& job() const { return job_; }
  // Put in the current round, for progress.
  uint64_t done_bytes() const { return puts_ ? puts_->done_bytes() : 0; }

 private:
  // Gives a completion to the list or task that posted it.
  void take(TimePoint now, const Completion& completion);
  void take_receipt(const PutReceipt& receipt);
  // Each does the work of one state. True: the state may have changed, look again; false: wait for completions or time.
  bool step(TimePoint now, std::vector<Post>& posts);
  bool pin(TimePoint now, std::vector<Post>& posts);
  bool begin(TimePoint now, std::vector<Post>& posts);
  bool put(TimePoint now, std::vector<Post>& posts);
  bool commit(TimePoint now, std::vector<Post>& posts);
  bool drain(TimePoint now, std::vector<Post>& posts);
  bool abort(TimePoint now, std::vector<Post>& posts);
  bool release(TimePoint now, std::vector<Post>& posts);
  HoldId hold(size_t participant) const;
  void start_commit();
  bool put_again();  // another round; false when there were enough
  void finish();
  // Keeps the first cause, and goes to kDraining.
  void fail(Status cause);
  bool settle(const TxnState& state);  // true: the transaction is decided
  void enter(UploadState state, TimePoint now);
  std::string label() const;  // "upload 'a'"
  TimePoint wake_of_work() const;
  std::vector<OpId> under_way() const;
  std::vector<OpId> memory_under_way() const;

  UploadOptions options_;
  OpIds ops_;
  UploadState state_ = UploadState::kPinning;
  bool started_ = false;
  TimePoint deadline_;
  TimePoint drain_deadline_ = TimePoint::never();
  WorkList pins_;
  std::vector<AnyBinding> bindings_;
  std::shared_ptr<const UploadJob> job_;
  std::optional<Task> begin_;
  std::optional<WorkList> puts_;
  uint32_t put_round_count_ = 0;
  std::map<RegionId, StoredObject> stored_;
  std::optional<Task> commit_;
  std::optional<Task> abort_;
  std::optional<WorkList> releases_;
  std::vector<size_t> pinned_;     // that may be, and have to be given back: numbers in options_.participants
  std::vector<bool> is_released_;  // of those
  std::optional<std::string> abort_request_;
  std::optional<Status> cause_;
  UploadOutcome outcome_;
};

}  // namespace crossdock
