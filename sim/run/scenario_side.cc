#include "sim/run/scenario_side.h"

#include <fmt/format.h>

#include <utility>

#include "base/rng.h"
#include "model/kv/partition.h"
#include "model/kv/pool_binding.h"
#include "model/wire/documents.h"
#include "planner/kv/store_geometry.h"

namespace crossdock {
namespace {

std::string side_name(const WorkSpec& work, Role role) {
  return fmt::format("{}/{}", work.name, role == Role::kSource ? "source" : "target");
}

uint64_t layer_count_of(const CacheSchema& schema) {
  const IntervalSet layers = schema.layers();
  return layers.empty() ? 0 : layers.ranges().back().end();
}

std::optional<Valid<PlacementManifest>> make_placement(const SideRequest& request, Diagnostics& diagnostics) {
  PartitionRequest partition_request;
  partition_request.name = side_name(*request.work, request.role);
  partition_request.resource = ResourceId("kv:cache");
  partition_request.revision = RevisionId("1");
  partition_request.dp = request.side->parallel.dp;
  partition_request.pp = request.side->parallel.pp;
  partition_request.tp = request.side->parallel.tp;
  partition_request.cp = request.side->parallel.cp;
  partition_request.cp_block_tokens = request.side->cp_block_tokens;
  partition_request.layer_count = layer_count_of(**request.schema);
  return partition(*request.schema, partition_request, diagnostics);
}

std::string snapshot_name(const WorkSpec& work) { return work.snapshot.empty() ? work.name : work.snapshot; }

}  // namespace

// By the snapshot's name and not the work's: a restore is compared with what the upload of that snapshot stored.
uint64_t scenario_content(const WorkSpec& work) {
  uint64_t state = 0;
  for (const char letter : snapshot_name(work)) {
    state ^= static_cast<uint8_t>(letter);
    state = splitmix64(state);
  }
  return state | 1;  // 0 means unknown content
}

std::shared_ptr<const Valid<SnapshotDescriptor>> scenario_snapshot(const WorkSpec& work,
                                                                   const Valid<CacheSchema>& schema,
                                                                   Diagnostics& diagnostics) {
  SnapshotDescriptor descriptor;
  descriptor.tenant = "default";
  descriptor.resource = ResourceId("kv:cache");
  descriptor.model_id = "simulated";
  descriptor.model_revision = "1";
  descriptor.semantic_fingerprint = "simulated";
  descriptor.cache_schema_digest = digest(schema);
  descriptor.tokens = Range(0, work.tokens);
  descriptor.token_fingerprint = snapshot_name(work);
  std::optional<Valid<SnapshotDescriptor>> snapshot =
      Valid<SnapshotDescriptor>::make(std::move(descriptor), diagnostics);
  if (!snapshot) return nullptr;
  return std::make_shared<const Valid<SnapshotDescriptor>>(std::move(*snapshot));
}

// The rules of scenarios have checked that the side fits into the cluster.
Place place_on(const SideSpec& side, const Cluster& cluster, size_t number) {
  const auto at = static_cast<uint32_t>(side.gpu + number);
  return Place{side.machine + at / cluster.machine.gpu_count, PlaceKind::kGpu, at % cluster.machine.gpu_count};
}

PeerId scenario_peer(const WorkSpec& work, Role role, const ParticipantId& participant) {
  return PeerId(fmt::format("{} {}", side_name(work, role), participant.text()));
}

std::unique_ptr<SimMember> make_scenario_member(const SideRequest& request, const ScenarioSide& side, size_t number,
                                                uint64_t generation, Diagnostics& diagnostics) {
  const Part& part = (*side.placement)->parts[number];
  PoolRequest pool;
  pool.operation = OperationId(request.work->name);
  pool.axis_order = request.side->order;
  pool.page_tokens = request.side->page_tokens;
  pool.region_per_layer = request.side->region_per_layer;
  // Each participant has its pages in another order, so that no transfer is right by equal slots alone.
  if (request.side->shuffle != 0) pool.shuffle_seed = request.side->shuffle + number;
  pool.spare_pages = request.side->spare_pages;
  pool.instance_prefix = side_name(*request.work, request.role) + "/";
  std::optional<Valid<RuntimeBinding>> pooled =
      pool_binding(*side.placement, digest(*side.placement), part.participant, (*request.snapshot)->tokens,
                   digest(*request.snapshot), pool, diagnostics);
  if (!pooled) return nullptr;
  RuntimeBinding binding = **pooled;
  binding.generation = generation;
  // One epoch for each operation and life (R6): a late write of an earlier one finds its key revoked.
  for (Region& region : binding.regions) region.epoch = request.epoch;
  std::optional<Valid<RuntimeBinding>> valid = Valid<RuntimeBinding>::make(std::move(binding), diagnostics);
  if (!valid) return nullptr;
  auto member = std::make_unique<SimMember>();
  member->name = scenario_peer(*request.work, request.role, part.participant).text();
  member->role = request.role;
  member->place = place_on(*request.side, request.scenario->cluster, number);
  member->binding = std::make_shared<const Valid<RuntimeBinding>>(std::move(*valid));
  member->schema = request.schema;
  member->content = request.content;
  return member;
}

std::unique_ptr<ScenarioSide> make_scenario_side(const SideRequest& request, bool with_members,
                                                 Diagnostics& diagnostics) {
  std::optional<Valid<PlacementManifest>> placement = make_placement(request, diagnostics);
  if (!placement) return nullptr;
  auto side = std::make_unique<ScenarioSide>();
  side->placement = std::make_shared<const Valid<PlacementManifest>>(std::move(*placement));
  if (!with_members) return side;
  for (size_t i = 0; i < (*side->placement)->parts.size(); ++i) {
    side->members.push_back(make_scenario_member(request, *side, i, 1, diagnostics));
    if (side->members.back() == nullptr) return nullptr;
  }
  return side;
}

std::optional<Valid<StoreLayout>> scenario_layout(const SideRequest& source, const ScenarioSide& side,
                                                  Diagnostics& diagnostics) {
  const WorkSpec& work = *source.work;
  std::shared_ptr<const Valid<PlacementManifest>> placement = side.placement;
  if (work.whole_objects) {
    SideRequest whole = source;
    SideSpec one = *source.side;
    one.parallel = ParallelSpec();
    whole.side = &one;
    const std::unique_ptr<ScenarioSide> made = make_scenario_side(whole, false, diagnostics);
    if (made == nullptr) return std::nullopt;
    placement = made->placement;
  }
  return layout_of(*placement, std::nullopt, work.object_order, work.object_page_tokens, "simulated", diagnostics);
}

}  // namespace crossdock
