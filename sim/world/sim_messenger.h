// Messenger of a simulated participant: a message takes the latency of its way, and is lost where there is none.
#pragma once

#include <deque>

#include "executor/ports.h"
#include "sim/world/sim_node.h"

namespace crossdock {

class SimMessenger : public Messenger {
 public:
  explicit SimMessenger(SimNode& node) : node_(node) {}

  Status post_send(OpId op, const PeerId& to, const Message& message) override;
  Status post_recv(OpId op) override;
  void cancel(OpId op) override;

  // A message arrives: it completes the oldest receive, or waits. Beyond 4,096 that wait it is lost.
  void deliver(const Message& message);

 private:
  SimNode& node_;
  std::deque<OpId> receives_;
  std::deque<Message> inbox_;
};

}  // namespace crossdock
