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

// Messages name ends and components, as a person knows them; numbers of edges go with them, to find the place in the
// plan.
namespace crossdock {
namespace {

Rule rule_of(PlanDiagnostic::Kind kind) {
  switch (kind) {
    case PlanDiagnostic::Kind::kGap: return Rule::kPlanGap;
    case PlanDiagnostic::Kind::kOverlap: return Rule::kPlanOverlap;
    case PlanDiagnostic::Kind::kNotTarget: return Rule::kPlanTarget;
    case PlanDiagnostic::Kind::kNotSource: return Rule::kPlanSource;
  }
  check_failed("a known kind of diagnostic", __FILE__, __LINE__);
}

// All but the layers.
auto block_key(const PlanDiagnostic& diagnostic) {
  return std::tie(diagnostic.target, diagnostic.tensor, diagnostic.kind, diagnostic.heads, diagnostic.tokens,
                  diagnostic.edges);
}

// The layers of all diagnostics of one key, at the first of them; empty at the others.
// The sweep joins only layers that touch; layers of alternating groups come together here.
std::vector<std::vector<Range>> layers_of_alike(const std::vector<PlanDiagnostic>& diagnostics) {
  std::vector<size_t> order(diagnostics.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return block_key(diagnostics[a]) < block_key(diagnostics[b]); });
  std::vector<std::vector<Range>> layers(diagnostics.size());
  size_t first = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (block_key(diagnostics[order[i]]) != block_key(diagnostics[order[first]])) first = i;
    layers[order[first]].push_back(diagnostics[order[i]].layers);
  }
  return layers;
}

std::string what_is_wrong(const TransferPlan& plan, const PlanDiagnostic& diagnostic) {
  const auto edge_text = [&](uint32_t edge) {
    return fmt::format("edge {} from '{}'", edge, plan.sources[plan.edges[edge].source].text());
  };
  switch (diagnostic.kind) {
    case PlanDiagnostic::Kind::kGap: return "no edge brings them";
    case PlanDiagnostic::Kind::kOverlap:
      return fmt::format("{} and {} bring them", edge_text(diagnostic.edges[0]), edge_text(diagnostic.edges[1]));
    case PlanDiagnostic::Kind::kNotTarget:
      return fmt::format("{} brings them, and the target does not require them", edge_text(diagnostic.edges[0]));
    case PlanDiagnostic::Kind::kNotSource:
      return fmt::format("{} takes them, and that source does not own them", edge_text(diagnostic.edges[0]));
  }
  check_failed("a known kind of diagnostic", __FILE__, __LINE__);
}

}  // namespace

void report_plan_diagnostics(const TransferPlan& plan, const PlanProof& proof, Diagnostics& diagnostics) {
  std::vector<std::vector<Range>> layers = layers_of_alike(proof.diagnostics);
  for (size_t i = 0; i < proof.diagnostics.size() && !diagnostics.full(); ++i) {
    if (layers[i].empty()) continue;
    const PlanDiagnostic& diagnostic = proof.diagnostics[i];
    diagnostics.add(rule_of(diagnostic.kind), fmt::format("target '{}'", plan.targets[diagnostic.target].text()),
                    fmt::format("layers {} component {} heads {} tokens {}: {}",
                                set_text(IntervalSet::from_ranges(std::move(layers[i]))),
                                plan.tensors[diagnostic.tensor].component.name.text(), range_text(diagnostic.heads),
                                range_text(diagnostic.tokens), what_is_wrong(plan, diagnostic)));
  }
  // With diagnostic_count_max 0 nothing is kept and no kind is known, hence plan-limit.
  const uint64_t left_out = proof.diagnostic_count - proof.diagnostics.size();
  if (left_out > 0)
    diagnostics.add(proof.diagnostics.empty() ? Rule::kPlanLimit : rule_of(proof.diagnostics.back().kind), "",
                    fmt::format("{} more blocks of elements are wrong", left_out));
}

}  // namespace crossdock
