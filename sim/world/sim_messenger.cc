#include "sim/world/sim_messenger.h"

#include <algorithm>
#include <utility>

#include "sim/world/sim_world.h"

namespace crossdock {
namespace {

constexpr size_t kInboxMax = 4096;  // what comes beyond is lost

}  // namespace

// Modelled: the time to post, the latency of the way with a random part, loss, delay and doubling, receivers that are
// dead or out of reach when the message arrives. Not modelled: the size of a message, so control messages take no
// bandwidth.
Status SimMessenger::post_send(OpId op, const PeerId& to, const Message& message) {
  SimWorld& world = node_.world();
  TRY(const OperationEffects effects, node_.accept(op, "send " + std::string(message.kind()), false));
  const TimePoint sent = node_.next_start(world.cluster().costs.message_us);
  Completion completion;
  if (effects.fails)
    completion.status = Status(Code::kUnavailable, "made to fail");
  else if (effects.loses_reply)
    completion.status = Status(Code::kOutcomeUnknown, "made to fail");
  const size_t copies = effects.loses_message || effects.fails ? 0 : effects.doubles_message ? 2 : 1;
  // This completion says that the message was sent; nothing reports its arrival.
  node_.complete_after(sent - world.now(), op, std::move(completion));
  world.note_message(to, message);
  const SimNode* const receiver = world.find(to);
  if (receiver == nullptr || !world.is_reachable(node_.place(), receiver->place())) return Status();
  // Ways differ a little each time, so messages overtake each other.
  const Duration way = world.latency(node_.place(), receiver->place());
  for (size_t i = 0; i < copies; ++i) {
    const auto jitter = static_cast<int64_t>(node_.rng().below(static_cast<uint64_t>(way.ns()) / 2 + 1));
    world.engine().at(sent + way + effects.message_later + Duration::from_ns(jitter),
                      [&world, to, message, from = node_.place()] {
                        // By name, when it arrives: another life of the process may have the name by then, and has to
                        // recognise stale messages itself.
                        SimNode* const node = world.find(to);
                        if (node != nullptr && !node->is_dead() && world.is_reachable(from, node->place()))
                          node->messenger().deliver(message);
                      });
  }
  return Status();
}

Status SimMessenger::post_recv(OpId op) {
  TRY_STATUS(node_.accept(op, "receive", false).status());
  if (inbox_.empty()) {
    receives_.push_back(op);
    return Status();
  }
  Completion completion;
  completion.result = std::move(inbox_.front());
  inbox_.pop_front();
  node_.complete(op, std::move(completion));
  return Status();
}

void SimMessenger::deliver(const Message& message) {
  if (receives_.empty()) {
    if (inbox_.size() < kInboxMax) inbox_.push_back(message);
    return;
  }
  const OpId op = receives_.front();
  receives_.pop_front();
  Completion completion;
  completion.result = message;
  node_.complete(op, std::move(completion));
}

void SimMessenger::cancel(OpId op) {
  const auto found = std::find(receives_.begin(), receives_.end(), op);
  if (found == receives_.end()) return;
  receives_.erase(found);
  node_.complete(op, completion_of(Status(Code::kCancelled, "cancelled")));
}

}  // namespace crossdock
