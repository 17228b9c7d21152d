// One participant of a conformance test: posts operations, takes their completions, and watches R1 while it does.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "executor/protocol.h"

namespace crossdock::testing {

using Call = PostCall;

// Of one thread. What goes wrong is reported to the test.
class Participant {
 public:
  explicit Participant(const Ports& ports) : ports_(ports) {}

  const Ports& ports() const { return ports_; }

  // The port's answer. With OK the operation is under way.
  Status try_post(OpId op, const Call& call);
  // Under a new id; it has to be accepted.
  OpId post(const Call& call);
  // Posts again after completions, while the port has no room.
  Completion run(const Call& call);

  // The completion of an operation that is under way; fails the test when it has not come in a minute.
  Completion take(OpId op);
  std::vector<Completion> take_all();
  // Takes what is there already, without waiting.
  void poll();
  bool is_under_way(OpId op) const { return under_way_.contains(op); }
  size_t under_way_count() const { return under_way_.size(); }
  OpId new_op() { return OpId(++last_op_); }

 private:
  bool wait(TimePoint deadline);

  Ports ports_;
  uint64_t last_op_ = 0;
  std::set<OpId> under_way_;
  std::map<OpId, Completion> done_;  // that were not taken yet
};

// The result of a completion that has to be OK and to have one of this type; else the test fails, and it is empty.
template <class Value>
Value result_of(const Completion& completion) {
  EXPECT_EQ(completion.status, Status());
  const Value* value = std::get_if<Value>(&completion.result);
  EXPECT_NE(value, nullptr) << "a result of another kind";
  return value == nullptr ? Value() : *value;
}

}  // namespace crossdock::testing
