// A live transfer that is small enough to try every order of its events, with its documents, memory and contents.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/coordinator.h"
#include "executor/kv/kv_transfer.h"
#include "executor/target.h"
#include "executor/transfer_job.h"
#include "executor/writer.h"
#include "tests/support/example_documents.h"
#include "tests/support/step_world.h"

namespace crossdock::testing {

using RegionBytes = std::map<RegionId, std::vector<std::byte>>;

// One side: bindings of all participants, and the bytes of their regions.
struct SmallSide {
  std::shared_ptr<const Valid<PlacementManifest>> placement;
  std::vector<BindingPointer> bindings;
  std::vector<std::unique_ptr<RegionBytes>> bytes;  // of each binding
};

// Two layers of keys and values with four heads.
Valid<CacheSchema> small_schema();

SmallSide small_side(const Valid<CacheSchema>& schema, const PartitionSizes& sizes, const std::string& name,
                     const Valid<SnapshotDescriptor>& snapshot, uint64_t page_tokens, uint64_t shuffle,
                     uint64_t epoch = 0);

// Writes each item that the binding's views hold, element by element by the formula of model/kv/view.h: byte i of an
// item is a hash of (component, layer, head, token's row, dim, i).
void write_items(const SmallSide& side);
// Empty when every item of every binding is what write_items() writes, and every other byte is 0xa5.
std::string wrong_items(const SmallSide& side);
std::string wrong_items(const SmallSide& side, size_t binding);

struct SmallTransfer {
  explicit SmallTransfer(const PartitionSizes& source_sizes = {.tp = 2}, const PartitionSizes& target_sizes = {.pp = 2},
                         bool checksum = true, uint64_t tokens = 5, uint64_t seed = 1,
                         const std::string& attempt_name = "attempt 1");

  // Adds everything to the world. `wrap` may put another protocol in the place of each.
  using Wrap = std::function<Protocol&(const PeerId& peer, Protocol& protocol)>;
  void join(
      StepWorld& world, const Wrap& wrap = [](const PeerId&, Protocol& protocol) -> Protocol& { return protocol; });

  ParticipantOptions participant_options(const ParticipantId& participant, uint64_t number) const;

  AttemptId attempt;
  Valid<CacheSchema> schema;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
  SmallSide source;
  SmallSide target;
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<std::unique_ptr<Target>> targets;
  CoordinatorOptions coordinator_options;
  std::unique_ptr<Coordinator> coordinator;
  uint64_t seed;
};

PeerId source_peer(const ParticipantId& participant);
PeerId target_peer(const ParticipantId& participant);

}  // namespace crossdock::testing
