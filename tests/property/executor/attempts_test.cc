// What a second attempt, a lost answer, a long outage and another coordinator may not do. Each test is a fault that was
// shown to be there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "executor/quarantine.h"
#include "tests/support/small_transfer.h"

namespace crossdock::testing {
namespace {

bool is_call(const Post& post, RuntimeCall call) {
  const auto* runtime = std::get_if<RuntimePost>(&post.call);
  return runtime != nullptr && runtime->call == call;
}

template <class Body>
bool is_message(const SendPost& send) {
  return std::holds_alternative<Body>(send.message.body);
}

void expect_no_violations(const StepWorld& world) {
  for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
}

// Nothing is held, and `active` targets are.
void expect_runtimes(SmallTransfer& transfer, StepWorld& world, size_t active) {
  size_t count = 0;
  for (const BindingPointer& binding : transfer.source.bindings)
    EXPECT_TRUE(world.runtime(Role::kSource, (*binding)->participant).held.empty());
  for (const BindingPointer& binding : transfer.target.bindings) {
    const RuntimeState& runtime = world.runtime(Role::kTarget, (*binding)->participant);
    EXPECT_TRUE(runtime.held.empty());
    count += runtime.active.size();
  }
  EXPECT_EQ(count, active);
}

// P1: the operation is tried again in the same life of every process, and what the first attempt said comes late.
TEST(Attempts, WhatAnotherAttemptSaidCountsForNothing) {
  for (const bool checksum : {false, true}) {
    SmallTransfer first({.tp = 2}, {.pp = 2}, checksum, 5, 1, "attempt 1");
    StepWorld before;
    first.join(before);
    before.run({});
    ASSERT_TRUE(first.coordinator->outcome().status().ok());
    size_t step_count = 0;
    {
      SmallTransfer plain({.tp = 2}, {.pp = 2}, checksum, 5, 2, "attempt 2");
      StepWorld world;
      plain.join(world);
      world.run({});
      step_count = world.step_count();
    }
    for (size_t at = 0; at < step_count; ++at)
      for (const bool aborts : {false, true}) {
        SCOPED_TRACE(fmt::format("before step {}{}", at, aborts ? ", and the second attempt aborts" : ""));
        SmallTransfer second({.tp = 2}, {.pp = 2}, checksum, 5, 2, "attempt 2");
        StepWorld world;
        second.join(world);
        world.before_step = [&](size_t step) {
          if (step != at) return;
          if (aborts) second.coordinator->request_abort("asked to");
          for (const SendPost& late : before.sent()) world.inject(late);
        };
        world.run({});
        expect_no_violations(world);
        const TransferOutcome& outcome = second.coordinator->outcome();
        EXPECT_EQ(outcome.status().ok(), outcome.activate);
        expect_runtimes(second, world, outcome.activate ? 2 : 0);
        if (outcome.activate) {
          EXPECT_EQ(wrong_items(second.target), "");
        }
        EXPECT_TRUE(aborts || outcome.activate) << outcome.cause.message();
        if (::testing::Test::HasFailure()) return;
      }
  }
}

// P2: the answers of pins and reserves are lost for good; they have happened all the same.
TEST(Attempts, WhatMayBeHeldIsReleased) {
  for (const RuntimeCall call : {RuntimeCall::kPin, RuntimeCall::kReserve}) {
    SmallTransfer transfer;
    StepWorld world;
    transfer.join(world);
    world.fate_of = [&](const Post& post) {
      return is_call(post, call) ? StepWorld::Fate::kAnswerLost : StepWorld::Fate::kAsUsual;
    };
    world.run({});
    expect_no_violations(world);
    EXPECT_FALSE(transfer.coordinator->outcome().activate);
    expect_runtimes(transfer, world, 0);
    EXPECT_TRUE(transfer.coordinator->outcome().quarantined.empty());
  }
}

// P2: the answers of activations are lost for good. The targets may be active, so their pages are not given back.
TEST(Attempts, WhatMayBeActiveIsQuarantinedAndNamed) {
  for (const auto fate : {StepWorld::Fate::kAnswerLost, StepWorld::Fate::kFails}) {
    SmallTransfer transfer;
    StepWorld world;
    transfer.join(world);
    const bool happens = fate == StepWorld::Fate::kAnswerLost;
    world.fate_of = [&](const Post& post) {
      return is_call(post, RuntimeCall::kActivate) ? fate : StepWorld::Fate::kAsUsual;
    };
    world.run({});
    expect_no_violations(world);
    const TransferOutcome& outcome = transfer.coordinator->outcome();
    EXPECT_TRUE(outcome.activate);
    EXPECT_EQ(outcome.status().code(), Code::kOutcomeUnknown);
    EXPECT_NE(outcome.status().message().find(happens ? "target 'p0-t0' (it may be active)"
                                                      : "target 'p0-t0' (it could not be activated)"),
              std::string::npos)
        << outcome.status().message();
    expect_runtimes(transfer, world, happens ? 2 : 0);
    EXPECT_EQ(outcome.quarantined.size(), happens ? 2u : 0u);
    for (size_t i = 0; i < transfer.targets.size(); ++i) {
      const ParticipantOutcome& own = transfer.targets[i]->outcome();
      EXPECT_EQ(own.quarantined.has_value() && own.quarantined->may_be_active, happens);
      EXPECT_EQ(own.released, !happens);
      EXPECT_FALSE(own.cause.ok());
      EXPECT_EQ(world.runtime(Role::kTarget, (*transfer.target.bindings[i])->participant).releases, happens ? 0 : 1);
    }
  }
}

// P3: a runtime or a transport is busy for longer than any number of attempts, and for shorter than the drain.
TEST(Attempts, CleaningUpLastsAsLongAsTheDrain) {
  for (const bool releases : {false, true})
    for (const int64_t seconds : {10, 25, 1000}) {
      SCOPED_TRACE(fmt::format("{} are refused for {} s", releases ? "releases" : "revokes", seconds));
      SmallTransfer transfer;
      StepWorld world;
      transfer.join(world);
      std::optional<TimePoint> begin;
      world.fate_of = [&](const Post& post) {
        const bool is_this =
            releases ? is_call(post, RuntimeCall::kRelease) : std::holds_alternative<RevokePost>(post.call);
        if (!is_this) return StepWorld::Fate::kAsUsual;
        if (!begin) begin = world.now();
        return world.now() < *begin + Duration::from_s(seconds) ? StepWorld::Fate::kFails : StepWorld::Fate::kAsUsual;
      };
      world.run({});
      expect_no_violations(world);
      const TransferOutcome& outcome = transfer.coordinator->outcome();
      const bool passes = seconds < 30;
      // A target that cannot be fenced is not activated; a source that cannot be released changes no decision.
      EXPECT_EQ(outcome.activate, passes || releases) << outcome.cause.message();
      EXPECT_EQ(outcome.quarantined.empty(), passes);
      if (passes) {
        expect_runtimes(transfer, world, 2);
        continue;
      }
      for (const std::string& name : outcome.quarantined)
        EXPECT_EQ(name.substr(0, 6), releases ? "source" : "target") << name;
      const std::optional<Remains>& remains =
          releases ? transfer.writers[0]->outcome().quarantined : transfer.targets[0]->outcome().quarantined;
      ASSERT_TRUE(remains.has_value());
      EXPECT_EQ(remains->grant.has_value(), !releases) << "what was not revoked is named";
      EXPECT_FALSE(remains->may_be_active);
    }
}

// P3, P13: what a participant could not give back is given back later, by the quarantine.
TEST(Quarantined, WhatWasLeftIsGivenBackOnceItCanBe) {
  for (const bool releases : {false, true}) {
    SmallTransfer transfer;
    StepWorld world;
    transfer.join(world);
    bool is_out = true;
    world.fate_of = [&](const Post& post) {
      const bool is_this =
          releases ? is_call(post, RuntimeCall::kRelease) : std::holds_alternative<RevokePost>(post.call);
      return is_this && is_out ? StepWorld::Fate::kFails : StepWorld::Fate::kAsUsual;
    };
    world.run({});
    QuarantineOptions of_sources, of_targets;
    for (const auto& writer : transfer.writers)
      if (writer->outcome().quarantined) of_sources.remains.push_back(*writer->outcome().quarantined);
    for (const auto& target : transfer.targets)
      if (target->outcome().quarantined) of_targets.remains.push_back(*target->outcome().quarantined);
    EXPECT_EQ(of_sources.remains.size() + of_targets.remains.size(), 2u);
    // The world ends with its first run what was under way then, and has no queue for it any more.
    for (QuarantineOptions* each : {&of_sources, &of_targets})
      for (Remains& remains : each->remains) remains.operations.clear();
    // Another hour of it, and then it is over.
    const TimePoint end = world.now() + Duration::from_s(3600);
    world.before_step = [&](size_t) { is_out = world.now() < end; };
    Quarantine sources(of_sources), targets(of_targets);
    if (!of_sources.remains.empty()) world.add(PeerId("of sources"), Role::kSource, sources);
    if (!of_targets.remains.empty()) world.add(PeerId("of targets"), Role::kTarget, targets);
    world.run({});
    expect_no_violations(world);
    EXPECT_GE(world.now(), end);
    expect_runtimes(transfer, world, releases ? 2 : 0);
    EXPECT_TRUE(sources.left().empty() && targets.left().empty());
  }
}

TEST(Quarantined, LateOperationsAndTheOperatorAreWaitedFor) {
  const HoldId hold{OperationId("op"), AttemptId("attempt"), ParticipantId("p0-t0")};
  const auto advance = [](Quarantine& quarantine, const std::vector<Completion>& completions) {
    std::vector<Post> posts;
    quarantine.advance(TimePoint(), completions, posts);
    return posts;
  };
  const auto done = [](OpId op) { return Completion{op, Status(), std::monostate(), true}; };
  for (const bool is_active : {false, true}) {
    QuarantineOptions options;
    options.remains = {Remains{Role::kTarget, hold, GrantId("grant"), {OpId(7), OpId(9)}, true}};
    Quarantine quarantine(options);
    EXPECT_TRUE(advance(quarantine, {}).empty()) << "the memory is the operations' own (R2)";
    EXPECT_TRUE(advance(quarantine, {done(OpId(9))}).empty());
    EXPECT_EQ(quarantine.left().front().operations, std::vector<OpId>{OpId(7)});
    std::vector<Post> posts = advance(quarantine, {done(OpId(7))});
    ASSERT_EQ(posts.size(), 1u);
    EXPECT_EQ(std::get<RevokePost>(posts[0].call).request.id, GrantId("grant"));
    EXPECT_TRUE(advance(quarantine, {done(posts[0].op)}).empty()) << "only an operator knows";
    EXPECT_FALSE(quarantine.left().front().grant.has_value());
    HoldId other = hold;
    other.attempt = AttemptId("another");
    EXPECT_FALSE(quarantine.decide(other, is_active));
    EXPECT_TRUE(quarantine.decide(hold, is_active));
    posts = advance(quarantine, {});
    if (is_active) {
      EXPECT_TRUE(posts.empty()) << "pages that are in use are not given back";
    } else {
      ASSERT_EQ(posts.size(), 1u);
      EXPECT_EQ(std::get<RuntimePost>(posts[0].call).call, RuntimeCall::kRelease);
      EXPECT_FALSE(quarantine.finished());
      EXPECT_TRUE(advance(quarantine, {done(posts[0].op)}).empty());
    }
    EXPECT_TRUE(quarantine.finished() && quarantine.left().empty());
    EXPECT_FALSE(quarantine.decide(hold, is_active)) << "it is decided";
  }
}

TEST(Quarantined, ItCanBeStopped) {
  QuarantineOptions options;
  options.remains = {
      Remains{Role::kSource, HoldId{OperationId("op"), AttemptId("a"), ParticipantId("p")}, std::nullopt, {}, false}};
  Quarantine quarantine(options);
  std::vector<Post> posts;
  quarantine.advance(TimePoint(), {}, posts);
  ASSERT_EQ(posts.size(), 1u);
  quarantine.request_stop();
  EXPECT_FALSE(quarantine.finished()) << "its own release is under way";
  const Completion failed{posts[0].op, Status(Code::kUnavailable, "busy"), std::monostate(), true};
  posts.clear();
  quarantine.advance(TimePoint(), std::span(&failed, 1), posts);
  EXPECT_TRUE(posts.empty() && quarantine.finished());
  EXPECT_EQ(quarantine.left().size(), 1u) << "and what is left is said";
}

// P4: two targets of one instance share their regions; the one that is done first revokes.
TEST(Attempts, AParticipantsGrantEndsAlone) {
  // Regions are named by participant, and each binding has those of both.
  const auto shared = [] {
    auto transfer = std::make_unique<SmallTransfer>();
    std::vector<crossdock::Region> all;
    std::vector<RuntimeBinding> changed;
    RegionBytes named;
    for (size_t i = 0; i < 2; ++i) {
      RuntimeBinding& binding = changed.emplace_back(**transfer->target.bindings[i]);
      const auto own_name = [&](const RegionId& id) { return RegionId(binding.participant.text() + "/" + id.text()); };
      for (crossdock::Region& region : binding.regions) {
        named[own_name(region.id)] = transfer->target.bytes[i]->at(region.id);
        region.id = own_name(region.id);
        all.push_back(region);
      }
      for (View& view : binding.views) view.region = own_name(view.region);
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (size_t i = 0; i < 2; ++i) {
      changed[i].instance = InstanceId("decode");
      changed[i].regions = all;
      transfer->target.bindings[i] = std::make_shared<const Valid<RuntimeBinding>>(valid_or_die(std::move(changed[i])));
      *transfer->target.bytes[i] = named;
    }
    return transfer;
  };
  const auto run = [&](const std::vector<ScheduledDeviation>& deviations, uint64_t chaos, uint64_t seed) {
    const std::unique_ptr<SmallTransfer> transfer = shared();
    StepWorld world(seed);
    transfer->join(world);
    // One memory behind both.
    for (auto& [key, bytes] : world.runtime(Role::kTarget, (*transfer->target.bindings[1])->participant).regions)
      bytes = &transfer->target.bytes[0]->at(key.id);
    world.run(deviations, chaos);
    expect_no_violations(world);
    return transfer->coordinator->outcome().status();
  };
  // The second target's bytes come much later than the first one's end.
  for (size_t at = 0; at < 40; ++at) {
    SCOPED_TRACE(at);
    EXPECT_EQ(run({{at, Deviation::kTakeOther, 6}, {at + 1, Deviation::kTakeOther, 6}}, 0, 1), Status());
  }
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_EQ(run({}, 1, seed).code(), Code::kOk);
    if (::testing::Test::HasFailure()) return;
  }
}

// P7: a queue that others keep full for longer than any number of attempts.
TEST(Attempts, AQueueThatOthersFillIsNoFailure) {
  SmallTransfer transfer;
  StepWorld world;
  transfer.join(world);
  const TimePoint full = world.now() + Duration::from_s(20);
  world.fate_of = [&](const Post& post) {
    return world.now() < full && !std::holds_alternative<SendPost>(post.call) ? StepWorld::Fate::kRefused
                                                                              : StepWorld::Fate::kAsUsual;
  };
  world.run({});
  expect_no_violations(world);
  EXPECT_EQ(transfer.coordinator->outcome().status(), Status());
  expect_runtimes(transfer, world, 2);
}

// P8: nothing is sent again that was heard, however long the copies take.
TEST(Attempts, EachMessageIsSentOnceWhereNoneIsLost) {
  SmallTransfer transfer;
  StepWorld world;
  transfer.join(world);
  // Half a minute passes with copies under way.
  const TimePoint until = world.now() + Duration::from_s(30);
  world.fate_of = [&](const Post& post) {
    return world.now() < until && std::holds_alternative<CopyPost>(post.call) ? StepWorld::Fate::kRefused
                                                                              : StepWorld::Fate::kAsUsual;
  };
  world.run({});
  ASSERT_EQ(transfer.coordinator->outcome().status(), Status());
  std::map<std::string, int> sent;
  for (const SendPost& send : world.sent()) ++sent[std::string(send.message.kind())];
  // Two sources, two targets; each source writes to each target.
  EXPECT_EQ(sent["export"], 4);
  EXPECT_EQ(sent["job"], 4);
  EXPECT_EQ(sent["grant"], 4);
  EXPECT_EQ(sent["receipt"], 4);
  EXPECT_EQ(sent["ready"], 2);
  EXPECT_EQ(sent["decision"], 4);
  EXPECT_EQ(sent["done"], 4);
}

// P9: with the defaults, one lost "done" is no doubt.
TEST(Attempts, ALostDoneIsSaidAgain) {
  for (int lost = 1; lost <= 4; ++lost) {
    SmallTransfer transfer;
    StepWorld world;
    transfer.join(world);
    std::map<PeerIdentity, int> dones;
    world.loses = [&](const SendPost& send) {
      return is_message<DoneBody>(send) && ++dones[send.message.identity] <= lost;
    };
    world.run({});
    expect_no_violations(world);
    EXPECT_EQ(transfer.coordinator->outcome().status(), Status()) << lost << " times";
  }
}

// P12: a source dies after it pinned and before it exported. The targets wait for the job, and are not to blame.
TEST(Attempts, TheCauseNamesWhoWasSilentFirst) {
  SmallTransfer transfer;
  StepWorld world;
  transfer.join(world);
  world.before_step = [&](size_t) {
    if (!world.runtime(Role::kSource, ParticipantId("p0-t1")).held.empty()) world.kill(PeerId("source/p0-t1"));
  };
  world.run({});
  const std::string message = transfer.coordinator->outcome().cause.message();
  EXPECT_EQ(message, "no export of source 'p0-t1' by the deadline");
}

// P12: of two replicas one is read. The other one's failure or death is none of the transfer's business.
TEST(Attempts, AReplicaThatNobodyNeedsMayDie) {
  size_t spared = 0;
  for (size_t replica = 0; replica < 2; ++replica)
    for (size_t at = 0; at < 60; ++at) {
      SmallTransfer transfer({.dp = 2}, {.pp = 2});
      StepWorld world;
      transfer.join(world);
      const ParticipantId& participant = (*transfer.source.bindings[replica])->participant;
      bool is_needed = true;
      world.before_step = [&](size_t step) {
        if (step != at || transfer.coordinator->job() == nullptr) return;
        is_needed = !pairs_of(*transfer.coordinator->job(), Role::kSource, participant).empty();
        if (!is_needed) world.kill(source_peer(participant));
      };
      world.run({});
      if (is_needed) continue;
      ++spared;
      EXPECT_EQ(transfer.coordinator->outcome().status(), Status()) << transfer.coordinator->outcome().cause.message();
    }
  EXPECT_GT(spared, 20u);
}

// P5: a coordinator dies before any step, and another one takes over: it says what is so, or that it cannot know.
TEST(Takeover, SaysWhatIsSoOrThatItCannotKnow) {
  size_t step_count = 0;
  {
    SmallTransfer plain;
    StepWorld world;
    plain.join(world);
    world.run({});
    step_count = world.step_count();
  }
  size_t activated = 0, aborted = 0, unknown = 0;
  for (const std::string& also_dies : {std::string(), std::string("target/p0-t0"), std::string("source/p0-t0")})
    for (size_t at = 0; at < step_count; ++at)
      for (const size_t later : std::array<size_t, 3>{0, 1, 5}) {
        SCOPED_TRACE(fmt::format("the coordinator dies before step {}, '{}' {} steps later", at, also_dies, later));
        SmallTransfer transfer;
        StepWorld world(at);
        transfer.join(world);
        CoordinatorOptions options = transfer.coordinator_options;
        options.instance = InstanceId("coordinator's second life");
        options.term = 2;
        options.takes_over = true;
        options.reply_to = PeerId("coordinator 2");
        Coordinator second(options);
        world.before_step = [&](size_t step) {
          if (step == at + later && !also_dies.empty()) world.kill(PeerId(also_dies));
          if (step != at) return;
          world.kill(PeerId("coordinator"));
          world.add(PeerId("coordinator 2"), Role::kSource, second);
          world.wake(PeerId("coordinator 2"));
        };
        world.run({});
        expect_no_violations(world);
        size_t active = 0;
        for (const BindingPointer& binding : transfer.target.bindings)
          active += world.runtime(Role::kTarget, (*binding)->participant).active.size();
        const TransferOutcome& outcome = second.outcome();
        const Status status = outcome.status();
        if (status.ok()) {
          EXPECT_EQ(active, 2u);
          EXPECT_EQ(wrong_items(transfer.target), "");
          ++activated;
        } else if (status.code() == Code::kOutcomeUnknown) {
          EXPECT_NE(status.message().find("p0-t0"), std::string::npos) << status.message();
          ++unknown;
        } else {
          EXPECT_EQ(active, 0u) << status.message();
          ++aborted;
        }
        if (::testing::Test::HasFailure()) return;
      }
  EXPECT_GT(activated, 10u);
  EXPECT_GT(aborted, 50u);
  EXPECT_GT(unknown, 5u);
}

// P5: the decision of a coordinator that was replaced comes late.
TEST(Takeover, ADecisionOfAnEarlierTermIsNotHeard) {
  SmallTransfer transfer;
  Target& target = *transfer.targets[0];
  const BindingPointer& binding = transfer.target.bindings[0];
  std::vector<Post> posts;
  target.advance(TimePoint(), {}, posts);
  const auto hear = [&](const char* instance, uint64_t term, MessageBody body) {
    OpId receive;
    for (const Post& post : posts)
      if (std::holds_alternative<RecvPost>(post.call)) receive = post.op;
    posts.clear();
    const Completion completion{receive, Status(),
                                Message{OperationId("op"), transfer.attempt,
                                        PeerIdentity{ParticipantId(), InstanceId(instance), term}, std::move(body)},
                                true};
    target.advance(TimePoint(), std::span(&completion, 1), posts);
  };
  for (const Post& post : posts) {
    if (!std::holds_alternative<RuntimePost>(post.call)) continue;
    const Completion reserved{post.op, Status(), AnyBinding(binding), true};
    const std::vector<Post> kept = posts;
    std::vector<Post> more;
    target.advance(TimePoint(), std::span(&reserved, 1), more);
    posts = kept;
    break;
  }
  EXPECT_EQ(target.state(), "exporting");
  hear("second", 2, QueryBody{PeerId("coordinator 2")});
  hear("first", 1, DecisionBody{false, "of the first term"});
  EXPECT_EQ(target.state(), "exporting");
  hear("another of the same term", 2, DecisionBody{false, "of nobody"});
  EXPECT_EQ(target.state(), "exporting");
  hear("second", 2, DecisionBody{false, "of the second term"});
  EXPECT_NE(target.state(), "exporting");
}

}  // namespace
}  // namespace crossdock::testing
