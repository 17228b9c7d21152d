// The protocols of a live transfer without any world: every single deviation from the plain order at every point, many
// pairs of them, and random orders. After each run the invariants I1 to I6 hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/small_transfer.h"

namespace crossdock::testing {
namespace {

struct Ran {
  size_t step_count = 0;
  bool activated = false;
  Status status;
};

// I4: pages that are held are quarantined by name, what was given back is not held, and nothing is quarantined without
// a doubt: an operation that never completed, or an answer that was lost.
void check_pages(const ParticipantOutcome& own, const RuntimeState& runtime) {
  EXPECT_TRUE(runtime.held.empty() || own.quarantined) << own.cause.message();
  EXPECT_FALSE(own.released && !runtime.held.empty()) << own.cause.message();
  EXPECT_FALSE(own.released && own.quarantined);
  EXPECT_TRUE(!own.quarantined || !runtime.held.empty() || !own.lost.empty() || own.quarantined->may_be_active)
      << own.cause.message();
}

// What has to hold after any run.
void check_invariants(SmallTransfer& transfer, const StepWorld& world, const std::set<PeerId>& dead = {}) {
  for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
  const TransferOutcome& outcome = transfer.coordinator->outcome();
  bool all_active = true;
  for (size_t i = 0; i < transfer.targets.size(); ++i) {
    const ParticipantId& participant = (*transfer.target.bindings[i])->participant;
    const RuntimeState& runtime = world.runtime(Role::kTarget, participant);
    const ParticipantOutcome& own = transfer.targets[i]->outcome();
    all_active &= runtime.activations == 1;
    EXPECT_LE(runtime.activations, 1);
    // I1, I5: what is active is right; nothing else was touched.
    if (runtime.activations > 0) {
      EXPECT_TRUE(outcome.activate) << "I5: a target is active against the decision";
      EXPECT_EQ(wrong_items(transfer.target, i), "") << "I1";
    }
    if (dead.contains(target_peer(participant))) continue;
    // I4: what was reserved is active, was given back, or is quarantined by name; and each says so.
    const bool may_be_active = own.quarantined && own.quarantined->may_be_active;
    EXPECT_TRUE(may_be_active || own.activated == (runtime.activations == 1));
    check_pages(own, runtime);
    if (runtime.reserves > 0 && runtime.activations == 0 && !own.quarantined) {
      EXPECT_TRUE(own.released && runtime.releases == 1) << own.cause.message();
      EXPECT_FALSE(own.cause.ok()) << "a failure says why";
    }
    EXPECT_FALSE(own.quarantined && own.cause.ok());
  }
  for (size_t i = 0; i < transfer.writers.size(); ++i) {
    const ParticipantId& participant = (*transfer.source.bindings[i])->participant;
    if (dead.contains(source_peer(participant))) continue;
    const RuntimeState& runtime = world.runtime(Role::kSource, participant);
    const ParticipantOutcome& own = transfer.writers[i]->outcome();
    check_pages(own, runtime);
  }
  if (dead.contains(PeerId("coordinator"))) return;
  EXPECT_TRUE(!outcome.status().ok() || all_active) << "success means that every target is active";
  EXPECT_TRUE(outcome.activate || !outcome.cause.ok());
}

Ran run(const std::vector<ScheduledDeviation>& deviations, uint64_t chaos = 0, uint64_t seed = 1,
        const PartitionSizes& from = {.tp = 2}, const PartitionSizes& to = {.pp = 2}) {
  SmallTransfer transfer(from, to, true, 5, seed);
  StepWorld world(seed);
  transfer.join(world);
  world.run(deviations, chaos);
  check_invariants(transfer, world);
  return Ran{world.step_count(), transfer.coordinator->outcome().status().ok(),
             transfer.coordinator->outcome().status()};
}

TEST(Transfer, InThePlainOrderEveryTargetIsActiveAndEveryByteRight) {
  for (const bool checksum : {false, true}) {
    SmallTransfer transfer({.tp = 4}, {.pp = 2, .tp = 2}, checksum, 9);
    StepWorld world;
    transfer.join(world);
    world.run({});
    check_invariants(transfer, world);
    ASSERT_TRUE(transfer.coordinator->outcome().status().ok()) << transfer.coordinator->outcome().status().message();
    EXPECT_EQ(transfer.coordinator->outcome().activated_count, 4u);
    // 2 layers x 2 components x 4 heads x 2 bytes x 9 tokens.
    EXPECT_EQ(transfer.coordinator->outcome().bytes, 288u);
    EXPECT_EQ(wrong_items(transfer.target), "");
  }
}

constexpr DeviationKinds kKinds = {6, true};

TEST(Transfer, EachSingleDeviationAtEachPointKeepsTheInvariants) {
  const Ran plain = run({});
  ASSERT_TRUE(plain.activated) << plain.status.message();
  size_t run_count = 0;
  size_t activated_count = 0;
  for (size_t step = 0; step < plain.step_count; ++step)
    for (const ScheduledDeviation& deviation : deviations_at(step, kKinds)) {
      SCOPED_TRACE(deviation.to_text());
      const Ran ran = run({deviation});
      ++run_count;
      activated_count += ran.activated;
      // What may pass is tried again: one failure does not end a transfer.
      const bool may_end_it = deviation.what == Deviation::kTimePasses || deviation.what == Deviation::kNever;
      EXPECT_TRUE(ran.activated || may_end_it) << ran.status.message();
      if (::testing::Test::HasFailure()) return;
    }
  EXPECT_GT(run_count, 500u);
  EXPECT_LT(activated_count, run_count) << "a held operation or a deadline must have ended some of them";
}

TEST(Transfer, PairsOfDeviationsKeepTheInvariants) {
  const size_t step_count = run({}).step_count;
  Rng rng(7);
  for (int i = 0; i < 3000; ++i) {
    const std::vector<ScheduledDeviation> pair = draw_two_deviations(rng, step_count, kKinds);
    SCOPED_TRACE(pair[0].to_text() + ", " + pair[1].to_text());
    run(pair);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Transfer, RandomOrdersLossesAndFailuresKeepTheInvariants) {
  size_t activated_count = 0;
  constexpr uint64_t kRuns = 2000;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const uint64_t chaos = 10 * (1 + seed % 10);
    const bool wide = seed % 3 == 0;
    activated_count += run({}, chaos, seed, wide ? PartitionSizes{.tp = 4} : PartitionSizes{.pp = 2},
                           wide ? PartitionSizes{.pp = 2} : PartitionSizes{.tp = 2})
                           .activated;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(activated_count, kRuns / 10);
  EXPECT_LT(activated_count, kRuns);
}

// Any participant dies at any point; what it posted before may still happen.
TEST(Transfer, ADeathOfAnyParticipantAtEachPointEndsInAnAbortOrAnActivationThatIsRight) {
  const size_t step_count = run({}).step_count;
  const std::vector<PeerId> peers = {PeerId("source/p0-t0"), PeerId("source/p0-t1"), PeerId("target/p0-t0"),
                                     PeerId("target/p1-t0"), PeerId("coordinator")};
  for (const PeerId& peer : peers)
    for (size_t at = 0; at < step_count; ++at) {
      SCOPED_TRACE(fmt::format("'{}' dies before step {}", peer.text(), at));
      SmallTransfer transfer;
      StepWorld world(at);
      transfer.join(world);
      world.before_step = [&](size_t step) {
        if (step == at) world.kill(peer);
      };
      world.run({});
      check_invariants(transfer, world, {peer});
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(Transfer, ACopyThatFailsForGoodAbortsAndIsNamed) {
  SmallTransfer transfer;
  StepWorld world;
  transfer.join(world);
  // Case U43: every write over the path fails, and the request was answered with what was in the pages before.
  world.before_step = [&](size_t) {
    for (const BindingPointer& binding : transfer.source.bindings)
      for (const RegionKey& key : region_keys(**binding)) world.memory().remove(key);
  };
  world.run({});
  check_invariants(transfer, world);
  const TransferOutcome& outcome = transfer.coordinator->outcome();
  EXPECT_FALSE(outcome.activate);
  EXPECT_EQ(outcome.activated_count, 0u);
  EXPECT_NE(outcome.cause.message().find("source 'p0-t"), std::string::npos) << outcome.cause.message();
  EXPECT_NE(outcome.cause.message().find("is not registered"), std::string::npos) << outcome.cause.message();
}

TEST(Transfer, BytesThatChangeOnTheWayAreFoundByTheirChecksum) {
  SmallTransfer transfer;
  StepWorld world;
  transfer.join(world);
  bool flipped = false;
  world.before_step = [&](size_t) {
    for (size_t i = 0; i < transfer.writers.size(); ++i)
      if (!flipped && transfer.writers[i]->transfer_state() == TransferState::kReporting)
        for (auto& [id, bytes] : *transfer.target.bytes[0])
          for (std::byte& byte : bytes)
            if (!flipped && byte != std::byte{0xa5}) byte ^= std::byte{1}, flipped = true;
  };
  world.run({});
  ASSERT_TRUE(flipped);
  EXPECT_FALSE(transfer.coordinator->outcome().activate);
  EXPECT_EQ(transfer.coordinator->outcome().cause.code(), Code::kDataLoss);
  for (const auto& target : transfer.targets) EXPECT_FALSE(target->outcome().activated);
}

TEST(Transfer, ARuntimeThatRefusesWhatHasComeKeepsEveryTargetInactive) {
  SmallTransfer transfer;
  StepWorld world;
  transfer.join(world);
  const_cast<RuntimeState&>(world.runtime(Role::kTarget, ParticipantId("p1-t0"))).refuses_validation = true;
  world.run({});
  check_invariants(transfer, world);
  EXPECT_FALSE(transfer.coordinator->outcome().activate);
  EXPECT_NE(transfer.coordinator->outcome().cause.message().find("does not like it"), std::string::npos);
}

TEST(Transfer, AnAbortBeforeTheCopiesGivesAllPinsBackAtOnce) {
  // Case U37: the transfer is refused before it begins; the pins of the source stayed for minutes.
  SmallTransfer transfer;
  StepWorld world;
  transfer.join(world);
  const TimePoint begin = world.now();
  world.before_step = [&](size_t step) {
    if (step == 1) transfer.coordinator->request_abort("the request was cancelled");
  };
  world.run({});
  check_invariants(transfer, world);
  EXPECT_EQ(transfer.coordinator->outcome().cause.message(), "the request was cancelled");
  EXPECT_LT((world.now() - begin).ns(), Duration::from_s(60).ns()) << "no participant waited for a deadline";
}

TEST(Transfer, ASilentWriterIsNamedAtTheDeadline) {
  SmallTransfer transfer;
  StepWorld world;
  transfer.join(world);
  world.before_step = [&](size_t) {
    if (transfer.writers[1]->transfer_state() == TransferState::kExecuting) world.kill(PeerId("source/p0-t1"));
  };
  world.run({});
  check_invariants(transfer, world, {PeerId("source/p0-t1")});
  const std::string& message = transfer.coordinator->outcome().cause.message();
  EXPECT_NE(message.find("has no receipt of 'p0-t1'"), std::string::npos) << message;
  EXPECT_EQ(message.find("receipt of 'p0-t0'"), std::string::npos) << message;
}

TEST(Transfer, PagesOfAnAbortedTransferAreGivenBackOnlyWhenNothingLandsInThemAnyMore) {
  // Case U35: a request is aborted while writes are under way; its pages were given to the next request, and the late
  // writes landed there.
  const size_t step_count = run({}).step_count;
  size_t aborted_count = 0;
  for (size_t at = 0; at < step_count; ++at) {
    SCOPED_TRACE(fmt::format("abort before step {}, and the oldest copy is late", at));
    SmallTransfer transfer;
    StepWorld world(at);
    transfer.join(world);
    world.before_step = [&](size_t step) {
      if (step == at) transfer.coordinator->request_abort("the request was aborted");
      for (const BindingPointer& binding : transfer.target.bindings) {
        for (const HoldId& hold : world.runtime(Role::kTarget, (*binding)->participant).released)
          EXPECT_FALSE(world.memory()
                           .write_access_all(region_keys(**binding), grant_id(hold, (*binding)->instance), nullptr)
                           .ok())
              << hold.to_text() << " was given back and can be written";
      }
    };
    world.run({{at, Deviation::kNever, 0}});
    check_invariants(transfer, world);
    aborted_count += !transfer.coordinator->outcome().activate;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(aborted_count, step_count / 2);
}

TEST(Transfer, RepliesOfAnEarlierOperationOrAnEarlierLifeCountForNothing) {
  // Case U41: one of the workers failed, and the next call took its late replies for its own.
  SmallTransfer transfer;
  CoordinatorOptions options;
  options.operation = OperationId("second");
  options.attempt = AttemptId("attempt 1");
  options.instance = InstanceId("coordinator");
  options.planner = transfer.coordinator_options.planner;
  for (const BindingPointer& binding : transfer.source.bindings)
    options.sources.push_back({(*binding)->participant, source_peer((*binding)->participant)});
  for (const BindingPointer& binding : transfer.target.bindings)
    options.targets.push_back({(*binding)->participant, target_peer((*binding)->participant)});
  Coordinator coordinator(options);
  std::vector<Post> posts;
  coordinator.advance(TimePoint(), {}, posts);
  const char* attempt = "attempt 1";
  const auto ready = [&] {
    return ReadyBody{coordinator.job() == nullptr ? Sha256Digest() : coordinator.job()->digest, 1};
  };
  const auto hear = [&](const char* operation, const PeerIdentity& identity, MessageBody body) {
    OpId receive;
    for (const Post& post : posts)
      if (std::holds_alternative<RecvPost>(post.call)) receive = post.op;
    posts.clear();
    const Completion completion{receive, Status(),
                                Message{OperationId(operation), AttemptId(attempt), identity, std::move(body)}, true};
    coordinator.advance(TimePoint(), std::span(&completion, 1), posts);
  };
  const auto each_side = [&](const char* operation) {
    for (const auto& [role, bindings] :
         {std::pair(Role::kSource, &transfer.source.bindings), std::pair(Role::kTarget, &transfer.target.bindings)})
      for (const BindingPointer& binding : *bindings) {
        hear(operation, identity_of(**binding), FailureBody{role, Status(Code::kIo, "of the first operation"), false});
        hear(operation, identity_of(**binding), ExportBody{role, binding});
        hear(operation, identity_of(**binding), ready());
        hear(operation, identity_of(**binding), DoneBody{role, PagesEnd::kActive});
      }
  };
  each_side("first");
  attempt = "attempt 0";
  each_side("second");
  attempt = "attempt 1";
  EXPECT_EQ(coordinator.state(), "collecting exports");
  EXPECT_EQ(coordinator.job(), nullptr);

  for (const auto& [role, bindings] :
       {std::pair(Role::kSource, &transfer.source.bindings), std::pair(Role::kTarget, &transfer.target.bindings)})
    for (const BindingPointer& binding : *bindings) hear("second", identity_of(**binding), ExportBody{role, binding});
  ASSERT_EQ(coordinator.state(), "collecting reports");
  // An earlier life of each target says that it is ready.
  for (const BindingPointer& binding : transfer.target.bindings) {
    PeerIdentity earlier = identity_of(**binding);
    earlier.instance = InstanceId("an earlier one");
    hear("second", earlier, ready());
    hear("second", earlier, FailureBody{Role::kTarget, Status(Code::kIo, "of an earlier life"), false});
  }
  EXPECT_EQ(coordinator.state(), "collecting reports");
  for (const BindingPointer& binding : transfer.target.bindings) hear("second", identity_of(**binding), ready());
  EXPECT_EQ(coordinator.state(), "telling the decision");
}

}  // namespace
}  // namespace crossdock::testing
