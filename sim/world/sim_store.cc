#include "sim/world/sim_store.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/checked.h"
#include "sim/world/engine.h"
#include "sim/world/sim_world.h"

namespace crossdock {
namespace {

// After which a call without an answer completes.
constexpr Duration kCallTimeout = Duration::from_ms(20);

// Thrown through the store's own code and caught in run() or open(). What the call had written until then is on the
// disk, as after a real crash; what it had changed in memory goes with the core.
// The store dies inside of a call.
struct StoreDied {};

}  // namespace

SimStore::SimStore(SimWorld& world, const StoreSpec& spec) : world_(world), spec_(spec), disk_(spec.capacity_bytes) {}

SimStore::~SimStore() = default;

// Modelled: the store's code as it ships, its crash at each named point with or without loss of what is not durable,
// its disk, its clock. Its calls take no time but that of the bytes that flow and of latencies.
Status SimStore::open() {
  StoreOptions options;
  options.chunk_bytes = spec_.chunk_bytes;
  options.quota_bytes = spec_.quota_bytes;
  options.clock = [this] { return world_.now() + clock_ahead_; };
  options.crash_point = [this](std::string_view point) {
    if (!armed_ || armed_->point != point) return;
    throw StoreDied();
  };
  try {
    TRY(core_, StoreCore::open(disk_.records(), disk_.chunks(), options));
  } catch (const StoreDied&) {  // while it recovered; it comes to no armed point a second time
    const Armed armed = *std::exchange(armed_, std::nullopt);
    crash(armed.loses_unsynced);
    return open();
  }
  return Status();
}

void SimStore::reopen() {
  if (core_ == nullptr) world_.checks().check(Invariant::kI2, world_.now(), open().message());
}

void SimStore::crash(bool loses_unsynced) {
  // First: its writers give their space back to the disk before the disk loses anything.
  core_ = nullptr;
  ++life_;
  if (loses_unsynced) disk_.lose_unsynced();
}

void SimStore::arm(std::string crash_point, bool loses_unsynced, Duration down) {
  armed_ = Armed{std::move(crash_point), loses_unsynced, down};
}

std::optional<Completion> SimStore::run(const std::function<Completion(StoreCore&)>& call) {
  if (core_ == nullptr) return std::nullopt;
  try {
    return call(*core_);
  } catch (const StoreDied&) {
    const Armed armed = *std::exchange(armed_, std::nullopt);
    world_.trace().instant(world_.world_track(), fmt::format("store {} dies at {}", name(), armed.point), "fault",
                           world_.now());
    crash(armed.loses_unsynced);
    world_.engine().after(armed.down, [this] { reopen(); });
    return std::nullopt;
  }
}

struct SimStorePort::Call {
  OpId op;
  bool is_data = false;
  std::vector<Flow> flows;
  size_t next_flow = 0;
  std::function<Completion(StoreCore&)> run;
  uint64_t life = 0;
  OperationEffects effects;
};

Status SimStorePort::post(OpId op, const char* name, bool is_data, std::vector<Flow> flows,
                          std::function<Completion(StoreCore&)> run) {
  SimWorld& world = node_.world();
  TRY(const OperationEffects effects, node_.accept(op, name, is_data));
  auto call = std::make_shared<Call>();
  call->op = op;
  call->is_data = is_data;
  call->flows = std::move(flows);
  call->run = std::move(run);
  call->effects = effects;
  const TimePoint sent = node_.next_start(world.cluster().costs.post_us);
  world.engine().at(sent + effects.starts_later + world.latency(node_.place(), store_.place()),
                    [this, call] { request(call); });
  return Status();
}

void SimStorePort::request(const CallPointer& call) {
  SimWorld& world = node_.world();
  if (call->effects.fails) return node_.complete(call->op, completion_of(Status(Code::kUnavailable, "made to fail")));
  // A store that is down and a way that is broken look the same to the caller: no answer until the timeout.
  if (store_.core() == nullptr || !world.is_reachable(node_.place(), store_.place())) return lost(call);
  call->life = store_.life();
  next_flow(call);
}

void SimStorePort::next_flow(const CallPointer& call) {
  // One flow after another. The bytes of a put go over the links before the store runs the call, and so do those of a
  // get, although it would read first; only the sum of the times is right.
  if (call->next_flow == call->flows.size()) return arrived(call);
  const Flow& flow = call->flows[call->next_flow++];
  SimWorld& world = node_.world();
  world.start_flow(flow.from, flow.to, flow.bytes, [this, call](const FlowResult& result) {
    if (result.end == FlowEnd::kDone)
      next_flow(call);
    else
      lost(call);
  });
}

void SimStorePort::arrived(const CallPointer& call) {
  SimWorld& world = node_.world();
  // The bytes went to a life of the store that is over.
  if (store_.life() != call->life) return lost(call);
  if (call->effects.shortens_read) store_.disk().shorten_next_read();
  if (call->effects.flips_bit) store_.disk().flip_next_read();
  std::optional<Completion> completion = store_.run(call->run);
  // A torn put is one whose reply is lost: the store takes a fragment in full or not at all.
  const bool loses_reply = call->effects.loses_reply || call->effects.torn.has_value();
  if (!completion || loses_reply) return lost(call);
  // Small answers take the latency of the way back; bulk data is there already.
  const Duration way = call->is_data ? Duration() : world.latency(store_.place(), node_.place());
  world.engine().after(way, [this, call, completion = std::move(*completion)] { answer(call, completion); });
}

void SimStorePort::answer(const CallPointer& call, Completion completion) {
  if (!node_.world().is_reachable(store_.place(), node_.place())) return lost(call);
  node_.complete(call->op, std::move(completion));
}

// kOutcomeUnknown for control calls (R4). A put or a get may simply be repeated, so for them it is kUnavailable (R3).
// The caller cannot know whether it happened.
void SimStorePort::lost(const CallPointer& call) {
  node_.complete_after(kCallTimeout, call->op,
                       completion_of(Status(call->is_data ? Code::kUnavailable : Code::kOutcomeUnknown,
                                            fmt::format("store '{}' does not answer", store_.name()))));
}

Status SimStorePort::post_begin(OpId op, const TxnId& txn, const UploadTarget& target) {
  return post(op, "begin", false, {},
              [txn, target](StoreCore& core) { return completion_of(core.begin(txn, target)); });
}

Status SimStorePort::post_put(OpId op, const TxnId& txn, const PutStep& step) {
  SimMemory& memory = node_.world().memory();
  std::map<Place, uint64_t> bytes;  // by where they come from
  for (const CopyStep& each : step.steps.steps())
    if (const SimMember* const source = memory.owner(step.steps.work().source_regions[each.source_region]))
      bytes[source->place] += each.total_bytes();
  std::vector<Flow> flows;
  for (const auto& [place, count] : bytes) flows.push_back(Flow{place, store_.place(), count});
  return post(op, "put", true, std::move(flows),
              [txn, step, &memory](StoreCore& core) { return completion_of(core.put(txn, step, memory.registry())); });
}

Status SimStorePort::post_commit(OpId op, const TxnId& txn, const Publication& publication) {
  return post(op, "commit", false, {},
              [txn, publication](StoreCore& core) { return completion_of(core.commit(txn, publication)); });
}

Status SimStorePort::post_abort(OpId op, const TxnId& txn) {
  return post(op, "abort", false, {}, [txn](StoreCore& core) { return completion_of(core.abort(txn)); });
}

Status SimStorePort::post_lookup(OpId op, const Lookup& lookup) {
  return post(op, "lookup", false, {}, [lookup](StoreCore& core) { return completion_of(core.lookup(lookup)); });
}

Status SimStorePort::post_get(OpId op, const GetStep& step) {
  SimMemory& memory = node_.world().memory();
  std::map<Place, uint64_t> bytes;  // by where they go to; a part of the steps lies outside of `within`
  for (const CopyStep& each : step.steps.steps()) {
    const SimMember* const target = memory.owner(step.steps.work().target_regions[each.target_region]);
    if (target == nullptr) continue;
    const uint64_t span = each.source_span();
    const uint64_t begin = std::max(each.source_offset, step.within.begin());
    const uint64_t end = std::min(saturating_add(each.source_offset, span), step.within.end());
    if (begin < end)
      bytes[target->place] +=
          std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(each.total_bytes()) *
                                                      static_cast<double>(end - begin) / static_cast<double>(span)));
  }
  std::vector<Flow> flows;
  for (const auto& [place, count] : bytes) flows.push_back(Flow{store_.place(), place, count});
  return post(op, "get", true, std::move(flows), [step, &memory](StoreCore& core) {
    memory.check_store_write(step);
    return completion_of(core.get(step, memory.registry()));
  });
}

Status SimStorePort::post_release(OpId op, LeaseId lease) {
  return post(op, "release-lease", false, {}, [lease](StoreCore& core) { return completion_of(core.release(lease)); });
}

}  // namespace crossdock
