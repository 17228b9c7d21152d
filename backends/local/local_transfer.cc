#include "backends/local/local_transfer.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "backends/local/copy_meter.h"
#include "backends/local/local_messenger.h"
#include "backends/local/local_transport.h"
#include "backends/local/pooled_store.h"
#include "backends/local/thread_pool.h"
#include "base/thread_count.h"

namespace crossdock {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr size_t kWaitingMax = 1024;  // operations that a pool holds
constexpr const char* kCoordinatorPeer = "coordinator";

// The transport of a participant with the fault of the request.
class FaultyTransport : public Transport {
 public:
  FaultyTransport(Transport& transport, const LocalFault& fault, const MemoryRegistry& registry)
      : transport_(transport), fault_(fault), registry_(registry) {}

  Status post_copy(OpId op, const StepSpan& steps) override {
    if (copy_count_++ >= fault_.after) {
      if (fault_.kind == LocalFault::Kind::kCopyFails) return Status(Code::kIo, "the path to the target is broken");
      if (fault_.kind == LocalFault::Kind::kWriterSilent) return Status();  // nothing ever comes back
    }
    return transport_.post_copy(op, steps);
  }
  Status post_checksum(OpId op, const StepSpan& steps, StepEnd end) override {
    if (fault_.kind == LocalFault::Kind::kBitFlips && !std::exchange(flipped_, true)) flip(steps);
    return transport_.post_checksum(op, steps, end);
  }
  Status post_revoke(OpId op, const RegionKey& key) override { return transport_.post_revoke(op, key); }
  void cancel(OpId op) override { transport_.cancel(op); }

 private:
  // In the first byte that the first step writes, after it was written.
  void flip(const StepSpan& steps) {
    const CopyStep& step = steps.steps().front();
    const auto access = registry_.access(steps.work().target_regions[step.target_region]);
    if (access.ok()) access.value().bytes()[step.target_offset] ^= std::byte{1};
  }

  Transport& transport_;
  const LocalFault& fault_;
  const MemoryRegistry& registry_;
  uint64_t copy_count_ = 0;
  bool flipped_ = false;
};

// Asks the protocol to abort once somebody interrupts, and says how far it has come.
template <class Asked>
class Interrupter : public ProtocolObserver {
 public:
  Interrupter(const std::atomic<bool>* interrupted, std::function<void()> each_time)
      : interrupted_(interrupted), each_time_(std::move(each_time)) {}
  void advancing(Protocol& protocol) override {
    if (interrupted_ != nullptr && *interrupted_ && !std::exchange(asked_, true))
      static_cast<Asked&>(protocol).request_abort("interrupted");
  }
  void advanced(TimePoint, std::span<const Completion>, std::span<const Post>, const Protocol&) override {
    if (each_time_) each_time_();
  }

 private:
  const std::atomic<bool>* interrupted_;
  std::function<void()> each_time_;
  bool asked_ = false;
};

// Calls tick and wakes a queue after an interrupt, until the work says that it is over.
class Ticker {
 public:
  void over() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  void run(const LocalHooks& hooks, LocalQueue& to_wake, const std::function<uint64_t()>& done_bytes) {
    std::unique_lock lock(mutex_);
    bool woken = false;
    while (!changed_.wait_for(lock, kTick, [&] { return over_; })) {
      if (hooks.tick) hooks.tick(done_bytes());
      if (hooks.interrupted != nullptr && *hooks.interrupted && !std::exchange(woken, true))
        to_wake.add(Completion{OpId(0), Status(), std::monostate(), true});
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
};

// All that a participant has.
struct Node {
  Node(MemoryRegistry& registry, ThreadPool& pool, LocalRuntime& runtime, Role role, uint64_t total_bytes,
       CopyMeter* meter)
      : transport(registry, pool, queue, total_bytes, meter), runtime_port(runtime, role, queue) {}

  LocalQueue queue;
  LocalTransport transport;
  LocalRuntimePort runtime_port;
  std::unique_ptr<Transport> faulty;
  std::unique_ptr<Messenger> messenger;
  std::unique_ptr<ObjectStore> store;

  Ports ports() {
    return Ports{&queue, faulty == nullptr ? &transport : faulty.get(), store.get(), messenger.get(), &runtime_port};
  }
};

uint64_t region_bytes(const std::vector<BindingPointer>& bindings) {
  uint64_t bytes = 0;
  for (const BindingPointer& binding : bindings)
    for (const Region& region : (*binding)->regions) bytes += region.bytes;
  return bytes;
}

// Drives a protocol with whoever watches it.
void drive_watched(Protocol& protocol, const Ports& ports, ProtocolObserver* interrupter, ProtocolObserver* observer) {
  std::vector<ProtocolObserver*> observers;
  for (ProtocolObserver* each : {interrupter, observer})
    if (each != nullptr) observers.push_back(each);
  drive(protocol, ports, observers);
}

std::unique_ptr<ProtocolObserver> observer_of(const LocalHooks& hooks, const std::string& name) {
  return hooks.observe ? hooks.observe(name) : nullptr;
}

// An upload or a restore in the caller's thread; another thread ticks.
template <class Asked>
void run_with_store(Asked& protocol, const std::string& name, Role role, BlockingStore& store, LocalRuntime& runtime,
                    MemoryRegistry& registry, size_t thread_count, const LocalHooks& hooks) {
  std::atomic<uint64_t> done_bytes = 0;
  const std::unique_ptr<ProtocolObserver> observer = observer_of(hooks, name);
  Interrupter<Asked> interrupter(hooks.interrupted, [&] { done_bytes = protocol.done_bytes(); });
  auto pool = std::make_unique<ThreadPool>(thread_count_or_all(thread_count), kWaitingMax);
  Node node(registry, *pool, runtime, role, 0, nullptr);
  node.store = std::make_unique<PooledStore>(store, registry, *pool, node.queue);
  Ticker ticker;
  std::thread driver([&] {
    drive_watched(protocol, node.ports(), &interrupter, observer.get());
    ticker.over();
  });
  ticker.run(hooks, node.queue, [&] { return done_bytes.load(); });
  driver.join();
  pool.reset();  // what was given up ends before the queue that it would complete in
}

}  // namespace

PeerId local_peer(Role role, const ParticipantId& participant) {
  return PeerId((role == Role::kSource ? "source " : "target ") + participant.text());
}

ParticipantOptions local_participant_options(const LocalTransferRequest& request, const ParticipantId& participant,
                                             uint64_t number) {
  ParticipantOptions options = request.participant;
  options.operation = request.coordinator.operation;
  options.participant = participant;
  options.coordinator = PeerId(kCoordinatorPeer);
  options.seed = request.coordinator.seed + number;
  return options;
}

LocalTransferReport run_local_transfer(const LocalTransferRequest& request, LocalRuntime& runtime,
                                       MemoryRegistry& registry, const LocalHooks& hooks) {
  CoordinatorOptions coordinator_options = request.coordinator;
  MessageHub hub;
  CopyMeter meter;
  auto pool = std::make_unique<ThreadPool>(thread_count_or_all(request.thread_count), kWaitingMax);
  const uint64_t total_bytes = region_bytes(request.target_bindings);
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<ParticipantProtocol>> protocols;
  std::vector<std::string> names;
  const auto add = [&](Role role, const BindingPointer& binding) {
    const ParticipantOptions options = local_participant_options(request, (*binding)->participant, nodes.size() + 1);
    auto node = std::make_unique<Node>(registry, *pool, runtime, role, total_bytes, &meter);
    node->messenger = std::make_unique<LocalMessenger>(hub, local_peer(role, options.participant), node->queue);
    if (role == Role::kSource && request.fault.kind != LocalFault::Kind::kNone &&
        request.fault.participant == options.participant)
      node->faulty = std::make_unique<FaultyTransport>(node->transport, request.fault, registry);
    (role == Role::kSource ? coordinator_options.sources : coordinator_options.targets)
        .push_back({options.participant, local_peer(role, options.participant)});
    names.push_back(local_peer(role, options.participant).text());
    if (role == Role::kSource)
      protocols.push_back(std::make_unique<Writer>(options));
    else
      protocols.push_back(std::make_unique<Target>(options));
    nodes.push_back(std::move(node));
  };
  for (const BindingPointer& binding : request.source_bindings) add(Role::kSource, binding);
  for (const BindingPointer& binding : request.target_bindings) add(Role::kTarget, binding);

  Coordinator coordinator(coordinator_options);
  Node coordinator_node(registry, *pool, runtime, Role::kSource, 0, nullptr);
  coordinator_node.messenger = std::make_unique<LocalMessenger>(hub, PeerId(kCoordinatorPeer), coordinator_node.queue);
  Interrupter<Coordinator> interrupter(hooks.interrupted, {});

  std::vector<std::unique_ptr<ProtocolObserver>> observers;
  for (const std::string& name : names) observers.push_back(observer_of(hooks, name));
  observers.push_back(observer_of(hooks, "coordinator"));
  const TimePoint begin = steady_now();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < nodes.size(); ++i)
    threads.emplace_back([&, i] { drive_watched(*protocols[i], nodes[i]->ports(), nullptr, observers[i].get()); });
  Ticker ticker;
  threads.emplace_back([&] {
    drive_watched(coordinator, coordinator_node.ports(), &interrupter, observers.back().get());
    ticker.over();
  });
  ticker.run(hooks, coordinator_node.queue, [&] { return meter.bytes(); });
  for (std::thread& thread : threads) thread.join();
  pool.reset();  // what was given up ends before the queues that it would complete in

  LocalTransferReport report;
  report.total = steady_now() - begin;
  report.copying = meter.span();
  report.copied_bytes = meter.bytes();
  report.outcome = coordinator.outcome();
  report.job = coordinator.job();
  for (size_t i = 0; i < protocols.size(); ++i) {
    (i < request.source_bindings.size() ? report.sources : report.targets).push_back(protocols[i]->outcome());
    report.operation_count += protocols[i]->outcome().operations;
  }
  return report;
}

UploadOutcome run_local_upload(Upload& upload, BlockingStore& store, LocalRuntime& runtime, MemoryRegistry& registry,
                               size_t thread_count, const LocalHooks& hooks) {
  run_with_store(upload, "upload", Role::kSource, store, runtime, registry, thread_count, hooks);
  return upload.outcome();
}

RestoreOutcome run_local_restore(Restore& restore, BlockingStore& store, LocalRuntime& runtime,
                                 MemoryRegistry& registry, size_t thread_count, const LocalHooks& hooks) {
  run_with_store(restore, "restore", Role::kTarget, store, runtime, registry, thread_count, hooks);
  return restore.outcome();
}

}  // namespace crossdock
