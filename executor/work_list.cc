#include "executor/work_list.h"

#include <algorithm>

// Each unit is in exactly one place: not yet posted (from next_unit_ on), again_, later_, offered_, under way, or
// ended. That is what makes "done" and "over" mean all units, and each operation end once (I6).
namespace crossdock {

WorkList::WorkList(std::vector<uint64_t> bytes, const WindowLimits& window, const RetryOptions& retry, uint64_t seed)
    : bytes_(std::move(bytes)),
      attempts_(bytes_.size(), 0),
      may_have_happened_(bytes_.size(), false),
      window_(window),
      retry_(retry),
      rng_(seed) {}

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

bool WorkList::may_try_again(size_t unit, Code code) const {
  if (insists_) return !ends_cleanup(code);
  return may_pass(code) && attempts_[unit] < retry_.attempt_count_max;
}

std::optional<WorkList::Ended> WorkList::complete(const Completion& completion, TimePoint now) {
  const auto found = under_way_.find(completion.op);
  if (found == under_way_.end()) return std::nullopt;
  const size_t unit = found->second;
  under_way_.erase(found);
  window_.leave(bytes_[unit]);
  const Code code = completion.status.code();
  // R1: nothing happened, and a completion makes room. It may be one of another list or another operation, which shares
  // the queue, so without any of its own the unit comes again by time. No queue is full for so long that its own
  // deadline does not end it first.
  if (!completion.posted && code == Code::kResourceExhausted) {
    --attempts_[unit];
    ++refusal_count_;
    full_ = !under_way_.empty();
    if (full_)
      again_.push_front(unit);
    else
      later_.emplace(now + backoff(retry_, refusal_count_, rng_), unit);
    return Ended{unit, false};
  }
  full_ = false;
  refusal_count_ = 0;
  if (completion.status.ok() || code == Code::kOutcomeUnknown) may_have_happened_[unit] = true;
  if (completion.status.ok()) {
    ++done_count_;
    done_bytes_ += bytes_[unit];
    return Ended{unit, true};
  }
  if (may_try_again(unit, code)) {
    later_.emplace(now + backoff(retry_, attempts_[unit], rng_), unit);
  } else if (!failure_ && !(stopped_ && code == Code::kCancelled)) {
    // A unit that was cancelled on purpose has not failed.
    failure_.emplace(unit, completion.status);
  }
  return Ended{unit, false};
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
  refusal_count_ = 0;
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

// Units in again_ need no time: they wait for room, which a completion brings. So does one that was offered and not
// posted yet, which comes before all others.
TimePoint WorkList::wake_at() const {
  if (is_ended() || full_ || offered_ || later_.empty()) return TimePoint::never();
  return later_.begin()->first;
}

}  // namespace crossdock
