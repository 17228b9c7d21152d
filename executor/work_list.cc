#include "executor/work_list.h"

#include <algorithm>

// Each unit is in exactly one place: not yet posted (from next_unit_ on), again_, later_, offered_, under way, or
// ended. That is what makes "done" and "over" mean all units, and each operation end once (I6).
namespace crossdock {

WorkList::WorkList(std::vector<uint64_t> bytes, const WindowLimits& window, const RetryOptions& retry, uint64_t seed)
    : bytes_(std::move(bytes)), attempts_(bytes_.size(), 0), window_(window), retry_(retry), rng_(seed) {}

// What has to be repeated comes before what is new: units then end in about the order that they were given in.
std::optional<size_t> WorkList::next(TimePoint now) {
  if (is_ended() || full_) return std::nullopt;
  if (offered_) return offered_;
  while (!later_.empty() && later_.begin()->first <= now) {
    again_.push_back(later_.begin()->second);
    later_.erase(later_.begin());
  }
  size_t unit = next_unit_;
  if (!again_.empty())
    unit = again_.front();
  else if (next_unit_ == bytes_.size())
    return std::nullopt;
  // The next unit waits for room even when a later one would fit, or a large unit might never get any.
  if (!window_.has_room(bytes_[unit])) return std::nullopt;
  if (again_.empty())
    ++next_unit_;
  else
    again_.pop_front();
  offered_ = unit;
  return unit;
}

// Entered here and not in next(): a caller may ask for a unit and not post it.
void WorkList::started(size_t unit, OpId op) {
  CHECK(offered_ == unit);
  offered_ = std::nullopt;
  window_.enter(bytes_[unit]);
  ++attempts_[unit];
  ++attempt_count_;
  CHECK(under_way_.emplace(op, unit).second);
}

std::optional<WorkList::Ended> WorkList::complete(const Completion& completion, TimePoint now) {
  const auto found = under_way_.find(completion.op);
  if (found == under_way_.end()) return std::nullopt;
  const size_t unit = found->second;
  under_way_.erase(found);
  window_.leave(bytes_[unit]);
  // R1: after kResourceExhausted a completion makes room. With nothing under way none would come, so the unit is tried
  // again by time.
  if (completion.posted || under_way_.empty()) full_ = false;
  if (completion.status.ok()) {
    ++done_count_;
    done_bytes_ += bytes_[unit];
    return Ended{unit, true};
  }
  // A refused post is no attempt as long as others are under way: their completions make room.
  if (!completion.posted && completion.status.code() == Code::kResourceExhausted && !under_way_.empty()) {
    --attempts_[unit];
    full_ = true;
    put_back(unit, now, true);
  } else if (may_pass(completion.status.code()) && attempts_[unit] < retry_.attempt_count_max) {
    put_back(unit, now, false);
  } else if (!failure_ && !(stopped_ && completion.status.code() == Code::kCancelled)) {
    // A unit that was cancelled on purpose has not failed.
    failure_.emplace(unit, completion.status);
  }
  return Ended{unit, false};
}

void WorkList::put_back(size_t unit, TimePoint now, bool at_once) {
  if (at_once)
    again_.push_front(unit);
  else
    later_.emplace(now + backoff(retry_, attempts_[unit], rng_), unit);
}

// Only between rounds: nothing is under way, and no failure was for good.
void WorkList::restart() {
  CHECK(under_way_.empty());
  again_.clear();
  later_.clear();
  offered_ = std::nullopt;
  next_unit_ = 0;
  done_count_ = 0;
  done_bytes_ = 0;
  full_ = false;
  std::fill(attempts_.begin(), attempts_.end(), 0);
}

bool WorkList::over() const {
  const bool nothing_left = next_unit_ == bytes_.size() && again_.empty() && later_.empty() && !offered_;
  return quiet() && (is_ended() || nothing_left);
}

bool WorkList::is_under_way(size_t unit) const {
  return std::any_of(under_way_.begin(), under_way_.end(), [&](const auto& each) { return each.second == unit; });
}

std::vector<OpId> WorkList::under_way() const {
  std::vector<OpId> ops;
  for (const auto& [op, unit] : under_way_) ops.push_back(op);
  return ops;
}

// Units in again_ need no time: they wait for room, which a completion brings.
TimePoint WorkList::wake_at() const {
  if (is_ended() || full_ || later_.empty()) return TimePoint::never();
  return later_.begin()->first;
}

}  // namespace crossdock
