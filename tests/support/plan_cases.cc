#include "tests/support/plan_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "planner/kv/verify_plan.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"

namespace crossdock::testing {

void log_diagnostics(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.kept()) RC_LOG() << diagnostic.to_line() << "\n";
}

std::string command_text(const PlanOptions& options) {
  std::string text = "crossdock plan --source source.json --target target.json";
  if (options.snapshot_tokens) text += " --snapshot snapshot.json";
  if (options.tokens != Range::all())
    text += fmt::format(" --tokens {}:{}", options.tokens.begin(), options.tokens.end());
  if (options.source_dp) text += fmt::format(" --source-dp {}", *options.source_dp);
  if (options.target_dp) text += fmt::format(" --target-dp {}", *options.target_dp);
  for (const PlanEnd& end : options.targets) text += " --participant " + end.text();
  for (const PlanEnd& end : options.sources) text += " --from " + end.text();
  if (options.selection == SourceSelection::kBalanced) text += " --selection balanced";
  if (options.selection == SourceSelection::kByPage)
    text += fmt::format(" --selection by-page --page-size {}", options.selection_page_tokens);
  for (const NicGroup& nic : options.nics) {
    if (!nic.participants.empty()) text += fmt::format(" --nic {}", nic.name);
    for (const PlanEnd& end : nic.participants) text += (&end == &nic.participants.front() ? "=" : ",") + end.text();
  }
  return text;
}

bool is_live_token(const LayerGroup& group, const Component& component, Range snapshot, uint64_t token) {
  if (component.is_state()) return token == 0;
  const uint64_t row_end = token / *component.tokens_per_row * *component.tokens_per_row + *component.tokens_per_row;
  return snapshot.contains(token) &&
         (!testing::window_of(group) || row_end + *testing::window_of(group) > snapshot.end());
}

std::vector<PlanEnd> random_ends(const Placement& placement, Choices& choices) {
  std::vector<PlanEnd> ends;
  for (const Part& part : placement->parts)
    if (!choices.chance(1, 3)) ends.emplace_back(part.participant.text());
  if (ends.empty()) ends.emplace_back(placement->parts.front().participant.text());
  return ends;
}

std::vector<NicGroup> random_nics(const Placement& placement, Choices& choices) {
  std::vector<NicGroup> nics(choices.below(4));
  for (size_t i = 0; i < nics.size(); ++i) nics[i].name = fmt::format("nic{}", i);
  if (nics.empty()) return nics;
  for (const Part& part : placement->parts)
    if (choices.chance(3, 4)) nics[choices.below(nics.size())].participants.emplace_back(part.participant.text());
  return nics;
}

Range random_tokens_within(Range snapshot, uint64_t unit, Choices& choices) {
  const auto boundary = [&](uint64_t token) {
    const uint64_t aligned = token / unit * unit;
    return aligned < snapshot.begin() ? snapshot.begin() : aligned;
  };
  const uint64_t begin = boundary(choices.between(snapshot.begin(), snapshot.end() - 1));
  const uint64_t end = boundary(choices.between(begin, snapshot.end()));
  return Range(begin, end > begin ? end : snapshot.end());
}

std::optional<uint64_t> random_dp(const Placement& placement, const std::vector<PlanEnd>& only, Choices& choices) {
  std::set<uint64_t> ranks;
  for (const Participant& participant : placement->topology.participants)
    if (only.empty() || std::count(only.begin(), only.end(), PlanEnd(participant.id.text())) > 0)
      ranks.insert(participant.rank.dp);
  if (!choices.chance(1, 4)) return std::nullopt;
  return *std::next(ranks.begin(), static_cast<ptrdiff_t>(choices.below(ranks.size())));
}

DrawnDocuments draw_documents(const Draw& draw) {
  Choices schema_choices(draw, Section::kSchema);
  Choices token_choices(draw, Section::kTokens);
  const Valid<CacheSchema> schema = random_schema(schema_choices);
  const Valid<CacheSchema> target_schema = random_part_of(schema, schema_choices);
  return DrawnDocuments{schema, target_schema, snapshot_of(schema, random_tokens(token_choices))};
}

PlanOptions random_options(const DrawnDocuments& documents, const Placement& source, const Placement& target,
                           Choices& choices) {
  PlanOptions options;
  options.snapshot_tokens = documents.snapshot->tokens;
  if (choices.chance(1, 4))
    options.tokens = random_tokens_within(documents.snapshot->tokens, row_unit(*documents.schema), choices);
  options.source_dp = random_dp(source, {}, choices);
  if (choices.chance(1, 4))
    options.targets = random_ends(target, choices);
  else
    options.target_dp = random_dp(target, {}, choices);
  if (choices.chance(1, 3)) {
    options.selection = SourceSelection::kBalanced;
    options.nics = random_nics(source, choices);
  }
  return options;
}

LiveCase random_live_case(const Draw& draw) {
  DrawnDocuments documents = draw_documents(draw);
  const Range tokens = documents.snapshot->tokens;
  Choices source_choices(draw, Section::kSource);
  Choices target_choices(draw, Section::kTarget);
  Choices option_choices(draw, Section::kOptions);
  Placement source = random_placement(documents.schema, tokens, "source", source_choices);
  Placement target = random_placement(documents.target_schema, tokens, "target", target_choices);
  PlanOptions options = random_options(documents, source, target, option_choices);
  return LiveCase{{std::move(source), std::move(target), std::move(options)}, std::move(documents)};
}

void add_to(Witness& witness, const LiveCase& drawn) {
  witness.add("source", drawn.source);
  witness.add("target", drawn.target);
  witness.add("snapshot", drawn.documents.snapshot);
  witness.add_text("command", [&drawn] { return command_text(drawn.options); });
}

Valid<TransferPlan> plan_or_fail(const PlanSide& source, const PlanSide& target, const PlanOptions& options,
                                 BalanceReport* report) {
  Diagnostics diagnostics;
  std::optional<Valid<TransferPlan>> plan = make_plan(source, target, options, PlanLimits{}, diagnostics, report);
  if (plan) {
    const PlanProof proof = verify_plan(*plan, source, target, VerifyLimits{}, diagnostics);
    RC_ASSERT(proof.complete);
  }
  log_diagnostics(diagnostics);
  RC_ASSERT(plan.has_value());
  RC_ASSERT(diagnostics.empty());
  return *plan;
}

PlanSide side_of(const Placement& placement) { return PlanSide(placement, digest(placement)); }

uint8_t element_hash(std::initializer_list<uint64_t> values) {
  uint64_t state = 0;
  for (const uint64_t value : values) {
    state ^= value;
    state = splitmix64(state);
  }
  return static_cast<uint8_t>(state >> 56);
}

void fill_with(PlanMemory& memory, uint64_t salt) {
  uint64_t number = 0;
  for (auto& [key, bytes] : memory) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = element_hash({salt, number, i});
    ++number;
  }
}

void add_regions(const Bindings& bindings, PlanMemory& memory) {
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const Region& region : binding->regions) memory[{binding->instance, region.id}] = PlanBytes(region.bytes);
}

void write_element(const PlanElement& element, uint64_t address, PlanBytes& bytes) {
  uint64_t name = 0;
  for (const char letter : element.component.name.text()) name = name * 256 + static_cast<uint8_t>(letter);
  for (uint64_t i = 0; i < element.component.item_bytes; ++i)
    bytes.at(address + i) = element_hash({name, element.layer, element.head, element.row(), element.dim, i});
}

PlanBytes& plan_region_of(PlanMemory& memory, const BoundRegion& region) {
  return memory.at({region.instance, region.id});
}

void check_target(const NaiveCopier& copier, const PlanMemory& expected, const PlanMemory& wanted_bytes) {
  for (const auto& [key, bytes] : expected) {
    const PlanBytes& wanted = wanted_bytes.at(key);
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int times = copier.written.at(key).at(i);
      if (times == (wanted[i] != 0 ? 1 : 0) && copier.target.at(key)[i] == bytes[i]) continue;
      RC_LOG() << fmt::format("region '{}' of '{}', byte {}: written {} times, {} wanted; holds {}, should {}",
                              key.second.text(), key.first.text(), i, times, wanted[i] != 0 ? 1 : 0,
                              copier.target.at(key)[i], bytes[i])
               << "\n";
      RC_FAIL("a byte of the target is wrong");
    }
  }
}

BindingContext context_of(const Placement& placement, const DrawnDocuments& documents) {
  return BindingContext(placement, placement->cache_schema == *documents.schema ? &documents.snapshot : nullptr);
}

std::vector<const Valid<RuntimeBinding>*> pointers_to(const Bindings& bindings) {
  std::vector<const Valid<RuntimeBinding>*> pointers;
  for (const Valid<RuntimeBinding>& binding : bindings) pointers.push_back(&binding);
  return pointers;
}

BoundSide bind_or_fail(const BindingContext& context, const Bindings& bindings) {
  Diagnostics diagnostics;
  std::optional<BoundSide> side = BoundSide::bind(context, pointers_to(bindings), diagnostics);
  log_diagnostics(diagnostics);
  RC_ASSERT(side.has_value());
  return *side;
}

LoweredPlan lower_or_fail(const TransferPlan& plan, const BoundSide& source, const BoundSide& target,
                          const LowerOptions& options) {
  Diagnostics diagnostics;
  std::optional<LoweredPlan> lowered = lower(plan, source, target, options, LowerLimits{}, diagnostics);
  log_diagnostics(diagnostics);
  RC_ASSERT(lowered.has_value());
  return std::move(*lowered);
}

BoundCase random_bound_case(const Draw& draw, BindingStyle style) {
  LiveCase drawn = random_live_case(draw);
  Choices source_choices(draw, Section::kSourceBinding);
  Choices target_choices(draw, Section::kTargetBinding);
  Bindings source = random_bindings(drawn.source, drawn.documents.snapshot, style, source_choices);
  Bindings target = random_bindings(drawn.target, drawn.documents.snapshot, style, target_choices);
  return BoundCase{std::move(drawn), std::move(source), std::move(target)};
}

void add_to(Witness& witness, const BoundCase& drawn) {
  add_to(witness, static_cast<const LiveCase&>(drawn));
  witness.add("source-binding", drawn.source_bindings);
  witness.add("target-binding", drawn.target_bindings);
  witness.add_text("with bindings", [] {
    return "--steps --source-binding source-binding-*.json --target-binding target-binding-*.json";
  });
}

}  // namespace crossdock::testing
