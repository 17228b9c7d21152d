#include "tests/conformance/messenger_conformance.h"

#include <set>

namespace crossdock::testing {
namespace {

TEST_P(MessengerConformance, AMessageReachesItsReceiverInEitherOrder) {
  Participant& a = join("a");
  Participant& b = join("b");
  Participant& c = join("c");
  const OpId bystander = c.post(RecvPost{});
  EXPECT_EQ(a.run(SendPost{PeerId("b"), message("early")}).status, Status());
  EXPECT_EQ(text_of(b.run(RecvPost{})), "early");
  const OpId receive = b.post(RecvPost{});
  EXPECT_EQ(a.run(SendPost{PeerId("b"), message("late")}).status, Status());
  EXPECT_EQ(text_of(b.take(receive)), "late");
  EXPECT_EQ(b.run(SendPost{PeerId("b"), message("to itself")}).status, Status());
  EXPECT_EQ(text_of(b.run(RecvPost{})), "to itself");
  c.poll();
  EXPECT_TRUE(c.is_under_way(bystander));
}

TEST_P(MessengerConformance, R1_EverySendAndEveryReceiveCompletesOnce) {
  constexpr size_t kSenderCount = 3;
  constexpr size_t kEach = 100;
  Participant& receiver = join("receiver");
  std::vector<Participant*> senders;
  for (size_t i = 0; i < kSenderCount; ++i) senders.push_back(&join("sender" + std::to_string(i)));
  for (size_t i = 0; i < kSenderCount * kEach / 2; ++i) receiver.post(RecvPost{});
  Bodies bodies;
  for (size_t i = 0; i < kSenderCount; ++i)
    bodies.emplace_back([&, i] {
      for (size_t k = 0; k < kEach; ++k)
        EXPECT_EQ(senders[i]->run(SendPost{PeerId("receiver"), message(std::to_string(i * kEach + k))}).status,
                  Status());
      EXPECT_TRUE(senders[i]->take_all().empty());
    });
  std::multiset<std::string> got;
  bodies.emplace_back([&] {
    for (const Completion& each : receiver.take_all()) got.insert(text_of(each));
    while (got.size() < kSenderCount * kEach) got.insert(text_of(receiver.run(RecvPost{})));
  });
  backend_->run_together(bodies);
  std::multiset<std::string> expected;
  for (size_t i = 0; i < kSenderCount * kEach; ++i) expected.insert(std::to_string(i));
  EXPECT_EQ(got, expected);
  EXPECT_TRUE(receiver.take_all().empty());
}

TEST_P(MessengerConformance, R1_ASendToAnUnknownPeerCompletes) {
  Participant& a = join("a");
  for (int i = 0; i < 100; ++i) a.post(SendPost{PeerId("unknown"), message("x")});
  EXPECT_EQ(a.take_all().size(), 100u);
}

TEST_P(MessengerConformance, R2_TheMessageIsThePostersOwnAgainOnceItIsPosted) {
  Participant& a = join("a");
  Participant& b = join("b");
  {
    auto sent = std::make_unique<Message>(message("kept"));
    auto to = std::make_unique<PeerId>("b");
    EXPECT_EQ(a.ports().messenger->post_send(OpId(77), *to, *sent), Status());
  }
  EXPECT_EQ(text_of(b.run(RecvPost{})), "kept");
}

TEST_P(MessengerConformance, R5_ACancelledReceiveCompletesAndTakesNoMessageWithIt) {
  Participant& a = join("a");
  Participant& b = join("b");
  Messenger& messenger = *b.ports().messenger;
  messenger.cancel(OpId(4711));
  const OpId first = b.post(RecvPost{});
  const OpId second = b.post(RecvPost{});
  messenger.cancel(first);
  messenger.cancel(first);
  EXPECT_EQ(b.take(first).status.code(), Code::kCancelled);
  messenger.cancel(first);
  EXPECT_EQ(a.run(SendPost{PeerId("b"), message("x")}).status, Status());
  EXPECT_EQ(text_of(b.take(second)), "x");
  messenger.cancel(second);
  EXPECT_TRUE(b.take_all().empty());
}

TEST_P(MessengerConformance, R5_ACancelAndAMessageAtOnceGiveOneCompletion) {
  constexpr int kRoundCount = 200;
  Participant& a = join("a");
  Participant& b = join("b");
  for (int round = 0; round < kRoundCount; ++round) {
    const OpId receive = b.post(RecvPost{});
    Completion completion;
    const auto send = [&] { EXPECT_EQ(a.run(SendPost{PeerId("b"), message("x")}).status, Status()); };
    const auto cancel = [&] {
      b.ports().messenger->cancel(receive);
      completion = b.take(receive);
    };
    backend_->run_together({send, cancel});
    if (completion.status.ok()) continue;
    EXPECT_EQ(completion.status.code(), Code::kCancelled);
    EXPECT_EQ(text_of(b.run(RecvPost{})), "x");
  }
  EXPECT_TRUE(b.take_all().empty());
}

}  // namespace
}  // namespace crossdock::testing
