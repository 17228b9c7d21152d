#include "planner/kv/verify_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/text.h"

namespace crossdock {
namespace {

Rule rule_of(PlanFault::Kind kind) {
  switch (kind) {
    case PlanFault::Kind::kGap: return Rule::kPlanGap;
    case PlanFault::Kind::kOverlap: return Rule::kPlanOverlap;
    case PlanFault::Kind::kNotTarget: return Rule::kPlanTarget;
    case PlanFault::Kind::kNotSource: return Rule::kPlanSource;
  }
  check_failed("a known kind of fault", __FILE__, __LINE__);
}

// All but the layers.
auto block_key(const PlanFault& fault) {
  return std::tie(fault.target, fault.tensor, fault.kind, fault.heads, fault.tokens, fault.edges);
}

// The layers of all faults of one key, at the first of them; empty at the others.
std::vector<std::vector<Range>> layers_of_alike(const std::vector<PlanFault>& faults) {
  std::vector<size_t> order(faults.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return block_key(faults[a]) < block_key(faults[b]); });
  std::vector<std::vector<Range>> layers(faults.size());
  size_t first = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (block_key(faults[order[i]]) != block_key(faults[order[first]])) first = i;
    layers[order[first]].push_back(faults[order[i]].layers);
  }
  return layers;
}

std::string what_is_wrong(const TransferPlan& plan, const PlanFault& fault) {
  const auto edge_text = [&](uint32_t edge) {
    return fmt::format("edge {} from '{}'", edge, plan.sources[plan.edges[edge].source].text());
  };
  switch (fault.kind) {
    case PlanFault::Kind::kGap: return "no edge brings them";
    case PlanFault::Kind::kOverlap:
      return fmt::format("{} and {} bring them", edge_text(fault.edges[0]), edge_text(fault.edges[1]));
    case PlanFault::Kind::kNotTarget:
      return fmt::format("{} brings them, and the target does not require them", edge_text(fault.edges[0]));
    case PlanFault::Kind::kNotSource:
      return fmt::format("{} takes them, and that source does not own them", edge_text(fault.edges[0]));
  }
  check_failed("a known kind of fault", __FILE__, __LINE__);
}

}  // namespace

void report_plan_faults(const TransferPlan& plan, const PlanProof& proof, Faults& faults) {
  std::vector<std::vector<Range>> layers = layers_of_alike(proof.faults);
  for (size_t i = 0; i < proof.faults.size() && !faults.full(); ++i) {
    if (layers[i].empty()) continue;
    const PlanFault& fault = proof.faults[i];
    faults.add(rule_of(fault.kind), fmt::format("target '{}'", plan.targets[fault.target].text()),
               fmt::format("layers {} component {} heads {} tokens {}: {}",
                           set_text(IntervalSet::from_ranges(std::move(layers[i]))),
                           plan.tensors[fault.tensor].component.name.text(), range_text(fault.heads),
                           range_text(fault.tokens), what_is_wrong(plan, fault)));
  }
  const uint64_t left_out = proof.fault_count - proof.faults.size();
  if (left_out > 0)
    faults.add(proof.faults.empty() ? Rule::kPlanLimit : rule_of(proof.faults.back().kind), "",
               fmt::format("{} more blocks of elements are wrong", left_out));
}

}  // namespace crossdock
