#include "backends/drive/drive_protocols.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace crossdock {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

// A protocol is used by its own thread only. The caller's thread neither reads nor changes it: it sets nothing but
// wakes the queue, and the protocol's thread then finds the flag. So protocols need no locks.

// Asks one protocol to abort after an interrupt, and reports its steps.
class Attendant : public ProtocolObserver {
 public:
  Attendant(const DrivenProtocol& driven, const std::atomic<bool>* interrupted)
      : driven_(driven), interrupted_(interrupted) {}

  void advancing(Protocol&) override {
    if (driven_.request_abort && interrupted_ != nullptr && *interrupted_ && !std::exchange(asked_, true))
      driven_.request_abort("interrupted");
  }
  void advanced(TimePoint, std::span<const Completion>, std::span<const Post>, const Protocol&) override {
    if (driven_.advanced) driven_.advanced();
  }

 private:
  const DrivenProtocol& driven_;
  const std::atomic<bool>* interrupted_;
  bool asked_ = false;
};

// What the caller's thread does until `count` protocols have finished: ticks, and wakes those that can be aborted.
class Ticker {
 public:
  explicit Ticker(size_t count) : running_count_(count) {}

  void one_finished() {
    const std::lock_guard lock(mutex_);
    if (--running_count_ == 0) changed_.notify_all();
  }
  void run(std::span<const DrivenProtocol> protocols, const DriveHooks& hooks,
           const std::function<uint64_t()>& done_bytes) {
    std::unique_lock lock(mutex_);
    bool woken = false;
    while (!changed_.wait_for(lock, kTick, [&] { return running_count_ == 0; })) {
      if (hooks.tick) hooks.tick(done_bytes());
      // One wake is enough: the flag stays set, and each protocol looks at it before every step.
      if (hooks.interrupted == nullptr || !*hooks.interrupted || std::exchange(woken, true)) continue;
      for (const DrivenProtocol& each : protocols)
        if (each.wake) each.wake();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_count_;
};

}  // namespace

void drive_protocols(std::span<const DrivenProtocol> protocols, const DriveHooks& hooks,
                     const std::function<uint64_t()>& done_bytes) {
  std::vector<std::unique_ptr<ProtocolObserver>> observers;
  for (const DrivenProtocol& each : protocols) observers.push_back(hooks.observe ? hooks.observe(each.name) : nullptr);
  Ticker ticker(protocols.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < protocols.size(); ++i)
    threads.emplace_back([&, i] {
      Attendant attendant(protocols[i], hooks.interrupted);
      std::vector<ProtocolObserver*> watching = {&attendant};
      if (observers[i] != nullptr) watching.push_back(observers[i].get());
      drive(*protocols[i].protocol, protocols[i].ports, watching);
      ticker.one_finished();
    });
  ticker.run(protocols, hooks, done_bytes);
  // After the count is 0 each thread has only its return left.
  for (std::thread& thread : threads) thread.join();
}

}  // namespace crossdock
