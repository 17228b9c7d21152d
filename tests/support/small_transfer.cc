#include "tests/support/small_transfer.h"

#include <fmt/format.h>

#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "model/kv/pool_binding.h"
#include "model/wire/documents.h"
#include "tests/support/naive.h"

namespace crossdock::testing {
namespace {

uint8_t item_byte(const ComponentName& component, uint64_t layer, uint64_t head, uint64_t row, uint64_t dim,
                  uint64_t i) {
  uint64_t state = 0x9e37;
  for (const char letter : component.text()) state = state * 131 + static_cast<uint8_t>(letter);
  for (const uint64_t field : {layer, head, row, dim, i}) {
    state ^= field;
    state = splitmix64(state);
  }
  return static_cast<uint8_t>(state);
}

// Calls visit(region bytes, offset, byte) for each byte of each item.
template <class Visit>
void for_each_item_byte(const SmallSide& side, size_t number, Visit visit) {
  const RuntimeBinding& binding = **side.bindings[number];
  for (const View& view : binding.views) {
    std::vector<std::byte>& bytes = side.bytes[number]->at(view.region);
    for_each_element(
        view, binding.page_tables, (*side.placement)->cache_schema,
        [&](const Component& component, uint64_t layer, uint64_t token, uint64_t head, uint64_t dim, uint64_t address) {
          const uint64_t row = component.is_state() ? 0 : token / *component.tokens_per_row;
          for (uint64_t i = 0; i < component.item_bytes; ++i)
            visit(bytes, address + i, item_byte(view.component, layer, head, row, dim, i));
        });
  }
}

}  // namespace

Valid<CacheSchema> small_schema() {
  CacheSchema schema;
  LayerGroup group;
  group.layers = IntervalSet{Range(0, 2)};
  for (const char* name : {"key", "value"}) {
    Component component;
    component.name = ComponentName(name);
    component.dtype = "int8";
    component.encoding = "plain";
    component.item_bytes = 1;
    component.head_count = 4;
    component.head_dim = 2;
    group.components.push_back(component);
  }
  schema.groups.push_back(group);
  return valid_or_die(std::move(schema));
}

SmallSide small_side(const Valid<CacheSchema>& schema, const PartitionSizes& sizes, const std::string& name,
                     const Valid<SnapshotDescriptor>& snapshot, uint64_t page_tokens, uint64_t shuffle,
                     uint64_t epoch) {
  SmallSide side;
  side.placement = std::make_shared<const Valid<PlacementManifest>>(placed(schema, sizes, name));
  const Sha256Digest placement_digest = digest(*side.placement);
  const Sha256Digest snapshot_digest = digest(snapshot);
  for (const Part& part : (*side.placement)->parts) {
    PoolRequest request;
    request.operation = OperationId("op");
    request.page_tokens = page_tokens;
    request.shuffle_seed = shuffle;
    request.spare_pages = 1;
    request.instance_prefix = name + "/";
    Diagnostics diagnostics;
    std::optional<Valid<RuntimeBinding>> bound = pool_binding(*side.placement, placement_digest, part.participant,
                                                              snapshot->tokens, snapshot_digest, request, diagnostics);
    CHECK(bound.has_value());
    RuntimeBinding binding = **bound;
    for (Region& region : binding.regions) region.epoch = epoch;
    auto bytes = std::make_unique<RegionBytes>();
    for (const Region& region : binding.regions) (*bytes)[region.id].assign(region.bytes, std::byte{0xa5});
    side.bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(valid_or_die(std::move(binding))));
    side.bytes.push_back(std::move(bytes));
  }
  return side;
}

void write_items(const SmallSide& side) {
  for (size_t i = 0; i < side.bindings.size(); ++i)
    for_each_item_byte(side, i, [](std::vector<std::byte>& bytes, uint64_t offset, uint8_t byte) {
      bytes.at(offset) = std::byte{byte};
    });
}

std::string wrong_items(const SmallSide& side, size_t binding) {
  RegionBytes expected = *side.bytes[binding];
  for (auto& [id, bytes] : expected) std::fill(bytes.begin(), bytes.end(), std::byte{0xa5});
  for_each_item_byte(side, binding, [&](std::vector<std::byte>& bytes, uint64_t offset, uint8_t byte) {
    for (auto& [id, own] : *side.bytes[binding])
      if (&own == &bytes) expected.at(id).at(offset) = std::byte{byte};
  });
  for (const auto& [id, bytes] : *side.bytes[binding])
    for (size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] != expected.at(id)[i])
        return fmt::format("binding {} region '{}' byte {} is {:#04x}, not {:#04x}", binding, id.text(), i,
                           std::to_integer<int>(bytes[i]), std::to_integer<int>(expected.at(id)[i]));
  return "";
}

std::string wrong_items(const SmallSide& side) {
  for (size_t i = 0; i < side.bindings.size(); ++i)
    if (std::string wrong = wrong_items(side, i); !wrong.empty()) return wrong;
  return "";
}

PeerId source_peer(const ParticipantId& participant) { return PeerId("source/" + participant.text()); }
PeerId target_peer(const ParticipantId& participant) { return PeerId("target/" + participant.text()); }

ParticipantOptions SmallTransfer::participant_options(const ParticipantId& participant, uint64_t number) const {
  ParticipantOptions options;
  options.operation = OperationId("op");
  options.attempt = attempt;
  options.participant = participant;
  options.coordinator = PeerId("coordinator");
  options.window = WindowLimits{2, 1 << 20};
  options.batch.step_count_max = 2;  // several copies
  options.seed = seed * 100 + number;
  return options;
}

SmallTransfer::SmallTransfer(const PartitionSizes& source_sizes, const PartitionSizes& target_sizes, bool checksum,
                             uint64_t tokens, uint64_t seed_of_all, const std::string& attempt_name)
    : attempt(attempt_name),
      schema(small_schema()),
      snapshot(std::make_shared<const Valid<SnapshotDescriptor>>(snapshot_of(schema, Range(0, tokens)))),
      source(small_side(schema, source_sizes, "prefill", *snapshot, 4, 1)),
      target(small_side(schema, target_sizes, "decode", *snapshot, 2, 2, 7)),
      seed(seed_of_all) {
  write_items(source);
  CoordinatorOptions& options = coordinator_options;
  options.operation = OperationId("op");
  options.attempt = attempt;
  options.instance = InstanceId("coordinator's first life");
  options.reply_to = PeerId("coordinator");
  options.planner = std::make_shared<const KvTransferPlanner>(
      KvTransfer{TransferDocuments{source.placement, target.placement, snapshot}, PlanOptions(), LowerLimits()});
  options.checksum = checksum;
  options.seed = seed;
  uint64_t number = 0;
  for (const BindingPointer& binding : source.bindings) {
    const ParticipantId& participant = (*binding)->participant;
    writers.push_back(std::make_unique<Writer>(participant_options(participant, ++number)));
    options.sources.push_back({participant, source_peer(participant)});
  }
  for (const BindingPointer& binding : target.bindings) {
    const ParticipantId& participant = (*binding)->participant;
    targets.push_back(std::make_unique<Target>(participant_options(participant, ++number)));
    options.targets.push_back({participant, target_peer(participant)});
  }
  coordinator = std::make_unique<Coordinator>(options);
}

void SmallTransfer::join(StepWorld& world, const Wrap& wrap) {
  for (size_t i = 0; i < writers.size(); ++i) {
    const ParticipantId& participant = (*source.bindings[i])->participant;
    world.add_runtime(participant, Role::kSource, source.bindings[i], *source.bytes[i]);
    world.add(source_peer(participant), Role::kSource, wrap(source_peer(participant), *writers[i]));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    const ParticipantId& participant = (*target.bindings[i])->participant;
    world.add_runtime(participant, Role::kTarget, target.bindings[i], *target.bytes[i]);
    world.add(target_peer(participant), Role::kTarget, wrap(target_peer(participant), *targets[i]));
  }
  world.add(PeerId("coordinator"), Role::kSource, wrap(PeerId("coordinator"), *coordinator));
}

}  // namespace crossdock::testing
