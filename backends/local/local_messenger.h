// Messages between participants of one process.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "backends/local/local_queue.h"
#include "executor/ports.h"

namespace crossdock {

// Where messages wait for their receivers. Thread-safe.
class MessageHub {
 public:
  // waiting_max: messages that wait for each receiver. Further ones are lost, which a Messenger may do.
  explicit MessageHub(size_t waiting_max = 65536) : waiting_max_(waiting_max) {}

  void send(const PeerId& to, const Message& message);
  // Completes `op` in `queue` with the first message that waits, or with the next one that is sent.
  void receive(const PeerId& me, OpId op, LocalQueue& queue);
  // Completes a receive that has no message with kCancelled.
  void cancel(const PeerId& me, OpId op);

 private:
  struct Box {
    std::deque<Message> waiting;
    std::deque<std::pair<OpId, LocalQueue*>> receives;
  };

  size_t waiting_max_;
  std::mutex mutex_;
  std::map<PeerId, Box> boxes_;
};

// The messenger of one participant. The hub and the queue outlive all operations.
class LocalMessenger : public Messenger {
 public:
  LocalMessenger(MessageHub& hub, PeerId self, LocalQueue& queue) : hub_(hub), self_(std::move(self)), queue_(queue) {}

  Status post_send(OpId op, const PeerId& to, const Message& message) override;
  Status post_recv(OpId op) override;
  void cancel(OpId op) override { hub_.cancel(self_, op); }

 private:
  MessageHub& hub_;
  PeerId self_;
  LocalQueue& queue_;
};

}  // namespace crossdock
