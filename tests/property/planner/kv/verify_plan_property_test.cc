// The proof of random plans, right and spoiled ones, against a definition that looks at each element.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/kv/verify_plan.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"
#include "tests/support/naive_plan.h"

namespace crossdock::testing {
namespace {

// ---- Random plans against the definition ----

// One diagnostic of one layer and one head. For an overlap the two lowest edges of the first token that has two.
using NaiveDiagnostic = std::tuple<uint32_t, uint32_t, uint64_t, uint64_t, Kind, Range, std::vector<uint32_t>>;

// The first stretch of equal, non-empty values of `what_at(token)`.
template <class WhatAt>
void note_first_stretch(Range tokens, WhatAt what_at, std::set<NaiveDiagnostic>& diagnostics,
                        const NaiveDiagnostic& place) {
  uint64_t begin = tokens.begin();
  while (begin < tokens.end() && !what_at(begin)) ++begin;
  if (begin == tokens.end()) return;
  uint64_t end = begin;
  while (end < tokens.end() && what_at(end) == what_at(begin)) ++end;
  NaiveDiagnostic diagnostic = place;
  // Longer than a period to the end of what is looked at: for ever.
  std::get<Range>(diagnostic) = Range(begin, end == kTokensLookedAt ? Range::kUnbounded : end);
  std::get<std::vector<uint32_t>>(diagnostic) = *what_at(begin);
  diagnostics.insert(diagnostic);
}

std::set<NaiveDiagnostic> naive_diagnostics(const TransferPlan& plan, const PlanSide& source, const PlanSide& target) {
  std::set<NaiveDiagnostic> diagnostics;
  using Edges = std::vector<uint32_t>;
  const auto index_of = [](const PlanSide& side, const PlanEnd& end) {
    size_t i = 0;
    while (side.owners()[i].end != end.text()) ++i;
    return i;
  };
  const auto holds = [&](const Edge& edge, uint64_t layer, uint64_t head) {
    return naive_in(plan.layer_sets[edge.layer_set], layer) && naive_in({edge.heads}, head);
  };
  for (uint32_t t = 0; t < plan.targets.size(); ++t) {
    const size_t owner = index_of(target, plan.targets[t]);
    for (uint32_t i = 0; i < plan.tensors.size(); ++i)
      for_each_row(plan.tensors[i], [&](uint64_t layer, uint64_t head) {
        const PlanTensor& tensor = plan.tensors[i];
        const Range tokens = tokens_looked_at(tensor);
        Edges edges;
        for (uint32_t e = 0; e < plan.edges.size(); ++e)
          if (plan.edges[e].target == t && plan.edges[e].tensor == i && holds(plan.edges[e], layer, head))
            edges.push_back(e);
        const auto is_required = [&](uint64_t token) {
          return naive_owns(target, owner, tensor.component, layer, head, token);
        };
        const auto brought_by = [&](uint64_t token) {
          Edges by;
          for (const uint32_t e : edges)
            if (naive_in(plan.token_sets[plan.edges[e].token_set], token)) by.push_back(e);
          return by;
        };
        const auto note = [&](Kind kind, auto what_at) {
          note_first_stretch(tokens, what_at, diagnostics, {t, i, layer, head, kind, Range(), {}});
        };
        note(Kind::kGap, [&](uint64_t token) {
          return is_required(token) && brought_by(token).empty() ? std::optional(Edges()) : std::nullopt;
        });
        note(Kind::kOverlap, [&](uint64_t token) -> std::optional<Edges> {
          const Edges by = brought_by(token);
          if (by.size() < 2) return std::nullopt;
          return Edges{by[0], by[1]};
        });
        for (const uint32_t e : edges) {
          const Edge& edge = plan.edges[e];
          const size_t from = index_of(source, plan.sources[edge.source]);
          const auto brings = [&](uint64_t token) { return naive_in(plan.token_sets[edge.token_set], token); };
          note(Kind::kNotTarget, [&](uint64_t token) {
            return brings(token) && !is_required(token) ? std::optional(Edges{e}) : std::nullopt;
          });
          note(Kind::kNotSource, [&](uint64_t token) {
            return brings(token) && !naive_owns(source, from, tensor.component, layer, head, token)
                       ? std::optional(Edges{e})
                       : std::nullopt;
          });
        }
      });
  }
  return diagnostics;
}

// Blocks as single layers and heads. Each stands in one block.
std::set<NaiveDiagnostic> spread(const std::vector<PlanDiagnostic>& diagnostics) {
  std::set<NaiveDiagnostic> spread;
  for (const PlanDiagnostic& diagnostic : diagnostics)
    for (uint64_t layer = diagnostic.layers.begin(); layer < diagnostic.layers.end(); ++layer)
      for (uint64_t head = diagnostic.heads.begin(); head < diagnostic.heads.end(); ++head)
        RC_ASSERT(spread
                      .insert({diagnostic.target, diagnostic.tensor, layer, head, diagnostic.kind, diagnostic.tokens,
                               diagnostic.edges})
                      .second);
  return spread;
}

// Layers in up to three kinds of attention, dealt in turn or in runs.
struct Schemas {
  CacheSchema source;
  CacheSchema target;
};

Schemas draw_schemas(Rng& rng) {
  const uint64_t layer_count = 1 + rng.below(5);
  const uint64_t kind_count = 1 + rng.below(std::min<uint64_t>(3, layer_count));
  const bool in_runs = rng.chance(1, 2);
  Schemas schemas;
  for (uint64_t kind = 0; kind < kind_count; ++kind) {
    std::vector<Component> components;
    const uint64_t head_count = uint64_t{1} << rng.below(3);
    if (rng.chance(1, 4)) {
      components.push_back(state("state", head_count));
    } else {
      components.push_back(rows("key", head_count));
      if (rng.chance(1, 2)) components.push_back(rows("value", head_count));
      if (rng.chance(1, 3)) components.back().tokens_per_row = 2;
    }
    std::vector<Range> of_source;
    std::vector<std::vector<Range>> of_target(2);  // may have fewer layers, and in two groups
    const bool target_splits = rng.chance(1, 3);
    const bool target_leaves_out = rng.chance(1, 4);
    for (uint64_t layer = 0; layer < layer_count; ++layer) {
      if ((in_runs ? layer * kind_count / layer_count : layer % kind_count) != kind) continue;
      of_source.push_back(Range(layer, layer + 1));
      if (target_leaves_out && rng.chance(1, 2)) continue;
      of_target[target_splits ? rng.below(2) : 0].push_back(Range(layer, layer + 1));
    }
    std::optional<uint64_t> window;
    if (rng.chance(1, 3)) window = 1 + rng.below(12);
    for (const std::vector<Range>& layers : of_target)
      if (!layers.empty()) schemas.target.groups.push_back(group(IntervalSet::from_ranges(layers), components, window));
    if (rng.chance(1, 2)) components.push_back(rows("zeta", 1));  // which the target does not want
    if (window && rng.chance(1, 2)) window = *window + rng.below(3);
    schemas.source.groups.push_back(group(IntervalSet::from_ranges(of_source), components, window));
  }
  return schemas;
}

// The same elements in one or two ownerships, by heads or by tokens. Replicas have to state the same tokens.
std::vector<Ownership> split_in_two(const Ownership& ownership, Range tokens, Rng& rng) {
  std::vector<Ownership> pieces(2, ownership);
  const Range heads = ownership.heads.hull();
  const bool has_rows = std::all_of(ownership.components.begin(), ownership.components.end(),
                                    [](const ComponentName& name) { return name.text() != "state"; });
  if (heads.size() > 1 && rng.chance(1, 3)) {
    pieces[0].heads = IntervalSet{Range(heads.begin(), heads.begin() + 1)};
    pieces[1].heads = ownership.heads.subtract(pieces[0].heads);
    return pieces;
  }
  if (std::holds_alternative<AllTokens>(ownership.tokens) && has_rows && ownership.replica.count == 1 &&
      rng.chance(1, 3)) {
    const uint64_t middle = 2 * (1 + rng.below(kTokenPeriod / 2 - 1));
    pieces[0].tokens = TokenIntervals{{Range(tokens.begin(), middle)}};
    pieces[1].tokens = TokenIntervals{{Range(middle, tokens.end())}};
    return pieces;
  }
  pieces.pop_back();
  return pieces;
}

Valid<PlacementManifest> draw_placement(const CacheSchema& schema, bool has_end, Rng& rng) {
  PartitionSizes sizes;
  sizes.tp = uint64_t{1} << rng.below(3);
  sizes.pp = 1 + rng.below(2);
  sizes.dp = rng.chance(1, 5) ? 2 : 1;
  sizes.cp = 1 + rng.below(3);
  sizes.cp_block_tokens = uint64_t{2} << rng.below(2);
  PlacementManifest placement = *placed(schema, sizes);
  if (has_end && rng.chance(1, 2)) {
    // The same tokens, stated one by one; so with an end for all.
    placement.tokens = Range(0, kTokenPeriod);
    for (Part& part : placement.parts)
      for (Ownership& ownership : part.owns) {
        if (!std::holds_alternative<CyclicTokens>(ownership.tokens)) continue;
        std::vector<Range> ranges;
        for (uint64_t token = 0; token < kTokenPeriod; ++token)
          if (naive_owns_token(ownership.tokens, token)) ranges.push_back(Range(token, token + 1));
        ownership.tokens = TokenIntervals{IntervalSet::from_ranges(std::move(ranges))};
      }
  }
  for (Part& part : placement.parts) {
    std::vector<Ownership> split;
    for (const Ownership& ownership : part.owns)
      for (Ownership& piece : split_in_two(ownership, placement.tokens, rng)) split.push_back(std::move(piece));
    part.owns = std::move(split);
  }
  return valid_or_die(placement);
}

AskedTokens draw_asked(bool has_end, Rng& rng) {
  AskedTokens asked;
  if (!has_end) return asked;
  if (rng.chance(2, 3)) {
    const uint64_t begin = rng.below(kTokenPeriod);
    asked.snapshot_tokens = Range(begin, begin + 1 + rng.below(kTokenPeriod - begin));
  } else {
    asked.tokens = Range(0, kTokenPeriod);
  }
  if (rng.chance(1, 3)) {
    const uint64_t begin = 2 * rng.below(kTokenPeriod / 2);  // rows have two tokens
    asked.tokens = Range(begin, begin + 2 * (1 + rng.below((kTokenPeriod - begin) / 2)));
  }
  return asked;
}

Range draw_range(Range within, Rng& rng) {
  const uint64_t begin = rng.in(within);
  return Range(begin, begin + 1 + rng.below(within.end() - begin));
}

// Tokens of the tensor, whole rows, with or without a cycle; without end where the tensor has none.
TokenSet draw_tokens(const PlanTensor& tensor, Rng& rng) {
  const uint64_t unit = tensor.component.tokens_per_row.value_or(1);
  const Range tokens = tensor.tokens.intersect(Range(0, kTokenPeriod));
  Range drawn = draw_range(tokens, rng);
  drawn = Range(drawn.begin() - drawn.begin() % unit, drawn.end() + drawn.end() % unit).intersect(tensor.tokens);
  if (rng.chance(1, 2)) drawn = Range(drawn.begin(), tensor.tokens.end());
  TokenSet set{{drawn}, std::nullopt};
  if (rng.chance(1, 2)) set.cycle = CyclicTokens{unit * (1 + rng.below(2)), 3, {draw_range(Range(0, 3), rng)}};
  return set;
}

void spoil(TransferPlan& plan, Rng& rng) {
  if (plan.edges.empty()) return;
  const size_t index = rng.below(plan.edges.size());
  Edge& edge = plan.edges[index];
  const PlanTensor& tensor = plan.tensors[edge.tensor];
  const auto draw_layers = [&] {
    std::vector<Range> layers;
    for (const Range range : tensor.layers.ranges())
      for (uint64_t layer = range.begin(); layer < range.end(); ++layer)
        if (rng.chance(1, 2)) layers.push_back(Range(layer, layer + 1));
    return IntervalSet::from_ranges(std::move(layers));
  };
  switch (rng.below(8)) {
    case 0: plan.edges.erase(plan.edges.begin() + static_cast<ptrdiff_t>(index)); break;
    case 1: edge.heads = draw_range(Range(0, tensor.component.head_count), rng); break;
    case 2: edge.layer_set = add_layer_set(plan, draw_layers()); break;
    case 3: edge.token_set = add_token_set(plan, draw_tokens(tensor, rng)); break;
    case 4: edge.source = static_cast<uint32_t>(rng.below(plan.sources.size())); break;
    case 5: edge.target = static_cast<uint32_t>(rng.below(plan.targets.size())); break;
    default: {  // another edge as well
      Edge twin = edge;
      if (rng.chance(1, 2)) twin.source = static_cast<uint32_t>(rng.below(plan.sources.size()));
      if (rng.chance(1, 2)) twin.layer_set = add_layer_set(plan, draw_layers());
      if (rng.chance(1, 2)) twin.token_set = add_token_set(plan, draw_tokens(tensor, rng));
      if (rng.chance(1, 2)) twin.heads = draw_range(Range(0, tensor.component.head_count), rng);
      plan.edges.push_back(twin);
      break;
    }
  }
}

Rule rule_of(Kind kind) {
  if (kind == Kind::kGap) return Rule::kPlanGap;
  if (kind == Kind::kOverlap) return Rule::kPlanOverlap;
  return kind == Kind::kNotTarget ? Rule::kPlanTarget : Rule::kPlanSource;
}

// Equal but for touching layers, or not in order.
bool is_canonical(const std::vector<PlanDiagnostic>& diagnostics) {
  const auto key = [](const PlanDiagnostic& diagnostic) {
    return std::tie(diagnostic.target, diagnostic.tensor, diagnostic.layers, diagnostic.heads, diagnostic.tokens);
  };
  for (const PlanDiagnostic& a : diagnostics)
    for (const PlanDiagnostic& b : diagnostics) {
      PlanDiagnostic shifted = b;
      shifted.layers = a.layers;
      if (a.layers.end() == b.layers.begin() && shifted == a) return false;
    }
  return std::is_sorted(diagnostics.begin(), diagnostics.end(),
                        [&](const PlanDiagnostic& a, const PlanDiagnostic& b) { return key(a) < key(b); });
}

RC_GTEST_PROP(VerifyPlanProperty, JudgesEachElementAsItsDefinitionDoes, (uint64_t seed)) {
  Rng rng(seed);
  const bool has_end = rng.chance(2, 3);
  const Schemas schemas = draw_schemas(rng);
  RC_PRE(!schemas.target.groups.empty());
  const SidePair pair(draw_placement(schemas.source, has_end, rng), draw_placement(schemas.target, has_end, rng));
  const AskedTokens asked = draw_asked(has_end, rng);
  // Rows of more than one token can be shared out as cycles only by hand; without end they all come from one source.
  TransferPlan plan = naive_plan(pair.source_side, pair.target_side, asked, rng);
  const uint64_t spoil_count = rng.below(4);
  for (uint64_t i = 0; i < spoil_count; ++i) spoil(plan, rng);
  drop_idle_sources(plan);
  Diagnostics plan_diagnostics;
  const auto valid = Valid<TransferPlan>::make(plan, plan_diagnostics);
  if (spoil_count == 0 && !valid) RC_FAIL(plan_diagnostics.kept()[0].to_line());
  RC_PRE(valid.has_value());

  VerifyLimits limits;
  limits.diagnostic_count_max = 1'000'000;
  Diagnostics diagnostics("plan", limits.diagnostic_count_max);
  const PlanProof proof = verify_plan(*valid, pair.source_side, pair.target_side, limits, diagnostics);
  const std::set<NaiveDiagnostic> expected = naive_diagnostics(**valid, pair.source_side, pair.target_side);
  RC_CLASSIFY(expected.empty(), "right");
  RC_CLASSIFY(!has_end, "without end");
  RC_ASSERT(proof.complete);
  RC_ASSERT(spread(proof.diagnostics) == expected);
  RC_ASSERT(proof.diagnostic_count == proof.diagnostics.size());
  RC_ASSERT(is_canonical(proof.diagnostics));
  std::set<Rule> rules;
  for (const PlanDiagnostic& diagnostic : proof.diagnostics) rules.insert(rule_of(diagnostic.kind));
  if ((*valid)->edges.empty() && !expected.empty()) rules.insert(Rule::kPlanEmpty);
  std::set<Rule> reported;
  for (const Diagnostic& diagnostic : diagnostics.kept()) reported.insert(diagnostic.rule);
  RC_ASSERT(reported == rules);

  limits.diagnostic_count_max = 1 + rng.below(3);
  Diagnostics fewer;
  const PlanProof first = verify_plan(*valid, pair.source_side, pair.target_side, limits, fewer);
  const size_t kept = std::min(limits.diagnostic_count_max, proof.diagnostics.size());
  RC_ASSERT(first.diagnostics == std::vector<PlanDiagnostic>(proof.diagnostics.begin(),
                                                             proof.diagnostics.begin() + static_cast<ptrdiff_t>(kept)));
  RC_ASSERT(first.diagnostic_count == proof.diagnostic_count);
}

}  // namespace
}  // namespace crossdock::testing
