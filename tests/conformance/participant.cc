#include "tests/conformance/participant.h"

#include <array>
#include <utility>

namespace crossdock::testing {
namespace {

constexpr Duration kPatience = Duration::from_s(60);

}  // namespace

Status Participant::try_post(OpId op, const Call& call) {
  std::vector<Completion> refused;
  crossdock::post(Post{op, call}, ports_, refused);
  if (!refused.empty()) return refused.front().status;
  if (!std::holds_alternative<CancelPost>(call)) {
    EXPECT_TRUE(under_way_.insert(op).second);
  }
  return Status();
}

OpId Participant::post(const Call& call) {
  const OpId op = new_op();
  EXPECT_EQ(try_post(op, call), Status());
  return op;
}

Completion Participant::run(const Call& call) {
  const OpId op = new_op();
  while (true) {
    const Status status = try_post(op, call);
    if (status.ok()) return take(op);
    if (status.code() != Code::kResourceExhausted || under_way_.empty()) {
      ADD_FAILURE() << "refused: " << status.message();
      return Completion{op, status, std::monostate(), false};
    }
    if (!wait(ports_.queue->now() + kPatience)) return Completion{op, status, std::monostate(), false};
  }
}

bool Participant::wait(TimePoint deadline) {
  std::array<Completion, 16> taken;
  const size_t count = ports_.queue->wait(taken, deadline);
  for (Completion& each : std::span(taken).first(count)) {
    const OpId op = each.op;
    EXPECT_EQ(under_way_.erase(op), 1u) << "R1: operation " << op.value() << " completes although it is not under way";
    EXPECT_TRUE(each.posted);
    done_.emplace(op, std::move(each));
  }
  return count > 0;
}

Completion Participant::take(OpId op) {
  while (!done_.contains(op)) {
    if (wait(ports_.queue->now() + kPatience)) continue;
    ADD_FAILURE() << "R1: operation " << op.value() << " has not completed";
    return Completion{op, Status(Code::kDeadline, "has not completed"), std::monostate(), true};
  }
  return std::move(done_.extract(op).mapped());
}

std::vector<Completion> Participant::take_all() {
  while (!under_way_.empty() && wait(ports_.queue->now() + kPatience)) continue;
  EXPECT_TRUE(under_way_.empty()) << "R1: " << under_way_.size() << " operations have not completed";
  poll();
  std::vector<Completion> all;
  for (auto& [op, completion] : std::exchange(done_, {})) all.push_back(std::move(completion));
  return all;
}

void Participant::poll() {
  while (wait(TimePoint())) continue;
}

}  // namespace crossdock::testing
