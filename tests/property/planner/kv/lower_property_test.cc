// Steps of random plans and bindings, against definitions written out element by element: where each byte lies, and
// that no other byte is touched.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <compare>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "tests/support/naive.h"
#include "tests/support/plan_cases.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {
namespace {

// ---- (b) steps

bool has_divided_dims(const Bindings& bindings, const CacheSchema& schema) {
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views)
      if (view.dims.size() != schema.find_group(view.layers.begin())->find(view.component)->head_dim) return true;
  return false;
}

// Rows of one layer and head that the options ask for.
uint64_t count_head_rows(const Bindings& bindings, const CacheSchema& schema, const AskedElements& asked) {
  std::set<std::tuple<std::string, std::string, uint64_t, uint64_t, uint64_t>> rows;
  for (const Valid<RuntimeBinding>& binding : bindings)
    for (const View& view : binding->views)
      for_each_plan_element(view, binding->page_tables, schema, [&](const PlanElement& element, uint64_t) {
        if (asked(binding->participant, element))
          rows.emplace(binding->participant.text(), view.component.text(), element.layer, element.head, element.row());
      });
  return rows.size();
}

// What a writer or a reader lowers for itself is its part of the whole.
void check_parts(const TransferPlan& plan, const BoundSide& source, const BoundSide& target, const LoweredPlan& whole) {
  size_t pair_count = 0;
  const auto check_part = [&](const LowerOptions& options) {
    const LoweredPlan part = lower_or_fail(plan, source, target, options);
    for (const LoweredPair& pair : part.pairs()) {
      const auto same = std::find_if(whole.pairs().begin(), whole.pairs().end(), [&](const LoweredPair& each) {
        return each.source == pair.source && each.target == pair.target;
      });
      RC_ASSERT(same != whole.pairs().end());
      RC_ASSERT(part.steps(pair) == whole.steps(*same));
      RC_ASSERT(pair.counts == same->counts);
    }
    pair_count += part.pairs().size();
  };
  for (const PlanEnd& end : plan.sources) check_part(LowerOptions{end, std::nullopt});
  for (const PlanEnd& end : plan.targets) check_part(LowerOptions{std::nullopt, end});
  RC_ASSERT(pair_count == 2 * whole.pairs().size());
}

RC_GTEST_PROP(Lowering, CopiesEachRequiredByteOnceAndTouchesNothingElse, (const Draw& draw)) {
  const BoundCase drawn = random_bound_case(draw, BindingStyle::kAny);
  Witness witness;
  add_to(witness, drawn);
  const CacheSchema& target_schema = drawn.target->cache_schema;
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
  const BindingContext source_context = context_of(drawn.source, drawn.documents);
  const BindingContext target_context = context_of(drawn.target, drawn.documents);
  const BoundSide source = bind_or_fail(source_context, drawn.source_bindings);
  const BoundSide target = bind_or_fail(target_context, drawn.target_bindings);
  const LoweredPlan lowered = lower_or_fail(*plan, source, target);

  NaiveCopier copier;
  add_regions(drawn.source_bindings, copier.source);
  add_regions(drawn.target_bindings, copier.target);
  fill_with(copier.source, 1);
  fill_with(copier.target, 2);
  write_elements(drawn.source_bindings, drawn.source->cache_schema, kEverything, copier.source);
  const AskedElements asked{drawn.target, drawn.options};
  PlanMemory expected = copier.target;
  write_elements(drawn.target_bindings, target_schema, asked, expected);
  const PlanMemory wanted = marked(drawn.target_bindings, target_schema, asked, expected);
  copier.run(lowered);
  check_target(copier, expected, wanted);

  const uint64_t head_rows = count_head_rows(drawn.target_bindings, target_schema, asked);
  const bool divided = has_divided_dims(drawn.source_bindings, drawn.source->cache_schema) ||
                       has_divided_dims(drawn.target_bindings, target_schema);
  if (divided)
    RC_ASSERT(lowered.counts().row_pieces >= head_rows);
  else
    RC_ASSERT(lowered.counts().row_pieces == head_rows);
  check_parts(*plan, source, target, lowered);
  RC_CLASSIFY(copier.counts.bytes > 200, "more than 200 bytes");
  RC_CLASSIFY(plan->edges.size() > 10, "more than 10 edges");
}

}  // namespace
}  // namespace crossdock::testing
