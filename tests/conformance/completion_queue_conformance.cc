#include "tests/conformance/completion_queue_conformance.h"

#include <array>

namespace crossdock::testing {
namespace {

const PeerId kSelf("self");

Completion completion_of(uint64_t op) { return Completion{OpId(op), Status(), std::monostate(), true}; }

TEST_P(CompletionQueueConformance, R8_ReturnsNothingOnlyWhenTheDeadlineIsThere) {
  CompletionQueue& queue = *backend_->join(kSelf).queue;
  std::array<Completion, 4> out;
  EXPECT_EQ(queue.wait(out, TimePoint()), 0u);
  EXPECT_EQ(queue.wait(out, TimePoint::from_ns(INT64_MIN)), 0u);
  for (const int64_t ahead_ns :
       {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{100'000}, int64_t{2'000'000}}) {
    for (int i = 0; i < 20; ++i) {
      const TimePoint deadline = queue.now() + Duration::from_ns(ahead_ns);
      EXPECT_EQ(queue.wait(out, deadline), 0u);
      EXPECT_GE(queue.now(), deadline);
    }
  }
}

TEST_P(CompletionQueueConformance, R8_WhatIsThereIsTakenThoughTheDeadlineHasPassed) {
  CompletionQueue& queue = *backend_->join(kSelf).queue;
  std::array<Completion, 4> out;
  for (const TimePoint deadline :
       {TimePoint(), queue.now(), queue.now() + Duration::from_s(3600), TimePoint::never()}) {
    backend_->complete(kSelf, completion_of(7));
    ASSERT_EQ(queue.wait(out, deadline), 1u);
    EXPECT_EQ(out[0].op, OpId(7));
  }
  EXPECT_EQ(queue.wait(out, TimePoint()), 0u);
}

TEST_P(CompletionQueueConformance, R7_WakesForACompletionOfAnotherThread) {
  CompletionQueue& queue = *backend_->join(kSelf).queue;
  const std::array<TimePoint, 2> deadlines = {TimePoint::never(), queue.now() + Duration::from_s(3600)};
  for (uint64_t i = 1; i <= 200; ++i) {
    Meeting begun(*backend_, 2);  // so that it comes just before, during or after the beginning of the wait
    const auto complete = [&] {
      begun.arrive_and_wait();
      backend_->complete(kSelf, completion_of(i));
    };
    const auto wait = [&] {
      begun.arrive_and_wait();
      std::array<Completion, 2> out;
      EXPECT_EQ(queue.wait(out, deadlines[i % 2]), 1u);
      EXPECT_EQ(out[0].op, OpId(i));
    };
    backend_->run_together({complete, wait});
  }
}

TEST_P(CompletionQueueConformance, R7_HandsOutNoMoreThanThereIsRoomForAndLosesNothing) {
  CompletionQueue& queue = *backend_->join(kSelf).queue;
  for (uint64_t op = 1; op <= 10; ++op) backend_->complete(kSelf, completion_of(op));
  std::array<Completion, 4> out;
  uint64_t next = 1;
  while (next <= 10) {
    const size_t count = queue.wait(std::span(out).first(3), TimePoint::never());
    ASSERT_GE(count, 1u);
    ASSERT_LE(count, 3u);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(out[i].op, OpId(next++));
    EXPECT_EQ(out[3].op, OpId());
  }
  EXPECT_EQ(queue.wait(out, TimePoint()), 0u);
}

TEST_P(CompletionQueueConformance, R7_KeepsTheOrderOfEachThread) {
  constexpr uint64_t kThreadCount = 4;
  constexpr uint64_t kEach = 500;
  CompletionQueue& queue = *backend_->join(kSelf).queue;
  Bodies bodies;
  for (uint64_t thread = 0; thread < kThreadCount; ++thread)
    bodies.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEach; ++i) backend_->complete(kSelf, completion_of(thread * kEach + i));
    });
  std::array<Completion, 7> out;
  bodies.emplace_back([&] {
    std::array<uint64_t, kThreadCount> next = {};
    for (uint64_t left = kThreadCount * kEach; left > 0;) {
      const size_t count = queue.wait(out, TimePoint::never());
      ASSERT_GE(count, 1u);
      for (size_t i = 0; i < count; ++i) {
        const uint64_t thread = out[i].op.value() / kEach;
        EXPECT_EQ(out[i].op.value() % kEach, next[thread]++);
      }
      left -= count;
    }
  });
  backend_->run_together(bodies);
  EXPECT_EQ(queue.wait(out, TimePoint()), 0u);
}

TEST_P(CompletionQueueConformance, EachParticipantHasItsOwn) {
  CompletionQueue& queue = *backend_->join(kSelf).queue;
  CompletionQueue& other = *backend_->join(PeerId("other")).queue;
  backend_->complete(kSelf, Completion{OpId(3), Status(Code::kIo, "why"), TxnState{TxnId("t"), {}, {}, 5}, true});
  std::array<Completion, 2> out;
  EXPECT_EQ(other.wait(out, TimePoint()), 0u);
  ASSERT_EQ(queue.wait(out, TimePoint::never()), 1u);
  EXPECT_EQ(out[0].status, Status(Code::kIo, "why"));
  EXPECT_EQ(std::get<TxnState>(out[0].result), (TxnState{TxnId("t"), {}, {}, 5}));
}

TEST_P(CompletionQueueConformance, TimeDoesNotGoBack) {
  CompletionQueue& queue = *backend_->join(kSelf).queue;
  TimePoint last = queue.now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = queue.now();
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_LT(last, TimePoint::never());
}

}  // namespace
}  // namespace crossdock::testing
