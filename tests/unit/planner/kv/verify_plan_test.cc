// Plans against their two documents: right ones are accepted, and each way of being wrong is told with its place. The
// definition that they are compared with looks at each element.
#include "planner/kv/verify_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/kv/partition.h"
#include "model/text.h"
#include "tests/support/builders.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"

namespace crossdock {

inline void PrintTo(const PlanDiagnostic& diagnostic, std::ostream* out) {
  *out << fmt::format("kind {} tensor {} target {} layers {} heads {} tokens {} edges {}",
                      static_cast<int>(diagnostic.kind), diagnostic.tensor, diagnostic.target,
                      range_text(diagnostic.layers), range_text(diagnostic.heads), range_text(diagnostic.tokens),
                      fmt::join(diagnostic.edges, ","));
}

namespace testing {
namespace {

using Kind = PlanDiagnostic::Kind;

// ---- Documents ----

CacheSchema keys_and_values(uint64_t layer_count = 4, uint64_t head_count = 4) {
  return *attention(layer_count, head_count);
}

Valid<PlacementManifest> placed(const CacheSchema& schema, const PartitionSizes& sizes) {
  return placed(valid_or_die(schema), sizes);
}

// Two documents and their sides. The digests stand for the documents; what they are is of no account here.
struct Pair {
  Valid<PlacementManifest> source;
  Valid<PlacementManifest> target;
  PlanSide source_side{source, sha256("source")};
  PlanSide target_side{target, sha256("target")};

  Pair(Valid<PlacementManifest> of_source, Valid<PlacementManifest> of_target)
      : source(std::move(of_source)), target(std::move(of_target)) {}
  Pair(const CacheSchema& schema, const PartitionSizes& of_source, const PartitionSizes& of_target)
      : Pair(placed(schema, of_source), placed(schema, of_target)) {}
  Pair(const Pair&) = delete;  // the sides refer to the documents
  Pair& operator=(const Pair&) = delete;
};

// ---- Definitions, element by element ----

bool in(const IntervalSet& set, uint64_t value) {
  return std::any_of(set.ranges().begin(), set.ranges().end(),
                     [value](Range range) { return range.begin() <= value && value < range.end(); });
}

bool naive_in(const TokenSet& set, uint64_t token) {
  return in(set.intervals, token) &&
         (!set.cycle || in(set.cycle->blocks, token / set.cycle->block_tokens % set.cycle->cycle_blocks));
}

bool naive_owns(const PlanSide& side, size_t owner, const Component& component, uint64_t layer, uint64_t head,
                uint64_t token) {
  for (const Ownership& ownership : side.owners()[owner].owns) {
    if (!in(ownership.layers, layer) || !in(ownership.heads, head)) continue;
    if (std::count(ownership.components.begin(), ownership.components.end(), component.name) == 0) continue;
    if (component.is_state() ? token == 0 : in({side.tokens()}, token) && naive_owns_token(ownership.tokens, token))
      return true;
  }
  return false;
}

size_t group_of(const CacheSchema& schema, uint64_t layer) {
  for (size_t i = 0; i < schema.groups.size(); ++i)
    if (in(schema.groups[i].layers, layer)) return i;
  return SIZE_MAX;
}

// Of the last tokens, as many as the window has, and what shares a row with the first of them.
Range naive_live_tokens(const LayerGroup& of, const Component& component, Range snapshot) {
  uint64_t begin = snapshot.begin();
  while (of.window_tokens && snapshot.end() - begin > *of.window_tokens) ++begin;
  while (begin > snapshot.begin() && begin % *component.tokens_per_row != 0) --begin;
  return Range(begin, snapshot.end());
}

struct Asked {
  std::optional<Range> snapshot_tokens;
  Range tokens = Range::all();
};

std::vector<PlanTensor> naive_tensors(const CacheSchema& source, const PlanSide& target, const Asked& asked) {
  const CacheSchema& schema = target.cache_schema();
  std::map<std::pair<size_t, size_t>, std::vector<Range>> layers_of;  // of target group and source group
  for (const LayerGroup& of : schema.groups)
    for (const Range range : of.layers.ranges())
      for (uint64_t layer = range.begin(); layer < range.end(); ++layer)
        layers_of[{group_of(schema, layer), group_of(source, layer)}].push_back(Range(layer, layer + 1));
  std::vector<PlanTensor> tensors;
  for (const auto& [groups, layers] : layers_of) {
    const LayerGroup& of = schema.groups[groups.first];
    for (const Component& component : of.components) {
      Range tokens(0, 1);
      if (!component.is_state())
        tokens = (asked.snapshot_tokens ? naive_live_tokens(of, component, *asked.snapshot_tokens) : target.tokens())
                     .intersect(asked.tokens);
      tensors.push_back(PlanTensor{component, IntervalSet::from_ranges(layers), of.window_tokens, tokens});
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const PlanTensor& a, const PlanTensor& b) {
    return std::tie(a.layers, a.component.name) < std::tie(b.layers, b.component.name);
  });
  return tensors;
}

// Where tokens have no end, all cycles of these tests repeat after a divisor of kPeriod and intervals end below it.
constexpr uint64_t kPeriod = 24;
constexpr uint64_t kTokensLookedAt = 4 * kPeriod;

Range looked_at(const PlanTensor& tensor) { return tensor.tokens.intersect(Range(0, kTokensLookedAt)); }

template <class Visit>  // visit(layer, head)
void for_each_row(const PlanTensor& tensor, Visit visit) {
  for (const Range range : tensor.layers.ranges())
    for (uint64_t layer = range.begin(); layer < range.end(); ++layer)
      for (uint64_t head = 0; head < tensor.component.head_count; ++head) visit(layer, head);
}

std::vector<PlanEnd> all_ends(const PlanSide& side) {
  std::vector<PlanEnd> ends;
  for (const PlanOwner& owner : side.owners()) ends.push_back(PlanEnd(std::string(owner.end)));
  return ends;
}

uint32_t add_layer_set(TransferPlan& plan, IntervalSet layers) {
  plan.layer_sets.push_back(std::move(layers));
  return static_cast<uint32_t>(plan.layer_sets.size() - 1);
}

uint32_t add_token_set(TransferPlan& plan, TokenSet tokens) {
  plan.token_sets.push_back(std::move(tokens));
  return static_cast<uint32_t>(plan.token_sets.size() - 1);
}

void drop_idle_sources(TransferPlan& plan) {
  std::vector<bool> is_used(plan.sources.size());
  for (const Edge& edge : plan.edges) is_used[edge.source] = true;
  std::vector<PlanEnd> used;
  std::vector<uint32_t> new_index(plan.sources.size());
  for (size_t i = 0; i < plan.sources.size(); ++i) {
    new_index[i] = static_cast<uint32_t>(used.size());
    if (is_used[i]) used.push_back(plan.sources[i]);
  }
  plan.sources = std::move(used);
  for (Edge& edge : plan.edges) edge.source = new_index[edge.source];
}

// Tokens that one source brings, in either form.
TokenSet set_of(const std::vector<bool>& chosen, const PlanTensor& tensor, Rng& rng) {
  const bool has_end = tensor.tokens.end() <= kTokensLookedAt;
  std::vector<Range> ranges;
  const uint64_t end = has_end ? chosen.size() : kPeriod;
  for (uint64_t token = 0; token < end; ++token)
    if (chosen[token]) ranges.push_back(Range(token, token + 1));
  IntervalSet tokens = IntervalSet::from_ranges(std::move(ranges));
  const bool fits_a_cycle = tensor.component.tokens_per_row == uint64_t{1} && end <= kPeriod;
  if (fits_a_cycle && (!has_end || rng.chance(1, 2)))
    return TokenSet{{tensor.tokens}, CyclicTokens{1, kPeriod, std::move(tokens)}};
  return TokenSet{std::move(tokens), std::nullopt};
}

// A right plan: for each target, tensor, layer and head an edge from each source that is drawn for a row of tokens.
// Edges that differ in nothing but their layers or heads are sometimes one.
TransferPlan naive_plan(const PlanSide& source, const PlanSide& target, const Asked& asked, Rng& rng) {
  TransferPlan plan;
  plan.kind = source.kind() != SideKind::kRuntime   ? PlanKind::kRestore
              : target.kind() != SideKind::kRuntime ? PlanKind::kUpload
                                                    : PlanKind::kLive;
  plan.source_digest = source.digest();
  plan.target_digest = target.digest();
  plan.snapshot_tokens = asked.snapshot_tokens;
  plan.tokens = asked.tokens;
  plan.sources = all_ends(source);
  plan.targets = all_ends(target);
  plan.tensors = naive_tensors(source.cache_schema(), target, asked);
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, TokenSet, uint64_t>, std::vector<std::vector<Range>>> layers_of;
  for (uint32_t t = 0; t < plan.targets.size(); ++t)
    for (uint32_t i = 0; i < plan.tensors.size(); ++i)
      for_each_row(plan.tensors[i], [&](uint64_t layer, uint64_t head) {
        const PlanTensor& tensor = plan.tensors[i];
        std::map<size_t, std::vector<bool>> chosen;  // of each source
        const uint64_t taste = rng.chance(1, 2) ? 0 : rng.next();
        const Range tokens = looked_at(tensor);
        for (uint64_t token = tokens.begin(); token < tokens.end(); ++token) {
          if (!naive_owns(target, t, tensor.component, layer, head, token)) continue;
          std::vector<size_t> owners;
          for (size_t s = 0; s < plan.sources.size(); ++s)
            if (naive_owns(source, s, tensor.component, layer, head, token)) owners.push_back(s);
          if (owners.empty()) continue;
          const uint64_t row = token % kPeriod / tensor.component.tokens_per_row.value_or(1);
          std::vector<bool>& of_source = chosen[owners[(taste >> row) % owners.size()]];
          of_source.resize(tokens.end());
          of_source[token] = true;
        }
        for (const auto& [s, tokens_chosen] : chosen) {
          auto& lists = layers_of[{t, static_cast<uint32_t>(s), i, set_of(tokens_chosen, tensor, rng), head}];
          if (lists.empty() || rng.chance(1, 4)) lists.emplace_back();
          lists.back().push_back(Range(layer, layer + 1));
        }
      });
  for (const auto& [key, lists] : layers_of)
    for (const std::vector<Range>& list : lists) {
      const auto& [t, s, tensor, tokens, head] = key;
      const IntervalSet layers = IntervalSet::from_ranges(list);
      if (!plan.edges.empty() && rng.chance(1, 2)) {
        Edge& last = plan.edges.back();
        if (std::tie(last.target, last.source, last.tensor) == std::tie(t, s, tensor) && last.heads.end() == head &&
            plan.layer_sets[last.layer_set] == layers && plan.token_sets[last.token_set] == tokens) {
          last.heads = Range(last.heads.begin(), head + 1);
          continue;
        }
      }
      plan.edges.push_back(
          Edge{t, s, tensor, add_layer_set(plan, layers), Range(head, head + 1), add_token_set(plan, tokens)});
    }
  drop_idle_sources(plan);
  return plan;
}

// ---- Checking ----

Valid<TransferPlan> valid_plan(TransferPlan plan) {
  Diagnostics diagnostics;
  auto valid = Valid<TransferPlan>::make(std::move(plan), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.kept()) ADD_FAILURE() << diagnostic.to_line();
  return *valid;
}

struct Verdict {
  PlanProof proof;
  std::vector<std::string> lines;
  std::vector<Rule> rules;  // one for each line
};

Verdict verify(const TransferPlan& plan, const PlanSide& source, const PlanSide& target,
               const VerifyLimits& limits = VerifyLimits()) {
  Diagnostics diagnostics("plan");
  Verdict verdict{verify_plan(valid_plan(plan), source, target, limits, diagnostics), {}, {}};
  for (const Diagnostic& diagnostic : diagnostics.kept()) {
    verdict.lines.push_back(diagnostic.to_line());
    verdict.rules.push_back(diagnostic.rule);
  }
  return verdict;
}

Verdict verify(const TransferPlan& plan, const Pair& pair, const VerifyLimits& limits = VerifyLimits()) {
  return verify(plan, pair.source_side, pair.target_side, limits);
}

using Lines = std::vector<std::string>;
using Rules = std::vector<Rule>;

// ---- Plans written out: two tensor-parallel sources, two pipeline stages as targets ----

struct Stages : Pair {
  // Sources p0-t0 (heads 0-1) and p0-t1 (heads 2-3) of layers 0-3; targets p0-t0 (layers 0-1) and p1-t0 (layers 2-3)
  // with all heads.
  explicit Stages(const CacheSchema& schema = keys_and_values()) : Pair(schema, {.tp = 2}, {.pp = 2}) {}

  // Edges 0-3 to p0-t0, 4-7 to p1-t0: from p0-t0 (key, value), then from p0-t1. Tokens [0,16) of all.
  TransferPlan plan() const {
    TransferPlan plan;
    plan.source_digest = source_side.digest();
    plan.target_digest = target_side.digest();
    plan.tokens = Range(0, 16);
    plan.sources = {PlanEnd("p0-t0"), PlanEnd("p0-t1")};
    plan.targets = {PlanEnd("p0-t0"), PlanEnd("p1-t0")};
    const std::vector<Component>& components = target->cache_schema.groups[0].components;
    for (const Component& component : components)
      plan.tensors.push_back(PlanTensor{component, {Range(0, 4)}, std::nullopt, Range(0, 16)});
    plan.layer_sets = {{Range(0, 2)}, {Range(2, 4)}};
    plan.token_sets = {{{Range(0, 16)}, std::nullopt}};
    for (uint32_t stage = 0; stage < 2; ++stage)
      for (uint32_t from = 0; from < 2; ++from)
        for (uint32_t tensor = 0; tensor < 2; ++tensor)
          plan.edges.push_back(Edge{stage, from, tensor, stage, Range(2 * from, 2 * from + 2), 0});
    return plan;
  }
};

TEST(VerifyPlan, APlanThatBringsEachElementOnceIsAccepted) {
  const Stages stages;
  const Verdict verdict = verify(stages.plan(), stages);
  EXPECT_EQ(verdict.lines, Lines());
  EXPECT_TRUE(verdict.proof.diagnostics.empty());
  EXPECT_TRUE(verdict.proof.complete);
  EXPECT_EQ(verdict.proof.diagnostic_count, 0u);
  EXPECT_EQ(verdict.proof.cells, 8u);  // 2 targets x 2 tensors x heads [0,2) and [2,4)
}

TEST(VerifyPlan, AMissingEdgeIsAGapWithItsCoordinates) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges.erase(plan.edges.begin() + 7);
  const Verdict verdict = verify(plan, stages);
  const PlanDiagnostic gap{Kind::kGap, 1, 1, Range(2, 4), Range(2, 4), Range(0, 16), {}};
  EXPECT_EQ(verdict.proof.diagnostics, std::vector<PlanDiagnostic>{gap});
  EXPECT_EQ(verdict.lines, Lines{"plan target 'p1-t0': layers 2-3 component value heads [2,4) tokens [0,16): no edge "
                                 "brings them [plan-gap]"});
}

TEST(VerifyPlan, AnEdgeThatIsTooShortLeavesAGapInLayersHeadsOrTokens) {
  const Stages stages;
  TransferPlan layers = stages.plan();
  layers.edges[0].layer_set = add_layer_set(layers, {Range(1, 2)});
  EXPECT_EQ(verify(layers, stages).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(0, 2), Range(0, 16), {}}}));
  TransferPlan heads = stages.plan();
  heads.edges[0].heads = Range(0, 1);
  EXPECT_EQ(verify(heads, stages).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 2), Range(1, 2), Range(0, 16), {}}}));
  TransferPlan tokens = stages.plan();
  tokens.edges[0].token_set = add_token_set(tokens, {{Range(0, 4), Range(5, 9), Range(11, 16)}, std::nullopt});
  EXPECT_EQ(verify(tokens, stages).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 2), Range(0, 2), Range(4, 5), {}}}));
}

TEST(VerifyPlan, TwoEdgesForOneElementAreAnOverlapThatNamesBoth) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges[1].heads = Range(0, 3);  // the third head is of the other source, which brings it too
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kOverlap, 1, 0, Range(0, 2), Range(2, 3), Range(0, 16), {1, 3}},
                                         {Kind::kNotSource, 1, 0, Range(0, 2), Range(2, 3), Range(0, 16), {1}}}));
  EXPECT_EQ(verdict.lines,
            (Lines{"plan target 'p0-t0': layers 0-1 component value heads [2,3) tokens [0,16): edge 1 from 'p0-t0' and "
                   "edge 3 from 'p0-t1' bring them [plan-overlap]",
                   "plan target 'p0-t0': layers 0-1 component value heads [2,3) tokens [0,16): edge 1 from 'p0-t0' "
                   "takes them, and that source does not own them [plan-source]"}));
}

TEST(VerifyPlan, AnEdgeOutsideThePartOfItsTargetIsRefused) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges[4].layer_set = add_layer_set(plan, {Range(1, 4)});  // p1-t0 has layers 2-3
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kNotTarget, 0, 1, Range(1, 2), Range(0, 2), Range(0, 16), {4}}}));
  EXPECT_EQ(verdict.lines, Lines{"plan target 'p1-t0': layers 1 component key heads [0,2) tokens [0,16): edge 4 from "
                                 "'p0-t0' brings them, and the target does not require them [plan-target]"});
}

TEST(VerifyPlan, AWriterThatDoesNotOwnWhatItSendsIsRefused) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges[0].source = 1;  // with the heads of source 0; now the second key edge to p0-t0
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.rules, Rules{Rule::kPlanSource});
  ASSERT_EQ(verdict.proof.diagnostics.size(), 1u);
  const PlanDiagnostic& diagnostic = verdict.proof.diagnostics[0];
  EXPECT_EQ(std::tuple(diagnostic.kind, diagnostic.tensor, diagnostic.target), std::tuple(Kind::kNotSource, 0u, 0u));
  EXPECT_EQ(std::tuple(diagnostic.layers, diagnostic.heads, diagnostic.tokens),
            std::tuple(Range(0, 2), Range(0, 2), Range(0, 16)));
}

TEST(VerifyPlan, AnEdgeMayTakeFromSeveralOwnershipsOfItsSource) {
  constexpr uint64_t kHeads = 12;
  const CacheSchema schema{{group({Range(0, 1)}, {rows("key", 2 * kHeads)})}};
  PlacementManifest source = *placed(schema, {.tp = 2});
  for (Part& part : source.parts) {  // one ownership for each head
    const Ownership whole = part.owns[0];
    part.owns.assign(kHeads, whole);
    for (uint64_t i = 0; i < kHeads; ++i) {
      const uint64_t head = whole.heads.hull().begin() + i;
      part.owns[i].heads = IntervalSet{Range(head, head + 1)};
    }
  }
  const Pair pair(valid_or_die(source), placed(schema, {}));
  TransferPlan plan;
  plan.source_digest = pair.source_side.digest();
  plan.target_digest = pair.target_side.digest();
  plan.sources = {PlanEnd("p0-t0"), PlanEnd("p0-t1")};
  plan.targets = {PlanEnd("p0-t0")};
  plan.tensors = naive_tensors(schema, pair.target_side, {});
  plan.layer_sets = {{Range(0, 1)}};
  plan.token_sets = {{{Range::all()}, std::nullopt}};
  plan.edges = {{0, 0, 0, 0, Range(0, kHeads), 0},
                {0, 1, 0, 0, Range(kHeads, 2 * kHeads - 1), 0},
                {0, 1, 0, 0, Range(2 * kHeads - 1, 2 * kHeads), 0}};
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.edges[0].heads = Range(0, kHeads + 1);
  plan.edges[1].heads = Range(kHeads + 1, 2 * kHeads - 1);
  EXPECT_EQ(verify(plan, pair).proof.diagnostics,
            (std::vector<PlanDiagnostic>{
                {Kind::kNotSource, 0, 0, Range(0, 1), Range(kHeads, kHeads + 1), Range::all(), {0}}}));
}

TEST(VerifyPlan, APlanThatBringsNothingIsEmptyAndAllIsAGap) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges.clear();
  plan.sources.clear();
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.rules, (Rules{Rule::kPlanEmpty, Rule::kPlanGap, Rule::kPlanGap, Rule::kPlanGap, Rule::kPlanGap}));
  EXPECT_EQ(verdict.proof.diagnostics[3],
            (PlanDiagnostic{Kind::kGap, 1, 1, Range(2, 4), Range(0, 4), Range(0, 16), {}}));
}

TEST(VerifyPlan, APlanWithoutEdgesIsRightWhenNothingIsRequired) {
  // A target that owns nothing: the second stage of a model of one layer.
  const Pair pair(keys_and_values(2), {}, {.pp = 2, .layers_per_stage = {2, 0}});
  TransferPlan plan;
  plan.source_digest = pair.source_side.digest();
  plan.target_digest = pair.target_side.digest();
  plan.targets = {PlanEnd("p1-t0")};
  plan.tensors = naive_tensors(pair.source->cache_schema, pair.target_side, {});
  EXPECT_EQ(verify(plan, pair).lines, Lines());
}

TEST(VerifyPlan, OnlyTheTargetsOfThePlanRequireSomething) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.targets.pop_back();
  plan.edges.resize(4);
  EXPECT_EQ(verify(plan, stages).lines, Lines());
}

TEST(VerifyPlan, APlanForOtherDocumentsIsRefused) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.edges.clear();  // nothing is said about gaps against another document
  plan.sources.clear();
  plan.source_digest = sha256("another");
  Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.rules, Rules{Rule::kPlanIdentity});
  EXPECT_EQ(verdict.lines[0], fmt::format("plan source_digest: {} is not that of placement 'p', {} [plan-identity]",
                                          sha256("another").hex(), sha256("source").hex()));
  plan.source_digest = stages.source_side.digest();
  plan.target_digest = sha256("another");
  EXPECT_EQ(verify(plan, stages).rules, Rules{Rule::kPlanIdentity});
}

TEST(VerifyPlan, TheKindOfAPlanFitsItsSides) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.kind = PlanKind::kUpload;
  const Verdict verdict = verify(plan, stages);
  EXPECT_EQ(verdict.lines,
            Lines{"plan kind: upload does not lead from placement 'p' to placement 'p' [plan-identity]"});
  plan.kind = PlanKind::kRestore;
  EXPECT_EQ(verify(plan, stages).rules, Rules{Rule::kPlanIdentity});
}

TEST(VerifyPlan, BothDocumentsAreAboutOneResource) {
  const Stages stages;
  PlacementManifest other = *stages.target;
  other.resource = ResourceId("another");
  const Pair pair(stages.source, valid_or_die(other));
  EXPECT_EQ(verify(stages.plan(), pair).lines,
            Lines{"plan: placement 'p' is about resource 'r', placement 'p' about 'another' [plan-identity]"});
}

TEST(VerifyPlan, SourcesAndTargetsAreParticipantsOfTheirDocuments) {
  const Stages stages;
  TransferPlan plan = stages.plan();
  plan.sources[1] = PlanEnd("p0-t9");
  plan.targets[1] = PlanEnd("p9-t0");
  EXPECT_EQ(verify(plan, stages).lines,
            (Lines{"plan source 'p0-t9': placement 'p' has no such participant or part [plan-participant]",
                   "plan target 'p9-t0': placement 'p' has no such participant or part [plan-participant]"}));
}

TEST(VerifyPlan, ATensorHasTheDimsWindowLayersAndTokensOfTheDocuments) {
  const Stages stages;
  const auto line_after = [&](auto change) {
    TransferPlan plan = stages.plan();
    change(plan.tensors[1]);
    const Verdict verdict = verify(plan, stages);
    EXPECT_EQ(verdict.proof.cells, 0u);
    return verdict.lines.size() == 1 ? verdict.lines[0] : fmt::format("{} lines", verdict.lines.size());
  };
  const std::string place = "plan layers 0-3 component value: ";
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.head_dim = 16; }),
            place + "head_dim 16 in the plan, 8 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.head_count = 5; }),
            place + "head_count 5 in the plan, 4 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.item_bytes = 4; }),
            place + "item_bytes 4 in the plan, 2 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.dtype = "float16"; }),
            place + "dtype float16 in the plan, bfloat16 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.encoding = "packed"; }),
            place + "encoding packed in the plan, plain in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.component.tokens_per_row = 2; }),
            place + "tokens_per_row 2 in the plan, 1 in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.window_tokens = 8; }),
            place + "window_tokens 8 in the plan, none in the target [plan-tensor]");
  EXPECT_EQ(line_after([](PlanTensor& tensor) { tensor.tokens = Range(0, 17); }),
            place + "tokens [0,17) in the plan, [0,16) follow from its tokens and the documents [plan-tensor]");
}

TEST(VerifyPlan, TensorsAreExactlyThoseOfTheDocuments) {
  const Stages stages;
  TransferPlan missing = stages.plan();
  missing.tensors.pop_back();
  std::erase_if(missing.edges, [](const Edge& edge) { return edge.tensor == 1; });
  EXPECT_EQ(verify(missing, stages).lines,
            Lines{"plan layers 0-3 component value: the plan has no such tensor [plan-tensor]"});
  TransferPlan extra = stages.plan();
  extra.tensors.push_back(PlanTensor{rows("zeta", 4), {Range(0, 4)}, std::nullopt, Range(0, 16)});
  EXPECT_EQ(verify(extra, stages).lines,
            Lines{"plan layers 0-3 component zeta: tensor 2 is none of the two documents [plan-tensor]"});
  TransferPlan other_layers = stages.plan();
  other_layers.tensors[1].layers = IntervalSet{Range(0, 5)};
  EXPECT_EQ(verify(other_layers, stages).rules, (Rules{Rule::kPlanTensor, Rule::kPlanTensor}));
}

TEST(VerifyPlan, DocumentsThatDoNotFitTogetherAreRefusedWithTheField) {
  const auto line_after = [](auto change) {
    CacheSchema schema = keys_and_values();
    change(schema.groups[0]);
    const Pair pair(placed(schema, {.tp = 2}), placed(keys_and_values(), {.pp = 2}));
    const Verdict verdict = verify(Stages().plan(), pair);
    return verdict.lines.size() == 1 ? verdict.lines[0] : fmt::format("{} lines", verdict.lines.size());
  };
  EXPECT_EQ(line_after([](LayerGroup&) {}), "0 lines");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components.push_back(rows("zeta", 4)); }), "0 lines");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components[0].dtype = "float16"; }),
            "plan layers 0-3 component key: dtype float16 in the source, bfloat16 in the target [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components[0].head_dim = 4; }),
            "plan layers 0-3 component key: head_dim 4 in the source, 8 in the target [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components[0].encoding = "packed"; }),
            "plan layers 0-3 component key: encoding packed in the source, plain in the target [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components[0].head_count = 8; }),
            "plan layers 0-3 component key: head_count 8 in the source, 4 in the target [plan-schema]");
  EXPECT_EQ(
      line_after([](LayerGroup& of) { of.components[0].tokens_per_row = std::nullopt; }),
      "plan layers 0-3 component key: tokens_per_row none (a state) in the source, 1 in the target [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.components.pop_back(); }),
            "plan layers 0-3 component value: placement 'p' has no such component [plan-schema]");
  EXPECT_EQ(line_after([](LayerGroup& of) { of.window_tokens = 100; }),
            "plan layers 0-3: window_tokens 100 in the source keep less than none in the target [plan-schema]");
}

TEST(VerifyPlan, LayersThatOnlyTheTargetHasAreRefused) {
  const Pair pair(placed(keys_and_values(2), {.tp = 2}), placed(keys_and_values(4), {.pp = 2}));
  TransferPlan plan = Stages().plan();
  for (PlanTensor& tensor : plan.tensors) tensor.layers = IntervalSet{Range(0, 2)};
  plan.edges.resize(4);
  EXPECT_EQ(verify(plan, pair).lines,
            Lines{"plan layers 2-3: are in placement 'p' and not in placement 'p' [plan-schema]"});
  CacheSchema holed = keys_and_values(4);
  holed.groups[0].layers = IntervalSet{Range(0, 1), Range(2, 4)};
  const Pair with_hole(placed(holed, {.tp = 2}), placed(keys_and_values(4), {.pp = 2}));
  EXPECT_EQ(verify(Stages().plan(), with_hole).lines[0],
            "plan layers 1: are in placement 'p' and not in placement 'p' [plan-schema]");
}

TEST(VerifyPlan, ASourceMayKeepMoreThanTheWindowOfTheTargetButNotLess) {
  const auto lines_for = [](std::optional<uint64_t> source_window, std::optional<uint64_t> target_window) {
    CacheSchema source = keys_and_values();
    CacheSchema target = keys_and_values();
    source.groups[0].window_tokens = source_window;
    target.groups[0].window_tokens = target_window;
    TransferPlan plan = Stages().plan();
    for (PlanTensor& tensor : plan.tensors) tensor.window_tokens = target_window;
    return verify(plan, Pair(placed(source, {.tp = 2}), placed(target, {.pp = 2}))).lines;
  };
  EXPECT_EQ(lines_for(std::nullopt, 7), Lines());
  EXPECT_EQ(lines_for(8, 7), Lines());
  EXPECT_EQ(lines_for(7, 7), Lines());
  EXPECT_EQ(lines_for(6, 7),
            Lines{"plan layers 0-3: window_tokens 6 in the source keep less than 7 in the target [plan-schema]"});
}

TEST(VerifyPlan, ATargetMayHaveFewerLayersThanTheSource) {
  Rng rng(1);
  CacheSchema some = keys_and_values();
  some.groups[0].layers = IntervalSet{Range(1, 2), Range(3, 4)};
  const Pair pair(placed(keys_and_values(), {.pp = 2, .tp = 2}), placed(some, {.tp = 4}));
  const TransferPlan plan = naive_plan(pair.source_side, pair.target_side, {}, rng);
  EXPECT_EQ(plan.tensors[0].layers, (IntervalSet{Range(1, 2), Range(3, 4)}));
  EXPECT_EQ(verify(plan, pair).lines, Lines());
}

// ---- Tokens ----

// Source c0 and c1 own blocks of 2 tokens in turn; the target owns all tokens, without end.
struct Interleaved : Pair {
  explicit Interleaved(const CacheSchema& schema = {{group({Range(0, 1)}, {rows("key", 1)})}})
      : Pair(schema, {.cp = 2, .cp_block_tokens = 2}, {}) {}

  TransferPlan plan() const {
    TransferPlan plan;
    plan.source_digest = source_side.digest();
    plan.target_digest = target_side.digest();
    plan.sources = {PlanEnd("p0-t0-c0"), PlanEnd("p0-t0-c1")};
    plan.targets = {PlanEnd("p0-t0")};
    plan.tensors = {PlanTensor{rows("key", 1), {Range(0, 1)}, std::nullopt, Range::all()}};
    plan.layer_sets = {{Range(0, 1)}};
    for (uint32_t from = 0; from < 2; ++from) {
      plan.token_sets.push_back(TokenSet{{Range::all()}, CyclicTokens{2, 2, {Range(from, from + 1)}}});
      plan.edges.push_back(Edge{0, from, 0, 0, Range(0, 1), from});
    }
    return plan;
  }
};

TEST(VerifyPlan, CyclesThatShareOutTokensWithoutEndAreAccepted) {
  const Interleaved pair;
  EXPECT_EQ(verify(pair.plan(), pair).lines, Lines());
}

TEST(VerifyPlan, AMissingBlockOfACycleIsAGapAtItsFirstTokens) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  plan.edges.pop_back();
  plan.sources.pop_back();
  const Verdict verdict = verify(plan, pair);
  EXPECT_EQ(verdict.proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(0, 1), Range(2, 4), {}}}));
}

TEST(VerifyPlan, CyclesOfDifferentShapesAreComparedOverTheirCommonPeriod) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  // The same tokens as [2,4) of every 4, and then also [8,9) of every 12.
  plan.token_sets[1].cycle = CyclicTokens{1, 4, {Range(2, 4)}};
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.token_sets[1].cycle = CyclicTokens{1, 12, {Range(2, 4), Range(6, 9), Range(10, 12)}};
  EXPECT_EQ(verify(plan, pair).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kOverlap, 0, 0, Range(0, 1), Range(0, 1), Range(8, 9), {0, 1}},
                                         {Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(8, 9), {1}}}));
}

TEST(VerifyPlan, ADiagnosticFarBehindTheLastStatedBoundaryIsFound) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  const uint64_t far = uint64_t{1} << 60;
  // From `far` on only [2,3) of every 4 tokens.
  plan.token_sets[1].intervals = IntervalSet{Range(0, far)};
  plan.token_sets.push_back(TokenSet{{Range(far, Range::kUnbounded)}, CyclicTokens{1, 4, {Range(2, 3)}}});
  plan.edges.push_back(Edge{0, 1, 0, 0, Range(0, 1), 2});
  EXPECT_EQ(verify(plan, pair).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(0, 1), Range(far + 3, far + 4), {}}}));
}

TEST(VerifyPlan, AStretchReachesOverBoundariesAndPeriods) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  // Everything from both: twice without end, and not the sources' own.
  for (TokenSet& tokens : plan.token_sets) tokens.cycle.reset();
  plan.token_sets[1].intervals = IntervalSet{Range(5, Range::kUnbounded)};
  EXPECT_EQ(verify(plan, pair).proof.diagnostics,
            (std::vector<PlanDiagnostic>{
                {Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(2, 4), {0}},
                {Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(5, 6), {1}},
                {Kind::kOverlap, 0, 0, Range(0, 1), Range(0, 1), Range(5, Range::kUnbounded), {0, 1}}}));
}

TEST(VerifyPlan, TwoOwnershipsOfOneTargetRequireTheirUnion) {
  const CacheSchema schema{{group({Range(0, 1)}, {rows("key", 1)})}};
  PlacementManifest two_cycles = *placed(schema, {});
  Ownership& owned = two_cycles.parts[0].owns[0];
  owned.tokens = CyclicTokens{2, 2, {Range(0, 1)}};
  Ownership other = owned;
  other.tokens = CyclicTokens{2, 2, {Range(1, 2)}};
  two_cycles.parts[0].owns.push_back(other);
  const Pair pair(placed(schema, {}), valid_or_die(two_cycles));
  TransferPlan plan = Interleaved().plan();
  plan.sources = {PlanEnd("p0-t0")};
  plan.edges = {{0, 0, 0, 0, Range(0, 1), 0}};
  plan.token_sets = {{{Range::all()}, std::nullopt}};
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.token_sets = {{{Range(0, 5)}, std::nullopt}};
  EXPECT_EQ(
      verify(plan, pair).proof.diagnostics,
      (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(0, 1), Range(5, Range::kUnbounded), {}}}));
}

TEST(VerifyPlan, AZigzagIsAccepted) {
  // Blocks {0,3} and {1,2} of a cycle of four.
  const Interleaved pair;
  PlacementManifest zigzag = *pair.source;
  std::get<CyclicTokens>(zigzag.parts[0].owns[0].tokens) = CyclicTokens{3, 4, {Range(0, 1), Range(3, 4)}};
  std::get<CyclicTokens>(zigzag.parts[1].owns[0].tokens) = CyclicTokens{3, 4, {Range(1, 3)}};
  const Pair changed(valid_or_die(zigzag), pair.target);
  TransferPlan plan = pair.plan();
  plan.token_sets[0].cycle = CyclicTokens{3, 4, {Range(0, 1), Range(3, 4)}};
  plan.token_sets[1].cycle = CyclicTokens{3, 4, {Range(1, 3)}};
  EXPECT_EQ(verify(plan, changed).lines, Lines());
  std::swap(plan.token_sets[0], plan.token_sets[1]);
  EXPECT_EQ(verify(plan, changed).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(0, 3), {1}},
                                         {Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(3, 9), {0}}}));
}

TEST(VerifyPlan, CyclesWithoutAShortCommonPeriodReachTheLimit) {
  const Interleaved pair;
  TransferPlan plan = pair.plan();
  plan.token_sets[1].cycle = CyclicTokens{1, 1'000'003, {Range(2, 4)}};
  const Verdict verdict = verify(plan, pair);
  EXPECT_EQ(verdict.rules, Rules{Rule::kPlanLimit});
  EXPECT_FALSE(verdict.proof.complete);
  plan.token_sets[1].cycle = CyclicTokens{uint64_t{1} << 40, (uint64_t{1} << 40) - 1, {Range(2, 4)}};
  EXPECT_EQ(verify(plan, pair).rules, Rules{Rule::kPlanLimit});
}

TEST(VerifyPlan, OfAWindowOnlyTheLastTokensAreRequired) {
  CacheSchema schema{{group({Range(0, 1)}, {rows("key", 1), rows("scale", 1)}, 6)}};
  schema.groups[0].components[1].tokens_per_row = 4;
  const Pair pair(schema, {}, {});
  Rng rng(1);
  const Asked asked{Range(1, 17), Range::all()};
  TransferPlan plan = naive_plan(pair.source_side, pair.target_side, asked, rng);
  plan.token_sets.clear();
  plan.edges.clear();
  plan.edges.push_back(Edge{0, 0, 0, 0, Range(0, 1), add_token_set(plan, {{Range(11, 17)}, std::nullopt})});
  plan.edges.push_back(Edge{0, 0, 1, 0, Range(0, 1), add_token_set(plan, {{Range(8, 17)}, std::nullopt})});
  EXPECT_EQ(plan.tensors[0].tokens, Range(11, 17));
  EXPECT_EQ(plan.tensors[1].tokens, Range(8, 17));  // from the row that holds token 11
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.tensors[0].tokens = Range(1, 17);
  EXPECT_EQ(verify(plan, pair).lines,
            Lines{"plan layers 0 component key: tokens [1,17) in the plan, [11,17) follow from its tokens and the "
                  "documents [plan-tensor]"});
}

TEST(VerifyPlan, TheTokensOfAPlanDoNotCutARow) {
  CacheSchema schema{{group({Range(0, 1)}, {rows("scale", 1)})}};
  schema.groups[0].components[0].tokens_per_row = 4;
  const Pair pair(schema, {}, {});
  Rng rng(1);
  const auto lines_for = [&](Asked asked) {
    return verify(naive_plan(pair.source_side, pair.target_side, asked, rng), pair).lines;
  };
  EXPECT_EQ(lines_for({std::nullopt, Range(4, 16)}), Lines());
  EXPECT_EQ(lines_for({Range(3, 18), Range::all()}), Lines());  // where the snapshot begins and ends
  EXPECT_EQ(lines_for({Range(3, 18), Range(2, 18)}), Lines());
  EXPECT_EQ(lines_for({std::nullopt, Range(4, 18)}),
            Lines{"plan layers 0 component scale: the plan's tokens [4,18) cut a row of 4 tokens [plan-tensor]"});
  EXPECT_EQ(lines_for({Range(3, 18), Range(6, 18)}),
            Lines{"plan layers 0 component scale: the plan's tokens [6,18) cut a row of 4 tokens [plan-tensor]"});
}

TEST(VerifyPlan, AStateIsBroughtOnceWhateverTokensAreAskedFor) {
  const Pair pair({{group({Range(0, 2)}, {state("recurrent", 2)})}}, {.tp = 2}, {});
  Rng rng(1);
  TransferPlan plan = naive_plan(pair.source_side, pair.target_side, {Range(0, 12), Range(4, 8)}, rng);
  EXPECT_EQ(plan.tensors[0].tokens, Range(0, 1));
  EXPECT_EQ(verify(plan, pair).lines, Lines());
  plan.edges.pop_back();
  drop_idle_sources(plan);
  const Verdict verdict = verify(plan, pair);
  EXPECT_EQ(verdict.rules, Rules{Rule::kPlanGap});
  EXPECT_EQ(verdict.proof.diagnostics[0].tokens, Range(0, 1));
}

TEST(VerifyPlan, ASideOwnsTokensOnlyWithinThoseThatItIsAbout) {
  const CacheSchema schema{{group({Range(0, 1)}, {rows("key", 1)})}};
  PlacementManifest short_one = *placed(schema, {});
  short_one.tokens = Range(0, 10);
  TransferPlan plan = Interleaved().plan();
  plan.sources = {PlanEnd("p0-t0")};
  plan.edges.resize(1);
  plan.snapshot_tokens = Range(0, 16);
  plan.tensors[0].tokens = Range(0, 16);
  plan.token_sets[0] = TokenSet{{Range(0, 16)}, std::nullopt};
  const Pair short_source(valid_or_die(short_one), placed(schema, {}));
  EXPECT_EQ(verify(plan, short_source).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kNotSource, 0, 0, Range(0, 1), Range(0, 1), Range(10, 16), {0}}}));
  const Pair short_target(placed(schema, {}), valid_or_die(short_one));
  EXPECT_EQ(verify(plan, short_target).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kNotTarget, 0, 0, Range(0, 1), Range(0, 1), Range(10, 16), {0}}}));
}

// ---- Stores ----

TEST(VerifyPlan, UploadAndRestoreAreProvedLikeALiveMove) {
  Rng rng(1);
  const Valid<PlacementManifest> placement = example_placement();
  const Valid<StoreLayout> layout = example_store_layout();
  const Valid<StoreManifest> manifest = example_store_manifest();
  const PlanSide runtime(placement, sha256("placement"));
  const PlanSide parts(layout, sha256("layout"));
  const PlanSide store(manifest, sha256("manifest"));
  const Asked asked{Range(0, 10), Range::all()};
  const TransferPlan upload = naive_plan(runtime, parts, asked, rng);
  EXPECT_EQ(verify(upload, runtime, parts).lines, Lines());
  EXPECT_EQ(upload.targets.size(), 4u);
  const TransferPlan restore = naive_plan(store, runtime, asked, rng);
  EXPECT_EQ(verify(restore, store, runtime).lines, Lines());
  EXPECT_EQ(restore.sources, std::vector<PlanEnd>{PlanEnd("store")});
  const TransferPlan from_parts = naive_plan(parts, runtime, asked, rng);
  EXPECT_EQ(verify(from_parts, parts, runtime).lines, Lines());

  TransferPlan broken = upload;
  broken.edges.erase(broken.edges.begin());
  drop_idle_sources(broken);
  EXPECT_EQ(verify(broken, runtime, parts).rules, Rules{Rule::kPlanGap});
}

// ---- Reports and limits ----

TEST(VerifyPlan, OneDiagnosticOverNeighbouringSlabsIsOneAndOneLineNamesAllLayers) {
  // Layers 0, 2, 4 have a window. The target's edges are cut at layer 2, the diagnostic is not.
  const CacheSchema schema{{group({Range(0, 1), Range(2, 3), Range(4, 5)}, {rows("key", 2)}, 8),
                            group({Range(1, 2), Range(3, 4), Range(5, 6)}, {rows("key", 2)})}};
  const Pair pair(schema, {}, {});
  Rng rng(1);
  TransferPlan plan = naive_plan(pair.source_side, pair.target_side, {Range(0, 8), Range::all()}, rng);
  plan.edges.clear();
  plan.token_sets = {{{Range(0, 8)}, std::nullopt}};
  const uint32_t first = add_layer_set(plan, {Range(0, 1)});
  const uint32_t others = add_layer_set(plan, {Range(2, 3), Range(4, 5)});
  const uint32_t full = add_layer_set(plan, {Range(1, 2), Range(3, 4), Range(5, 6)});
  plan.edges = {{0, 0, 0, first, Range(0, 1), 0}, {0, 0, 0, others, Range(0, 1), 0}, {0, 0, 1, full, Range(0, 2), 0}};
  const Verdict verdict = verify(plan, pair);
  EXPECT_EQ(verdict.proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 1), Range(1, 2), Range(0, 8), {}},
                                         {Kind::kGap, 0, 0, Range(2, 3), Range(1, 2), Range(0, 8), {}},
                                         {Kind::kGap, 0, 0, Range(4, 5), Range(1, 2), Range(0, 8), {}}}));
  EXPECT_EQ(verdict.lines, Lines{"plan target 'p0-t0': layers 0,2,4 component key heads [1,2) tokens [0,8): no edge "
                                 "brings them [plan-gap]"});

  const Stages stages;
  TransferPlan cut = stages.plan();
  cut.edges[0].heads = Range(0, 1);
  cut.edges[0].layer_set = add_layer_set(cut, {Range(0, 1)});
  cut.edges.push_back(cut.edges[0]);
  cut.edges.back().layer_set = add_layer_set(cut, {Range(1, 2)});
  EXPECT_EQ(verify(cut, stages).proof.diagnostics,
            (std::vector<PlanDiagnostic>{{Kind::kGap, 0, 0, Range(0, 2), Range(1, 2), Range(0, 16), {}}}));
}

TEST(VerifyPlan, TheFirstDiagnosticsAreKeptAndAllAreCounted) {
  const Pair pair(keys_and_values(2, 8), {}, {.pp = 2, .tp = 8});
  TransferPlan plan;
  plan.source_digest = pair.source_side.digest();
  plan.target_digest = pair.target_side.digest();
  plan.targets = all_ends(pair.target_side);
  plan.tensors = naive_tensors(pair.source->cache_schema, pair.target_side, {});
  VerifyLimits limits;
  limits.diagnostic_count_max = 5;
  const Verdict verdict = verify(plan, pair, limits);
  EXPECT_EQ(verdict.proof.diagnostic_count, 32u);  // 16 targets x 2 tensors
  EXPECT_TRUE(verdict.proof.complete);
  ASSERT_EQ(verdict.proof.diagnostics.size(), 5u);
  EXPECT_EQ(verdict.proof.diagnostics[4],
            (PlanDiagnostic{Kind::kGap, 0, 2, Range(0, 1), Range(2, 3), Range::all(), {}}));
  EXPECT_EQ(verdict.lines.back(), "plan: 27 more blocks of elements are wrong [plan-gap]");
  limits.diagnostic_count_max = 0;
  const Verdict counted_only = verify(plan, pair, limits);
  EXPECT_EQ(counted_only.proof.diagnostic_count, 32u);
  EXPECT_FALSE(counted_only.lines.empty());
}

TEST(VerifyPlan, StripesAcrossStripesReachTheWorkLimit) {
  constexpr uint64_t kStripes = 200;
  const Pair pair({{group({Range(0, kStripes)}, {rows("key", kStripes)})}}, {}, {});
  TransferPlan plan;
  plan.source_digest = pair.source_side.digest();
  plan.target_digest = pair.target_side.digest();
  plan.sources = {PlanEnd("p0-t0")};
  plan.targets = {PlanEnd("p0-t0")};
  plan.tensors = naive_tensors(pair.source->cache_schema, pair.target_side, {});
  plan.token_sets = {{{Range::all()}, std::nullopt}};
  const uint32_t all_layers = add_layer_set(plan, {Range(0, kStripes)});
  for (uint64_t i = 0; i < kStripes; ++i) {
    plan.edges.push_back(Edge{0, 0, 0, all_layers, Range(i, i + 1), 0});
    plan.edges.push_back(Edge{0, 0, 0, add_layer_set(plan, {Range(i, i + 1)}), Range(0, kStripes), 0});
  }
  VerifyLimits limits;
  limits.work_max = 100'000;
  const Verdict stopped = verify(plan, pair, limits);
  EXPECT_FALSE(stopped.proof.complete);
  EXPECT_EQ(stopped.rules.front(), Rule::kPlanLimit);
  EXPECT_LT(stopped.proof.cells, 100'000u);
  const Verdict whole = verify(plan, pair);
  EXPECT_TRUE(whole.proof.complete);
  EXPECT_EQ(whole.proof.cells, kStripes * kStripes);
}

// Edges in a grid, from the smallest to the largest: the steps grow with their number and no faster.
TEST(VerifyPlan, TheWorkIsLinearInEdgesThatShareTheirBoundaries) {
  for (const uint64_t layer_count : {4u, 16u, 64u}) {
    const Pair pair(keys_and_values(layer_count, 8), {.pp = layer_count, .tp = 8}, {.pp = layer_count / 2, .tp = 4});
    TransferPlan plan;
    plan.source_digest = pair.source_side.digest();
    plan.target_digest = pair.target_side.digest();
    plan.sources = all_ends(pair.source_side);
    plan.targets = all_ends(pair.target_side);
    plan.tensors = naive_tensors(pair.source->cache_schema, pair.target_side, {});
    plan.token_sets = {{{Range::all()}, std::nullopt}};
    std::vector<uint32_t> layer_sets;
    for (uint64_t layer = 0; layer < layer_count; ++layer)
      layer_sets.push_back(add_layer_set(plan, {Range(layer, layer + 1)}));
    for (uint32_t s = 0; s < plan.sources.size(); ++s)
      for (uint32_t t = 0; t < plan.targets.size(); ++t)
        for (uint32_t tensor = 0; tensor < 2; ++tensor) {
          const Ownership& from = pair.source_side.owners()[s].owns[0];
          const Ownership& to = pair.target_side.owners()[t].owns[0];
          if (to.layers.contains(from.layers) && to.heads.contains(from.heads))
            plan.edges.push_back(Edge{t, s, tensor, layer_sets[from.layers.hull().begin()], from.heads.hull(), 0});
        }
    ASSERT_EQ(plan.edges.size(), layer_count * 8 * 2);
    VerifyLimits limits;
    limits.work_max = plan.edges.size() * 20;
    EXPECT_EQ(verify(plan, pair, limits).lines, Lines()) << layer_count;
  }
}

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
    return in(plan.layer_sets[edge.layer_set], layer) && in({edge.heads}, head);
  };
  for (uint32_t t = 0; t < plan.targets.size(); ++t) {
    const size_t owner = index_of(target, plan.targets[t]);
    for (uint32_t i = 0; i < plan.tensors.size(); ++i)
      for_each_row(plan.tensors[i], [&](uint64_t layer, uint64_t head) {
        const PlanTensor& tensor = plan.tensors[i];
        const Range tokens = looked_at(tensor);
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
    const uint64_t middle = 2 * (1 + rng.below(kPeriod / 2 - 1));
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
    placement.tokens = Range(0, kPeriod);
    for (Part& part : placement.parts)
      for (Ownership& ownership : part.owns) {
        if (!std::holds_alternative<CyclicTokens>(ownership.tokens)) continue;
        std::vector<Range> ranges;
        for (uint64_t token = 0; token < kPeriod; ++token)
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

Asked draw_asked(bool has_end, Rng& rng) {
  Asked asked;
  if (!has_end) return asked;
  if (rng.chance(2, 3)) {
    const uint64_t begin = rng.below(kPeriod);
    asked.snapshot_tokens = Range(begin, begin + 1 + rng.below(kPeriod - begin));
  } else {
    asked.tokens = Range(0, kPeriod);
  }
  if (rng.chance(1, 3)) {
    const uint64_t begin = 2 * rng.below(kPeriod / 2);  // rows have two tokens
    asked.tokens = Range(begin, begin + 2 * (1 + rng.below((kPeriod - begin) / 2)));
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
  const Range tokens = tensor.tokens.intersect(Range(0, kPeriod));
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
  const Pair pair(draw_placement(schemas.source, has_end, rng), draw_placement(schemas.target, has_end, rng));
  const Asked asked = draw_asked(has_end, rng);
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
}  // namespace testing
}  // namespace crossdock
