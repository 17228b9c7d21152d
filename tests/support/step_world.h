// A world of one thread in which every completion, failure, loss and passing of time is a step that a schedule chooses.
// It runs protocols without a backend, so that small orders of events can be tried one by one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/memory/memory_registry.h"
#include "backends/store/blocking_store.h"
#include "base/rng.h"
#include "executor/protocol.h"

namespace crossdock::testing {

enum class Deviation {
  kTakeOther,   // another event than the oldest one comes first
  kFail,        // the oldest event fails: nothing happened
  kFailLate,    // it fails although it happened, in full or in part
  kDouble,      // a message arrives twice
  kTimePasses,  // the clock goes on to the next time that a participant waits for
  kRefuse,      // the next post is refused
  kNever,       // the oldest data operation does not complete before the drain is over
};

struct ScheduledDeviation {
  size_t step = 0;  // before this event, counted from 0
  Deviation what = Deviation::kTakeOther;
  size_t which = 1;  // for kTakeOther: how many events are passed over

  std::string to_text() const;
};

// What deviations are tried at a step: up to `passed_over_max` events are passed over; messages come twice only where
// there are any.
struct DeviationKinds {
  size_t passed_over_max;
  bool messages;
};
std::vector<ScheduledDeviation> deviations_at(size_t step, const DeviationKinds& kinds);
// Two of those at two steps below `step_count`.
std::vector<ScheduledDeviation> draw_two_deviations(Rng& rng, size_t step_count, const DeviationKinds& kinds);

// What a runtime did for a participant. Calls that are repeated count once.
struct RuntimeState {
  AnyBinding binding;
  std::vector<std::pair<RegionKey, std::vector<std::byte>*>> regions;
  int pins = 0;
  int reserves = 0;
  int activations = 0;
  int releases = 0;
  bool refuses_validation = false;
  bool refuses_release = false;  // for as long as it is set
  std::set<HoldId> held;
  std::set<HoldId> active;
  std::set<HoldId> released;  // by call, also those that were never held
};

class StepWorld {
 public:
  explicit StepWorld(uint64_t seed = 1) : rng_(seed) {}

  // A participant of a runtime: its binding, and the bytes of its regions, which outlive the world.
  void add_runtime(const ParticipantId& participant, Role role, AnyBinding binding,
                   std::map<RegionId, std::vector<std::byte>>& bytes);
  void add(const PeerId& peer, Role role, Protocol& protocol);
  void set_store(BlockingStore& store) { store_ = &store; }

  // Runs until all have finished. With probability `chaos` of 100 each step takes any event instead of the oldest.
  void run(const std::vector<ScheduledDeviation>& deviations, uint64_t chaos = 0);

  // Of the run; empty when every rule of the world was kept: a write into memory that was given back, operations that
  // complete twice or never, protocols that do not end.
  const std::vector<std::string>& violations() const { return violations_; }
  size_t step_count() const { return step_count_; }
  const RuntimeState& runtime(Role role, const ParticipantId& participant) const {
    return runtimes_.at({role, participant});
  }
  MemoryRegistry& memory() { return memory_; }
  RuntimeState& runtime(Role role, const ParticipantId& participant) { return runtimes_.at({role, participant}); }
  TimePoint now() const { return now_; }
  // Every message that was sent, and a way to send one more: late messages of another run, for example.
  const std::vector<SendPost>& sent() const { return sent_; }
  void inject(const SendPost& message);
  // Of a protocol that was added while the world runs: its first step.
  void wake(const PeerId& peer);
  void kill(const PeerId& peer) { killed_.insert(peer); }  // posts nothing and hears nothing from then on
  std::function<void(size_t step)> before_step;
  // What becomes of an operation, where it says: it happens and its answer is lost, or it does not happen, or its post
  // is refused for want of room. For outages that are longer than any number of attempts.
  enum class Fate { kAsUsual, kAnswerLost, kFails, kRefused };
  std::function<Fate(const Post& post)> fate_of;
  // Messages that never arrive.
  std::function<bool(const SendPost& message)> loses;

 private:
  struct Party {
    PeerId peer;
    Role role;
    Protocol* protocol;
    std::vector<Completion> inbox;
    std::set<OpId> under_way;
    std::deque<OpId> receives;
  };
  struct Event {
    size_t party;
    Post post;
    bool is_delivery = false;  // of a message, to the party
    bool is_held = false;      // does not complete before time has passed
  };

  void advance(size_t party);
  void take_posts(size_t party, std::vector<Post> posts);
  void execute(const Event& event, bool fail, bool happens);
  Status copy(const CopyPost& post, bool in_part);
  void complete(size_t party, Completion completion);
  void deliver(size_t party, const Message& message);
  bool pass_time();
  bool is_data(const Post& post) const;
  Completion call_runtime(Role role, const RuntimePost& call);

  Rng rng_;
  TimePoint now_ = TimePoint::from_ns(1'000'000'000);
  MemoryRegistry memory_;
  BlockingStore* store_ = nullptr;
  std::vector<Party> parties_;
  std::map<std::pair<Role, ParticipantId>, RuntimeState> runtimes_;
  std::map<PeerId, std::deque<Message>> boxes_;
  std::deque<Event> events_;
  std::set<PeerId> killed_;
  std::set<const std::vector<std::byte>*> given_back_;
  std::map<RegionKey, int> registered_;  // holds, and participants that share a region
  std::vector<SendPost> sent_;
  bool refuse_next_ = false;
  size_t step_count_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace crossdock::testing
