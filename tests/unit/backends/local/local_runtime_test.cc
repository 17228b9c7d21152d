#include "backends/local/local_runtime.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "executor/transfer_job.h"
#include "tests/support/small_transfer.h"

namespace crossdock::testing {
namespace {

HoldId hold_of(const BindingPointer& binding, const char* attempt) {
  return HoldId{OperationId("op"), AttemptId(attempt), (*binding)->participant};
}

class LocalRuntimeTest : public ::testing::Test {
 protected:
  LocalRuntimeTest() {
    for (const BindingPointer& binding : transfer_.source.bindings) add(Role::kSource, binding);
    for (const BindingPointer& binding : transfer_.target.bindings) add(Role::kTarget, binding);
  }
  void add(Role role, const BindingPointer& binding) {
    RegionMemory& memory = memory_.emplace_back();
    ASSERT_TRUE(memory.add(**binding).ok());
    runtime_.add(role, binding, memory);
  }

  SmallTransfer transfer_;
  std::deque<RegionMemory> memory_;
  MemoryRegistry registry_;
  LocalRuntime runtime_{registry_};
};

// Two transfers read one source: the end of the first must not unregister what the second reads.
TEST_F(LocalRuntimeTest, ASourceIsPinnedForEachOperationByItself) {
  const BindingPointer& binding = transfer_.source.bindings[0];
  const size_t regions = region_keys(**binding).size();
  ASSERT_TRUE(runtime_.hold(Role::kSource, hold_of(binding, "a")).ok());
  ASSERT_TRUE(runtime_.hold(Role::kSource, hold_of(binding, "b")).ok());
  EXPECT_EQ(registry_.size(), regions);
  EXPECT_EQ(runtime_.release(Role::kSource, hold_of(binding, "a")), Status());
  EXPECT_EQ(registry_.size(), regions) << "the other one reads it still";
  EXPECT_EQ(runtime_.state(Role::kSource, (*binding)->participant), LocalRuntime::State::kHeld);
  EXPECT_EQ(runtime_.release(Role::kSource, hold_of(binding, "b")), Status());
  EXPECT_EQ(registry_.size(), 0u);
}

// One region of several cannot be registered; the others are as before.
TEST_F(LocalRuntimeTest, AHoldThatFailsLeavesNothingBehind) {
  const BindingPointer& binding = transfer_.target.bindings[0];
  const std::vector<RegionKey> keys = region_keys(**binding);
  ASSERT_GE(keys.size(), 2u);
  std::array<std::byte, 8> bytes = {};
  ASSERT_TRUE(registry_.add(keys.back(), bytes).ok());
  EXPECT_EQ(runtime_.hold(Role::kTarget, hold_of(binding, "a")).status().code(), Code::kConflict);
  EXPECT_EQ(registry_.size(), 1u);
  registry_.remove(keys.back());
  ASSERT_TRUE(runtime_.hold(Role::kTarget, hold_of(binding, "b")).ok());
  EXPECT_EQ(runtime_.release(Role::kTarget, hold_of(binding, "b")), Status());
  EXPECT_EQ(registry_.size(), 0u) << "nothing was counted twice";
}

TEST_F(LocalRuntimeTest, AnotherAttemptMayReserveAfterTheFirstWasReleased) {
  const BindingPointer& binding = transfer_.target.bindings[0];
  ASSERT_TRUE(runtime_.hold(Role::kTarget, hold_of(binding, "a")).ok());
  EXPECT_EQ(runtime_.hold(Role::kTarget, hold_of(binding, "b")).status().code(), Code::kConflict);
  EXPECT_EQ(runtime_.release(Role::kTarget, hold_of(binding, "a")), Status());
  EXPECT_TRUE(runtime_.hold(Role::kTarget, hold_of(binding, "b")).ok());
}

TEST_F(LocalRuntimeTest, AValidationThatThrowsIsARefusal) {
  const BindingPointer& binding = transfer_.target.bindings[0];
  runtime_.set_validate([](const ParticipantId&) -> Status { throw std::runtime_error("the engine is gone"); });
  ASSERT_TRUE(runtime_.hold(Role::kTarget, hold_of(binding, "a")).ok());
  EXPECT_EQ(runtime_.validate(hold_of(binding, "a")),
            Status(Code::kInvalidArgument, "validation threw: the engine is gone"));
}

// It may wait for a device, so it must not hold up the thread that posts (R1).
TEST_F(LocalRuntimeTest, R1_AValidationRunsOnAThreadOfThePool) {
  const BindingPointer& binding = transfer_.target.bindings[0];
  LocalQueue queue;
  ThreadPool pool(1, 4);
  std::mutex gate;
  std::unique_lock closed(gate);
  runtime_.set_validate([&](const ParticipantId&) {
    const std::lock_guard open(gate);
    return Status();
  });
  LocalRuntimePort port(runtime_, Role::kTarget, pool, queue);
  std::array<Completion, 1> out;
  ASSERT_EQ(port.post_reserve(OpId(1), hold_of(binding, "a")), Status());
  ASSERT_EQ(queue.wait(out, TimePoint::never()), 1u);
  ASSERT_EQ(port.post_validate(OpId(2), hold_of(binding, "a")), Status()) << "returns while the gate is closed";
  EXPECT_EQ(queue.wait(out, queue.now()), 0u);
  closed.unlock();
  ASSERT_EQ(queue.wait(out, TimePoint::never()), 1u);
  EXPECT_EQ(out[0].op, OpId(2));
  EXPECT_EQ(out[0].status, Status());
}

}  // namespace
}  // namespace crossdock::testing
