// The documents of one side of a work: placement, bindings, and where each participant lies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/message.h"
#include "model/kv/placement.h"
#include "model/kv/snapshot.h"
#include "model/valid.h"
#include "sim/scenario/scenario.h"
#include "sim/world/sim_memory.h"

namespace crossdock {

struct ScenarioSide {
  std::shared_ptr<const Valid<PlacementManifest>> placement;
  std::vector<std::unique_ptr<SimMember>> members;  // one for each participant
};

struct SideRequest {
  const Scenario* scenario = nullptr;
  const WorkSpec* work = nullptr;
  const SideSpec* side = nullptr;
  Role role = Role::kSource;
  std::shared_ptr<const Valid<CacheSchema>> schema;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot;
  uint64_t content = 0;
  uint64_t epoch = 0;  // of all regions
};

// What a work's content is called and seeded by.
std::shared_ptr<const Valid<SnapshotDescriptor>> scenario_snapshot(const WorkSpec& work,
                                                                   const Valid<CacheSchema>& schema,
                                                                   Diagnostics& diagnostics);
uint64_t scenario_content(const WorkSpec& work);

// Without members when the placement alone is wanted. Null, and faults are added, when the parts do not fit.
std::unique_ptr<ScenarioSide> make_scenario_side(const SideRequest& request, bool with_members,
                                                 Diagnostics& diagnostics);
// One participant's, with another generation of its instance.
std::unique_ptr<SimMember> make_scenario_member(const SideRequest& request, const ScenarioSide& side, size_t number,
                                                uint64_t generation, Diagnostics& diagnostics);

Place place_on(const SideSpec& side, const Cluster& cluster, size_t number);
PeerId scenario_peer(const WorkSpec& work, Role role, const ParticipantId& participant);

// What an upload stores by: parts as the source is split, or all in one.
std::optional<Valid<StoreLayout>> scenario_layout(const SideRequest& source, const ScenarioSide& side,
                                                  Diagnostics& diagnostics);

}  // namespace crossdock
