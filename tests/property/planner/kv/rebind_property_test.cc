// Bindings that get other pages: the steps after a rebind are those of binding and lowering anew.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <compare>
#include <exception>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "tests/support/example_documents.h"
#include "tests/support/plan_cases.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {
namespace {

// ---- (d) other pages

enum class Change { kPermuted, kOneSlot, kAnySlots, kOneEpoch, kOneGeneration, kOtherView, kOtherTable, kOtherRegion };

void new_slots(PageTable& table, Change change, Choices& choices) {
  if (table.slots.empty() || change == Change::kOneSlot) return;
  if (change != Change::kAnySlots) return choices.shuffle(table.slots);
  std::vector<uint64_t> slots(*std::max_element(table.slots.begin(), table.slots.end()) + 1 + choices.below(3));
  std::iota(slots.begin(), slots.end(), uint64_t{0});
  choices.shuffle(slots);
  std::copy(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(table.slots.size()), table.slots.begin());
}

// Puts one page of one table into a slot that the table has not.
void replace_slot(RuntimeBinding& binding, Choices& choices) {
  if (binding.page_tables.empty()) return;
  std::vector<uint64_t>& slots = binding.page_tables[choices.below(binding.page_tables.size())].slots;
  uint64_t slot = choices.below(2 * slots.size() + 4);
  while (std::count(slots.begin(), slots.end(), slot) > 0) ++slot;
  if (!slots.empty()) slots[choices.below(slots.size())] = slot;
}

// The same bindings for another operation, with new epochs and new slots, or with something else changed too.
Bindings changed(const Bindings& bindings, Change change, Choices& choices) {
  Bindings result;
  const uint64_t epochs = choices.below(3);
  const size_t which = choices.below(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    RuntimeBinding binding = *bindings[i];
    binding.operation = OperationId("op2");
    for (Region& region : binding.regions) region.epoch += epochs;
    for (PageTable& table : binding.page_tables) new_slots(table, change, choices);
    if (i == which && change == Change::kOneSlot) replace_slot(binding, choices);
    if (i == which && change == Change::kOneGeneration) ++binding.generation;
    if (i == which && change == Change::kOneEpoch && !binding.regions.empty()) ++binding.regions.front().epoch;
    if (i == which && change == Change::kOtherView && !binding.views.empty())
      binding.views[choices.below(binding.views.size())].offset_bytes += 12;
    if (i == which && change == Change::kOtherTable && !binding.page_tables.empty())
      binding.page_tables[choices.below(binding.page_tables.size())].slots.push_back(1000);
    if (i == which && change == Change::kOtherRegion && !binding.regions.empty())
      binding.regions[choices.below(binding.regions.size())].bytes += 12;
    result.push_back(valid_or_die(std::move(binding)));
  }
  return result;
}

bool same_but_for_slots(const Bindings& a, const Bindings& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->views != b[i]->views || a[i]->page_tables.size() != b[i]->page_tables.size()) return false;
    for (size_t t = 0; t < a[i]->page_tables.size(); ++t)
      if (a[i]->page_tables[t].slots.size() != b[i]->page_tables[t].slots.size()) return false;
    for (size_t r = 0; r < a[i]->regions.size(); ++r)
      if (a[i]->regions[r].bytes != b[i]->regions[r].bytes) return false;
  }
  return true;
}

// The pages of one region, of all bindings of an instance.
struct PagedRegion {
  std::set<uint64_t> page_strides;
  Range page;  // the bytes that views have in slot 0, and what lies between them
  std::map<std::pair<ParticipantId, PageTableId>, std::vector<uint64_t>> slots;
  uint64_t end = 0;  // of the last page, were it whole

  // Pages are the outermost axis of the region, each slot is one table's, and whole pages lie within.
  bool is_plain(uint64_t bytes) const {
    std::vector<uint64_t> all;
    for (const auto& [table, own] : slots) all.insert(all.end(), own.begin(), own.end());
    std::sort(all.begin(), all.end());
    return page_strides.size() == 1 && page.size() <= *page_strides.begin() && end <= bytes &&
           std::adjacent_find(all.begin(), all.end()) == all.end();
  }
};

// Whether the bindings are legal for plain reasons, where BoundSide::rebind() has to see it.
bool is_plainly_legal(const Bindings& bindings, const CacheSchema& schema) {
  std::map<PlanRegion, PagedRegion> paged;
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views) {
      if (!view.pages) return false;
      const auto table = std::find_if(binding->page_tables.begin(), binding->page_tables.end(),
                                      [&](const PageTable& each) { return each.id == view.pages->table; });
      const Component& component = *schema.find_group(view.layers.begin())->find(view.component);
      const uint64_t rows = table->page_tokens / component.tokens_per_row.value_or(1);
      const uint64_t end = view.offset_bytes + (view.layers.size() - 1) * view.strides.layer +
                           (view.heads.size() - 1) * view.strides.head + (view.dims.size() - 1) * view.strides.dim +
                           (rows - 1) * view.strides.row + component.item_bytes;
      PagedRegion& region = paged[{binding->instance, view.region}];
      region.page = region.page.empty()
                        ? Range(view.offset_bytes, end)
                        : Range(std::min(region.page.begin(), view.offset_bytes), std::max(region.page.end(), end));
      region.page_strides.insert(view.pages->page_stride_bytes);
      region.slots[{binding->participant, table->id}] = table->slots;
      const uint64_t last = *std::max_element(table->slots.begin(), table->slots.end());
      region.end = std::max(region.end, end + last * view.pages->page_stride_bytes);
    }
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const Region& region : binding->regions)
      if (!paged[{binding->instance, region.id}].is_plain(region.bytes)) return false;
  return true;
}

void check_same(const LoweredPlan& a, const LoweredPlan& b) {
  RC_ASSERT(a.source_regions() == b.source_regions());
  RC_ASSERT(a.target_regions() == b.target_regions());
  RC_ASSERT(a.pairs().size() == b.pairs().size());
  for (size_t i = 0; i < a.pairs().size(); ++i) {
    RC_ASSERT(a.pairs()[i].source == b.pairs()[i].source);
    RC_ASSERT(a.pairs()[i].target == b.pairs()[i].target);
    RC_ASSERT(a.steps(a.pairs()[i]) == b.steps(b.pairs()[i]));
    RC_ASSERT(a.pairs()[i].counts == b.pairs()[i].counts);
  }
}

// Gives a side other bindings. What it takes has to be what bind() would take; what is plainly legal it has to take.
bool rebind(BoundSide& side, const BindingContext& context, const Bindings& before, const Bindings& after) {
  const bool taken = side.rebind(pointers_to(after));
  Diagnostics diagnostics;
  const bool legal = BoundSide::bind(context, pointers_to(after), diagnostics).has_value();
  if (taken) RC_ASSERT(legal);
  const CacheSchema& schema = context.placement().cache_schema;
  if (!same_but_for_slots(before, after))
    RC_ASSERT(!taken);
  else if (legal && is_plainly_legal(before, schema) && is_plainly_legal(after, schema))
    RC_ASSERT(taken);
  return taken;
}

// Moves one page of one binding, here and there.
void check_single_slots(const BoundSide& side, const BindingContext& context, const Bindings& bindings,
                        Choices& choices) {
  for (int times = 0; times < 6; ++times) {
    const Bindings after = changed(bindings, Change::kOneSlot, choices);
    Witness witness;
    witness.add("other-binding", after);
    BoundSide copy = side;
    rebind(copy, context, bindings, after);
  }
}

void check_rebind(const Draw& draw, BindingStyle style) {
  BoundCase drawn = random_bound_case(draw, style);
  Witness witness;
  add_to(witness, drawn);
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
  const BindingContext source_context = context_of(drawn.source, drawn.documents);
  const BindingContext target_context = context_of(drawn.target, drawn.documents);
  BoundSide source = bind_or_fail(source_context, drawn.source_bindings);
  BoundSide target = bind_or_fail(target_context, drawn.target_bindings);
  const LoweredPlan before = lower_or_fail(*plan, source, target);

  Choices choices(draw, Section::kStore);
  check_single_slots(source, source_context, drawn.source_bindings, choices);
  check_single_slots(target, target_context, drawn.target_bindings, choices);
  const bool permuted_only = !choices.chance(1, 2);
  const auto random_change = [&] {
    if (permuted_only) return Change::kPermuted;
    return choices.chance(2, 3) ? Change::kOneSlot : static_cast<Change>(choices.below(8));
  };
  const Bindings new_source = changed(drawn.source_bindings, random_change(), choices);
  const Bindings new_target = changed(drawn.target_bindings, random_change(), choices);
  witness.add("new-source-binding", new_source);
  witness.add("new-target-binding", new_target);
  const bool source_taken = rebind(source, source_context, drawn.source_bindings, new_source);
  if (!source_taken) check_same(lower_or_fail(*plan, source, target), before);  // nothing was changed
  const bool target_taken = rebind(target, target_context, drawn.target_bindings, new_target);
  RC_CLASSIFY(source_taken && target_taken, "both taken");
  if (!source_taken || !target_taken) return;
  LoweredPlan lowered = before;
  lowered = lowered.rebound(*plan, source, target);
  check_same(lowered,
             lower_or_fail(*plan, bind_or_fail(source_context, new_source), bind_or_fail(target_context, new_target)));
}

RC_GTEST_PROP(Rebind, OfPagedBindingsGivesTheStepsOfLoweringAnew, (const Draw& draw)) {
  check_rebind(draw, BindingStyle::kPaged);
}

RC_GTEST_PROP(Rebind, OfAnyBindingsTakesOnlyWhatBindTakes, (const Draw& draw)) {
  check_rebind(draw, BindingStyle::kAny);
}

}  // namespace
}  // namespace crossdock::testing
