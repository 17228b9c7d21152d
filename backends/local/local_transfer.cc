#include "backends/local/local_transfer.h"

#include <atomic>
#include <memory>
#include <string>

#include "backends/local/copy_meter.h"
#include "backends/local/local_messenger.h"
#include "backends/local/local_transport.h"
#include "backends/local/pooled_store.h"
#include "backends/local/thread_pool.h"
#include "base/thread_count.h"

namespace crossdock {
namespace {

constexpr size_t kWaitingMax = 1024;  // operations that a pool holds

// Order of life: hub, meter and pool live longer than the nodes' use of them. Tasks of the pool refer to the nodes'
// queues, so the pool ends, and with it every task, before the nodes do (R2).
// All that a participant has.
struct Node {
  Node(MemoryRegistry& registry, ThreadPool& pool, LocalRuntime& runtime, Role role, uint64_t total_bytes,
       CopyMeter* meter)
      : transport(registry, pool, queue, total_bytes, meter), runtime_port(runtime, role, pool, queue) {}

  LocalQueue queue;
  LocalTransport transport;
  LocalRuntimePort runtime_port;
  std::unique_ptr<Messenger> messenger;
  std::unique_ptr<ObjectStore> store;

  Ports ports() { return Ports{&queue, &transport, store.get(), messenger.get(), &runtime_port}; }
  // A completion of no operation: the protocol takes its next step.
  void wake() { queue.add(Completion{OpId(0), Status(), std::monostate(), true}); }
};

uint64_t region_bytes(const std::vector<AnyBinding>& bindings) {
  uint64_t bytes = 0;
  for (const AnyBinding& binding : bindings)
    for (const Region& region : binding->regions) bytes += region.bytes;
  return bytes;
}

// An upload or a restore; both tell how many bytes they have moved.
template <class StoreProtocol>
void run_with_store(StoreProtocol& protocol, const std::string& name, Role role, BlockingStore& store,
                    LocalRuntime& runtime, MemoryRegistry& registry, size_t thread_count, const DriveHooks& hooks) {
  auto pool = std::make_unique<ThreadPool>(thread_count_or_all(thread_count), kWaitingMax);
  // Total bytes 0: a store copies through its own staging memory, and no copy of this transport takes place.
  Node node(registry, *pool, runtime, role, 0, nullptr);
  node.store = std::make_unique<PooledStore>(store, registry, *pool, node.queue);
  std::atomic<uint64_t> done_bytes = 0;
  DrivenProtocol driven{name, &protocol, node.ports(), {}, {}, {}};
  driven.request_abort = [&](const std::string& reason) { protocol.request_abort(reason); };
  driven.wake = [&] { node.wake(); };
  driven.advanced = [&] { done_bytes = protocol.done_bytes(); };
  drive_protocols({&driven, 1}, hooks, [&] { return done_bytes.load(); });
  pool.reset();  // operations that were given up complete before the queue goes
}

}  // namespace

PeerId local_peer(Role role, const ParticipantId& participant) {
  return PeerId((role == Role::kSource ? "source " : "target ") + participant.text());
}

CoordinatorOptions local_coordinator_options(const LocalTransferRequest& request) {
  CoordinatorOptions options = request.coordinator;
  options.reply_to = PeerId(kCoordinatorName);
  for (const AnyBinding& binding : request.source_bindings)
    options.sources.push_back({binding->participant, local_peer(Role::kSource, binding->participant)});
  for (const AnyBinding& binding : request.target_bindings)
    options.targets.push_back({binding->participant, local_peer(Role::kTarget, binding->participant)});
  return options;
}

ParticipantOptions local_participant_options(const LocalTransferRequest& request, const ParticipantId& participant,
                                             uint64_t number) {
  ParticipantOptions options = request.participant;
  options.operation = request.coordinator.operation;
  options.attempt = request.coordinator.attempt;
  options.participant = participant;
  options.coordinator = PeerId(kCoordinatorName);
  // Each has its own, so that retries of several participants do not coincide.
  options.seed = request.coordinator.seed + number;
  return options;
}

LocalTransferReport run_local_transfer(const LocalTransferRequest& request, LocalRuntime& runtime,
                                       MemoryRegistry& registry, const DriveHooks& hooks) {
  MessageHub hub;
  CopyMeter meter;
  auto pool = std::make_unique<ThreadPool>(thread_count_or_all(request.thread_count), kWaitingMax);
  const uint64_t total_bytes = region_bytes(request.target_bindings);
  std::vector<std::unique_ptr<Node>> nodes;
  DrivenTransfer transfer;
  DrivenCoordinator& coordinator = transfer.coordinator.emplace();
  coordinator.options = local_coordinator_options(request);
  const auto add = [&](Role role, const AnyBinding& binding) {
    const ParticipantOptions options = local_participant_options(request, binding->participant, nodes.size() + 1);
    const PeerId peer = local_peer(role, options.participant);
    Node& node = *nodes.emplace_back(std::make_unique<Node>(registry, *pool, runtime, role, total_bytes, &meter));
    node.messenger = std::make_unique<LocalMessenger>(hub, peer, node.queue);
    Ports ports = node.ports();
    if (request.decorate) ports = request.decorate(role, options.participant, ports);
    transfer.participants.push_back({role, options, peer.text(), ports});
  };
  for (const AnyBinding& binding : request.source_bindings) add(Role::kSource, binding);
  for (const AnyBinding& binding : request.target_bindings) add(Role::kTarget, binding);

  Node coordinator_node(registry, *pool, runtime, Role::kSource, 0, nullptr);
  coordinator_node.messenger = std::make_unique<LocalMessenger>(hub, PeerId(kCoordinatorName), coordinator_node.queue);
  coordinator.ports = coordinator_node.ports();
  coordinator.wake = [&] { coordinator_node.wake(); };

  LocalTransferReport report{drive_transfer(transfer, hooks, [&] { return meter.bytes(); }), Duration(), 0};
  pool.reset();  // operations that were given up complete before the queues go
  report.copying = meter.span();
  report.copied_bytes = meter.bytes();
  return report;
}

UploadOutcome run_local_upload(Upload& upload, BlockingStore& store, LocalRuntime& runtime, MemoryRegistry& registry,
                               size_t thread_count, const DriveHooks& hooks) {
  run_with_store(upload, "upload", Role::kSource, store, runtime, registry, thread_count, hooks);
  return upload.outcome();
}

RestoreOutcome run_local_restore(Restore& restore, BlockingStore& store, LocalRuntime& runtime,
                                 MemoryRegistry& registry, size_t thread_count, const DriveHooks& hooks) {
  run_with_store(restore, "restore", Role::kTarget, store, runtime, registry, thread_count, hooks);
  return restore.outcome();
}

}  // namespace crossdock
