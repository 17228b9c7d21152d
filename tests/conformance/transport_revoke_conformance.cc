// R6: what a revoke promises, whichever participants copy meanwhile.
#include <algorithm>
#include <atomic>

#include "tests/conformance/transport_conformance.h"

namespace crossdock::testing {
namespace {

TEST_P(TransportConformance, R6_AfterARevokeNoWriteLandsUnderThatKey) {
  constexpr size_t kWriterCount = 4;
  constexpr int kRoundCount = 20;
  constexpr uint64_t kShareBytes = uint64_t{64} << 10;  // of each writer
  open({.worker_count = 3});
  Participant& owner = join("owner");
  std::vector<Participant*> writers;
  std::vector<Region*> sources;
  for (size_t i = 0; i < kWriterCount; ++i) {
    writers.push_back(&join("writer" + std::to_string(i)));
    sources.push_back(&region("source" + std::to_string(i), kShareBytes));
  }
  for (int round = 1; round <= kRoundCount; ++round) {
    Region& target = region("target", kWriterCount * kShareBytes, static_cast<uint64_t>(round));
    Meeting begun(*backend_, kWriterCount + 1);
    std::atomic<bool> is_revoked = false;
    Bodies bodies;
    for (size_t i = 0; i < kWriterCount; ++i) {
      bodies.emplace_back([&, i] {
        std::byte value{0};
        bool is_first = true;
        while (true) {
          // No other body uses this source, and no copy of it is under way.
          value = static_cast<std::byte>(static_cast<uint8_t>(value) + 1);
          std::ranges::fill(sources[i]->bytes(), value);
          const StepSpan steps = copy_steps(*sources[i], target, {plain_step(0, i * kShareBytes, kShareBytes)});
          const bool is_late = is_revoked;
          const Status status = writers[i]->run(CopyPost{steps}).status;
          if (std::exchange(is_first, false)) begun.arrive_and_wait();
          if (status.ok() && !is_late) continue;
          EXPECT_EQ(status.code(), Code::kConflict) << status.message();
          return;
        }
      });
    }
    Bytes seen;
    bodies.emplace_back([&] {
      begun.arrive_and_wait();
      EXPECT_EQ(owner.run(RevokePost{target.key}).status, Status());
      is_revoked = true;
      seen = target.copy();  // no lock: nothing may write there any more
    });
    backend_->run_together(bodies);
    EXPECT_EQ(target.copy(), seen);
    for (size_t i = 0; i < kWriterCount; ++i)
      EXPECT_EQ(writers[i]->run(CopyPost{copy_steps(*sources[i], target, {plain_step(0, 0, 1)})}).status.code(),
                Code::kConflict);
    EXPECT_EQ(target.copy(), seen);
    expect_guards();
  }
}

TEST_P(HeldAccessConformance, R6_ARevokeWaitsForEveryAccess) {
  Participant& owner = join("owner");
  Region& target = region("target", 64);
  Region& other = region("other", 64);
  std::shared_ptr<void> first = backend_->hold(target.key);
  std::shared_ptr<void> second = backend_->hold(target.key);
  ASSERT_NE(first, nullptr);
  const OpId revoke = owner.post(RevokePost{target.key});
  // Others that were posted later complete, so it has had its chance.
  const auto others_pass = [&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(owner.run(RevokePost{other.key}).status, Status());
  };
  others_pass();
  EXPECT_TRUE(owner.is_under_way(revoke));
  first.reset();
  others_pass();
  EXPECT_TRUE(owner.is_under_way(revoke));
  second.reset();
  EXPECT_EQ(owner.take(revoke).status, Status());
}

TEST_P(TransportConformance, R6_EachGrantOfTheSameBytesEndsByItself) {
  Participant& writer = join("writer");
  Region& source = region("source", 16);
  Region& target = region("target", 16, 1);
  const RegionKey next = region_key("target", 2);
  ASSERT_EQ(backend_->add_memory(next, target.bytes()), Status());
  const auto copy_under = [&](const RegionKey& key) {
    return writer.run(CopyPost{steps_between({source.key}, {key}, {plain_step(0, 0, 16)})}).status.code();
  };
  EXPECT_EQ(copy_under(target.key), Code::kOk);
  EXPECT_EQ(copy_under(next), Code::kOk);
  EXPECT_EQ(writer.run(RevokePost{target.key}).status, Status());
  EXPECT_EQ(copy_under(target.key), Code::kConflict);
  EXPECT_EQ(copy_under(next), Code::kOk);
  EXPECT_EQ(copy_under(region_key("target", 3)), Code::kNotFound);
  EXPECT_FALSE(backend_->add_memory(target.key, target.bytes()).ok()) << "an epoch is used once";
}

TEST_P(TransportConformance, R4_ARevokeThatIsRepeatedIsOkAgain) {
  constexpr size_t kCount = 3;
  Region& target = region("target", 64);
  std::vector<Participant*> owners;
  for (size_t i = 0; i < kCount; ++i) owners.push_back(&join("owner" + std::to_string(i)));
  Bodies bodies;
  for (Participant* owner : owners)
    bodies.emplace_back([&, owner] {
      for (int i = 0; i < 10; ++i) EXPECT_EQ(owner->run(RevokePost{target.key}).status, Status());
    });
  backend_->run_together(bodies);
  EXPECT_EQ(owners[0]->run(RevokePost{region_key("unknown")}).status.code(), Code::kNotFound);
}

TEST_P(TransportConformance, R1_RevokesAndACancelAtTheSameTimeAllComplete) {
  constexpr int kRoundCount = 40;
  constexpr size_t kOwnerCount = 3;
  constexpr uint64_t kBytes = uint64_t{256} << 10;
  Participant& writer = join("writer");
  Region& source = region("source", kBytes);
  std::vector<Participant*> owners;
  for (size_t i = 0; i < kOwnerCount; ++i) owners.push_back(&join("owner" + std::to_string(i)));
  for (int round = 1; round <= kRoundCount; ++round) {
    Region& target = region("target", kBytes, static_cast<uint64_t>(round));
    const auto pause = [&] {  // so that it comes before, during or after the copy
      for (int i = 0; i < round; ++i) backend_->pause();
    };
    Bodies bodies = {[&] {
      const OpId copy = writer.post(CopyPost{copy_steps(source, target, {plain_step(0, 0, kBytes)})});
      pause();
      writer.ports().transport->cancel(copy);
      const Code code = writer.take(copy).status.code();
      EXPECT_TRUE(code == Code::kOk || code == Code::kConflict || code == Code::kCancelled);
    }};
    for (Participant* owner : owners)
      bodies.emplace_back([&, owner] {
        pause();
        EXPECT_EQ(owner->run(RevokePost{target.key}).status, Status());
      });
    backend_->run_together(bodies);
    if (HasFailure()) return;
  }
}

TEST_P(TransportConformance, R6_AfterARevokeNothingIsReadUnderThatKey) {
  constexpr int kRoundCount = 40;
  constexpr uint64_t kBytes = uint64_t{256} << 10;
  Participant& owner = join("owner");
  Participant& writer = join("writer");
  for (int round = 1; round <= kRoundCount; ++round) {
    Region& source = region("source", kBytes, static_cast<uint64_t>(round));
    Region& target = region("target", kBytes, static_cast<uint64_t>(round));
    std::ranges::fill(source.bytes(), std::byte{1});
    const auto copy = [&] {
      const StepSpan steps = copy_steps(source, target, {plain_step(0, 0, kBytes)});
      const Status status = writer.run(CopyPost{steps}).status;
      EXPECT_TRUE(status.ok() || status.code() == Code::kConflict) << status.message();
    };
    const auto revoke = [&] {
      for (int i = 0; i < round; ++i) backend_->pause();
      EXPECT_EQ(owner.run(RevokePost{source.key}).status, Status());
      std::ranges::fill(source.bytes(), std::byte{2});  // no lock: nothing reads there after the revoke
    };
    backend_->run_together({copy, revoke});
    EXPECT_EQ(std::ranges::count(target.bytes(), std::byte{2}), 0) << "round " << round;
    if (HasFailure()) return;
  }
}

TEST_P(TransportConformance, TheOwnerMayLookAtRevokedMemory) {
  Participant& owner = join("owner");
  Region& source = region("source", 64);
  Region& target = region("target", 64);
  Rng rng(3);
  std::ranges::copy(random_bytes(rng, 64), target.bytes().begin());
  ASSERT_EQ(owner.run(RevokePost{target.key}).status, Status());
  const StepSpan steps = copy_steps(source, target, {plain_step(0, 5, 50)});
  EXPECT_EQ(result_of<StepsChecksum>(owner.run(ChecksumPost{steps, StepEnd::kTarget})).crc32c,
            naive_crc32c(target.bytes().subspan(5, 50)));
  const StepSpan outside = copy_steps(source, target, {plain_step(0, 15, 50)});
  EXPECT_EQ(owner.run(ChecksumPost{outside, StepEnd::kTarget}).status.code(), Code::kInvalidArgument);
  const StepSpan unknown = steps_between({source.key}, {region_key("unknown")}, {plain_step(0, 0, 1)});
  EXPECT_EQ(owner.run(ChecksumPost{unknown, StepEnd::kTarget}).status.code(), Code::kNotFound);
}

}  // namespace
}  // namespace crossdock::testing
