// What every Messenger keeps; executor/ports.h has the rules. Messages may be lost or come twice where something fails;
// here nothing does, and none may be.
#pragma once

#include <string>

#include "tests/conformance/conformance_test.h"

namespace crossdock::testing {

class MessengerConformance : public ConformanceTest {
 protected:
  static Message message(const std::string& text) {
    PeerIdentity identity{ParticipantId("p0"), InstanceId("instance"), 3};
    return Message{OperationId("move"), AttemptId("attempt"), std::move(identity), DecisionBody{false, text}};
  }
  static std::string text_of(const Completion& completion) {
    const Message got = result_of<Message>(completion);
    EXPECT_EQ(got.operation, OperationId("move"));
    EXPECT_EQ(got.attempt, AttemptId("attempt"));
    EXPECT_EQ(got.identity, (PeerIdentity{ParticipantId("p0"), InstanceId("instance"), 3}));
    const auto* body = std::get_if<DecisionBody>(&got.body);
    EXPECT_NE(body, nullptr);
    return body == nullptr ? "" : body->reason;
  }
};

}  // namespace crossdock::testing
