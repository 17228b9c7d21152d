#include "tests/conformance/local_backend.h"

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "backends/local/local_messenger.h"
#include "backends/local/local_runtime.h"
#include "backends/local/local_transport.h"
#include "backends/local/pooled_store.h"
#include "backends/store/store_core.h"

namespace crossdock::testing {
namespace {

constexpr TimePoint kStart = TimePoint::from_ns(1'700'000'000'000'000'000);

class LocalBackend : public Backend {
 public:
  LocalBackend(const BackendOptions& options, StoreTables tables, std::shared_ptr<void> keeper)
      : keeper_(std::move(keeper)),
        store_(open(options, std::move(tables))),
        pool_(options.worker_count, options.waiting_max) {}

  Ports join(const PeerId& name) override {
    auto& party = parties_[name];
    CHECK(party == nullptr);
    party = std::make_unique<Party>(*this, name);
    return Ports{&party->queue, &party->transport, &party->store, &party->messenger, nullptr};
  }
  Ports join_with_pages(const PeerId& name, Role role, const BindingPointer& binding,
                        const std::shared_ptr<const Valid<CacheSchema>>&) override {
    Ports ports = join(name);
    RegionMemory& memory = pages_.emplace_back();
    CHECK(memory.add(**binding).ok());
    runtime_.add(role, binding, memory);
    Party& party = *parties_.at(name);
    ports.runtime = &party.runtime.emplace(runtime_, role, pool_, party.queue);
    return ports;
  }
  Status add_memory(const RegionKey& key, std::span<std::byte> bytes) override { return memory_.add(key, bytes); }
  std::shared_ptr<void> hold(const GrantId& grant, const RegionKey& key) override {
    return std::make_shared<std::vector<MemoryRegistry::Access>>(
        memory_.write_access_all({key}, grant, nullptr).value());
  }
  void complete(const PeerId& name, Completion completion) override {
    parties_.at(name)->queue.add(std::move(completion));
  }
  void run_together(const std::vector<std::function<void()>>& bodies) override {
    std::vector<std::thread> threads;
    for (const std::function<void()>& body : bodies) threads.emplace_back(body);
    for (std::thread& thread : threads) thread.join();
  }
  void pause() override { std::this_thread::yield(); }
  void pass_time(Duration duration) override { passed_ns_ += duration.ns(); }
  Status remove(const ContentId& content) override { return store_->remove(content); }
  Status collect_garbage() override { return store_->gc().status(); }
  StoreUse store_use() override {
    const StoreStats stats = store_->stats().value();
    return StoreUse{stats.open_transactions, stats.snapshots + stats.page_publications + stats.removed, stats.leases,
                    stats.segments};
  }

 private:
  struct Party {
    Party(LocalBackend& backend, const PeerId& name)
        : transport(backend.memory_, backend.pool_, queue),
          store(*backend.store_, backend.memory_, backend.pool_, queue),
          messenger(backend.hub_, name, queue) {}
    LocalQueue queue;
    LocalTransport transport;
    PooledStore store;
    LocalMessenger messenger;
    std::optional<LocalRuntimePort> runtime;
  };

  std::unique_ptr<StoreCore> open(const BackendOptions& options, StoreTables tables) {
    StoreOptions store;
    store.chunk_bytes = options.chunk_bytes;
    store.quota_bytes = options.quota_bytes;
    store.clock = [this] { return kStart + Duration::from_ns(passed_ns_); };
    return StoreCore::open(std::move(tables.records), std::move(tables.chunks), std::move(store)).value();
  }

  std::shared_ptr<void> keeper_;
  std::atomic<int64_t> passed_ns_ = 0;
  MemoryRegistry memory_;
  std::deque<RegionMemory> pages_;
  LocalRuntime runtime_{memory_};
  MessageHub hub_;
  std::unique_ptr<StoreCore> store_;
  std::map<PeerId, std::unique_ptr<Party>> parties_;
  ThreadPool pool_;  // goes first
};

}  // namespace

std::unique_ptr<Backend> make_local_backend(const BackendOptions& options, StoreTables tables,
                                            std::shared_ptr<void> keeper) {
  return std::make_unique<LocalBackend>(options, std::move(tables), std::move(keeper));
}

}  // namespace crossdock::testing
