// A store on a machine of the cluster: the StoreCore that ships, over a simulated disk, reached over links.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backends/store/store_core.h"
#include "executor/ports.h"
#include "sim/scenario/scenario.h"
#include "sim/world/sim_disk.h"
#include "sim/world/sim_node.h"

namespace crossdock {

class SimStore {
 public:
  SimStore(SimWorld& world, const StoreSpec& spec);
  ~SimStore();

  const std::string& name() const { return spec_.name; }
  Place place() const { return Place{spec_.machine, PlaceKind::kSsd, 0}; }
  SimDisk& disk() { return disk_; }
  // Null while it is down.
  StoreCore* core() { return core_.get(); }
  // Grows with each crash. The answer to a call that began in an earlier life is lost.
  uint64_t life() const { return life_; }

  // Opens the core over the disk as it is. It may fail, as StoreCore::open() does.
  Status open();
  // Opens it if it is down. A store that does not open is a violation of I2.
  void reopen();
  // Sets its clock forward, relative to all other clocks.
  void advance_clock(Duration by) { clock_ahead_ = clock_ahead_ + by; }
  // At once, between two calls. Answers that are on their way are lost.
  void crash(bool loses_unsynced);
  // It crashes the next time it reaches this point (one of StoreCore's kCrashPoints), and opens again after `down`.
  void arm(std::string crash_point, bool loses_unsynced, Duration down);

  void disarm() { armed_ = std::nullopt; }

  // Runs a call of the core; empty when the store crashed meanwhile or is down.
  std::optional<Completion> run(const std::function<Completion(StoreCore&)>& call);

 private:
  struct Armed {
    std::string point;
    bool loses_unsynced;
    Duration down;
  };

  SimWorld& world_;
  StoreSpec spec_;
  SimDisk disk_;
  std::unique_ptr<StoreCore> core_;
  std::optional<Armed> armed_;
  Duration clock_ahead_;
  uint64_t life_ = 0;
};

// The port of a participant to one store.
class SimStorePort : public ObjectStore {
 public:
  SimStorePort(SimNode& node, SimStore& store) : node_(node), store_(store) {}

  Status post_begin(OpId op, const TxnId& txn, const UploadTarget& target) override;
  Status post_put(OpId op, const TxnId& txn, const PutStep& step) override;
  Status post_commit(OpId op, const TxnId& txn, const Publication& publication) override;
  Status post_abort(OpId op, const TxnId& txn) override;
  Status post_lookup(OpId op, const Lookup& lookup) override;
  Status post_get(OpId op, const GetStep& step) override;
  Status post_release(OpId op, LeaseId lease) override;
  void cancel(OpId) override {}  // a request is at the store; it completes

 private:
  // Bytes that go with a call, before it is run.
  struct Flow {
    Place from;
    Place to;
    uint64_t bytes;
  };
  struct Call;
  using CallPointer = std::shared_ptr<Call>;

  Status post(OpId op, const char* name, bool is_data, std::vector<Flow> flows,
              std::function<Completion(StoreCore&)> run);
  void request(const CallPointer& call);
  void next_flow(const CallPointer& call);
  void arrived(const CallPointer& call);
  void answer(const CallPointer& call, Completion completion);
  void lost(const CallPointer& call);

  SimNode& node_;
  SimStore& store_;
};

}  // namespace crossdock
