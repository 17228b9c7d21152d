// Runtimes and stores of a case from the field: documents, memory that is filled by row-major formulas written out
// here, and plans that are proved, bound, lowered and run byte by byte. A target byte that a case does not fill must
// stay as it was, and no byte is written twice.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/rng.h"
#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/layout_catalog.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "planner/kv/page_keys.h"
#include "planner/kv/prefix_match.h"
#include "planner/kv/store_geometry.h"
#include "tests/support/byte_world.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {

using Lines = std::vector<std::string>;

// Ends the test with what was refused.
void stop_on(const Diagnostics& diagnostics);

// Without the documents' names and places.
Lines lines_of(const Diagnostics& diagnostics);

// A placement, and the draft of a binding for each of its participants, which runs in an instance of its own.
struct FieldRuntime {
  FieldRuntime(const char* name, Valid<PlacementManifest> of_placement, const Valid<SnapshotDescriptor>& of_snapshot)
      : placement(std::move(of_placement)), snapshot(of_snapshot) {
    for (const Part& each : placement->parts) {
      RuntimeBinding binding;
      binding.operation = OperationId("move");
      binding.resource = placement->resource;
      binding.revision = placement->revision;
      binding.participant = each.participant;
      binding.instance = InstanceId(fmt::format("{}:{}", name, each.participant.text()));
      binding.placement_digest = digest(placement);
      binding.snapshot_digest = digest(snapshot);
      binding.tokens = snapshot->tokens;
      binding.devices = {Device{DeviceId("d"), "host", UINT64_MAX}};
      bindings.push_back(std::move(binding));
    }
  }

  PlanSide side() const { return PlanSide(placement, digest(placement)); }

  Valid<PlacementManifest> placement;
  Valid<SnapshotDescriptor> snapshot;
  std::vector<RuntimeBinding> bindings;
};

std::string region_of(const RuntimeBinding& binding, const std::string& region);

void add_region(RuntimeBinding& binding, const char* id, uint64_t bytes);

// Without pages.
View& add_view(RuntimeBinding& binding, const char* component, Range layers, Range tokens, Range heads, Range dims,
               const char* region, uint64_t offset_bytes, ByteStrides strides);

template <class Visit>  // visit(const Item&)
void for_each_item(const char* component, Range layers, Range heads, Range tokens, uint64_t head_dim, Visit visit) {
  for (uint64_t layer = layers.begin(); layer < layers.end(); ++layer)
    for (uint64_t head = heads.begin(); head < heads.end(); ++head)
      for (uint64_t token = tokens.begin(); token < tokens.end(); ++token)
        for (uint64_t dim = 0; dim < head_dim; ++dim) visit(Item{component, layer, head, token, dim});
}

// A region with pages of components of one shape: [layer][component][slot][token][head][dim] ("NHD"), or with
// head_major [layer][component][slot][head][token][dim] ("HND").
struct FieldPool {
  Range layers;
  Range heads;
  uint64_t head_dim;
  uint64_t page_tokens;
  uint64_t slot_count;
  std::vector<uint64_t> slots;  // of the pages from token_begin on
  std::vector<const char*> components = {"key", "value"};
  uint64_t item_bytes = 2;
  const char* region = "pool";
  bool head_major = false;
  uint64_t token_begin = 0;
  // Of each cp_count blocks, the pool has the one of its rank; its tokens lie packed.
  uint64_t cp_count = 1;
  uint64_t cp_rank = 0;
  uint64_t cp_block = 1;

  uint64_t bytes() const {
    return layers.size() * components.size() * slot_count * page_tokens * heads.size() * head_dim * item_bytes;
  }

  // The formula.
  uint64_t offset(uint64_t component, const Item& item) const {
    const uint64_t local = item.token / (cp_block * cp_count) * cp_block + item.token % cp_block - token_begin;
    const uint64_t row = local % page_tokens;
    const uint64_t head = item.head - heads.begin();
    uint64_t index = (item.layer - layers.begin()) * components.size() + component;
    index = index * slot_count + slots.at(local / page_tokens);
    index = head_major ? (index * heads.size() + head) * page_tokens + row
                       : (index * page_tokens + row) * heads.size() + head;
    return (index * head_dim + item.dim) * item_bytes;
  }

  void fill(Memory& memory, Range tokens) const {
    for (uint64_t component = 0; component < components.size(); ++component)
      for_each_item(components[component], layers, heads, tokens, head_dim, [&](const Item& item) {
        if (item.token / cp_block % cp_count == cp_rank) memory.put(offset(component, item), item_bytes, item);
      });
  }
  void fill(World& world, const RuntimeBinding& binding, Range tokens) const {
    fill(world.at(region_of(binding, region)), tokens);
  }

  // The same as views.
  void bind(RuntimeBinding& binding, Range tokens) const {
    add_region(binding, region, bytes());
    binding.page_tables.push_back(PageTable{PageTableId(region), page_tokens, token_begin, slots});
    const uint64_t row_bytes = head_dim * item_bytes;
    const uint64_t page_bytes = page_tokens * heads.size() * row_bytes;
    ByteStrides strides{.layer = components.size() * slot_count * page_bytes,
                        .row = heads.size() * row_bytes,
                        .head = row_bytes,
                        .dim = item_bytes};
    if (head_major)
      strides = {.layer = strides.layer, .row = row_bytes, .head = page_tokens * row_bytes, .dim = item_bytes};
    for (uint64_t component = 0; component < components.size(); ++component) {
      View& view = add_view(binding, components[component], layers, tokens, heads, Range(0, head_dim), region,
                            component * slot_count * page_bytes, strides);
      view.pages = ViewPages{PageTableId(region), page_bytes};
      if (cp_count > 1) view.cycle = CyclicTokens{cp_block, cp_count, IntervalSet{Range(cp_rank, cp_rank + 1)}};
    }
  }
};

// Gives each rank its pool, and returns the memory of all of them with the tokens in it.
World bind_and_fill(FieldRuntime& runtime, const std::vector<FieldPool>& pools, Range tokens);

struct FieldMove {
  Valid<TransferPlan> plan;
  LoweredPlan lowered;
};

class FieldBound {
 public:
  FieldBound(const FieldRuntime& runtime, Diagnostics& diagnostics) : context_(runtime.placement, &runtime.snapshot) {
    for (const RuntimeBinding& binding : runtime.bindings) bindings_.push_back(valid_or_die(binding));
    std::vector<const Valid<RuntimeBinding>*> pointers;
    for (const Valid<RuntimeBinding>& binding : bindings_) pointers.push_back(&binding);
    side_ = BoundSide::bind(context_, pointers, diagnostics);
  }
  FieldBound(const FieldBound&) = delete;  // the side refers to the bindings
  FieldBound& operator=(const FieldBound&) = delete;

  bool ok() const { return side_.has_value(); }
  const BoundSide& side() const { return side_.value(); }

 private:
  BindingContext context_;
  std::vector<Valid<RuntimeBinding>> bindings_;
  std::optional<BoundSide> side_;
};

Valid<TransferPlan> proven_plan(const PlanSide& source, const PlanSide& target, const PlanOptions& options);

FieldMove lowered_move(Valid<TransferPlan> plan, const BoundSide& source, const BoundSide& target,
                       const LowerOptions& options = {});

FieldMove move_live(const FieldRuntime& source, const FieldRuntime& target, PlanOptions options = {});

SnapshotObjects objects_of(const Valid<StoreLayout>& layout, Range tokens);

FieldMove move_to_store(const FieldRuntime& source, const Valid<StoreLayout>& layout, const SnapshotObjects& objects);

// What an upload of `source` leaves in the store.
World stored_by(const FieldRuntime& source, const World& memory, const Valid<StoreLayout>& layout);

// Of the objects that are there.
StoreManifest manifest_of(const Valid<SnapshotDescriptor>& snapshot, const Valid<StoreLayout>& layout,
                          const World& stored);

FieldMove move_from_store(const Valid<StoreManifest>& manifest, const FieldRuntime& target);

// Runs all steps into fresh memory of the target, which must then be `expected`.
void expect_bytes(const LoweredPlan& lowered, const World& source, const FieldRuntime& target, const World& expected);

// "source -> target", for each pair of a lowering.
std::set<std::string> pair_names(const FieldMove& move);

uint64_t planned_bytes(const TransferPlan& plan);

}  // namespace crossdock::testing
