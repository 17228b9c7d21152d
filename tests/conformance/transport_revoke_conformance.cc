// R6: what a revoke promises, whichever participants copy meanwhile.
#include <algorithm>
#include <atomic>

#include "tests/conformance/transport_conformance.h"

namespace crossdock::testing {
namespace {

TEST_P(TransportConformance, R6_AfterARevokeNoWriteLandsUnderThatGrant) {
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
    const std::shared_ptr<const Grant> granted = grant({target.key});
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
          const Status status = writers[i]->run(CopyPost{granted, steps}).status;
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
      EXPECT_EQ(owner.run(RevokePost{{granted->id}}).status, Status());
      is_revoked = true;
      seen = target.copy();  // no lock: nothing may write there any more
    });
    backend_->run_together(bodies);
    EXPECT_EQ(target.copy(), seen);
    for (size_t i = 0; i < kWriterCount; ++i)
      EXPECT_EQ(writers[i]->run(copy_of(copy_steps(*sources[i], target, {plain_step(0, 0, 1)}))).status.code(),
                Code::kConflict);
    EXPECT_EQ(target.copy(), seen);
    expect_guards();
  }
}

TEST_P(HeldAccessConformance, R6_ARevokeWaitsForEveryAccess) {
  Participant& owner = join("owner");
  Region& target = region("target", 64);
  Region& other = region("other", 64);
  std::shared_ptr<void> first = backend_->hold(grant({target.key})->id, target.key);
  std::shared_ptr<void> second = backend_->hold(grant({target.key})->id, target.key);
  ASSERT_NE(first, nullptr);
  const OpId revoke = owner.post(revoke_of(target.key));
  // Others that were posted later complete, so it has had its chance.
  const auto others_pass = [&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(owner.run(revoke_of(other.key)).status, Status());
  };
  others_pass();
  EXPECT_TRUE(owner.is_under_way(revoke));
  first.reset();
  others_pass();
  EXPECT_TRUE(owner.is_under_way(revoke));
  second.reset();
  EXPECT_EQ(owner.take(revoke).status, Status());
}

// Two participants of one instance share a region: each has a grant of its own.
TEST_P(TransportConformance, R6_EachGrantOfTheSameBytesEndsByItself) {
  Participant& writer = join("writer");
  Region& source = region("source", 16);
  Region& target = region("target", 16);
  const auto give = [&](const char* id) {
    const GrantRequest request{GrantId(id), {{target.key, Range(0, 16)}}, {InstanceId("instance")}};
    return std::make_shared<const Grant>(result_of<Grant>(writer.run(GrantPost{request})));
  };
  const auto first = give("first");
  const auto second = give("second");
  const auto copy_under = [&](const std::shared_ptr<const Grant>& granted) {
    return writer.run(CopyPost{granted, copy_steps(source, target, {plain_step(0, 0, 16)})}).status.code();
  };
  EXPECT_EQ(copy_under(first), Code::kOk);
  EXPECT_EQ(copy_under(second), Code::kOk);
  EXPECT_EQ(writer.run(RevokePost{{first->id}}).status, Status());
  EXPECT_EQ(copy_under(first), Code::kConflict);
  EXPECT_EQ(copy_under(second), Code::kOk);
  EXPECT_EQ(copy_under(std::make_shared<const Grant>(Grant{GrantId("third"), {}})), Code::kConflict);
}

TEST_P(TransportConformance, AGrantIsWhatItSays) {
  Participant& writer = join("writer");
  Region& source = region("source", 32);
  Region& target = region("target", 32);
  const GrantRequest request{GrantId("part"), {{target.key, Range(8, 24)}}, {InstanceId("instance")}};
  const auto granted = std::make_shared<const Grant>(result_of<Grant>(writer.run(GrantPost{request})));
  EXPECT_EQ(granted->id, request.id);
  const auto copy_to = [&](uint64_t offset, uint64_t bytes) {
    return writer.run(CopyPost{granted, copy_steps(source, target, {plain_step(0, offset, bytes)})}).status.code();
  };
  EXPECT_EQ(copy_to(8, 16), Code::kOk);
  EXPECT_EQ(copy_to(7, 16), Code::kInvalidArgument);
  EXPECT_EQ(copy_to(9, 16), Code::kInvalidArgument);
  // R4: the same again is the same grant; another one of its name is not given.
  EXPECT_EQ(writer.run(GrantPost{request}).status, Status());
  GrantRequest other = request;
  other.ranges.front().bytes = Range(0, 32);
  EXPECT_EQ(writer.run(GrantPost{other}).status.code(), Code::kConflict);
  other = request;
  other.writers = {InstanceId("another instance")};
  EXPECT_EQ(writer.run(GrantPost{other}).status.code(), Code::kConflict);
  EXPECT_EQ(copy_to(0, 8), Code::kInvalidArgument) << "and changes nothing";
  const GrantRequest outside{GrantId("outside"), {{target.key, Range(0, 33)}}, {}};
  EXPECT_EQ(writer.run(GrantPost{outside}).status.code(), Code::kInvalidArgument);
  const GrantRequest unknown{GrantId("unknown"), {{region_key("unknown"), Range(0, 1)}}, {}};
  EXPECT_EQ(writer.run(GrantPost{unknown}).status.code(), Code::kNotFound);
  expect_guards();
}

// A revoke may overtake the grant whose answer was lost.
TEST_P(TransportConformance, R6_ARevokedGrantIsNotGivenAgain) {
  Participant& owner = join("owner");
  Region& target = region("target", 16);
  const GrantRequest request{GrantId("late"), {{target.key, Range(0, 16)}}, {InstanceId("instance")}};
  EXPECT_EQ(owner.run(RevokePost{{request.id}}).status, Status());
  EXPECT_EQ(owner.run(GrantPost{request}).status.code(), Code::kConflict);
  EXPECT_EQ(owner.run(RevokePost{{request.id, true}}).status, Status());
}

TEST_P(TransportConformance, R4_ARevokeThatIsRepeatedIsOkAgain) {
  constexpr size_t kCount = 3;
  Region& target = region("target", 64);
  const RevokePost revoke = revoke_of(target.key);
  std::vector<Participant*> owners;
  for (size_t i = 0; i < kCount; ++i) owners.push_back(&join("owner" + std::to_string(i)));
  Bodies bodies;
  for (Participant* owner : owners)
    bodies.emplace_back([&, owner] {
      for (int i = 0; i < 10; ++i) EXPECT_EQ(owner->run(revoke).status, Status());
    });
  backend_->run_together(bodies);
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
    const CopyPost post = copy_of(copy_steps(source, target, {plain_step(0, 0, kBytes)}));
    Bodies bodies = {[&] {
      const OpId copy = writer.post(post);
      pause();
      writer.ports().transport->cancel(copy);
      const Code code = writer.take(copy).status.code();
      EXPECT_TRUE(code == Code::kOk || code == Code::kConflict || code == Code::kCancelled);
    }};
    for (Participant* owner : owners)
      bodies.emplace_back([&, owner] {
        pause();
        EXPECT_EQ(owner->run(RevokePost{{post.grant->id}}).status, Status());
      });
    backend_->run_together(bodies);
    if (HasFailure()) return;
  }
}

TEST_P(TransportConformance, TheOwnerMayLookAtRevokedMemory) {
  Participant& owner = join("owner");
  Region& source = region("source", 64);
  Region& target = region("target", 64);
  Rng rng(3);
  std::ranges::copy(random_bytes(rng, 64), target.bytes().begin());
  ASSERT_EQ(owner.run(revoke_of(target.key)).status, Status());
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
