#include "tests/conformance/runtime_conformance.h"

#include "model/kv/binding_rules.h"
#include "model/kv/pool_binding.h"
#include "model/wire/documents.h"
#include "tests/support/example_documents.h"
#include "tests/support/fault_ports.h"

namespace crossdock::testing {
namespace {

using enum RuntimeCall;

// Of a tiny cache that two participants share.
struct Pages {
  std::shared_ptr<const Valid<CacheSchema>> schema;
  std::vector<BindingPointer> bindings;
};

const Pages& pages() {
  static const Pages made = [] {
    CacheSchema schema;
    LayerGroup group;
    group.layers = IntervalSet{Range(0, 2)};
    Component component;
    component.name = ComponentName("key");
    component.dtype = "int8";
    component.encoding = "plain";
    component.item_bytes = 1;
    component.head_count = 2;
    component.head_dim = 2;
    group.components.push_back(component);
    schema.groups.push_back(group);
    Pages all;
    all.schema = std::make_shared<const Valid<CacheSchema>>(valid_or_die(std::move(schema)));
    const Valid<PlacementManifest> placement = placed(*all.schema, {.tp = 2}, "side");
    const Valid<SnapshotDescriptor> snapshot = snapshot_of(*all.schema, Range(0, 8));
    for (const Part& part : placement->parts) {
      PoolRequest request;
      request.operation = OperationId("op");
      request.page_tokens = 4;
      request.instance_prefix = "side/";
      Diagnostics diagnostics;
      std::optional<Valid<RuntimeBinding>> bound = pool_binding(
          placement, digest(placement), part.participant, snapshot->tokens, digest(snapshot), request, diagnostics);
      CHECK(bound.has_value());
      all.bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*bound)));
    }
    return all;
  }();
  return made;
}

}  // namespace

Participant& RuntimeConformance::join_with_pages(Role role, size_t number) {
  static uint64_t count = 0;  // of names
  const PeerId name("runtime " + std::to_string(++count));
  return participants_.emplace_back(backend_->join_with_pages(name, role, pages().bindings[number], pages().schema));
}

HoldId RuntimeConformance::hold_of(const std::string& attempt, size_t number) {
  return HoldId{OperationId("op"), AttemptId(attempt), (*pages().bindings[number])->participant};
}

namespace {

TEST_P(RuntimeConformance, APinIsHeldUntilItsRelease) {
  for (const Role role : {Role::kSource, Role::kTarget}) {
    Participant& user = join_with_pages(role, role == Role::kSource ? 0 : 1);
    const HoldId hold = hold_of("a", role == Role::kSource ? 0 : 1);
    const auto binding = result_of<AnyBinding>(user.run(call(take_of(role), hold)));
    ASSERT_TRUE(!(binding == nullptr));
    EXPECT_EQ(binding->participant, hold.participant);
    EXPECT_EQ(user.run(call(kRelease, hold)).status, Status());
  }
}

TEST_P(RuntimeConformance, R4_ACallThatComesTwiceIsOneCall) {
  Participant& user = join_with_pages(Role::kTarget);
  const HoldId hold = hold_of("a");
  const auto first = result_of<AnyBinding>(user.run(call(kReserve, hold)));
  EXPECT_EQ(result_of<AnyBinding>(user.run(call(kReserve, hold))), first);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(user.run(call(kValidate, hold)).status, Status());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(user.run(call(kActivate, hold)).status, Status());
  Participant& source = join_with_pages(Role::kSource, 1);
  const HoldId pinned = hold_of("a", 1);
  for (int i = 0; i < 2; ++i) result_of<AnyBinding>(source.run(call(kPin, pinned)));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(source.run(call(kRelease, pinned)).status, Status());
}

// The answer of a reserve was lost and a release overtook it.
TEST_P(RuntimeConformance, WhatWasReleasedIsNeverHeldAgain) {
  Participant& user = join_with_pages(Role::kTarget);
  const HoldId hold = hold_of("a");
  EXPECT_EQ(user.run(call(kRelease, hold)).status, Status()) << "although it never came to be";
  EXPECT_EQ(user.run(call(kReserve, hold)).status.code(), Code::kConflict);
  EXPECT_EQ(user.run(call(kActivate, hold)).status.code(), Code::kConflict);
}

TEST_P(RuntimeConformance, WhatIsActiveIsNotReleased) {
  Participant& user = join_with_pages(Role::kTarget);
  const HoldId hold = hold_of("a");
  EXPECT_EQ(user.run(call(kActivate, hold)).status.code(), Code::kConflict) << "it is not reserved";
  EXPECT_EQ(user.run(call(kValidate, hold)).status.code(), Code::kConflict);
  result_of<AnyBinding>(user.run(call(kReserve, hold)));
  EXPECT_EQ(user.run(call(kActivate, hold)).status, Status());
  EXPECT_EQ(user.run(call(kRelease, hold)).status.code(), Code::kConflict);
  EXPECT_EQ(user.run(call(kActivate, hold)).status, Status()) << "and is active still";
}

TEST_P(RuntimeConformance, HoldsAreApart) {
  Participant& user = join_with_pages(Role::kTarget);
  result_of<AnyBinding>(user.run(call(kReserve, hold_of("a"))));
  EXPECT_EQ(user.run(call(kReserve, hold_of("b"))).status.code(), Code::kConflict) << "one at a time";
  const Code released = user.run(call(kRelease, hold_of("b"))).status.code();
  EXPECT_TRUE(released == Code::kOk || released == Code::kConflict);
  EXPECT_EQ(user.run(call(kActivate, hold_of("a"))).status, Status()) << "the first one's pages are its own";
}

TEST_P(RuntimeConformance, WhoIsNotKnownGetsAnAnswer) {
  Participant& user = join_with_pages(Role::kTarget);
  HoldId hold = hold_of("a");
  hold.participant = ParticipantId("nobody");
  for (const RuntimeCall what : {kReserve, kValidate, kActivate, kRelease})
    EXPECT_EQ(user.run(call(what, hold)).status.code(), Code::kNotFound);
}

// Each answer is lost once; the repetition says how it ended.
TEST_P(RuntimeConformance, R4_AnswersThatAreLostAreAnsweredAgain) {
  Participant& bare = join_with_pages(Role::kTarget);
  PortFaultPlan plan;
  for (const PortCall each : {PortCall::kReserve, PortCall::kValidate, PortCall::kActivate})
    plan.faults.push_back(PortFault{each, 0, PortFaultKind::kFailAfter, 1});
  FaultPorts faults(bare.ports(), plan);
  Participant user(faults.ports());
  const HoldId hold = hold_of("a");
  for (const RuntimeCall what : {kReserve, kValidate, kActivate}) {
    EXPECT_EQ(user.run(call(what, hold)).status.code(), Code::kOutcomeUnknown);
    EXPECT_EQ(user.run(call(what, hold)).status, Status());
  }
}

}  // namespace
}  // namespace crossdock::testing
