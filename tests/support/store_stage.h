// Uploads and restores in a StepWorld, over a store in memory whose clock is the world's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/store/store_core.h"
#include "executor/kv/kv_store.h"
#include "executor/restore.h"
#include "executor/upload.h"
#include "tests/support/small_transfer.h"
#include "tests/support/step_world.h"
#include "tests/support/store_tables.h"

namespace crossdock::testing {

// The store, which outlives worlds; time goes on from one to the next.
class StoreStage {
 public:
  explicit StoreStage(uint32_t chunk_bytes = 16);

  // Opens it, or opens it again over the same tables.
  void open();
  StoreCore& core() { return *core_; }
  // Runs the protocol in a world of its own, to its end.
  void run(StepWorld& world, const std::vector<ScheduledDeviation>& deviations, uint64_t chaos = 0);
  void pass(Duration time) { now_ = now_ + time; }
  // Restarts it between two steps of the world that runs.
  void restart();

  StoreOptions options;
  StoreTables tables;

 private:
  TimePoint now() const;

  std::unique_ptr<StoreCore> core_;
  StepWorld* world_ = nullptr;
  TimePoint begun_;
  TimePoint now_ = TimePoint::from_ns(0) + Duration::from_s(1000);
};

// Parts that several ranks write together, and parts that one does: layer 0 whole, layer 1 by pairs of heads.
Valid<StoreLayout> small_layout(const Valid<CacheSchema>& schema, uint64_t page_tokens,
                                ObjectOrder order = ObjectOrder::kPlhd);

// Everything of one upload, from two ranks unless said otherwise.
struct SmallUpload {
  SmallUpload(const Valid<CacheSchema>& schema, uint64_t tokens, const Valid<StoreLayout>& layout,
              const PartitionSizes& sizes = {.tp = 2});

  UploadOptions options() const;
  void join(StepWorld& world, Protocol& protocol);

  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
  std::shared_ptr<const Valid<StoreLayout>> layout;
  SmallSide source;
};

// Targets of one restore, of the snapshot.
struct SmallRestore {
  SmallRestore(const Valid<CacheSchema>& schema, const Valid<SnapshotDescriptor>& snapshot,
               const PartitionSizes& sizes = {.pp = 2}, uint64_t page_tokens = 2);

  RestoreOptions options() const;
  void join(StepWorld& world, Protocol& protocol);

  Valid<SnapshotDescriptor> snapshot;
  SmallSide target;
};

}  // namespace crossdock::testing
