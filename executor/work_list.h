// Work list: units of work (copies, puts, gets) that are posted through a window, each again after a failure that may
// pass. The caller numbers the units; the list keeps which are waiting, under way and done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "base/time.h"
#include "executor/ids.h"
#include "executor/ports.h"
#include "executor/retry.h"
#include "executor/window.h"

namespace crossdock {

class WorkList {
 public:
  // `bytes` of each unit. The order is that in which they are posted first.
  WorkList(std::vector<uint64_t> bytes, const WindowLimits& window, const RetryOptions& retry, uint64_t seed);

  // The next unit to post, which the caller posts under the id it gives to started(). Empty when there is none now.
  std::optional<size_t> next(TimePoint now);
  void started(size_t unit, OpId op);

  // The unit whose operation it was; empty when it is none of this list. A failure that may pass puts the unit back,
  // until its attempts are used up; the first failure for good is failure(). A post that was refused for want of room
  // is no attempt.
  struct Ended {
    size_t unit;
    bool done;
  };
  // O(log of the operations under way).
  std::optional<Ended> complete(const Completion& completion, TimePoint now);

  // No more is posted from now on. What is under way still completes.
  void stop() { stopped_ = true; }
  // The other units are posted although one has failed for good.
  void keep_going() { keeps_going_ = true; }
  // The units clean up: they are tried again until stop(), after every failure that does not end it (ends_cleanup()).
  void insist() { insists_ = true; }
  // Puts all units back, those that were done too, for another round.
  void restart();

  // All units were done.
  bool done() const { return done_count_ == bytes_.size(); }
  // Nothing is under way.
  bool quiet() const { return under_way_.empty(); }
  // Nothing is under way, and nothing will be posted any more.
  bool over() const;
  const std::optional<std::pair<size_t, Status>>& failure() const { return failure_; }
  bool is_under_way(size_t unit) const;
  // False: what the unit asks for has definitely not happened. R4: an operation with unknown outcome may have.
  bool may_have_happened(size_t unit) const { return may_have_happened_[unit] || is_under_way(unit); }
  std::vector<OpId> under_way() const;
  bool owns(OpId op) const { return under_way_.contains(op); }
  // When next() may have something although nothing completed.
  TimePoint wake_at() const;

  size_t done_count() const { return done_count_; }
  uint64_t done_bytes() const { return done_bytes_; }
  uint64_t attempt_count() const { return attempt_count_; }
  size_t unit_count() const { return bytes_.size(); }

 private:
  bool is_ended() const { return stopped_ || (failure_ && !keeps_going_); }
  bool may_try_again(size_t unit, Code code) const;

  std::vector<uint64_t> bytes_;
  std::vector<uint32_t> attempts_;
  std::vector<bool> may_have_happened_;
  Window window_;
  RetryOptions retry_;
  Rng rng_;
  size_t next_unit_ = 0;                          // those from here on were never posted
  std::deque<size_t> again_;                      // to post at once
  std::set<std::pair<TimePoint, size_t>> later_;  // to post at a time
  std::map<OpId, size_t> under_way_;
  std::optional<size_t> offered_;
  bool full_ = false;           // the port refused: wait for a completion
  uint32_t refusal_count_ = 0;  // in a row
  bool stopped_ = false;
  bool keeps_going_ = false;
  bool insists_ = false;
  size_t done_count_ = 0;
  uint64_t done_bytes_ = 0;
  uint64_t attempt_count_ = 0;
  std::optional<std::pair<size_t, Status>> failure_;
};

}  // namespace crossdock
