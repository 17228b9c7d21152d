// Plans of random placements, against a planner that looks at each element: who sends what to whom.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <compare>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "planner/kv/bound_side.h"
#include "planner/kv/lower.h"
#include "planner/kv/make_plan.h"
#include "tests/support/naive.h"
#include "tests/support/plan_cases.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {
namespace {

// ---- what has to move

// One element's way, in numbers: parts of the placements, and components in the order of their names.
struct Move {
  uint32_t target;
  uint32_t component;
  uint64_t layer;
  uint64_t head;
  uint64_t token;
  uint32_t source;

  friend auto operator<=>(const Move&, const Move&) = default;
};

std::vector<std::string> component_names(const CacheSchema& schema) {
  std::set<std::string> names;
  for (const LayerGroup& group : schema.groups)
    for (const Component& component : group.components) names.insert(component.name.text());
  return {names.begin(), names.end()};
}

// A planner that looks at each element.
class NaivePlanner {
 public:
  explicit NaivePlanner(const PlanCase& drawn) : drawn_(drawn), names_(component_names(drawn.target->cache_schema)) {
    std::set<uint64_t> ranks;
    for (const Part& part : drawn.source->parts)
      if (may_send(part.participant)) ranks.insert(dp_of(*drawn.source, part.participant));
    if (drawn.options.source_dp) ranks = {*drawn.options.source_dp};
    source_dps_.assign(ranks.begin(), ranks.end());
  }

  const std::vector<std::string>& names() const { return names_; }

  // Calls visit(target, target's ordinal, group, component, move without source) for each element that is asked for.
  template <class Visit>
  void for_each_required(Visit visit) const {
    for (uint32_t target = 0; target < drawn_.target->parts.size(); ++target) {
      if (!is_asked(drawn_.target->parts[target].participant)) continue;
      for (const Ownership& own : drawn_.target->parts[target].owns)
        for (uint64_t layer = 0; layer < kLayersLooked; ++layer)
          for (const ComponentName& name : own.components)
            if (own.layers.contains(layer)) visit_owned(target, own, layer, name, visit);
    }
  }

  // Those that may send it, sorted by replica ordinal; of the data-parallel rank that stands for the target's.
  const std::vector<uint32_t>& candidates(const Move& move) { return candidates(move, source_dp_for(move.target)); }

  bool any_can_send(const Move& move) {
    return std::any_of(source_dps_.begin(), source_dps_.end(),
                       [&](uint64_t dp) { return !candidates(move, dp).empty(); });
  }

  bool can_send(const Move& move, uint32_t source) {
    const uint64_t dp = dp_of(*drawn_.source, drawn_.source->parts[source].participant);
    const std::vector<uint32_t>& owners = candidates(move, dp);
    return std::count(source_dps_.begin(), source_dps_.end(), dp) > 0 &&
           std::count(owners.begin(), owners.end(), source) > 0;
  }

  // Those of any data-parallel rank that may serve.
  std::vector<uint32_t> all_candidates(const Move& move) {
    std::vector<uint32_t> all;
    for (const uint64_t dp : source_dps_) {
      const std::vector<uint32_t>& owners = candidates(move, dp);
      all.insert(all.end(), owners.begin(), owners.end());
    }
    return all;
  }

  // Every element that is asked for, from the one that the deterministic choice names, or the choice by page; empty
  // when one has no source.
  std::optional<std::vector<Move>> deterministic() {
    std::vector<Move> moves;
    bool complete = true;
    const bool by_page = drawn_.options.selection == SourceSelection::kByPage;
    for_each_required([&](uint64_t ordinal, const Component& component, Move move) {
      const std::vector<uint32_t>& owners = candidates(move);
      complete &= !owners.empty();
      if (!complete) return;
      const bool of_page = by_page && !component.is_state();
      move.source = owners[(of_page ? move.token / drawn_.options.selection_page_tokens : ordinal) % owners.size()];
      moves.push_back(move);
    });
    if (!complete) return std::nullopt;
    std::sort(moves.begin(), moves.end());
    return moves;
  }

 private:
  using ElementKey = std::tuple<uint64_t, uint64_t, uint32_t, uint64_t, uint64_t>;  // dp, layer, component, head, token

  template <class Visit>
  void visit_owned(uint32_t target, const Ownership& own, uint64_t layer, const ComponentName& name,
                   Visit visit) const {
    const LayerGroup& group = *drawn_.target->cache_schema.find_group(layer);
    const Component& component = *group.find(name);
    const uint32_t number =
        static_cast<uint32_t>(std::find(names_.begin(), names_.end(), name.text()) - names_.begin());
    for (uint64_t token = 0; token < kTokensLooked; ++token) {
      const bool lives = drawn_.options.snapshot_tokens
                             ? is_live_token(group, component, *drawn_.options.snapshot_tokens, token)
                         : component.is_state() ? token == 0
                                                : drawn_.target->tokens.contains(token);
      const bool asked = component.is_state() || drawn_.options.tokens.contains(token);
      if (!lives || !asked || !naive_owns_token(own.tokens, token)) continue;
      for (uint64_t head = 0; head < component.head_count; ++head)
        if (own.heads.contains(head))
          visit(own.replica.ordinal, component, Move{target, number, layer, head, token, 0});
    }
  }

  static uint64_t dp_of(const PlacementManifest& placement, const ParticipantId& id) {
    return placement.topology.find(id)->rank.dp;
  }
  bool may_send(const ParticipantId& id) const {
    return drawn_.options.sources.empty() ||
           std::count(drawn_.options.sources.begin(), drawn_.options.sources.end(), PlanEnd(id.text())) > 0;
  }
  bool is_asked(const ParticipantId& id) const {
    if (drawn_.options.target_dp && dp_of(*drawn_.target, id) != *drawn_.options.target_dp) return false;
    return drawn_.options.targets.empty() ||
           std::count(drawn_.options.targets.begin(), drawn_.options.targets.end(), PlanEnd(id.text())) > 0;
  }
  uint64_t source_dp_for(uint32_t target) const {
    return source_dps_[dp_of(*drawn_.target, drawn_.target->parts[target].participant) % source_dps_.size()];
  }

  const std::vector<uint32_t>& candidates(const Move& move, uint64_t dp) {
    const auto [entry, is_new] =
        candidates_.try_emplace(ElementKey(dp, move.layer, move.component, move.head, move.token));
    if (!is_new) return entry->second;
    std::vector<std::pair<uint64_t, uint32_t>> by_ordinal;
    for (const std::string& owner :
         naive_owners(*drawn_.source, dp, move.layer, names_[move.component], move.head, move.token)) {
      if (!may_send(ParticipantId(owner))) continue;
      const Part* part = drawn_.source->find_part(ParticipantId(owner));
      by_ordinal.emplace_back(ordinal_of(*part, move), static_cast<uint32_t>(part - drawn_.source->parts.data()));
    }
    std::sort(by_ordinal.begin(), by_ordinal.end());
    for (const auto& [ordinal, part] : by_ordinal) entry->second.push_back(part);
    return entry->second;
  }

  uint64_t ordinal_of(const Part& part, const Move& move) const {
    for (const Ownership& own : part.owns)
      if (own.layers.contains(move.layer) && own.heads.contains(move.head) &&
          naive_owns_token(own.tokens, move.token) &&
          std::count(own.components.begin(), own.components.end(), ComponentName(names_[move.component])) > 0)
        return own.replica.ordinal;
    RC_FAIL("an owner owns nothing");
  }

  const PlanCase& drawn_;
  std::vector<std::string> names_;
  std::vector<uint64_t> source_dps_;  // that may serve, sorted
  std::map<ElementKey, std::vector<uint32_t>> candidates_;
};

// The moves of a plan, sorted; one that stands in it twice is there twice.
std::vector<Move> moves_of(const TransferPlan& plan, const PlanCase& drawn, const std::vector<std::string>& names) {
  const auto part_number = [](const Placement& placement, const PlanEnd& end) {
    const Part* part = placement->find_part(ParticipantId(end.text()));
    RC_ASSERT(part != nullptr);
    return static_cast<uint32_t>(part - placement->parts.data());
  };
  std::vector<Move> moves;
  for (const Edge& edge : plan.edges) {
    const std::string& name = plan.tensors[edge.tensor].component.name.text();
    Move move{};
    move.target = part_number(drawn.target, plan.targets[edge.target]);
    move.source = part_number(drawn.source, plan.sources[edge.source]);
    move.component = static_cast<uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
    const TokenSet& tokens = plan.token_sets[edge.token_set];
    for (move.layer = 0; move.layer < kLayersLooked; ++move.layer)
      for (move.token = 0; move.token < kTokensLooked; ++move.token) {
        if (!plan.layer_sets[edge.layer_set].contains(move.layer) || !tokens.intervals.contains(move.token)) continue;
        if (tokens.cycle && !naive_owns_token(TokenOwnership(*tokens.cycle), move.token)) continue;
        for (move.head = edge.heads.begin(); move.head < edge.heads.end(); ++move.head) moves.push_back(move);
      }
  }
  std::sort(moves.begin(), moves.end());
  return moves;
}

// ---- (a) plans

// The bytes that each network interface sends, whole rows counted once for each target.
std::vector<uint64_t> loads_of(const std::vector<Move>& moves, const PlanCase& drawn,
                               const std::vector<std::string>& names) {
  std::vector<uint64_t> loads(drawn.options.nics.size() + drawn.source->parts.size());
  std::set<Move> rows;
  for (Move row : moves) {
    const Component& component =
        *drawn.target->cache_schema.find_group(row.layer)->find(ComponentName(names[row.component]));
    row.token = component.is_state() ? 0 : row.token / *component.tokens_per_row;
    if (!rows.insert(row).second) continue;
    size_t nic = drawn.options.nics.size() + row.source;
    const PlanEnd end(drawn.source->parts[row.source].participant.text());
    for (size_t i = 0; i < drawn.options.nics.size(); ++i) {
      const std::vector<PlanEnd>& members = drawn.options.nics[i].participants;
      if (std::count(members.begin(), members.end(), end) > 0) nic = i;
    }
    loads[nic] += component.head_bytes();
  }
  return loads;
}

uint64_t highest(const std::vector<uint64_t>& loads) { return *std::max_element(loads.begin(), loads.end()); }

RC_GTEST_PROP(Plan, BringsEachRequiredElementOnceFromTheSourceThatTheRuleNames, (const Draw& draw)) {
  LiveCase drawn = random_live_case(draw);
  drawn.options.selection = SourceSelection::kDeterministic;
  Choices choices(draw, Section::kStore);
  // Without a snapshot the source has to hold whatever the target does.
  if (choices.chance(1, 4) && drawn.source->tokens.contains(drawn.target->tokens) &&
      drawn.options.tokens == Range::all())
    drawn.options.snapshot_tokens = std::nullopt;
  Witness witness;
  add_to(witness, drawn);
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
  NaivePlanner naive(drawn);
  const std::optional<std::vector<Move>> expected = naive.deterministic();
  RC_ASSERT(expected.has_value());
  RC_ASSERT(moves_of(*plan, drawn, naive.names()) == *expected);
}

RC_GTEST_PROP(Plan, ByPageTakesThePagesOfEachReplicaInTurn, (const Draw& draw)) {
  LiveCase drawn = random_live_case(draw);
  Choices choices(draw, Section::kStore);
  drawn.options.selection = SourceSelection::kByPage;
  drawn.options.selection_page_tokens = row_unit(*drawn.documents.schema) * (1 + choices.below(5));
  Witness witness;
  add_to(witness, drawn);
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
  NaivePlanner naive(drawn);
  const std::optional<std::vector<Move>> expected = naive.deterministic();
  RC_ASSERT(expected.has_value());
  const std::vector<Move> moves = moves_of(*plan, drawn, naive.names());
  drawn.options.selection = SourceSelection::kDeterministic;
  RC_CLASSIFY(*expected != *NaivePlanner(drawn).deterministic(), "differs from the deterministic choice");
  RC_ASSERT(moves == *expected);
}

RC_GTEST_PROP(Plan, FromStatedSourcesIsRightOrNamesAGap, (const Draw& draw)) {
  LiveCase drawn = random_live_case(draw);
  Choices choices(draw, Section::kStore);
  drawn.options.selection = SourceSelection::kDeterministic;
  drawn.options.sources = random_ends(drawn.source, choices);
  drawn.options.source_dp = random_dp(drawn.source, drawn.options.sources, choices);
  Witness witness;
  add_to(witness, drawn);
  NaivePlanner naive(drawn);
  const std::optional<std::vector<Move>> expected = naive.deterministic();
  RC_CLASSIFY(expected.has_value(), "complete");
  if (expected) {
    const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options);
    RC_ASSERT(moves_of(*plan, drawn, naive.names()) == *expected);
    return;
  }
  Diagnostics diagnostics;
  RC_ASSERT(!make_plan(side_of(drawn.source), side_of(drawn.target), drawn.options, PlanLimits{}, diagnostics));
  log_diagnostics(diagnostics);
  RC_ASSERT(diagnostics.has(Rule::kPlanGap) || diagnostics.has(Rule::kPlanEmpty));
}

// The most that any set of interfaces has to send between them because no other can, for each of them.
uint64_t least_highest_load(NaivePlanner& naive, const PlanCase& drawn) {
  std::map<uint64_t, std::vector<Move>> only_from;  // by the set of interfaces, as bits
  naive.for_each_required([&](uint64_t, const Component&, Move move) {
    uint64_t nics = 0;
    for (const uint32_t source : naive.all_candidates(move)) {
      Move one = move;
      one.source = source;
      const std::vector<uint64_t> load = loads_of({one}, drawn, naive.names());
      nics |= uint64_t{1} << (std::max_element(load.begin(), load.end()) - load.begin());
    }
    only_from[nics].push_back(move);
  });
  uint64_t all = 0;
  std::vector<std::pair<uint64_t, uint64_t>> bytes;
  for (const auto& [nics, moves] : only_from) {
    const std::vector<uint64_t> loads = loads_of(moves, drawn, naive.names());
    bytes.emplace_back(nics, std::accumulate(loads.begin(), loads.end(), uint64_t{0}));
    all |= nics;
  }
  uint64_t bound = 0;
  for (uint64_t set = all; set > 0; set = (set - 1) & all) {
    uint64_t sum = 0;
    for (const auto& [nics, own] : bytes)
      if ((nics & ~set) == 0) sum += own;
    const uint64_t count = static_cast<uint64_t>(__builtin_popcountll(set));
    bound = std::max(bound, (sum + count - 1) / count);
  }
  return bound;
}

// Whether the blocks that a balanced choice deals out whole (one layer and head for one target, of which the same
// sources have the same tokens) are all of one size.
bool blocks_weigh_the_same(NaivePlanner& naive, const PlanCase& drawn) {
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, uint64_t, std::vector<uint32_t>>, std::vector<Move>> blocks;
  naive.for_each_required([&](uint64_t, const Component&, const Move& move) {
    blocks[{move.target, move.component, move.layer, move.head, naive.candidates(move)}].push_back(move);
  });
  std::set<uint64_t> bytes;
  for (const auto& [block, moves] : blocks) bytes.insert(highest(loads_of(moves, drawn, naive.names())));
  return bytes.size() <= 1;
}

// True when it is better than the deterministic choice.
bool check_balanced(const LiveCase& drawn) {
  BalanceReport report;
  const Valid<TransferPlan> plan = plan_or_fail(side_of(drawn.source), side_of(drawn.target), drawn.options, &report);
  NaivePlanner naive(drawn);
  std::vector<Move> moves = moves_of(*plan, drawn, naive.names());
  for (const Move& move : moves) RC_ASSERT(naive.can_send(move, move.source));
  const uint64_t load = highest(loads_of(moves, drawn, naive.names()));
  const std::optional<std::vector<Move>> deterministic = naive.deterministic();
  RC_ASSERT(deterministic.has_value());
  const uint64_t deterministic_load = highest(loads_of(*deterministic, drawn, naive.names()));
  RC_LOG() << fmt::format("load {}, deterministic {}; reported: {}, deterministic {}, bound {}", load,
                          deterministic_load, report.balanced_bytes, report.deterministic_bytes, report.bound_bytes)
           << "\n";
  RC_ASSERT(load == report.balanced_bytes);
  RC_ASSERT(load <= deterministic_load);
  RC_ASSERT(report.deterministic_bytes == deterministic_load);
  RC_ASSERT(load >= report.bound_bytes);
  RC_ASSERT(report.bound_bytes >= least_highest_load(naive, drawn));
  if (blocks_weigh_the_same(naive, drawn)) RC_ASSERT(load == report.bound_bytes);
  // The same elements as in the deterministic plan, each once.
  std::vector<Move> expected = *deterministic;
  for (std::vector<Move>* list : {&moves, &expected}) {
    for (Move& move : *list) move.source = 0;
    std::sort(list->begin(), list->end());
  }
  RC_ASSERT(moves == expected);
  return load < deterministic_load;
}

RC_GTEST_PROP(Plan, BalancedIsNoWorseThanDeterministicAndNoBetterThanTheBound, (const Draw& draw)) {
  LiveCase drawn = random_live_case(draw);
  Choices choices(draw, Section::kStore);
  drawn.options.selection = SourceSelection::kBalanced;
  Witness witness;
  add_to(witness, drawn);
  bool better = false;
  for (int times = 0; times < 4; ++times) {
    drawn.options.nics = random_nics(drawn.source, choices);
    better |= check_balanced(drawn);
  }
  RC_CLASSIFY(better, "better");
}

}  // namespace
}  // namespace crossdock::testing
