// Windows, retries and work lists: random ports against a model that says which unit may be posted when, then each rule
// by an example.
#include "executor/work_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

namespace crossdock::testing {
namespace {

TimePoint at_ms(int64_t ms) { return TimePoint::from_ns(0) + Duration::from_ms(ms); }

Completion completion_of(OpId op, Code code, bool posted = true) {
  Completion completion;
  completion.op = op;
  if (code != Code::kOk) completion.status = Status(code, "made to fail");
  completion.posted = posted;
  return completion;
}

Completion refusal_of(OpId op) { return completion_of(op, Code::kResourceExhausted, false); }

// What a list may do, unit by unit.
class Model {
 public:
  Model(std::vector<uint64_t> bytes, const WindowLimits& window, const RetryOptions& retry)
      : units_(bytes.size()), window_(window), retry_(retry) {
    for (size_t i = 0; i < bytes.size(); ++i) units_[i].bytes = bytes[i];
  }

  void posted(size_t unit, OpId op, TimePoint now) {
    Unit& own = units_[unit];
    EXPECT_EQ(own.where, Where::kWaiting) << "unit " << unit;
    EXPECT_LE(own.not_before, now) << "unit " << unit;
    EXPECT_FALSE(is_full_) << "a port that refused has room after a completion";
    EXPECT_FALSE(ended()) << "nothing is posted any more";
    const uint64_t others = bytes_under_way();
    EXPECT_LT(ops_.size(), window_.operation_count_max);
    EXPECT_TRUE(ops_.empty() || others + own.bytes <= window_.bytes_max);
    if (own.attempts == 0 && !own.was_refused) {
      EXPECT_EQ(unit, first_posted_++) << "in order";
    }
    own.where = Where::kUnderWay;
    ++own.attempts;
    EXPECT_LE(own.attempts, retry_.attempt_count_max) << "unit " << unit;
    ops_[op] = unit;
  }

  // Whether the list has to have something to post.
  bool has_to_offer(TimePoint now) const {
    if (ended() || is_full_) return false;
    bool any = false;
    bool all_fit = true;
    for (const Unit& unit : units_) {
      if (unit.where != Where::kWaiting || unit.not_before > now) continue;
      any = any || unit.latest <= now;
      const bool fits =
          ops_.empty() || (ops_.size() < window_.operation_count_max && bytes_under_way() < window_.bytes_max &&
                           bytes_under_way() + unit.bytes <= window_.bytes_max);
      all_fit = all_fit && fits;
    }
    return any && all_fit;
  }

  void completed(const Completion& completion, TimePoint now) {
    const size_t unit = ops_.at(completion.op);
    ops_.erase(completion.op);
    Unit& own = units_[unit];
    const bool is_refusal = !completion.posted && completion.status.code() == Code::kResourceExhausted;
    if (completion.posted || ops_.empty()) is_full_ = false;
    if (!is_refusal) refusals_ = 0;
    if (completion.status.ok()) {
      own.where = Where::kDone;
      return;
    }
    own.where = Where::kWaiting;
    if (is_refusal) {
      --own.attempts;
      own.was_refused = true;
      ++refusals_;
      is_full_ = !ops_.empty();
      if (!is_full_) wait(own, refusals_, now);
    } else if (may_pass(completion.status.code()) && own.attempts < retry_.attempt_count_max) {
      wait(own, own.attempts, now);
    } else {
      own.where = Where::kFailed;
      if (!failure) failure = completion.status.code();
    }
  }

  void stop() { stopped_ = true; }
  void keep_going() { keeps_going_ = true; }
  bool ended() const { return stopped_ || (failure && !keeps_going_); }
  size_t done_count() const { return count(Where::kDone); }
  size_t failed_count() const { return count(Where::kFailed); }
  uint64_t done_bytes() const {
    uint64_t bytes = 0;
    for (const Unit& unit : units_) bytes += unit.where == Where::kDone ? unit.bytes : 0;
    return bytes;
  }
  std::vector<OpId> under_way() const {
    std::vector<OpId> ops;
    for (const auto& [op, unit] : ops_) ops.push_back(op);
    return ops;
  }
  // When each unit that waits may be posted at the latest.
  TimePoint all_may_be_posted_at() const {
    TimePoint latest;
    for (const Unit& unit : units_)
      if (unit.where == Where::kWaiting) latest = std::max(latest, unit.latest);
    return latest;
  }
  std::optional<Code> failure;

 private:
  enum class Where { kWaiting, kUnderWay, kDone, kFailed };
  struct Unit {
    uint64_t bytes = 0;
    Where where = Where::kWaiting;
    uint32_t attempts = 0;
    bool was_refused = false;
    TimePoint not_before;
    TimePoint latest;
  };

  void wait(Unit& unit, uint32_t attempts, TimePoint now) const {
    int64_t wait = retry_.backoff_first.ns();
    for (uint32_t i = 1; i < attempts; ++i) wait = std::min(wait * 2, retry_.backoff_max.ns());
    unit.not_before = now + Duration::from_ns(wait / 2);
    unit.latest = now + Duration::from_ns(wait);
  }
  size_t count(Where where) const {
    return static_cast<size_t>(
        std::count_if(units_.begin(), units_.end(), [&](const Unit& unit) { return unit.where == where; }));
  }
  uint64_t bytes_under_way() const {
    uint64_t bytes = 0;
    for (const auto& [op, unit] : ops_) bytes += units_[unit].bytes;
    return bytes;
  }

  std::vector<Unit> units_;
  WindowLimits window_;
  RetryOptions retry_;
  std::map<OpId, size_t> ops_;
  size_t first_posted_ = 0;
  uint32_t refusals_ = 0;  // in a row
  bool is_full_ = false;
  bool stopped_ = false;
  bool keeps_going_ = false;
};

struct Chances {  // of 100
  uint64_t refused = 0;
  uint64_t may_pass = 0;
  uint64_t for_good = 0;
  uint64_t stop = 0;
};

// Drives a list to its end; returns how many units were done.
size_t drive_randomly(uint64_t seed, const Chances& chances) {
  Rng rng(seed);
  std::vector<uint64_t> bytes(rng.below(12));
  for (uint64_t& each : bytes) each = rng.below(9);
  const WindowLimits window{1 + rng.below(4), 1 + rng.below(16)};
  RetryOptions retry;
  retry.attempt_count_max = static_cast<uint32_t>(1 + rng.below(4));
  retry.backoff_first = Duration::from_ms(4);
  retry.backoff_max = Duration::from_ms(10);
  WorkList list(bytes, window, retry, seed);
  Model model(bytes, window, retry);
  if (rng.chance(1, 4)) list.keep_going(), model.keep_going();
  TimePoint now = at_ms(5);
  uint64_t last_op = 0;
  std::vector<std::pair<OpId, size_t>> under_way;
  for (int steps = 0; !list.over(); ++steps) {
    if (steps == 5000) {
      ADD_FAILURE() << "it never ends";
      return 0;
    }
    const bool has_to_offer = model.has_to_offer(now);
    const std::optional<size_t> unit = list.next(now);
    EXPECT_TRUE(unit || !has_to_offer);
    if (unit) {
      EXPECT_EQ(list.next(now), unit) << "the offer stands";
      under_way.emplace_back(OpId(++last_op), *unit);
      list.started(*unit, OpId(last_op));
      model.posted(*unit, OpId(last_op), now);
      if (!rng.chance(1, 3)) continue;  // more are posted before anything is heard
    }
    if (rng.chance(chances.stop, 100)) list.stop(), model.stop();
    if (under_way.empty()) {
      if (unit) continue;
      if (list.over()) break;
      // Nothing else can happen: time goes on, and it does not stand still.
      EXPECT_GT(list.wake_at(), now);
      EXPECT_LE(list.wake_at(), model.all_may_be_posted_at());
      now = list.wake_at();
      if (::testing::Test::HasFailure()) return 0;
      continue;
    }
    if (!unit) {
      EXPECT_GT(list.wake_at(), now) << "or a caller that waits for it would spin";
    }
    if (rng.chance(1, 4)) now = now + Duration::from_ms(static_cast<int64_t>(rng.below(6)));
    const size_t i = rng.below(under_way.size());
    const auto [op, ended_unit] = under_way[i];
    under_way.erase(under_way.begin() + static_cast<ptrdiff_t>(i));
    Completion completion = completion_of(op, Code::kOk);
    if (rng.chance(chances.refused, 100))
      completion = refusal_of(op);
    else if (rng.chance(chances.may_pass, 100))
      completion = completion_of(op, rng.chance(1, 2) ? Code::kUnavailable : Code::kOutcomeUnknown);
    else if (rng.chance(chances.for_good, 100))
      completion = completion_of(op, rng.chance(1, 2) ? Code::kConflict : Code::kIo);
    const std::optional<WorkList::Ended> ended = list.complete(completion, now);
    model.completed(completion, now);
    EXPECT_TRUE(ended && ended->unit == ended_unit && ended->done == completion.status.ok());
    EXPECT_FALSE(list.complete(completion, now).has_value()) << "it is none of the list's any more";
    EXPECT_EQ(list.done_count(), model.done_count());
    EXPECT_EQ(list.done_bytes(), model.done_bytes());
    EXPECT_EQ(list.done(), model.done_count() == bytes.size());
    EXPECT_EQ(list.under_way(), model.under_way());
    EXPECT_EQ(list.quiet(), model.under_way().empty());
    EXPECT_EQ(list.failure().has_value(), model.failure.has_value());
    EXPECT_TRUE(!model.failure || list.failure()->second.code() == *model.failure) << "the first one";
    if (::testing::Test::HasFailure()) return 0;
  }
  EXPECT_TRUE(model.ended() || model.done_count() + model.failed_count() == bytes.size());
  EXPECT_EQ(list.attempt_count(), last_op);
  return model.done_count();
}

TEST(WorkList, WithARandomPortPostsOnlyWhatItMayAndAllOfIt) {
  const std::vector<Chances> all = {
      {}, {.refused = 30}, {.refused = 90}, {.may_pass = 40}, {.for_good = 10}, {20, 20, 5, 0}, {20, 20, 0, 5}};
  std::vector<size_t> done(all.size());
  for (size_t i = 0; i < all.size(); ++i)
    for (uint64_t seed = 1; seed <= 2000; ++seed) {
      SCOPED_TRACE(fmt::format("chances {} seed {}", i, seed));
      done[i] += drive_randomly(seed, all[i]);
      if (::testing::Test::HasFailure()) return;
    }
  EXPECT_GT(done[0], done[3]);
  EXPECT_GT(done[0], done[5]);
  EXPECT_EQ(done[2], done[0]) << "a port that is full for long ends nothing";
}

// Others may keep the port full for longer than any number of attempts; the caller's deadline ends it.
TEST(WorkList, APortThatRefusesEverythingIsAskedAgainWithWaitsInBetween) {
  RetryOptions retry;
  retry.attempt_count_max = 3;
  retry.backoff_max = Duration::from_ms(1000);
  WorkList list({1, 1, 1, 1}, WindowLimits{4, 100}, retry, 1);
  TimePoint now;
  uint64_t op = 0;
  while (now < at_ms(60'000)) {
    std::vector<OpId> ops;
    while (const std::optional<size_t> unit = list.next(now)) {
      ops.emplace_back(++op);
      list.started(*unit, ops.back());
    }
    for (const OpId each : ops) list.complete(refusal_of(each), now);
    ASSERT_FALSE(list.failure().has_value());
    ASSERT_LT(op, 1000u) << "not in a busy loop";
    if (ops.empty()) now = list.wake_at();
  }
  EXPECT_GT(op, 60u) << "at least once a second";
  EXPECT_FALSE(list.may_have_happened(0));
  for (size_t done = 0; done < 4;) {
    const std::optional<size_t> unit = list.next(now);
    if (!unit) {
      now = list.wake_at();
      continue;
    }
    list.started(*unit, OpId(++op));
    list.complete(completion_of(OpId(op), Code::kOk), now);
    ++done;
  }
  EXPECT_TRUE(list.done());
}

TEST(WorkList, ARefusedPostIsNoAttempt) {
  RetryOptions retry;
  retry.attempt_count_max = 1;
  WorkList list({1, 1, 1}, WindowLimits{2, 100}, retry, 1);
  list.started(*list.next(at_ms(0)), OpId(1));
  list.started(*list.next(at_ms(0)), OpId(2));
  list.complete(refusal_of(OpId(2)), at_ms(0));
  EXPECT_FALSE(list.failure().has_value());
  EXPECT_FALSE(list.next(at_ms(1000)).has_value()) << "only after a completion";
  EXPECT_EQ(list.wake_at(), TimePoint::never());
  list.complete(completion_of(OpId(1), Code::kOk), at_ms(0));
  ASSERT_EQ(list.next(at_ms(0)), 1u) << "before those that were never posted";
  list.started(1, OpId(3));
  list.complete(refusal_of(OpId(3)), at_ms(0));
  EXPECT_FALSE(list.failure().has_value()) << "alone, it comes again by time";
  EXPECT_GT(list.wake_at(), at_ms(0));
}

TEST(WorkList, WhatEndedUnknownMayHaveHappenedAndWhatFailedHasNot) {
  RetryOptions retry;
  retry.attempt_count_max = 2;
  WorkList list({1, 1, 1, 1}, WindowLimits{4, 100}, retry, 1);
  list.keep_going();
  for (uint64_t op = 1; op <= 4; ++op) list.started(*list.next(at_ms(0)), OpId(op));
  EXPECT_TRUE(list.may_have_happened(0)) << "it is under way";
  list.complete(completion_of(OpId(1), Code::kUnavailable), at_ms(0));
  list.complete(completion_of(OpId(2), Code::kOutcomeUnknown), at_ms(0));
  list.complete(completion_of(OpId(3), Code::kOk), at_ms(0));
  list.complete(completion_of(OpId(4), Code::kIo), at_ms(0));
  EXPECT_FALSE(list.may_have_happened(0));
  EXPECT_TRUE(list.may_have_happened(1));
  EXPECT_TRUE(list.may_have_happened(2));
  EXPECT_FALSE(list.may_have_happened(3));
  // Its second attempt fails for good, and the first may have happened all the same.
  const TimePoint later = at_ms(10'000);
  std::map<size_t, OpId> again;
  while (const std::optional<size_t> unit = list.next(later)) {
    again[*unit] = OpId(10 + *unit);
    list.started(*unit, again[*unit]);
  }
  list.complete(completion_of(again.at(1), Code::kConflict), later);
  EXPECT_TRUE(list.may_have_happened(1));
}

TEST(WorkList, CleaningUpIsTriedAgainUntilItIsStopped) {
  RetryOptions retry;
  retry.attempt_count_max = 2;
  for (const Code code : {Code::kUnavailable, Code::kIo, Code::kOutcomeUnknown, Code::kDeadline}) {
    WorkList list({0}, WindowLimits{1, 1}, retry, 1);
    list.insist();
    TimePoint now;
    uint64_t op = 0;
    while (now < at_ms(30'000)) {
      const std::optional<size_t> unit = list.next(now);
      if (unit) {
        list.started(*unit, OpId(++op));
        list.complete(completion_of(OpId(op), code), now);
      }
      ASSERT_FALSE(list.failure().has_value());
      if (!unit) now = list.wake_at();
    }
    EXPECT_GT(op, 29u);
    list.stop();
    EXPECT_TRUE(list.over());
  }
  WorkList list({0}, WindowLimits{1, 1}, retry, 1);
  list.insist();
  list.started(*list.next(TimePoint()), OpId(1));
  list.complete(completion_of(OpId(1), Code::kConflict), TimePoint());
  EXPECT_EQ(list.failure()->second.code(), Code::kConflict) << "repeating does not help";
}

TEST(WorkList, AUnitIsTriedAgainUntilItsAttemptsAreUsedUp) {
  RetryOptions retry;
  retry.attempt_count_max = 4;
  WorkList list({1}, WindowLimits{}, retry, 1);
  TimePoint now = at_ms(0);
  for (uint64_t attempt = 1; attempt <= 4; ++attempt) {
    ASSERT_EQ(list.next(now), 0u) << attempt;
    list.started(0, OpId(attempt));
    list.complete(completion_of(OpId(attempt), Code::kUnavailable), now);
    ASSERT_FALSE(list.next(now).has_value()) << "not at once";
    if (attempt < 4) now = list.wake_at();
  }
  EXPECT_EQ(list.failure(), std::pair(size_t{0}, Status(Code::kUnavailable, "made to fail")));
  EXPECT_EQ(list.wake_at(), TimePoint::never());
  EXPECT_EQ(list.attempt_count(), 4u);
}

TEST(WorkList, AFailureThatDoesNotPassIsFinalAtOnceAndTheFirstOneIsKept) {
  WorkList list({1, 1, 1}, WindowLimits{2, 100}, RetryOptions{}, 1);
  list.started(*list.next(at_ms(0)), OpId(1));
  list.started(*list.next(at_ms(0)), OpId(2));
  list.complete(completion_of(OpId(2), Code::kDataLoss), at_ms(0));
  EXPECT_EQ(list.failure()->first, 1u);
  EXPECT_FALSE(list.next(at_ms(0)).has_value()) << "no more is begun";
  EXPECT_FALSE(list.over());
  list.complete(completion_of(OpId(1), Code::kIo), at_ms(0));
  EXPECT_EQ(list.failure()->second.code(), Code::kDataLoss);
  EXPECT_TRUE(list.over());
}

TEST(WorkList, ThatKeepsGoingPostsTheOthersAlthoughOneHasFailed) {
  WorkList list({1, 1, 1}, WindowLimits{1, 100}, RetryOptions{}, 1);
  list.keep_going();
  for (uint64_t op = 1; op <= 3; ++op) {
    ASSERT_EQ(list.next(at_ms(0)), op - 1);
    list.started(op - 1, OpId(op));
    list.complete(completion_of(OpId(op), op == 1 ? Code::kIo : Code::kOk), at_ms(0));
  }
  EXPECT_TRUE(list.over());
  EXPECT_FALSE(list.done());
  EXPECT_EQ(list.done_count(), 2u);
  EXPECT_EQ(list.failure()->first, 0u);
}

TEST(WorkList, AfterAStopNothingIsPostedAndWhatIsUnderWayStillCounts) {
  WorkList list({3, 4, 5}, WindowLimits{2, 100}, RetryOptions{}, 1);
  list.started(*list.next(at_ms(0)), OpId(1));
  list.started(*list.next(at_ms(0)), OpId(2));
  list.complete(completion_of(OpId(1), Code::kUnavailable), at_ms(0));
  list.stop();
  EXPECT_FALSE(list.next(at_ms(10'000)).has_value());
  EXPECT_EQ(list.wake_at(), TimePoint::never());
  EXPECT_FALSE(list.over());
  EXPECT_TRUE(list.is_under_way(1));
  EXPECT_FALSE(list.is_under_way(0));
  list.complete(completion_of(OpId(2), Code::kOk), at_ms(0));
  EXPECT_EQ(list.done_bytes(), 4u);
  EXPECT_TRUE(list.over());
  EXPECT_FALSE(list.failure().has_value());
}

TEST(WorkList, AnOperationThatWasCancelledAfterAStopIsNoFailure) {
  WorkList list({1}, WindowLimits{}, RetryOptions{}, 1);
  list.started(*list.next(at_ms(0)), OpId(1));
  list.stop();
  list.complete(completion_of(OpId(1), Code::kCancelled), at_ms(0));
  EXPECT_FALSE(list.failure().has_value());
}

TEST(WorkList, ARestartPutsAllUnitsBackWithAllTheirAttempts) {
  RetryOptions retry;
  retry.attempt_count_max = 2;
  WorkList list({3, 4}, WindowLimits{}, retry, 1);
  uint64_t op = 0;
  TimePoint now = at_ms(0);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(list.done_count(), 0u);
    for (const size_t unit : {size_t{0}, size_t{1}}) {
      ASSERT_EQ(list.next(now), unit);
      list.started(unit, OpId(++op));
      list.complete(completion_of(OpId(op), Code::kUnavailable), now);
      now = list.wake_at();
      ASSERT_EQ(list.next(now), unit);
      list.started(unit, OpId(++op));
      list.complete(completion_of(OpId(op), Code::kOk), now);
    }
    EXPECT_TRUE(list.done());
    EXPECT_EQ(list.done_bytes(), 7u);
    list.restart();
  }
}

TEST(WorkList, OfNothingIsDoneFromTheBeginning) {
  WorkList list({}, WindowLimits{}, RetryOptions{}, 1);
  EXPECT_TRUE(list.done() && list.over() && list.quiet());
  EXPECT_FALSE(list.next(at_ms(0)).has_value());
  EXPECT_EQ(list.wake_at(), TimePoint::never());
}

TEST(Window, AnOperationThatIsLargerThanTheWindowGoesAlone) {
  Window window(WindowLimits{3, 10});
  EXPECT_TRUE(window.has_room(100));
  window.enter(100);
  EXPECT_FALSE(window.has_room(0));
  window.leave(100);
  window.enter(6);
  EXPECT_TRUE(window.has_room(4));
  EXPECT_FALSE(window.has_room(5));
  EXPECT_FALSE(window.has_room(UINT64_MAX));
  window.enter(1);
  window.enter(1);
  EXPECT_FALSE(window.has_room(1)) << "three operations";
  EXPECT_EQ(window.operation_count(), 3u);
  EXPECT_EQ(window.bytes(), 8u);
}

TEST(Retry, TheWaitDoublesUpToTheLargestAndARandomHalfOfItIsLeftOut) {
  RetryOptions options;
  options.backoff_first = Duration::from_ms(3);
  options.backoff_max = Duration::from_ms(20);
  const std::vector<int64_t> waits_ms = {3, 6, 12, 20, 20, 20};
  Rng rng(4);
  for (size_t i = 0; i < waits_ms.size(); ++i) {
    std::set<int64_t> seen;
    for (int times = 0; times < 200; ++times) {
      const int64_t ns = backoff(options, static_cast<uint32_t>(i + 1), rng).ns();
      EXPECT_GE(ns, waits_ms[i] * 500'000);
      EXPECT_LE(ns, waits_ms[i] * 1'000'000);
      seen.insert(ns);
    }
    EXPECT_GT(seen.size(), 100u) << "those who failed together do not come again together";
  }
  options.backoff_max = Duration::max();
  EXPECT_GT(backoff(options, UINT32_MAX, rng).ns(), 0) << "no wait wraps";
}

TEST(Retry, OnlyFailuresThatMayPassAreTriedAgain) {
  for (const Code code : {Code::kUnavailable, Code::kResourceExhausted, Code::kOutcomeUnknown})
    EXPECT_TRUE(may_pass(code));
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kIo, Code::kCancelled, Code::kDeadline,
                          Code::kConflict, Code::kQuota, Code::kDataLoss})
    EXPECT_FALSE(may_pass(code)) << code_name(code);
}

}  // namespace
}  // namespace crossdock::testing
