// The driver over ports of the local backend: a transfer in two parts, as two processes would run it, and one whose
// writer stalls until it is interrupted.
#include "backends/drive/drive_transfer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/faults/fault_transport.h"
#include "backends/local/local_messenger.h"
#include "backends/local/local_transfer.h"
#include "backends/local/local_transport.h"
#include "backends/memory/synthetic.h"
#include "executor/kv/kv_transfer.h"
#include "model/kv/pool_binding.h"
#include "tests/support/small_transfer.h"

namespace crossdock::testing {
namespace {

constexpr uint64_t kTokens = 40;
constexpr uint64_t kSeed = 3;

const Valid<CacheSchema>& schema() {
  static const Valid<CacheSchema> made = small_schema();
  return made;
}

const std::shared_ptr<const Valid<SnapshotDescriptor>>& snapshot() {
  static const auto made = std::make_shared<const Valid<SnapshotDescriptor>>(snapshot_of(schema(), Range(0, kTokens)));
  return made;
}

// Bindings and memory of one side.
struct Side {
  Side(const PartitionSizes& sizes, const std::string& name)
      : placement(std::make_shared<const Valid<PlacementManifest>>(placed(schema(), sizes, name))) {
    for (const Part& part : (*placement)->parts) {
      PoolRequest request;
      request.operation = OperationId("op");
      request.page_tokens = 4;
      request.instance_prefix = name + "/";
      Diagnostics diagnostics;
      std::optional<Valid<RuntimeBinding>> bound =
          pool_binding(*placement, digest(*placement), part.participant, (*snapshot())->tokens, digest(*snapshot()),
                       request, diagnostics);
      CHECK(bound.has_value());
      bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*bound)));
      CHECK(memory.add(**bindings.back()).ok());
    }
    fill_guards(memory);
  }

  std::shared_ptr<const Valid<PlacementManifest>> placement;
  std::vector<BindingPointer> bindings;
  RegionMemory memory;
};

class DriveTransferTest : public ::testing::Test {
 protected:
  DriveTransferTest() {
    for (const auto& [role, side] : {std::pair(Role::kSource, &source_), std::pair(Role::kTarget, &target_)})
      for (const BindingPointer& binding : side->bindings) runtime_.add(role, binding, side->memory);
    for (const BindingPointer& binding : source_.bindings) write_synthetic(*binding, *schema(), kSeed, source_.memory);
  }

  CoordinatorOptions coordinator_options() const {
    CoordinatorOptions options;
    options.operation = OperationId("op");
    options.attempt = AttemptId("attempt 1");
    options.instance = InstanceId("coordinator");
    options.planner = std::make_shared<const KvTransferPlanner>(
        KvTransfer{TransferDocuments{source_.placement, target_.placement, snapshot()}, PlanOptions(), LowerLimits()});
    options.checksum = true;
    return options;
  }
  // Empty when every item of every target is right and no other byte was touched.
  std::string wrong_content() const {
    for (const BindingPointer& binding : target_.bindings)
      if (const auto wrong = take_synthetic(*binding, *schema(), kSeed, target_.memory)) return *wrong;
    return check_guards(target_.memory).value_or("");
  }

  Side source_{{.tp = 2}, "prefill"};
  Side target_{{.pp = 2}, "decode"};
  MemoryRegistry registry_;
  LocalRuntime runtime_{registry_};
};

TEST_F(DriveTransferTest, TwoProcessesDriveATransferTogether) {
  struct Node {
    Node(MemoryRegistry& registry, ThreadPool& pool, LocalRuntime& runtime, MessageHub& hub, Role role, PeerId self)
        : transport(registry, pool, queue),
          runtime_port(runtime, role, pool, queue),
          messenger(hub, std::move(self), queue) {}
    Ports ports() { return Ports{&queue, &transport, nullptr, &messenger, &runtime_port}; }
    LocalQueue queue;
    LocalTransport transport;
    LocalRuntimePort runtime_port;
    LocalMessenger messenger;
  };
  MessageHub hub;
  std::vector<std::unique_ptr<Node>> nodes;
  auto pool = std::make_unique<ThreadPool>(2, 64);
  DrivenTransfer of_sources, of_targets;
  DrivenCoordinator& coordinator = of_sources.coordinator.emplace();
  coordinator.options = coordinator_options();
  const auto join = [&](Role role, const PeerId& self) -> Node& {
    return *nodes.emplace_back(std::make_unique<Node>(registry_, *pool, runtime_, hub, role, self));
  };
  for (const auto& [role, side, transfer, peers] :
       {std::tuple(Role::kSource, &source_, &of_sources, &coordinator.options.sources),
        std::tuple(Role::kTarget, &target_, &of_targets, &coordinator.options.targets)})
    for (const BindingPointer& binding : side->bindings) {
      ParticipantOptions options;
      options.operation = OperationId("op");
      options.attempt = AttemptId("attempt 1");
      options.participant = (*binding)->participant;
      options.coordinator = PeerId(kCoordinatorName);
      options.seed = nodes.size();
      const PeerId peer = local_peer(role, options.participant);
      peers->push_back({options.participant, peer});
      transfer->participants.push_back({role, options, peer.text(), join(role, peer).ports()});
    }
  Node& node = join(Role::kSource, PeerId(kCoordinatorName));
  coordinator.ports = node.ports();
  coordinator.wake = [&] { node.queue.add(Completion{OpId(0), Status(), std::monostate(), true}); };

  const auto none = [] { return uint64_t{0}; };
  TransferReport target_report;
  std::thread second([&] { target_report = drive_transfer(of_targets, DriveHooks(), none); });
  const TransferReport source_report = drive_transfer(of_sources, DriveHooks(), none);
  second.join();
  pool.reset();

  EXPECT_EQ(source_report.outcome.status(), Status());
  EXPECT_EQ(source_report.outcome.activated_count, target_.bindings.size());
  EXPECT_NE(source_report.job, nullptr);
  EXPECT_GT(source_report.operation_count, 0u);
  ASSERT_EQ(source_report.sources.size(), source_.bindings.size());
  EXPECT_TRUE(source_report.targets.empty());
  for (const ParticipantOutcome& each : source_report.sources) EXPECT_TRUE(each.released);
  EXPECT_EQ(target_report.job, nullptr);
  EXPECT_TRUE(target_report.sources.empty());
  ASSERT_EQ(target_report.targets.size(), target_.bindings.size());
  for (const ParticipantOutcome& each : target_report.targets) EXPECT_TRUE(each.activated);
  EXPECT_EQ(wrong_content(), "");
}

// Sets a flag as soon as the protocol has posted a copy, and counts its steps.
class CopyWatch : public ProtocolObserver {
 public:
  CopyWatch(std::atomic<bool>& copies, std::atomic<size_t>& step_count) : copies_(copies), step_count_(step_count) {}
  void advancing(Protocol&) override {}
  void advanced(TimePoint, std::span<const Completion>, std::span<const Post> posts, const Protocol&) override {
    ++step_count_;
    for (const Post& each : posts)
      if (std::holds_alternative<CopyPost>(each.call)) copies_ = true;
  }

 private:
  std::atomic<bool>& copies_;
  std::atomic<size_t>& step_count_;
};

TEST_F(DriveTransferTest, AnInterruptEndsATransferWhoseWriterStalls) {
  LocalTransferRequest request;
  request.coordinator = coordinator_options();
  request.coordinator.done_wait = Duration::from_ms(1);
  request.participant.drain = Duration::from_ms(1);
  request.source_bindings = any_bindings(source_.bindings);
  request.target_bindings = any_bindings(target_.bindings);
  request.thread_count = 2;
  const ParticipantId staller = (*source_.bindings.front())->participant;
  std::unique_ptr<FaultyTransportPorts> faults;
  request.decorate = [&](Role role, const ParticipantId& participant, const Ports& own) {
    if (role != Role::kSource || participant != staller) return own;
    faults = std::make_unique<FaultyTransportPorts>(
        own, PortFaultPlan{1, {{PortCall::kCopy, 0, PortFaultKind::kStall, 86400}}});
    return faults->ports();
  };
  std::atomic<bool> interrupted = false;
  std::atomic<size_t> step_count = 0;
  std::vector<std::string> names;
  DriveHooks hooks;
  hooks.interrupted = &interrupted;
  hooks.observe = [&](const std::string& name) -> std::unique_ptr<ProtocolObserver> {
    names.push_back(name);
    if (name != local_peer(Role::kSource, staller).text()) return nullptr;
    return std::make_unique<CopyWatch>(interrupted, step_count);
  };
  const LocalTransferReport report = run_local_transfer(request, runtime_, registry_, hooks);

  EXPECT_EQ(report.outcome.status().message(), "interrupted");
  ASSERT_EQ(report.sources.size(), 2u);
  EXPECT_TRUE(report.sources[0].quarantined);
  EXPECT_FALSE(report.sources[0].lost.empty());
  EXPECT_FALSE(report.sources[1].quarantined);
  for (const ParticipantOutcome& each : report.targets) EXPECT_FALSE(each.activated);
  EXPECT_EQ(runtime_.count(LocalRuntime::State::kActive), 0u);
  EXPECT_EQ(runtime_.state(Role::kSource, staller), LocalRuntime::State::kHeld);
  EXPECT_GT(step_count, 0u);
  EXPECT_EQ(names, (std::vector<std::string>{"source p0-t0", "source p0-t1", "target p0-t0", "target p1-t0",
                                             kCoordinatorName}));
}

}  // namespace
}  // namespace crossdock::testing
