#include "backends/local/local_messenger.h"

#include <algorithm>
#include <utility>

namespace crossdock {

// A message goes to the oldest receive, or waits. Both happen under one lock, so a message cannot pass a receive that
// is posted at the same time.
void MessageHub::send(const PeerId& to, const Message& message) {
  const std::lock_guard lock(mutex_);
  Box& box = boxes_[to];
  if (!box.receives.empty()) {
    const auto [op, queue] = box.receives.front();
    box.receives.pop_front();
    // With the hub's lock held: a receive that was taken out of the list completes before a cancel of it can look (R1,
    // R5).
    queue->add(Completion{op, Status(), message, true});
  } else if (box.waiting.size() < waiting_max_) {
    box.waiting.push_back(message);
  }
}

void MessageHub::receive(const PeerId& me, OpId op, LocalQueue& queue) {
  const std::lock_guard lock(mutex_);
  Box& box = boxes_[me];
  if (box.waiting.empty()) {
    box.receives.emplace_back(op, &queue);
    return;
  }
  queue.add(Completion{op, Status(), std::move(box.waiting.front()), true});
  box.waiting.pop_front();
}

void MessageHub::cancel(const PeerId& me, OpId op) {
  const std::lock_guard lock(mutex_);
  Box& box = boxes_[me];
  const auto found =
      std::find_if(box.receives.begin(), box.receives.end(), [&](const auto& receive) { return receive.first == op; });
  // It has a message: that completion is on its way, or was taken.
  if (found == box.receives.end()) return;
  found->second->add(Completion{op, Status(Code::kCancelled, "cancelled"), std::monostate(), true});
  box.receives.erase(found);
}

Status LocalMessenger::post_send(OpId op, const PeerId& to, const Message& message) {
  // Completes at once: sent means handed over, not received. The protocols repeat what is not answered.
  hub_.send(to, message);
  queue_.add(Completion{op, Status(), std::monostate(), true});
  return Status();
}

Status LocalMessenger::post_recv(OpId op) {
  hub_.receive(self_, op, queue_);
  return Status();
}

}  // namespace crossdock
