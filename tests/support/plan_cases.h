// Random placements, bindings and options for plans, and the memory of both sides, element by element.
//
// A failure prints the shrunk case: a `crossdock plan` command and the documents that it reads, one a line, each after
// the name of its file.
#pragma once

#include <algorithm>
#include <compare>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/wire/documents.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "tests/support/naive.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {

using Placement = Valid<PlacementManifest>;

using Bindings = std::vector<Valid<RuntimeBinding>>;

inline constexpr uint64_t kLayersLooked = 12;  // no random document has more layers,

inline constexpr uint64_t kTokensLooked = 40;  // and no bounded interval more tokens

// Prints documents into the log of a case that fails, on the way out of it.
class Witness {
 public:
  template <class Document>
  void add(const std::string& name, const Valid<Document>& document) {
    texts_.emplace_back(name + ".json", [document] { return to_json(document); });
  }
  void add(const std::string& name, const Bindings& bindings) {
    for (const Valid<RuntimeBinding>& binding : bindings) add(name + "-" + binding->participant.text(), binding);
  }
  void add_text(const std::string& name, std::function<std::string()> text) {
    texts_.emplace_back(name, std::move(text));
  }
  Witness() = default;
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() {
    if (std::uncaught_exceptions() == 0) return;
    for (const auto& [name, text] : texts_) RC_LOG() << name << ": " << text() << "\n";
  }

 private:
  std::vector<std::pair<std::string, std::function<std::string()>>> texts_;
};

void log_diagnostics(const Diagnostics& diagnostics);

// The command that plans the printed documents in the same way, once each is in the file of its name.
std::string command_text(const PlanOptions& options);

// Whether a snapshot of these tokens keeps the token in the group: a row lives as long as one of its tokens does.
bool is_live_token(const LayerGroup& group, const Component& component, Range snapshot, uint64_t token);

struct PlanCase {
  Placement source;
  Placement target;
  PlanOptions options;
};

// Some of the participants, at least one.
std::vector<PlanEnd> random_ends(const Placement& placement, Choices& choices);

std::vector<NicGroup> random_nics(const Placement& placement, Choices& choices);

// Part of the snapshot that cuts no row but those that it cuts itself.
Range random_tokens_within(Range snapshot, uint64_t unit, Choices& choices);

std::optional<uint64_t> random_dp(const Placement& placement, const std::vector<PlanEnd>& only, Choices& choices);

// What source and target of any plan agree about.
struct DrawnDocuments {
  Valid<CacheSchema> schema;
  Valid<CacheSchema> target_schema;  // asks for a part of it, or is the same
  Valid<SnapshotDescriptor> snapshot;
};

DrawnDocuments draw_documents(const Draw& draw);

// Options that valid documents always have a plan for.
PlanOptions random_options(const DrawnDocuments& documents, const Placement& source, const Placement& target,
                           Choices& choices);

struct LiveCase : PlanCase {
  DrawnDocuments documents;
};

LiveCase random_live_case(const Draw& draw);

void add_to(Witness& witness, const LiveCase& drawn);

Valid<TransferPlan> plan_or_fail(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                 BalanceReport* report = nullptr);

PlanSide side_of(const Placement& placement);

using PlanRegion = std::pair<InstanceId, RegionId>;

using PlanBytes = std::vector<uint8_t>;

using PlanMemory = std::map<PlanRegion, PlanBytes>;

uint8_t element_hash(std::initializer_list<uint64_t> values);

// What lies in a region where no element does: another pattern for each salt.
void fill_with(PlanMemory& memory, uint64_t salt);

void add_regions(const Bindings& bindings, PlanMemory& memory);

// An element; a component is known by its name.
struct PlanElement {
  const Component& component;
  uint64_t layer;
  uint64_t head;
  uint64_t token;
  uint64_t dim;

  uint64_t row() const { return token / component.tokens_per_row.value_or(1); }
};

// As for_each_element() of tests/support/naive.h, with visit(element, address of its first byte).
template <class Visit>
void for_each_plan_element(const View& view, const std::vector<PageTable>& tables, const CacheSchema& schema,
                           Visit visit) {
  for_each_element(
      view, tables, schema,
      [&](const Component& component, uint64_t layer, uint64_t token, uint64_t head, uint64_t dim, uint64_t address) {
        visit(PlanElement{component, layer, head, token, dim}, address);
      });
}

// The bytes of an element, which every copy of it has: those of its row, whichever of its tokens is looked at.
void write_element(const PlanElement& element, uint64_t address, PlanBytes& bytes);

// Writes the elements that the bindings show and that `wanted(participant, element)` names.
template <class Wanted>
void write_elements(const Bindings& bindings, const CacheSchema& schema, Wanted wanted, PlanMemory& memory) {
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views) {
      PlanBytes& bytes = memory.at({binding->instance, view.region});
      for_each_plan_element(view, binding->page_tables, schema, [&](const PlanElement& element, uint64_t address) {
        if (wanted(binding->participant, element)) write_element(element, address, bytes);
      });
    }
}

PlanBytes& plan_region_of(PlanMemory& memory, const BoundRegion& region);

// Copies step by step and piece by piece, as slowly as possible; counts how often each target byte is written.
struct NaiveCopier {
  PlanMemory source;
  PlanMemory target;
  std::map<PlanRegion, std::vector<int>> written = {};
  StepCounts counts = {};

  void run(const LoweredPlan& lowered) {
    for (const auto& [key, bytes] : target) written[key].resize(bytes.size());
    for (const LoweredPair& pair : lowered.pairs()) {
      StepCounts own;
      lowered.for_each_step(pair, [&](const CopyStep& step) { copy(step, lowered, own); });
      RC_ASSERT(own.steps == pair.counts.steps);
      RC_ASSERT(own.ranges == pair.counts.ranges);
      RC_ASSERT(own.bytes == pair.counts.bytes);
      counts += own;
    }
    RC_ASSERT(counts.steps == lowered.counts().steps);
    RC_ASSERT(counts.ranges == lowered.counts().ranges);
    RC_ASSERT(counts.bytes == lowered.counts().bytes);
    RC_ASSERT(counts.steps <= lowered.counts().steps_planned);
    RC_ASSERT(lowered.counts().steps_planned <= lowered.counts().row_pieces);
  }

 private:
  void copy(const CopyStep& step, const LoweredPlan& lowered, StepCounts& own) {
    const BoundRegion& from = lowered.source_regions().at(step.source_region);
    const BoundRegion& to = lowered.target_regions().at(step.target_region);
    const PlanBytes& from_bytes = plan_region_of(source, from);
    PlanBytes& to_bytes = plan_region_of(target, to);
    RC_ASSERT(step.bytes >= 1u);
    for (const CopyAxis& axis : step.axes()) RC_ASSERT(axis.extent >= 2u);
    RC_ASSERT(step.source_offset + step.source_span() <= from_bytes.size());
    RC_ASSERT(step.target_offset + step.target_span() <= to_bytes.size());
    ++own.steps;
    ByteRanges pieces(step);
    for (ByteCopy piece; pieces.next(piece); ++own.ranges)
      for (uint64_t i = 0; i < piece.bytes; ++i, ++own.bytes) {
        to_bytes.at(piece.target_offset + i) = from_bytes.at(piece.source_offset + i);
        ++written[{to.instance, to.id}].at(piece.target_offset + i);
      }
  }
};

// Success means: the bytes that were to come are the elements', each written once, and nothing else was touched (I1).
void check_target(const NaiveCopier& copier, const PlanMemory& expected, const PlanMemory& wanted_bytes);

// Ones where an element that `wanted` names lies.
template <class Wanted>
PlanMemory marked(const Bindings& bindings, const CacheSchema& schema, Wanted wanted, PlanMemory memory) {
  for (auto& [key, bytes] : memory) std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views)
      for_each_plan_element(view, binding->page_tables, schema, [&](const PlanElement& element, uint64_t address) {
        PlanBytes& bytes = memory.at({binding->instance, view.region});
        for (uint64_t i = 0; i < element.component.item_bytes; ++i)
          if (wanted(binding->participant, element)) bytes.at(address + i) = 1;
      });
  return memory;
}

// The context of a side that may ask for less than the snapshot holds, which then is another schema's.
BindingContext context_of(const Placement& placement, const DrawnDocuments& documents);

std::vector<const Valid<RuntimeBinding>*> pointers_to(const Bindings& bindings);

BoundSide bind_or_fail(const BindingContext& context, const Bindings& bindings);

LoweredPlan lower_or_fail(const TransferPlan& plan, const BoundSide& source, const BoundSide& target,
                          const LowerOptions& options = {});

// Which elements the options ask for of what the bindings of a target show.
struct AskedElements {
  const Placement& target;
  const PlanOptions& options;

  bool operator()(const ParticipantId& participant, const PlanElement& element) const {
    const bool is_target = options.targets.empty() ||
                           std::count(options.targets.begin(), options.targets.end(), PlanEnd(participant.text())) > 0;
    const bool is_rank = !options.target_dp || target->topology.find(participant)->rank.dp == *options.target_dp;
    return is_target && is_rank && (element.component.is_state() || options.tokens.contains(element.token));
  }
};

struct BoundCase : LiveCase {
  Bindings source_bindings;
  Bindings target_bindings;
};

BoundCase random_bound_case(const Draw& draw, BindingStyle style);

void add_to(Witness& witness, const BoundCase& drawn);

inline constexpr auto kEverything = [](const ParticipantId&, const PlanElement&) { return true; };

}  // namespace crossdock::testing
