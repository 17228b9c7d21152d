// Quarantine: goes on with what participants could not give back by the end of their drain, until it is given back or
// an operator has decided. It belongs to whoever owns the participant's ports, and outlives the participant's protocol.
//
// What was left is waited for in this order: operations that never completed, whose memory is theirs (R2); the grant,
// under which something may still land (I3); whether the target is active, which only an operator can say; the release.
// A process that restarts instead has other instances and grants: what was granted before it is gone with it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "executor/participant.h"
#include "executor/protocol.h"
#include "executor/work_list.h"

namespace crossdock {

struct QuarantineOptions {
  std::vector<Remains> remains;  // of participants that have finished, and had the same ports
  RetryOptions retry;            // the waits between tries; there is no last one
  uint64_t seed = 1;
};

// Driven over the ports of the participants, to whose queue late completions come. It finishes when nothing is left, or
// after request_stop().
class Quarantine : public Protocol {
 public:
  explicit Quarantine(QuarantineOptions options);

  void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) override;
  TimePoint wake_at() const override;
  bool finished() const override;
  std::string state() const override { return finished() ? "finished" : "holding"; }

  // The operator's word about a target that may be active: its pages are in use and stay as they are, or they are given
  // back. Takes effect at the next advance(). False when no such hold is left.
  bool decide(const HoldId& hold, bool is_active);
  // Nothing is tried any more; it finishes once nothing of its own is under way.
  void request_stop() { is_stopped_ = true; }

  // What is left, with what it still waits for.
  std::vector<Remains> left() const;

 private:
  // Its operations have numbers of their own, so that they are told apart from those of the participants, which count
  // from 1.
  static constexpr uint64_t kFirstOp = uint64_t{1} << 62;

  struct Entry {
    Remains remains;
    std::set<OpId> awaited;
    std::optional<WorkList> revoke;
    std::optional<WorkList> release;
    std::optional<bool> is_active;  // as the operator said
    bool is_over = false;
  };

  WorkList cleanup(uint64_t number) const;
  void post_due(WorkList& list, const PostCall& call, TimePoint now, std::vector<Post>& posts);
  void step(Entry& entry, TimePoint now, std::vector<Post>& posts);

  QuarantineOptions options_;
  std::vector<Entry> entries_;
  uint64_t op_count_ = 0;
  bool is_stopped_ = false;
};

}  // namespace crossdock
