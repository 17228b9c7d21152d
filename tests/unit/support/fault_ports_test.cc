#include "tests/support/fault_ports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "backends/store/heap_tables.h"
#include "tests/conformance/conformance_test.h"
#include "tests/conformance/local_backend.h"

namespace crossdock::testing {
namespace {

class FaultPortsTest : public ::testing::Test {
 protected:
  // Ports of 'a' with these faults; those of 'b' have none.
  Participant& join(std::vector<PortFault> faults, uint64_t seed = 1) {
    return join(PortFaultPlan{seed, std::move(faults)});
  }
  Participant& join(PortFaultPlan plan) {
    faults_.emplace(backend_->join(PeerId("a")), std::move(plan));
    return participant_.emplace(faults_->ports());
  }
  Region& region(const std::string& name, uint64_t bytes) {
    Region& made = regions_.emplace_back(region_key(name), bytes);
    EXPECT_EQ(backend_->add_memory(made.key, made.bytes()), Status());
    // By a participant without faults.
    Participant granter(backend_->join(PeerId("granter of " + name)));
    const GrantRequest request{GrantId(name), {{made.key, Range(0, bytes)}}, {made.key.owner}};
    EXPECT_EQ(granter.run(GrantPost{request}).status, Status());
    return made;
  }
  CopyPost copy_of(const Region& source, const Region& target, std::vector<CopyStep> steps) {
    return CopyPost{std::make_shared<const Grant>(Grant{GrantId(target.key.id.text()), {}}),
                    steps_between({source.key}, {target.key}, std::move(steps))};
  }
  static SendPost send_to(const std::string& peer, const std::string& text) {
    return SendPost{PeerId(peer), Message{OperationId("move"), {}, {}, DecisionBody{false, text}}};
  }
  // What waits for 'b', in the order in which it came.
  static std::vector<std::string> texts_of(Participant& b) {
    std::vector<std::string> texts;
    while (true) {
      const OpId op = b.post(RecvPost{});
      b.ports().messenger->cancel(op);
      const Completion completion = b.take(op);
      if (!completion.status.ok()) return texts;
      texts.push_back(std::get<DecisionBody>(std::get<Message>(completion.result).body).reason);
    }
  }

  std::deque<Region> regions_;
  std::unique_ptr<Backend> backend_ =
      make_local_backend({}, {std::make_unique<HeapRecordTable>(), std::make_unique<HeapChunkTable>()});
  std::optional<FaultPorts> faults_;
  std::optional<Participant> participant_;
};

TEST(PortFaultPlan, IsTextAndBack) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const PortFaultPlan plan = draw_faults(seed, 20, 300);
    EXPECT_EQ(fault_plan_from_text(to_text(plan)), plan) << to_text(plan);
  }
  for (const char* text : {"seed 7: copy 3 break 1", "seed 7: copy 0 stall 30", "seed 1: copy 2 flip 1"})
    EXPECT_EQ(to_text(fault_plan_from_text(text).value()), text);
  const PortFaultPlan plan{
      7, {{PortCall::kCopy, 3, PortFaultKind::kFailAfter, 1}, {PortCall::kSend, 0, PortFaultKind::kReorder, 2}}};
  EXPECT_EQ(to_text(plan), "seed 7: copy 3 fail-after 1, send 0 reorder 2");
  EXPECT_EQ(fault_plan_from_text("seed 7"), (PortFaultPlan{7, {}}));
  for (const char* text : {"", "seed", "seed x", "seed 1: copy", "seed 1: copy 2 lose 1", "seed 1: send 2 stall 1",
                           "seed 1: copy 2 late x", "seed 1: nothing 2 late 1", "seed 1: copy 2 never 1"})
    EXPECT_EQ(fault_plan_from_text(text), std::nullopt) << text;
}

TEST(PortFaultPlan, SomeKindsAreOffInEachDraw) {
  bool has_none = false, has_some = false;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const PortFaultPlan plan = draw_faults(seed, 50, 500);
    const auto is_lost = [](const PortFault& each) { return each.kind == PortFaultKind::kLose; };
    (std::any_of(plan.faults.begin(), plan.faults.end(), is_lost) ? has_some : has_none) = true;
    EXPECT_EQ(plan, draw_faults(seed, 50, 500));
  }
  EXPECT_TRUE(has_none && has_some);
}

TEST_F(FaultPortsTest, TheNthOperationOfItsKindFailsBeforeItHappens) {
  Participant& a = join({{PortCall::kCopy, 1, PortFaultKind::kFailBefore}});
  Region& source = region("source", 8);
  Region& target = region("target", 8);
  for (int i = 0; i < 3; ++i) {
    std::ranges::fill(source.bytes(), static_cast<std::byte>(i));
    EXPECT_EQ(a.run(ChecksumPost{copy_of(source, target, {plain_step(0, 0, 8)}).steps, StepEnd::kSource}).status,
              Status());
    const Status status = a.run(copy_of(source, target, {plain_step(0, 0, 8)})).status;
    EXPECT_EQ(status.code(), i == 1 ? Code::kUnavailable : Code::kOk);
    EXPECT_EQ(target.bytes()[0], static_cast<std::byte>(i == 1 ? 0 : i));
  }
  EXPECT_EQ(faults_->happened(), (std::vector<PortFault>{{PortCall::kCopy, 1, PortFaultKind::kFailBefore}}));
}

TEST_F(FaultPortsTest, AnAnswerThatIsLostSaysNotWhatHappened) {
  Participant& a = join({{PortCall::kBegin, 0, PortFaultKind::kFailAfter},
                         {PortCall::kCopy, 0, PortFaultKind::kFailAfter},
                         {PortCall::kRevoke, 0, PortFaultKind::kFailAfter}});
  Region& source = region("source", 8);
  Region& target = region("target", 8);
  std::ranges::fill(source.bytes(), std::byte{1});
  const Completion copied = a.run(copy_of(source, target, {plain_step(0, 0, 8)}));
  EXPECT_EQ(copied.status.code(), Code::kUnavailable);
  EXPECT_EQ(target.copy(), Bytes(8, std::byte{1}));
  EXPECT_EQ(a.run(RevokePost{{GrantId("target")}}).status.code(), Code::kOutcomeUnknown);
  EXPECT_EQ(a.run(copy_of(source, target, {plain_step(0, 0, 8)})).status.code(), Code::kConflict);
  const BeginPost begin{TxnId("txn"), UploadTarget{"tenant", {}, Duration::from_s(60)}};
  const Completion begun = a.run(begin);
  EXPECT_EQ(begun.status.code(), Code::kOutcomeUnknown);
  EXPECT_EQ(begun.result.index(), 0u);
  EXPECT_EQ(backend_->store_use().open_transactions, 1u);
  EXPECT_EQ(result_of<TxnState>(a.run(begin)).phase, TxnPhase::kOpen);
}

TEST_F(FaultPortsTest, OfAPartialCopySomeBytesArriveAndSomeDoNot) {
  bool some_arrived = false;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    backend_ = make_local_backend({}, {std::make_unique<HeapRecordTable>(), std::make_unique<HeapChunkTable>()});
    Participant& a = join({{PortCall::kCopy, 0, PortFaultKind::kPartial}}, seed);
    Region& source = region("source", 100);
    Region& target = region("target", 100);
    std::ranges::fill(source.bytes(), std::byte{1});
    EXPECT_EQ(a.run(copy_of(source, target, {plain_step(0, 20, 50)})).status.code(), Code::kUnavailable);
    const Bytes bytes = target.copy();
    const auto arrived = std::count(bytes.begin(), bytes.end(), std::byte{1});
    EXPECT_LT(arrived, 50);
    EXPECT_EQ(std::count(bytes.begin() + 20, bytes.begin() + 70, std::byte{1}), arrived);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), Region::kFill), 100 - arrived);
    some_arrived |= arrived > 0;
  }
  EXPECT_TRUE(some_arrived);
}

TEST_F(FaultPortsTest, ALateCompletionLetsOthersPassAndIsNeverStuck) {
  Participant& a =
      join({{PortCall::kChecksum, 0, PortFaultKind::kLate, 2}, {PortCall::kChecksum, 3, PortFaultKind::kLate, 100}});
  Region& source = region("source", 8);
  const ChecksumPost call{copy_of(source, source, {plain_step(0, 0, 8)}).steps, StepEnd::kSource};
  const OpId late = a.post(call);
  EXPECT_EQ(a.run(call).status, Status());
  EXPECT_TRUE(a.is_under_way(late));
  EXPECT_EQ(a.run(call).status, Status());
  EXPECT_EQ(a.take(late).status, Status());
  a.post(RecvPost{});  // does not count as under way
  const OpId alone = a.post(call);
  EXPECT_EQ(a.take(alone).status, Status());
}

TEST_F(FaultPortsTest, AHeldCompletionComesWhenItIsReleased) {
  Participant& a = join({{PortCall::kChecksum, 0, PortFaultKind::kHeld}});
  Region& source = region("source", 8);
  const ChecksumPost call{copy_of(source, source, {plain_step(0, 0, 8)}).steps, StepEnd::kSource};
  const OpId held = a.post(call);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.run(call).status, Status());
  a.poll();
  EXPECT_TRUE(a.is_under_way(held));
  faults_->release_held();
  EXPECT_EQ(a.take(held).status, Status());
}

TEST_F(FaultPortsTest, ABrokenPathRefusesEveryLaterCopyForGood) {
  Participant& a = join({{PortCall::kCopy, 1, PortFaultKind::kBreak}});
  Region& source = region("source", 8);
  Region& target = region("target", 8);
  EXPECT_EQ(a.run(copy_of(source, target, {plain_step(0, 0, 4)})).status, Status());
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(a.try_post(a.new_op(), copy_of(source, target, {plain_step(0, 4, 4)})).code(), Code::kIo);
  EXPECT_TRUE(a.take_all().empty());
  EXPECT_EQ(target.bytes()[4], Region::kFill);
  EXPECT_EQ(a.run(RevokePost{{GrantId("target")}}).status, Status());
}

TEST_F(FaultPortsTest, AFlippedBitIsInWhatACopyWroteAndNowhereElse) {
  faults_.emplace(backend_->join(PeerId("a")), PortFaultPlan{1, {{PortCall::kCopy, 1, PortFaultKind::kFlip}}},
                  [&](const RegionKey& key, uint64_t offset) {
                    for (Region& each : regions_)
                      if (each.key == key) each.bytes()[offset] ^= std::byte{1};
                  });
  Participant a(faults_->ports());
  Region& source = region("source", 8);
  Region& target = region("target", 8);
  std::ranges::fill(source.bytes(), std::byte{6});
  EXPECT_EQ(a.run(copy_of(source, target, {plain_step(0, 0, 3)})).status, Status());
  EXPECT_EQ(a.run(copy_of(source, target, {plain_step(0, 3, 5)})).status, Status());
  Bytes expected(8, std::byte{6});
  expected[3] = std::byte{7};
  EXPECT_EQ(target.copy(), expected);
  EXPECT_EQ(source.copy(), Bytes(8, std::byte{6}));
  EXPECT_EQ(a.run(copy_of(source, target, {plain_step(0, 0, 8)})).status, Status());
  EXPECT_EQ(target.copy(), Bytes(8, std::byte{6}));
}

// A queue whose time passes by waiting alone.
class TimedQueue : public CompletionQueue {
 public:
  TimePoint now() const override { return now_; }
  size_t wait(std::span<Completion> out, TimePoint deadline) override {
    if (inside_.empty()) {
      now_ = std::max(now_, deadline);
      return 0;
    }
    out[0] = std::exchange(inside_, {}).front();
    return 1;
  }
  void add(OpId op) { inside_.push_back(Completion{op, Status(), std::monostate(), true}); }

 private:
  TimePoint now_ = TimePoint::from_ns(1000);
  std::vector<Completion> inside_;
};

// Takes every copy and completes it at once.
class EveryCopy : public Transport {
 public:
  explicit EveryCopy(TimedQueue& queue) : queue_(queue) {}
  Status post_copy(OpId op, const Grant&, const StepSpan&) override {
    queue_.add(op);
    return Status();
  }
  Status post_checksum(OpId op, const StepSpan& steps, StepEnd) override { return post_copy(op, Grant(), steps); }
  Status post_grant(OpId op, const GrantRequest&) override { return post_copy(op, Grant(), StepSpan()); }
  Status post_revoke(OpId op, const RevokeRequest&) override { return post_copy(op, Grant(), StepSpan()); }
  void cancel(OpId) override {}

 private:
  TimedQueue& queue_;
};

TEST(StalledCopies, R1_CompleteOnceAtTheEndOfTheirStallThoughTheyAreCancelled) {
  TimedQueue queue;
  EveryCopy transport(queue);
  Ports inside;
  inside.queue = &queue;
  inside.transport = &transport;
  FaultyTransportPorts faults(inside, PortFaultPlan{1, {{PortCall::kCopy, 1, PortFaultKind::kStall, 5}}});
  const Ports& ports = faults.ports();
  std::array<Completion, 4> out;
  const TimePoint begin = queue.now();
  const auto after = [&](int64_t seconds) { return begin + Duration::from_s(seconds); };

  ASSERT_EQ(ports.transport->post_copy(OpId(1), Grant(), StepSpan()), Status());
  ASSERT_EQ(ports.queue->wait(out, after(1)), 1u);
  EXPECT_EQ(out[0].op, OpId(1));
  EXPECT_EQ(ports.queue->now(), begin);

  ASSERT_EQ(ports.transport->post_copy(OpId(2), Grant(), StepSpan()), Status());
  ports.transport->cancel(OpId(2));
  EXPECT_EQ(ports.queue->wait(out, after(2)), 0u);
  EXPECT_EQ(ports.queue->now(), after(2));  // R8
  ASSERT_EQ(ports.transport->post_copy(OpId(3), Grant(), StepSpan()), Status());
  for (const uint64_t op : {uint64_t{2}, uint64_t{3}}) {
    ASSERT_EQ(ports.queue->wait(out, after(60)), 1u);
    EXPECT_EQ(out[0].op, OpId(op));
    EXPECT_EQ(out[0].status.code(), Code::kCancelled);
    EXPECT_TRUE(out[0].posted);
    EXPECT_EQ(ports.queue->now(), after(op == 2 ? 5 : 7));
  }
  EXPECT_EQ(ports.queue->wait(out, after(60)), 0u);
  EXPECT_EQ(ports.queue->now(), after(60));
}

TEST_F(FaultPortsTest, ARefusedPostHasNotHappened) {
  Participant& a = join({{PortCall::kSend, 0, PortFaultKind::kRefuse}});
  Participant b(backend_->join(PeerId("b")));
  EXPECT_EQ(a.try_post(a.new_op(), send_to("b", "x")).code(), Code::kResourceExhausted);
  EXPECT_TRUE(a.take_all().empty());
  EXPECT_EQ(a.run(send_to("b", "y")).status, Status());
  EXPECT_EQ(texts_of(b), (std::vector<std::string>{"y"}));
}

TEST_F(FaultPortsTest, MessagesAreLostDoubledAndOvertaken) {
  Participant& a = join({{PortCall::kSend, 0, PortFaultKind::kReorder, 2},
                         {PortCall::kSend, 1, PortFaultKind::kLose},
                         {PortCall::kSend, 2, PortFaultKind::kDouble},
                         {PortCall::kSend, 4, PortFaultKind::kReorder, 5}});
  Participant b(backend_->join(PeerId("b")));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(a.run(send_to("b", std::to_string(i))).status, Status());
  EXPECT_EQ(texts_of(b), (std::vector<std::string>{"2", "2", "0", "3"}));
  EXPECT_TRUE(a.take_all().empty());
}

TEST_F(FaultPortsTest, R1_EveryAcceptedPostCompletesOnceWhateverThePlan) {
  constexpr uint64_t kSeedCount = 150;
  uint64_t happened = 0;
  for (uint64_t seed = 1; seed <= kSeedCount; ++seed) {
    const PortFaultPlan plan = draw_faults(seed, 40, 400);
    SCOPED_TRACE(to_text(plan));
    backend_ = make_local_backend({}, {std::make_unique<HeapRecordTable>(), std::make_unique<HeapChunkTable>()});
    Participant& a = join(plan);
    Rng rng(seed);
    Region& source = region("source", 64);
    Region& target = region("target", 60 * 64);
    for (uint64_t i = 0; i < 60; ++i) {
      const CopyPost copy = copy_of(source, target, {plain_step(0, i * 64, 64)});
      const TxnId txn(std::to_string(rng.below(3)));
      const PutStep put{RegionId("object"), 64, 64, "writer", steps_between({source.key}, {}, {plain_step(0, 0, 64)})};
      const std::vector<Call> calls = {
          copy,
          ChecksumPost{copy.steps, StepEnd::kSource},
          RevokePost{{GrantId("source")}},
          BeginPost{txn, UploadTarget{"tenant", {}, Duration::from_s(60)}},
          PutPost{txn, put},
          AbortPost{txn},
          LookupPost{Lookup{std::vector<PageObjectKey>(), LeaseRequest{"reader", Duration::from_s(60)}}},
          ReleaseLeasePost{LeaseId(1 + rng.below(4))},
          send_to("a", "x")};
      const size_t which = rng.below(calls.size());
      const Status status = a.try_post(a.new_op(), calls[which]);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), Code::kResourceExhausted);
      }
      if (rng.chance(1, 4)) a.poll();
    }
    for (const Completion& each : a.take_all())
      if (each.status.code() == Code::kOutcomeUnknown) {
        EXPECT_EQ(each.result.index(), 0u);
      }
    happened += faults_->happened().size();
    if (HasFailure()) return;
  }
  EXPECT_GT(happened, kSeedCount);
}

}  // namespace
}  // namespace crossdock::testing
